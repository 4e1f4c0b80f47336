from __future__ import annotations

import threading

import optuna
import pytest
from ConfigSpace import (
    ConfigurationSpace,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    OrdinalHyperparameter,
)
from optuna.trial import TrialState
from testing_studies import suggestion

from slayr_py.errors import InferenceError, SpaceError
from slayr_py.study import StanGPSampler, ask, ask_batch, config_of, create_study, declared_space
from slayr_py.study.model import design
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.trials import observations


def test_the_tth_point_of_the_design_belongs_to_trial_t(plane):
    study = create_study(plane, n_initial=6, seed=3)
    design = [to_params(config) for config in study.sampler.strategy.encoder.sobol(6, 3)]
    trials = [ask(study) for _ in range(6)]  # none is finished, as with six workers
    assert [config_of(trial) for trial in trials] == design
    assert [suggestion(trial)["phase"] for trial in study.trials] == ["initial"] * 6


def test_a_small_discrete_design_is_not_evaluated_twice():
    space = ConfigurationSpace({"a": ["p", "q"], "b": [1, 2]})
    design = create_study(space, n_initial=16, seed=0).sampler.strategy.design.points(0)
    assert len(design) == 4 == len({repr(to_params(config)) for config in design})


@pytest.mark.parametrize(("fixed", "size"), [(None, 39), ({"k": "a"}, 20)])
def test_a_batch_before_any_value_repeats_a_configuration_only_if_no_other_is_left(fixed, size, monkeypatch):
    monkeypatch.setattr(design, "_FILLING", 4)
    space = ConfigurationSpace({"i": (1, 20), "k": ["a", "b"]})
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(space["i"], 3), ForbiddenEqualsClause(space["k"], "b")))
    study = create_study(space, n_initial=4, seed=1, fixed=fixed)
    words = rf"trial {size} repeats the configuration of trial \d+: all {size} .* are evaluated or running"
    with pytest.warns(UserWarning, match=words):
        batch = [repr(config_of(trial)) for trial in ask_batch(study, size + 1)]
    assert len(set(batch[:size])) == size and batch[size] in batch[:size]


@pytest.mark.parametrize("after", [0.0, 60.0])
def test_a_batch_that_takes_long_shows_its_progress(plane, monkeypatch, capsys, after):
    monkeypatch.setattr(declared_space, "_SHOWN_AFTER", after)
    ask_batch(create_study(plane, n_initial=4, seed=1), 3)
    assert ("0/3" in capsys.readouterr().err) == (after == 0.0)


def test_users_configurations_replace_the_design(plane):
    mine = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}]
    study = create_study(plane, initial_configs=mine, seed=1)
    assert [config_of(ask(study)) for _ in range(2)] == mine
    with pytest.raises(SpaceError, match="99"):
        StanGPSampler(plane, initial_configs=[{"x": 99.0, "y": 0.0}])


def test_a_failed_fit_warns_and_falls_back_to_a_random_configuration(plane, monkeypatch, quick):
    study = create_study(plane, n_initial=2, seed=2, **quick)
    for _ in range(2):
        study.tell(ask(study), 1.0)

    def broken(*args, **options):
        raise InferenceError("chain 1 died")

    monkeypatch.setattr(study.sampler.strategy.surrogate.gp, "fit", broken)
    monkeypatch.setattr(study.sampler.strategy.surrogate.gp, "prepare", lambda progress: None)
    with pytest.warns(RuntimeWarning, match="trial 2: the fit failed.*chain 1 died"):
        trial = ask(study)
    record = suggestion(study.trials[2])
    assert record["phase"] == "random" and record["error"] == "chain 1 died" and record["config"] == config_of(trial)


