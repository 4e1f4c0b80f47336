"""An exact study of a finite space ends when all configurations are evaluated, or says that it repeats them.

Where the design has all configurations, no model is fitted, but the program is compiled before the first evaluation.
"""

from __future__ import annotations

import warnings
from itertools import product

import optuna
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenAndConjunction, ForbiddenEqualsClause

import slayr_py as sl
from slayr_py.space import Encoder
from slayr_py.study import StanGPSampler, ask, ask_batch, config_of, create_study, tell
from slayr_py.study.model.exhaustion import Everything

pytestmark = pytest.mark.stan

SPACE = {"n": (0, 2), "k": ["a", "b"]}
CONFIGS = [{"n": n, "k": k} for n, k in product(range(3), "ab")]
ENDS = r"ends after 6 of 9 trials: all 6 configurations are evaluated; noisy=True repeats them"


def run(objective=lambda config: config["n"], budget=9, **options):
    given = {"seed": 1, "progress": False, "initial_configs": CONFIGS, "method": "map", **options}
    return sl.minimize(objective, given.pop("space", SPACE), budget=budget, **given)


@pytest.mark.parametrize("n_parallel", [1, 4])
def test_an_exact_study_ends_when_all_configurations_are_evaluated(n_parallel):
    with pytest.warns(UserWarning, match=ENDS) as warned:
        result = run(n_parallel=n_parallel)
    assert len(warned) == 1
    assert {(trial.params["n"], trial.params["k"]) for trial in result.study.trials} == set(product(range(3), "ab"))
    assert len(result.study.trials) == 6


def test_a_budget_of_all_configurations_is_used_up_without_a_warning():
    assert len(run(budget=6).study.trials) == 6


def test_failures_of_a_configuration_count_as_evaluations():
    def fragile(config):
        if config["n"] == 2:
            raise ValueError("too large")
        return config["n"]

    with pytest.warns(UserWarning, match=ENDS):
        assert len(run(fragile).study.trials) == 6


@pytest.mark.filterwarnings("ignore:2 trials have no value of constraint")
def test_constraints_and_known_configurations_do_not_change_the_end():
    with pytest.warns(UserWarning, match="ends after 4 of 9 trials: all 6 configurations are evaluated"):
        result = run(
            lambda config: (config["n"], {"memory": config["n"]}),
            constraints=["memory >= 1"],
            initial_configs=CONFIGS[2:],
            history=[(config, -1.0) for config in CONFIGS[:2]],
            priors={"sigma_n": sl.LogNormal(-4, 0.5)},
        )
    assert len(result.trials) == 6


def test_fixed_values_end_a_run_earlier():
    words = r"ends after 3 of 9 trials: all 3 configurations with the fixed values {'k': 'b'} are evaluated"
    with pytest.warns(UserWarning, match=words):
        run(fixed={"k": "b"}, initial_configs=CONFIGS[1::2])


def test_a_run_with_all_values_fixed_evaluates_them_once():
    words = r"ends after 1 of 9 trials: the only configuration with the fixed values {'k': 'b', 'n': 1} is evaluated;"
    with pytest.warns(UserWarning, match=words):
        run(fixed=CONFIGS[3], initial_configs=CONFIGS[3:4])


def test_forbidden_and_excluded_configurations_are_not_missed():
    space = ConfigurationSpace(SPACE)
    clause = ForbiddenAndConjunction(ForbiddenEqualsClause(space["n"], 0), ForbiddenEqualsClause(space["k"], "a"))
    space.add(clause)
    with pytest.warns(UserWarning, match="ends after 3 of 9 trials: all 3 configurations are evaluated"):
        run(space=space, within=["n <= 1"], initial_configs=CONFIGS[1:4])


