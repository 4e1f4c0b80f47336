"""Constraints on inputs in studies: suggestions, batches, history, enqueued trials and stored studies."""

from __future__ import annotations

from functools import partial

import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.acquisition import search
from slayr_py.study import StanGPSampler, ask, create_study, tell
from slayr_py.study.storage.attributes import OUTSIDE_KEY


def mixture() -> ConfigurationSpace:
    return ConfigurationSpace({"x1": (0.0, 1.0), "x2": (0.0, 1.0), "x3": (0.0, 1.0)})


SUM = "x1 + x2 + x3 == 1"


def distance(config):
    return sum((config[name] - target) ** 2 for name, target in (("x1", 0.7), ("x2", 0.3), ("x3", 0.2)))


def best_in(study, trial):
    return study.trials[trial.number].user_attrs["slayr:suggestion"]["acquisition"]["best"]


def excess(params):
    return max(abs(sum(params.values()) - 1), params["x1"] - params["x2"] - 0.1)


@pytest.mark.stan
def test_the_search_finds_an_optimum_on_a_face():
    """The nearest point of the cut simplex to the target is (29, 23, 8) / 60, where the distance is 7/120."""
    result = sl.minimize(
        distance, mixture(), budget=9, n_initial=5, within=[SUM, "x1 - x2 <= 0.1"], method="map", seed=1, progress=False
    )
    assert max(excess(trial.params) for trial in result.study.trials) <= 1e-9
    assert result.best_value - 7 / 120 < 1e-3


@pytest.mark.stan
def test_past_experiments_outside_inform_the_model_and_are_not_compared(monkeypatch):
    last = []

    def spy(posterior, rng, wanted, fixed, doubtful, *others):
        last[:] = doubtful.tolist()
        return candidates(posterior, rng, wanted, fixed, doubtful, *others)

    candidates = search.candidates
    monkeypatch.setattr(search, "candidates", spy)
    history = pd.DataFrame(
        {"x1": [0.9, 0.333, 0.1], "x2": [0.9, 0.333, 0.1], "x3": [0.9, 0.333, 0.1], "value": [-5.0, 1.0, 2.0]}
    )
    with pytest.warns(UserWarning, match="history row 0: 'x1 \\+ x2 \\+ x3 == 1' is violated by 1.7"):
        study = create_study(mixture(), within=[SUM], history=history, n_initial=3, seed=1, method="map")
    result = sl.study.Result(study, mixture())
    assert result.best_value == 1.0  # rounded to three digits, it counts
    trials = study.sampler.ask_batch(study, 2)
    assert best_in(study, trials[0]) == 1.0 and last == [True, False, True]  # the search starts beside the others
    study.enqueue_trial({"x1": 0.5})
    trials.append(ask(study))
    assert trials[-1].params["x1"] == 0.5
    assert max(abs(sum(trial.params.values()) - 1) for trial in trials) <= 1e-9
    study.enqueue_trial({"x1": 0.5, "x2": 0.6})
    with pytest.raises(sl.EnqueuedError, match="no configuration satisfies 'x1 \\+ x2 \\+ x3 == 1'"):
        ask(study)


@pytest.mark.stan
def test_if_no_past_experiment_is_inside_improvement_is_measured_from_predictions_inside():
    history = [({"x1": 0.9, "x2": 0.8, "x3": 0.7}, 1.0), ({"x1": 0.1, "x2": 0.2, "x3": 0.1}, 2.0)]
    with pytest.warns(UserWarning, match="is violated by 1.4, and 1 other experiment violates constraints; "):
        study = create_study(mixture(), within=[SUM], history=history, n_initial=2, seed=1, method="map")
    trial = ask(study)
    assert abs(sum(trial.params.values()) - 1) <= 1e-9
    assert 1.0 <= best_in(study, trial) <= 2.0


def narrow(config):
    return config["x1"] < 0.5 or config["x2"] > 0.998


@pytest.mark.stan
def test_improvement_is_measured_from_a_prediction_inside_also_where_fixed_values_leave_little_room():
    history = [({"x1": 0.9, "x2": 0.8}, 1.0), ({"x1": 0.6, "x2": 0.2}, 2.0)]
    space = {"x1": (0.0, 1.0), "x2": (0.0, 1.0)}
    with pytest.warns(UserWarning, match="is violated"):
        study = create_study(
            space, within=[narrow], history=history, fixed={"x1": 0.9}, n_initial=2, seed=1, method="map"
        )
    trial = ask(study)
    assert narrow(trial.params) and trial.params["x1"] == 0.9