def test_enqueued_trials_are_kept_and_cost_no_fit(plane, quick):
    study = create_study(plane, n_initial=1, seed=0, **quick)
    study.tell(ask(study), 3.0)
    study.enqueue_trial({"x": 0.5, "y": 0.25})
    study.enqueue_trial({"x": 0.5})
    trial = ask(study)
    assert config_of(trial) == {"x": 0.5, "y": 0.25}
    assert suggestion(study.trials[1])["phase"] == "enqueued"
    partly = ask(study)
    assert config_of(partly)["x"] == 0.5 and suggestion(study.trials[2])["phase"] == "model"


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (lambda t: t.suggest_float("LR", 1e-4, 1, log=True), r"trial 0 .*'LR'.* act, lr, n, o; did you mean 'lr'\?$"),
        (lambda t: t.suggest_float("momentum", 0, 1), r"'momentum'.*not declared; the space has act, lr, n, o$"),
        (lambda t: t.suggest_float("lr", 1e-5, 1, log=True), r"'lr' as .*low=1e-05.* declared as .*low=0.0001"),
        (lambda t: t.suggest_float("lr", 1e-4, 1), "'lr' as .*log=False"),
        (lambda t: t.suggest_float("lr", 1e-4, 0.999, log=True), "'lr' as .*0.999"),  # may contain the suggestion
        (lambda t: t.suggest_float("lr", 0.1, 0.1 + 1e-16, log=True), "'lr' as .*low=0.1"),
        (lambda t: t.suggest_int("n", 0, 8, step=2), "'n' as .*step=2"),
        (lambda t: t.suggest_float("n", 0, 8), "'n' as FloatDistribution"),
        (lambda t: t.suggest_categorical("act", ["relu", "tanh", "elu"]), "'act' as .*elu"),
        (lambda t: t.suggest_int("o", 1, 3), "'o' as IntDistribution"),
    ],
)
def test_requests_for_another_parameter_or_range_raise(request_, words):
    space = ConfigurationSpace({"lr": Float("lr", (1e-4, 1.0), log=True), "n": (0, 8), "act": ["relu", "tanh"]})
    space.add(OrdinalHyperparameter("o", [1, 2, 3]))
    study = create_study(space, n_initial=3, seed=1)
    trial = study.ask()
    with pytest.raises(SpaceError, match=words):
        request_(trial)
    assert trial.suggest_int("n", 0, 8) == suggestion(study.trials[0])["config"]["n"]


def test_bounds_that_configspace_rounds_may_be_requested_as_they_were_declared():
    low = 1e-7 / 3
    high = 1 / 3
    study = create_study(ConfigurationSpace({"x": (low, high)}), n_initial=1)
    assert low <= study.ask().suggest_float("x", low, high) <= high


def test_an_inactive_parameter_cannot_be_requested(mixed):
    study = create_study(mixed, n_initial=8, seed=0)
    study.enqueue_trial({"kernel": "rbf"})
    with pytest.raises(SpaceError, match="'degree', which is inactive in its configuration.*kernel == 'poly'"):
        study.ask().suggest_int("degree", 1, 8, log=True)


def test_a_parameter_that_only_an_enqueued_parent_activates_is_suggested_with_it(mixed):
    def run() -> list[int]:
        study = create_study(mixed, n_initial=8, seed=0)
        drawn = []
        for _ in range(8):
            study.enqueue_trial({"kernel": "poly"})
            drawn.append(config_of(ask(study))["degree"])
        assert [suggestion(trial)["config"]["degree"] for trial in study.trials] == drawn
        return drawn

    assert run() == run() and len(set(run())) > 1


def test_complete_trials_that_never_asked_for_a_parameter_are_left_out_of_the_fit(plane, quick, monkeypatch):
    study = create_study(plane, n_initial=5, seed=1, **quick)
    study.tell(ask(study), 1.0)
    partly = study.ask()
    partly.suggest_float("x", -5, 10)
    study.tell(partly, 0.0)
    with pytest.warns(UserWarning, match=f"^trial 1 of study '{study.study_name}' never asked for 'y': left out"):
        partly = study.ask()
        partly.suggest_float("x", -5, 10)
    study.tell(partly, 0.0)
    study.add_trial(optuna.create_trial(value=0.0))  # by another sampler
    fitted = []
    monkeypatch.setattr(study.sampler.strategy.surrogate.gp, "prepare", lambda progress: None)
    monkeypatch.setattr(
        study.sampler.strategy.surrogate.gp, "fit", lambda configs, y, **options: fitted.append((len(configs), list(y)))
    )
    with pytest.warns(UserWarning, match="^trial 3 of study .* never asked for 'x', 'y': left out"):
        study.sampler.fit(study)
    study.sampler.fit(study)
    assert fitted == [(1, [1.0])] * 2


