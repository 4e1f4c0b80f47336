"""The posterior of the optimum of a study: tables, the figure, the section of the report and refusals."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import slayr_py as sl
from slayr_py.inference import Exact, draw_functions
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


def small(config):
    return config["x"] + config["y"] < 0.5


@pytest.mark.stan
def test_a_loaded_study_says_that_it_ignores_functions_among_the_constraints_on_inputs(recwarn):
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    storage = optuna.storages.InMemoryStorage()
    options = {"n_initial": 4, "within": [small], "storage": storage, "seed": 1, "method": "map", "progress": False}
    one = sl.minimize(lambda config: config["x"], space, budget=5, study_name="one", **options)
    two = sl.minimize(
        lambda config: (config["x"], config["y"]),
        space,
        budget=5,
        study_name="two",
        directions=["minimize", "maximize"],
        **options,
    )
    assert one.optimum().notes == ()
    one.good(10.0)
    two.front_band()
    assert not [each for each in recwarn if "constraints on inputs" in str(each.message)]
    one, two = (sl.study.Result(optuna.load_study(study_name=name, storage=storage), space) for name in ("one", "two"))
    message = r"functions among the constraints on inputs \('small'\) are ignored"
    assert re.match(message, one.optimum().notes[0])
    with pytest.warns(UserWarning, match=message):
        one.good(10.0)
    with pytest.warns(UserWarning, match=message):
        two.front_band()


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
    monkeypatch.setattr(results_optimum, "extend_pool", lambda optima, *_: optima)
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
def test_nearly_optimal_ranges_are_those_on_a_dense_grid_where_a_constraint_is_active():
    def objective(config):
        return (config["a"] - 0.7) ** 2 + (config["b"] - 0.5) ** 2, {"sum": config["a"] + config["b"] - 1}

    options = {"n_initial": 8, "seed": 1, "method": "map", "progress": False}
    result = sl.minimize(objective, {"a": (0.0, 1.0), "b": (0.0, 1.0)}, budget=12, **options)
    ranges = result.good(0.02)[["low", "high"]].to_numpy()
    optima, _ = results_optimum.optima_of(result.study, result._posterior_of_all(), 1)
    grid = optima.pool.encoder.encode(
        np.stack(np.meshgrid(*2 * [np.linspace(0.25, 0.85, 121)]), axis=-1).reshape(-1, 2)
    )
    regrets = optima.draws(grid) - optima.values[:, None]
    (met, dense) = (
        configs.unit_values[np.mean(each < 0.02, axis=0) >= 0.9]
        for configs, each in ((optima.pool, optima.regrets), (grid, regrets))
    )
    slack = 0.01 * np.ptp(dense, axis=0)
    assert np.all(ranges[:, 0] <= dense.min(axis=0) + slack) and np.all(ranges[:, 1] >= dense.max(axis=0) - slack)
    assert np.any(np.ptp(met, axis=0) < 0.9 * np.ptp(dense, axis=0))  # the pool alone is not enough


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


def smoothed(direction, lowest=-0.3, y_sd=0.0, extra=(), **options):
    """Return a study of exact values of which a model with long lengthscales smooths the one at x = 0.75."""
    sign = 1.0 if direction == "minimize" else -1.0
    x = np.linspace(0, 1, 33).tolist()
    rows = [{"x": a, "k": 1, "value": lowest if a == 0.75 else (a - 0.3) ** 2, "y_sd": y_sd} for a in x]
    rows = [{**row, "value": sign * row["value"]} for row in [*rows, *extra]]
    priors = {"sigma_n": sl.LogNormal(-0.7, 0.5), "lengthscale": sl.LogNormal(0.5, 0.01)}
    options = {"kernel": "SE", "priors": priors, "method": "map", "seed": 1, "n_initial": 1, **options}
    space = ConfigurationSpace({"x": (0.0, 1.0), "k": (1, 3)})
    study = sl.study.create_study(space, direction=direction, history=pd.DataFrame(rows), **options)
    return sl.study.Result(study, space), sign


BETTER = {"x": 0.3, "k": 3, "value": -0.5, "y_sd": 0.0}


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:history row 33. 'k <= 2' is violated:UserWarning")
@pytest.mark.parametrize(
    ("direction", "extra", "options"),
    [
        ("minimize", [], {}),
        ("maximize", [BETTER], {"fixed": {"k": 1}}),
        ("maximize", [BETTER], {"within": ["k <= 2"]}),
    ],
)
def test_observed_values_of_an_exact_objective_win(direction, extra, options):
    """Also among those with the fixed values, and among those that violate no constraint."""
    result, sign = smoothed(direction, extra=extra, **options)
    posterior = result._posterior_of_all()
    mean, sd = posterior.predict([{"x": 0.75, "k": 1}, {"x": 0.25, "k": 1}]).centre_and_spread()
    assert sign * mean[0] > sign * mean[1]  # by the posterior mean another configuration is better
    assert result.best_value == sign * -0.3 and result.best_config == {"x": 0.75, "k": 1}
    assert result.recommended == (result.best_config, result.best_value, 0.0, 24, 1.0)
    assert str(result.recommended) == f"{sign * -0.3:g} at trial 24"
    found = result.optimum()
    assert np.all(sign * found.draws["value"] <= -0.3)
    assert list(found.evaluated.loc[0, ["number", "probability"]]) == [24, 1.0]
    assert (
        found.draws["x"].std() > 0.01
    )  # the functions elsewhere know of the exact value, so that others may be better
    (note,) = found.notes
    assert f"predicts {mean[0]:.6g} ± {sd[0]:.2g} at the best trial, 24," in note
    assert note in repr(found) and f"<p>{note}</p>" in found._repr_html_()
    reading = SimpleNamespace(study=result.study, posterior=posterior, progress=lambda text: None, epsilon=None)
    assert any(note[1:] in str(block) for block in section_of_optimum(reading))


GRID = [{"a": a, "b": b} for a in range(5) for b in "xyw"]
VALUES = dict(enumerate(np.random.default_rng(3).normal(size=15).tolist()))
LIMITED = np.random.default_rng(9).normal(size=15)


def limited(reason, sign, config):
    """Return values without a pattern, some of which are not allowed for a reason."""
    number = GRID.index(dict(config))
    value = sign * VALUES[number]
    if reason == "constraint":
        return value, {"limit": LIMITED[number]}
    if LIMITED[number] > 0.5:
        if reason == "failure":
            raise ValueError("too large")
        return sign * 1e6
    return value


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:trial.*the value is over:UserWarning")
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("reason", ["constraint", "failure", "penalty"])
def test_the_optimum_of_an_exact_study_is_not_where_it_is_known_to_be_infeasible(reason, sign):
    options = {"initial_configs": GRID, "seed": 1, "method": "map", "progress": False}
    options["direction"] = "minimize" if sign > 0 else "maximize"
    result = sl.minimize(
        lambda config: limited(reason, sign, config), {"a": (0, 4), "b": [*"xyw"]}, budget=15, **options
    )
    found = result.optimum()
    assert set(found.draws["value"]) == {result.best_value}
    assert found.table[found.table["level"] == result.best_config["b"]]["probability"].tolist() == [1.0]
    levels = result.good(1e-9)
    assert levels["level"].tolist() == ["", result.best_config["b"]]
    assert levels["low"].tolist()[0] == levels["high"].tolist()[0] == result.best_config["a"]


@pytest.mark.stan
def test_the_optimum_of_a_noisy_study_may_be_where_a_constraint_was_violated():
    options = {"initial_configs": GRID, "seed": 1, "method": "map", "progress": False, "noisy": True}
    space = {"a": (0, 4), "b": [*"xyw"]}
    result = sl.minimize(lambda config: limited("constraint", 1.0, config), space, budget=15, **options)
    places = [GRID.index({"a": a, "b": b}) for a, b in result.optimum().draws[["a", "b"]].itertuples(index=False)]
    assert np.any(LIMITED[places] > 0)


@pytest.mark.stan
def test_a_best_value_that_the_model_explains_has_no_note(result):
    explained, _ = smoothed("minimize", lowest=0.45**2)
    assert explained.optimum().notes == result.optimum().notes == ()


@pytest.mark.stan
def test_values_with_known_errors_are_not_exact():
    result, _ = smoothed("minimize", y_sd=0.2)
    assert result.best_value == -0.3 and result.recommended.sd > 0 and result.recommended.mean > -0.3
    found = result.optimum()
    assert found.evaluated["probability"].max() < 1 and found.value[2] > -0.3 and found.notes == ()


@pytest.mark.stan
def test_functions_under_a_warp_have_an_exact_value():
    result, _ = smoothed("minimize", warp="log")
    posterior = result._posterior_of_all()
    point = posterior.encoder.encode([result.best_config])
    functions = draw_functions(posterior, point, 4, np.random.default_rng(1), each=8, exact=Exact(point, -0.3))
    assert functions.expansions[0].warp is not None
    np.testing.assert_allclose(functions(point), -0.3, atol=1e-6)  # the nugget is 1e-9 of the prior variance


@pytest.mark.stan
def test_a_pruned_trial_is_never_recommended():
    """Its last value is better than that of every complete trial."""
    result, _ = smoothed("minimize")
    distributions = result.study.trials[0].distributions
    pruned = optuna.trial.create_trial(
        params={"x": 0.3, "k": 1},
        distributions=distributions,
        intermediate_values={1: -9.0},
        state=optuna.trial.TrialState.PRUNED,
    )
    failed = optuna.trial.create_trial(
        params={"x": 0.2, "k": 1}, distributions=distributions, state=optuna.trial.TrialState.FAIL
    )
    result.study.add_trials([pruned, failed])
    assert result.recommended == ({"x": 0.75, "k": 1}, -0.3, 0.0, 24, 1.0)


def test_the_values_of_a_study_of_another_sampler_may_be_noisy():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    with pytest.raises(sl.DataError, match="has no fit in a declared space"):
        _ = sl.study.Result(study, ConfigurationSpace({"x": (0.0, 1.0)})).recommended


@pytest.mark.stan
def test_repetitions_of_a_noisy_objective_are_one_configuration():
    study = sl.study.create_study({"x": (0.0, 1.0)}, noisy=True, n_initial=9, seed=1, method="map")
    for x, values in ((0.3, (1.0, 1.2, 0.9)), (0.35, (1.1, 0.95)), (0.9, (5.0,))):
        for value in values:
            study.enqueue_trial({"x": x})
            sl.study.tell(study, sl.study.ask(study), value)
    evaluated = sl.study.Result(study, sl.study.sampler.space_of(study)).optimum().evaluated
    assert sorted(evaluated["number"]) == [0, 3, 5]
    assert evaluated["probability"].sum() == pytest.approx(1)
    assert evaluated.set_index("number").loc[5, "probability"] < 0.05