def test_enqueued_trials_are_evaluated_before_the_end(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = create_study(SPACE, storage=url, study_name="s", seed=1, initial_configs=CONFIGS)
    for config in (*CONFIGS, CONFIGS[0]):
        study.enqueue_trial(config)
    with pytest.warns(UserWarning, match="ends after 7 of 9 trials"):
        result = run(storage=url, study_name="s")
    assert [config_of(trial) for trial in result.study.trials] == [*CONFIGS, CONFIGS[0]]


def test_a_run_does_not_repeat_what_another_one_evaluates(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = create_study(SPACE, storage=url, study_name="s", seed=1, initial_configs=CONFIGS)
    trial = ask(study)
    with pytest.warns(UserWarning, match="ends after 6 of 9 trials: all 6 configurations are evaluated or running"):
        assert len(run(storage=url, study_name="s").study.trials) == 6
    tell(study, trial, 1.0)


def test_an_interrupted_trial_is_resumed_before_the_end(tmp_path):
    def interrupted(config):
        if config == CONFIGS[-1]:
            raise KeyboardInterrupt
        return config["n"]

    stored = {"storage": f"sqlite:///{tmp_path}/study.db", "study_name": "s"}
    with pytest.raises(KeyboardInterrupt):
        run(interrupted, **stored)
    with pytest.warns(UserWarning, match=ENDS):
        trials = run(**stored).study.trials
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * 6


def noisy_error(config, trial):
    trial.set_user_attr("y_sd", 0.1)
    return config["n"]


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        (lambda config: config["n"], {"noisy": True}),
        (noisy_error, {"warp": "none"}),
        (lambda config: 1 / config["n"], {"failures": "ignore"}),  # another time it may succeed
    ],
)
def test_a_reason_to_repeat_uses_the_budget_up(objective, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the model explains a part")
        assert len(run(objective, budget=8, **options).study.trials) == 8


@pytest.mark.parametrize("broken", [[1, 4], [0, 1, 2, 3, 4, 5]])
def test_failures_that_are_ignored_are_repeated_before_successes(broken):
    """Also if there is no value to fit yet: then all configurations have failed."""
    calls = []

    def flaky(config):
        calls.append(number := CONFIGS.index(dict(config)))
        if number in broken and calls.count(number) < 2:
            raise ConnectionError("lost")
        return config["n"]

    words = rf"ends after {6 + len(broken)} of 15 trials: all 6 configurations are evaluated; noisy=True repeats them"
    with pytest.warns(UserWarning, match=words) as warned:
        run(flaky, budget=15, failures="ignore", max_consecutive_failures=9)
    assert len(warned) == 1
    assert sorted(calls[6:]) == broken


def test_a_failure_that_is_ignored_is_repeated_without_a_warning():
    study = create_study(SPACE, seed=1, initial_configs=CONFIGS, method="map", failures="ignore")
    for number in range(6):
        trial = ask(study)
        if number == 3:
            tell(study, trial, state=optuna.trial.TrialState.FAIL)
        else:
            tell(study, trial, float(number))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trial = ask(study)
    assert config_of(trial) == CONFIGS[3]
    tell(study, trial, 3.0)
    with pytest.warns(UserWarning, match="^trial 7 repeats .* all 6 configurations are evaluated or running"):
        ask(study)


WARNS = r"^trial 3 repeats the configuration of trial \d: all 3 configurations are evaluated or running. End the study"


def test_ask_warns_once_of_repetitions():
    study = create_study({"n": (0, 2)}, seed=1, n_initial=4, method="map")
    with pytest.warns(UserWarning, match=WARNS) as warned:
        for _ in range(5):
            trial = ask(study)
            tell(study, trial, trial.params["n"])
    assert len(warned) == 1


def test_a_batch_that_is_larger_than_the_space_warns():
    study = create_study({"n": (0, 2)}, seed=1, n_initial=4, method="map")
    with pytest.warns(UserWarning, match=WARNS) as warned:
        trials = ask_batch(study, 5)
    assert len(warned) == 1 and {trial.params["n"] for trial in trials} == {0, 1, 2}


def test_a_context_has_configurations_of_its_own():
    study = create_study(SPACE, seed=1, n_initial=2, method="map")
    with pytest.warns(UserWarning, match=r"^trial 3 repeats .* all 3 configurations with the fixed values {'k': 'b'}"):
        for _ in range(4):
            trial = ask(study, {"k": "b"})
            tell(study, trial, trial.params["n"])


@pytest.mark.parametrize("space", [{"n": (0, 2)}, None])
def test_optunas_loop_warns_once_of_repetitions(space):
    study = optuna.create_study(sampler=StanGPSampler(space, seed=1, n_initial=2, method="map"))
    with pytest.warns(UserWarning, match=WARNS) as warned:
        study.optimize(lambda trial: trial.suggest_int("n", 0, 2), n_trials=5)
    assert len(warned) == 1


def test_a_space_with_a_float_or_too_many_configurations_is_not_enumerated():
    assert Everything(Encoder({"x": (0.0, 1.0), "n": (0, 2)}), None).keys is None
    assert Everything(Encoder({"a": (1, 1000), "b": (1, 1000)}), None).keys is None
    encoder = Encoder({"x": (0.0, 1.0), "n": (0, 2)})
    assert len(Everything(encoder, encoder.fix({"x": 0.5})).keys) == 3