@pytest.mark.stan
def test_a_trial_outside_that_optuna_evaluates_or_adds_is_not_silently_the_best():
    space = {"x1": (0.0, 1.0), "x2": (0.0, 1.0)}

    def evaluate(trial):
        return sum((trial.suggest_float(name, 0.0, 1.0) - 0.8) ** 2 for name in space)

    study = optuna.create_study(sampler=StanGPSampler(space, within=[narrow], n_initial=2, seed=1, method="map"))
    study.enqueue_trial({"x1": 0.8, "x2": 0.8})
    with pytest.warns(UserWarning, match="trial 0: 'narrow' is violated; .* never the best one"):
        study.optimize(evaluate, n_trials=4)
    inside = study.trials[1:]
    assert best_in(study, inside[1]) == inside[0].value
    assert sl.study.Result(study, space).best_value == min(trial.value for trial in inside)

    study.add_trial(
        optuna.create_trial(params={"x1": 0.7, "x2": 0.8}, distributions=inside[0].distributions, value=0.0)
    )
    with pytest.warns(UserWarning, match="trial 4, added .*: 'narrow' is violated, but it may be"):
        study.optimize(evaluate, n_trials=1)


@pytest.mark.stan
def test_several_trials_outside_have_one_warning(recwarn):
    space = {"x1": (0.0, 1.0), "x2": (0.0, 1.0)}

    def evaluate(trial):
        return sum((trial.suggest_float(name, 0.0, 1.0) - 0.8) ** 2 for name in space)

    study = optuna.create_study(sampler=StanGPSampler(space, within=[narrow], n_initial=2, seed=1, method="map"))
    for x2 in (0.6, 0.7, 0.8):
        study.enqueue_trial({"x1": 0.8, "x2": x2})
    study.optimize(evaluate, n_trials=4)
    assert [OUTSIDE_KEY in trial.user_attrs for trial in study.trials] == [True, True, True, False]
    given = study.trials[3].distributions
    for x2 in (0.6, 0.7):
        study.add_trial(optuna.create_trial(params={"x1": 0.7, "x2": x2}, distributions=given, value=0.0))
    study.optimize(evaluate, n_trials=2)
    texts = [str(each.message) for each in recwarn if "is violated" in str(each.message)]
    assert len(texts) == 2 and texts[0].startswith("trial 0: 'narrow' is violated; ")
    assert texts[1].startswith(
        "trials 4, 5, added or told without the sampler or before a function was changed: 'narrow' is violated"
    )


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_that_a_function_excludes_given_values_is_found_out_once():
    """A `PartialFixedSampler` gives all trials the same values."""
    called = []

    def left(config):
        called.append(config)
        return config["x1"] < 0.5

    sampler = StanGPSampler({"x1": (0.0, 1.0), "x2": (0.0, 1.0)}, within=[left], n_initial=3, seed=1)
    study = optuna.create_study(sampler=optuna.samplers.PartialFixedSampler({"x1": 0.8}, sampler))
    for _ in range(2):
        called.clear()
        assert study.ask().suggest_float("x1", 0.0, 1.0) == 0.8
    assert len(called) < 1000


@pytest.mark.stan
def test_a_trial_outside_that_was_told_without_the_sampler_has_a_warning():
    storage = optuna.storages.InMemoryStorage()
    study = create_study({"x1": (0.0, 1.0), "x2": (0.0, 1.0)}, storage=storage, study_name="told", within=[narrow])
    study.enqueue_trial({"x1": 0.8, "x2": 0.8})
    trial = study.ask()
    for name in ("x1", "x2"):
        trial.suggest_float(name, 0.0, 1.0)
    optuna.load_study(study_name="told", storage=storage).tell(trial.number, 0.0)
    with pytest.warns(
        UserWarning,
        match="trial 0, added or told without the sampler or before a function was changed: 'narrow' is violated, but",
    ):
        ask(study)


def test_a_stored_study_keeps_its_constraints():
    storage = optuna.storages.InMemoryStorage()
    create_study(mixture(), storage=storage, study_name="blend", within=[SUM, bool])
    study = create_study(mixture(), storage=storage, study_name="blend", within=[SUM, bool])
    tell(study, ask(study), 1.0)
    with pytest.raises(sl.SpaceError, match=r"was started within \['x1 .*', bool\], not \[\]; resume it with its own"):
        create_study(mixture(), storage=storage, study_name="blend")


def test_a_sampler_without_a_space_warns_that_it_ignores_the_constraints_of_a_study():
    study = create_study(mixture(), within=[SUM, narrow])
    study.sampler = StanGPSampler(seed=1)
    with pytest.warns(UserWarning, match=r"started within \['x1 \+ x2 \+ x3 == 1', narrow\], which"):
        study.ask()


class Below:
    def __call__(self, config):
        return config["x1"] < 0.5


def below(config, limit):
    return config["x1"] < limit


