"""The posterior of the optimum of a study: tables, the figure, the section of the report and refusals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import slayr_py as sl
from slayr_py.space import Encoder
from slayr_py.study.model import prediction_error
from slayr_py.study.results import optimum as results_optimum
from slayr_py.study.results.report.optimum import optimum as section_of_optimum
from slayr_py.study.results.report.page import section
from slayr_py.study.results.report.reading import Reading


@pytest.fixture(scope="module")
def result():
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    kind = Categorical("kind", ["a", "b"])
    y = Float("y", (0.0, 1.0))
    space.add(kind, y)
    space.add(EqualsCondition(y, kind, "b"))

    def objective(config):
        return (config["x"] - 0.3) ** 2 + (config["y"] if "y" in config else 2.0)

    options = {"n_initial": 9, "within": ["x + y <= 1.2"], "seed": 1, "method": "map", "progress": False}
    return sl.minimize(objective, space, budget=10, **options)


@pytest.mark.stan
def test_the_optimum_has_intervals_probabilities_and_the_best_trial(result):
    optimum = result.optimum()
    table = optimum.table.set_index(["parameter", "level"])
    assert table.loc[("kind", "a"), "probability"] + table.loc[("kind", "b"), "probability"] == 1
    assert table.loc[("y", ""), "probability"] == table.loc[("kind", "b"), "probability"] > 0.9
    assert 0 <= table.loc[("x", ""), "low"] <= table.loc[("x", ""), "median"] < 0.6
    assert optimum.evaluated["probability"].sum() == pytest.approx(1)
    assert optimum.evaluated["number"].iloc[0] == result.study.best_trial.number
    assert optimum.value[0] <= optimum.value[1] <= optimum.value[2] <= result.best_value + 0.1
    assert np.all(optimum.draws["x"] + optimum.draws["y"].fillna(0) <= 1.2 + 1e-9)
    assert len(optimum.plot().axes) == 3 and "90% interval" in repr(optimum)
    for epsilon, blocks in ((None, 3), (0.5, 4), (1e-9, 4)):
        reading = Reading(result.study, None, result._posterior_of_all, epsilon)
        assert len(section(reading, "o", "O", section_of_optimum).blocks) == blocks


@pytest.mark.stan
def test_functions_vary_more_if_the_model_was_too_certain_as_for_the_stopping_rule(result, monkeypatch):
    spreads = []
    for error in (0.5, 4.0):
        monkeypatch.setattr(prediction_error, "prediction_error", lambda *_, error=error: error)
        assert sl.Regret(0.1).estimate(result.study).inflation == max(1.0, error)
        spreads.append(result.optimum().draws["value"].std())
    assert spreads[1] > 2 * spreads[0]


@pytest.mark.stan
def test_nearly_optimal_ranges_grow_with_epsilon_and_too_small_ones_are_refused(result):
    wide = result.good(1.5).set_index("parameter")
    narrow = result.good(0.5).set_index("parameter")
    assert set(wide["level"]) == {"", "b"}
    assert wide.loc["x", "low"] <= narrow.loc["x", "low"] <= 0.3 <= narrow.loc["x", "high"] <= wide.loc["x", "high"]
    assert narrow.loc["y", "high"] <= 0.7
    with pytest.raises(sl.DataError, match="Evaluate more, or take epsilon >= "):
        result.good(1e-9)
    with pytest.raises(sl.DataError, match="probability must be a single number in"):
        result.good(1.0, probability=1.0)


def test_nearly_optimal_is_a_probability_and_not_a_mean_regret(monkeypatch):
    """Of ten functions, under one or two of which the first or the third configuration is bad."""
    encoder = Encoder({"x": (0.0, 1.0)})
    regrets = np.zeros((10, 3))
    regrets[0, 0], regrets[:, 1], regrets[:2, 2] = 100.0, 0.5, 1.5
    pool = encoder.encode([{"x": x} for x in (0.25, 0.5, 0.75)])
    monkeypatch.setattr(results_optimum, "optima_of", lambda *_: (SimpleNamespace(regrets=regrets, pool=pool), []))
    ranges = results_optimum.good(None, None, 1.0, 0.9, 1)
    assert ranges[["low", "high"]].to_numpy().tolist() == [[0.25, 0.5]]


@pytest.mark.stan
@pytest.mark.parametrize("seed", [-1, "a"])
def test_an_illegal_seed_is_refused(result, seed):
    for draw in (result.optimum, lambda seed: result.good(0.5, seed=seed)):
        with pytest.raises(sl.DataError, match="seed must be an integer >= 0, got"):
            draw(seed=seed)


@pytest.mark.stan
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("border", [1.1, 2.0])
def test_constraints_that_are_0_where_they_hold_leave_the_evaluated_configurations_feasible(border):
    def objective(config):
        violation = max(0.0, config["a"] + config["b"] - border)
        return (config["a"] - 0.6) ** 2 + (config["b"] - 0.3) ** 2, {"violation": violation}

    options = {"n_initial": 6, "seed": 1, "method": "map", "progress": False}
    result = sl.minimize(objective, {"a": (0.0, 1.0), "b": (0.0, 1.0)}, budget=9, **options)
    assert len(result.optimum().draws) == 256
    assert len(result.good(1e6)) == 2
    with pytest.raises(sl.DataError, match="take epsilon >= ") as refusal:
        result.good(1e-9)
    assert len(result.good(float(str(refusal.value).rsplit(">= ", 1)[1]))) == 2


@pytest.mark.stan
def test_a_level_may_be_none_and_a_parameter_may_be_called_value():
    options = {"n_initial": 6, "seed": 1, "method": "map", "progress": False}
    space = {"value": (0.0, 1.0), "kind": [None, "a"]}
    result = sl.minimize(lambda c: c["value"] + (c["kind"] == "a"), space, budget=7, **options)
    optimum = result.optimum()
    kind = optimum.table[optimum.table["parameter"] == "kind"].set_index("level")["probability"]
    assert list(kind.index) == [None, "a"] and kind.iloc[0] > 0.5
    assert list(result.good(1e6)["level"]) == [None, "a", ""]
    assert optimum.draws["params_value"].between(0, 1).all() and None in set(optimum.draws["kind"])
    axes = {each.get_xlabel(): each for each in optimum.plot().axes}
    assert [text.get_text() for text in axes["kind"].get_xticklabels()] == ["None", "a"]
    assert [bar.get_height() for bar in axes["kind"].patches] == kind.tolist()
    assert sum(bar.get_height() for bar in axes["value"].patches) == pytest.approx(1)


@pytest.mark.stan
def test_constraints_on_inputs_hold_in_posteriors_from_the_record():
    """The last fit is repeated while a trial is open. A loaded study has its model, also after a failed trial."""
    storage = optuna.storages.InMemoryStorage()
    options = {"n_initial": 4, "within": ["a + b <= 1"], "seed": 1, "method": "map", "progress": False}
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    study = sl.maximize(lambda c: c["a"] + c["b"], space, budget=6, storage=storage, **options).study
    failing = sl.study.ask(study)
    results = [sl.study.Result(study, sl.study.load(storage).space), sl.study.load(storage)]
    sl.study.tell(study, failing, state=optuna.trial.TrialState.FAIL)
    results.append(sl.study.load(storage))
    sl.study.tell(study, sl.study.ask(study), 0.5)
    results.append(sl.study.load(storage))  # fitted again
    for result in results:
        draws = result.optimum().draws
        assert np.all(draws["a"] + draws["b"] <= 1 + 1e-9)
        assert result.posterior().encoder.within == options["within"]