def test_complete_trials_with_values_outside_of_the_space_are_left_out_of_the_fit(plane):
    study = create_study(plane, n_initial=3, seed=1)
    there = {name: optuna.distributions.FloatDistribution(0, 99) for name in plane}
    for _ in range(2):
        study.add_trial(optuna.create_trial(params={"x": 99.0, "y": 1.0}, distributions=there, value=0.0))
    with pytest.warns(UserWarning, match="trials 0, 1 .* evaluated values that the space does not allow: left out"):
        ask(study)
    assert observations(study, plane).numbers == []


def test_values_that_were_evaluated_are_fitted_whatever_their_range(plane):
    study = create_study(plane, n_initial=1, seed=1)
    study.enqueue_trial({"x": 3.0})
    trial = study.ask()
    config = {"x": trial.suggest_float("x", 2, 4), "y": trial.suggest_float("y", 5, 5)}
    study.tell(trial, 1.0)
    assert [to_params(one) for one in observations(study, plane).configs] == [config] == [{"x": 3.0, "y": 5.0}]


def test_an_enqueued_name_that_is_not_declared_is_named(plane):
    study = create_study(plane, n_initial=1, seed=1)
    study.enqueue_trial({"X": 3.0})
    with pytest.warns(UserWarning, match="trial 0 was enqueued with 'X', which is not declared.*did you mean 'x'"):
        ask(study)


@pytest.mark.parametrize("declared", [True, False])
def test_the_brackets_of_hyperband_share_a_model(plane, declared):
    sampler = StanGPSampler(plane if declared else None, n_initial=12, seed=1)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.HyperbandPruner(1, 9, 3))

    def objective(trial):
        value = trial.suggest_float("x", -5, 10) + trial.suggest_float("y", 0, 15)
        trial.report(value, 1)
        if trial.should_prune():
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=8)
    assert [suggestion(trial)["phase"] for trial in study.trials[1:]] == ["initial"] * 7


def test_threads_take_turns_and_suggest_different_points(plane, quick):
    study = create_study(plane, n_initial=1, seed=1, **quick)
    study.tell(ask(study), 1.0)
    configs = []
    threads = [threading.Thread(target=lambda: configs.append(config_of(ask(study)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (a, b) = configs
    assert abs(a["x"] - b["x"]) + abs(a["y"] - b["y"]) > 1e-6


SMALL = {"a": ["p", "q", "r"], "b": ["u", "v", "w"]}


def test_space_filling_points_are_not_repeated():
    study = create_study(ConfigurationSpace(SMALL), n_initial=2, seed=1)
    for _ in range(9):
        study.tell(ask(study), state=TrialState.FAIL)
    assert len({tuple(trial.params.items()) for trial in study.trials}) == 9
    assert [suggestion(trial)["phase"] for trial in study.trials[2:]] == ["random"] * 7


def test_a_point_of_the_design_that_was_enqueued_is_not_repeated(quick):
    space = ConfigurationSpace(SMALL)
    study = create_study(space, n_initial=5, seed=1, **quick)
    study.enqueue_trial(to_params(study.sampler.strategy.design.points(1)[2]))
    for value in range(6):
        study.tell(ask(study), float(value))
    tried = [suggestion(trial)["config"] for trial in study.trials]
    assert len({tuple(config.items()) for config in tried}) == 6


def test_a_trial_that_finishes_between_two_reads_is_not_repeated(monkeypatch):
    study = create_study(ConfigurationSpace(SMALL), n_initial=1, seed=1)
    study.tell(ask(study), state=TrialState.FAIL)
    running = ask(study)
    reads = []

    def finish_after(read):
        def reading(*arguments):
            found = read(*arguments)
            if not reads:
                study.tell(running, state=TrialState.FAIL)
            reads.append(read)
            return found

        return reading

    monkeypatch.setattr(design, "pending", finish_after(design.pending))
    monkeypatch.setattr(design, "avoided", finish_after(design.avoided))
    assert config_of(running) in study.sampler.strategy.design.unavailable(study, study.trials[0], None)
    assert len(reads) == 2