@pytest.mark.parametrize(("made", "name"), [(Below, "Below"), (lambda: partial(below, limit=0.5), "below")])
def test_a_study_resumes_with_another_object_that_is_called_alike(made, name):
    storage = optuna.storages.InMemoryStorage()
    for _ in range(2):
        study = create_study(mixture(), storage=storage, study_name="blend", within=[made()])
    assert study.sampler.strategy.encoder.within == [{"function": name}]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"constraints": ["x1 + x2 <= 1"]}, sl.DataError, "'x1 \\+ x2' has only parameters; give .* within="),
        ({"constraints": ["x1 <= 1"]}, sl.DataError, "give a constraint on inputs by within="),
        ({"within": ["cost <= 1"]}, sl.SpaceError, "numbers that the objective returns belong into constraints="),
        ({"within": ["x1 + x2 <= 0.5"], "fixed": {"x1": 0.9}}, sl.SpaceError, "fixed: .* satisfies 'x1 \\+ x2 <= 0.5'"),
        (
            {"within": [SUM], "initial_configs": [{"x1": 0.9, "x2": 0.5, "x3": 0.1}]},
            sl.SpaceError,
            "initial configuration 0: 'x1 \\+ x2 \\+ x3 == 1' is violated by 0.5",
        ),
    ],
)
def test_contradictions_are_errors_before_the_first_evaluation(options, error, message):
    with pytest.raises(error, match=message):
        sl.minimize(lambda config: pytest.fail("evaluated"), mixture(), budget=2, progress=False, **options)


def test_constraints_on_inputs_need_a_space_and_one_place():
    with pytest.raises(sl.DataError, match="within needs a space: StanGPSampler\\(space, within="):
        StanGPSampler(within=[SUM])
    with pytest.raises(sl.SpaceError, match="give all in one place"):
        StanGPSampler(sl.space.Encoder(mixture(), within=[SUM]), within=[SUM])


COMPOUNDS = pd.DataFrame(
    {
        "logp": [0.4, 1.9, 2.6, 3.3, -0.7, 2.2, 1.1, 4.0, 2.9, 0.1, 3.8, 1.5],
        "mass": [180.2, 310.4, 289.9, 402.5, 151.1, 333.3, 222.8, 377.7, 260.0, 199.5, 310.0, 150.0],
    }
)


def potency(config):
    return (config["logp"] - 2.5) ** 2 + ((config["mass"] - 300) / 60) ** 2


def compounds() -> dict[str, object]:
    return {"logp": (-2.0, 6.0), "mass": (100.0, 600.0)}


def has_rows(study) -> bool:
    rows = set(COMPOUNDS.itertuples(index=False, name=None))
    return {(trial.params["logp"], trial.params["mass"]) for trial in study.trials} <= rows


@pytest.mark.stan
def test_a_list_is_searched_until_no_row_is_left():
    options = {"n_initial": 4, "within": COMPOUNDS, "method": "map", "seed": 1, "progress": False}
    result = sl.minimize(potency, compounds(), budget=8, **options)
    assert has_rows(result.study)
    assert result.best_value == min(map(potency, COMPOUNDS.to_dict("records")))
    with pytest.warns(UserWarning, match="ends after 12 of 15 trials: all 12 configurations are evaluated"):
        result = sl.minimize(potency, compounds(), budget=15, **options)
    assert len({trial.params["mass"] for trial in result.study.trials}) == 12


@pytest.mark.stan
def test_a_list_of_some_parameters_is_searched_together_with_the_others():
    """The best row is that with logp = 2.6, at a temperature of 20 + 10 * 2.6, which a constraint allows."""

    def objective(config):
        return potency(config) + ((config["temperature"] - 20 - 10 * config["logp"]) / 10) ** 2

    space = {**compounds(), "temperature": (0.0, 100.0)}
    within = [COMPOUNDS, "temperature <= 0.2*mass"]
    result = sl.minimize(objective, space, budget=15, n_initial=5, within=within, method="map", seed=0, progress=False)
    assert has_rows(result.study)
    assert result.best_config["logp"] == 2.6
    assert result.best_config["temperature"] == pytest.approx(46, abs=2)
    assert "interior" not in result.study.trials[-1].user_attrs["slayr:suggestion"]["acquisition"]


@pytest.mark.stan
def test_a_batch_has_different_rows_of_a_list_that_have_the_context():
    study = create_study(compounds() | {"dose": (1, 3)}, seed=1, n_initial=3, within=COMPOUNDS, method="map")
    for _ in range(3):
        trial = ask(study)
        tell(study, trial, potency(trial.params))
    batch = study.sampler.ask_batch(study, 4)
    assert has_rows(study)
    assert len({tuple(trial.params.values()) for trial in batch}) == 4
    trial = ask(study, context={"mass": 260.0})
    assert trial.params["logp"] == 2.9
    with pytest.raises(sl.SpaceError, match="context: no row of a table in within= has the values {'mass': 261.0}"):
        ask(study, context={"mass": 261.0})


def test_a_stored_study_keeps_its_list(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    options = {"study_name": "s", "storage": storage, "n_initial": 12, "seed": 1, "progress": False}
    result = sl.minimize(potency, compounds(), budget=2, within=COMPOUNDS, **options)
    loaded = sl.study.load(storage, "s")
    assert loaded.best_config == result.best_config
    with pytest.raises(sl.SpaceError, match="started within \\[one of 12 rows of logp, mass\\], not \\[one of 11 rows"):
        sl.minimize(potency, compounds(), budget=3, within=COMPOUNDS[1:], **options)
    again = sl.minimize(potency, compounds(), budget=3, within=[COMPOUNDS.copy()], **options)
    assert len(again.study.trials) == 3
    assert has_rows(again.study)
