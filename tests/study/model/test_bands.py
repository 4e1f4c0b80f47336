"""Two sides of one quantity have one model, of the quantity."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.study import ask, create_study, tell
from slayr_py.study.model.bands import with_bands
from slayr_py.study.model.compression import as_learned
from slayr_py.study.model.feasibility import feasibility_results
from slayr_py.study.results.latest_fits import feasibility_of_all
from slayr_py.study.results.refits import feasibility_of
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.trials import Results

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
NAME = "constraint level <= and level >="


def results(values):
    return Results([*range(len(values))], [None] * len(values), np.array(values))


def sides(values, low, high):
    values = np.array(values)
    return {"a": results(values - high), "b": results(low - values)}


def test_two_sides_are_the_distance_from_the_middle():
    values = [3.0, 6.9, 7.25, 0.2, 8.0]
    found = with_bands({"0": results(np.array(values) ** 2), **sides(values, 6.5, 7.5)})
    assert [*found] == ["0", "a and b"]
    band = found["a and b"]
    np.testing.assert_allclose(np.abs(band.values), np.abs(np.array(values) - 7.0), atol=1e-12)
    assert band.half_width == pytest.approx(0.5)
    for linear in (True, False):
        learned = as_learned(band, linear)
        inside = np.abs(learned.values) <= learned.half_width
        assert inside.tolist() == [False, True, True, False, False]


def test_values_on_a_border_are_inside():
    for values in ([3, 4, 5, 6, 3, 5], [2, 3, 5, 4]):
        band = with_bands(sides(values, 3.0, 5.0))["a and b"]
        inside = np.abs(band.values) < band.half_width
        assert inside.tolist() == [3 <= value <= 5 for value in values]


@pytest.mark.parametrize(
    "constraints",
    [
        {"a": results([1.0, 2.0, 1.0]), "b": results([-3.0, -4.0, -3.0])},  # two values may have one sum by chance
        {"a": results([1.0, 2.0, 3.0]), "b": results([-3.0, -4.0, -5.001])},
        {"a": results([1.0, 2.0, 3.0]), "b": results([-1.0, -2.0, -3.0])},  # an equality
        {"a": results([1.0, 2.0, 3.0]), "b": results([2.0, 1.0, 0.0])},  # nothing is feasible
        {"a": results([1.0, 2.0, 3.0, 4.0]), "b": results([-2.0, -3.0, -4.0])},
        {"a": results([1.0, 2.0, 3.0]), "b": results([-2.0, -3.0, -4.0]), "a and b": results([0.0, 1.0, 5.0])},
    ],
)
def test_others_are_not_sides(constraints):
    assert with_bands(constraints) == constraints


def test_a_third_bound_stays_alone():
    three = {**sides([1.0, 2.0, 4.0], 0.0, 3.0), "c": results([-5.0, -4.0, -2.0])}
    assert [*with_bands(three)] == ["a and b", "c"]


@pytest.mark.stan
@pytest.mark.parametrize("noisy", [False, True])
def test_the_model_of_a_range_is_recorded_replayed_and_right(noisy, quick):
    def level(config):
        return 10 * config["x"] + 3 * config["y"]

    def objective(config):
        return config["y"], {"level": level(config)}

    result = sl.minimize(
        objective,
        SPACE,
        14,
        constraints=["6.5 <= level <= 7.5"],
        n_initial=8,
        seed=1,
        progress=False,
        noisy=noisy,
        **quick,
    )
    assert [*suggestion_record(result.study.trials[13])["conditions"]] == [NAME]
    (last,) = feasibility_of(result.study, 13).values()
    (every,) = feasibility_of_all(result.study, last.encoder).values()
    for model in (last, every):
        low, high = model.limits
        assert low == -high < 0
    configs = last.encoder.sobol(200, 3)
    levels = np.array([level(config) for config in configs])
    predicted = every.predict(configs)
    inside = (predicted.mean >= every.limits[0]) & (predicted.mean <= every.limits[1])
    assert np.mean(inside == ((levels >= 6.5) & (levels <= 7.5))) > 0.97
    assert 6.5 <= level(result.best_config) <= 7.5
    assert 6.4 < level(result.study.trials[13].params) < 7.6


def test_models_that_earlier_versions_had_of_each_side_are_read():
    study = create_study(SPACE)
    for x in (0.1, 0.5, 0.6, 0.9):
        trial = ask(study)
        trial.set_constraint("low", 0.4 - x)
        trial.set_constraint("high", x - 0.7)
        tell(study, trial, x)
    side, both = (
        feasibility_results(study, SPACE, f"constraint {name}", [], True, {0, 1, 2, 3})
        for name in ("high", "high and low")
    )
    assert side.half_width is None and both.half_width == pytest.approx(0.15)
    np.testing.assert_allclose(side.values, [-0.6, -0.2, -0.1, 0.2], atol=1e-12)
    np.testing.assert_allclose(both.values, [-0.45, -0.05, 0.05, 0.35], atol=1e-12)
    with pytest.raises(KeyError):
        feasibility_results(study, SPACE, "constraint other", [], True, {0, 1, 2, 3})
