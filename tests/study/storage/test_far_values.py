"""Values that are far worse than all others are compressed, and no others."""

import warnings

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.study import ask, create_study, tell
from slayr_py.study.results.front import reference_of
from slayr_py.study.storage.far_values import GAP, compress_far
from slayr_py.study.storage.trials import observations


def compressed(*values, number=0):
    table = np.array(values, dtype=np.float64)
    return compress_far(table[:, None] if table.ndim == 1 else table, number)


def test_a_penalty_is_at_most_twice_as_far_as_the_others():
    values, slopes, far = compressed(3.0, 1e6, 1.0, 2.0)
    np.testing.assert_allclose(values, [3.0, 1 + 2 * (2 - 2 / 999_999), 1.0, 2.0], rtol=1e-15)
    np.testing.assert_allclose(slopes, [1.0, (2 / 999_999) ** 2, 1.0, 1.0], rtol=1e-15)
    assert far.tolist() == [False, True, False, False]


def test_far_values_stay_in_their_order_above_the_others():
    values = compressed(0.3, 1e9, 0.1, 0.2, 5e3, 0.25, 1e12).values
    assert np.argsort(values).tolist() == [2, 3, 5, 0, 4, 1, 6]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [0.0, 1.0, 1e9],  # two distances are no scale
        [5.0] * 6,
        [0.0, 0.0, 0.0, 1e9],
        10.0 ** np.arange(12),  # of all sizes
        [0.0, 1.0, 2.0, 0.99 * 2 * GAP],
        [0.0, 1.0, 2.0, 1e5, 1.1e5, 1.2e5, 1.3e5],  # most values, and not equal
    ],
)
def test_values_without_a_gap_are_untouched(values):
    table = np.array(values, dtype=np.float64)[:, None]
    found = compress_far(table)
    np.testing.assert_array_equal(found.values, table[:, 0])
    np.testing.assert_array_equal(found.slopes, 1.0)
    assert not found.far.any()


def test_most_values_are_far_if_they_are_one_penalty():
    assert compressed(0.0, 1.0, 2.0, 1e5, 1e5, 1e5, 1e5).far.sum() == 4


def test_the_largest_numbers_are_compressed_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values, _, far = compressed(-1.7e308, 1.7e308, -1.7e308 + 1e294, -1.7e308 + 2e294)
    assert np.all(np.isfinite(values)) and far.sum() == 1


def test_an_end_of_the_front_is_never_far():
    front = [[0.0, 1e6], [1.0, 0.0], [0.5, 0.2], [0.4, 0.5]]
    assert not compressed(*front, number=1).far.any()
    assert compressed(*front, [2.0, 1e9], number=1).far.tolist() == [False] * 4 + [True]
    assert not compressed(*front, [2.0, 1e9], number=0).far.any()


def told_study(values, **options):
    study = create_study(ConfigurationSpace({"x": (0.0, 1.0)}), n_initial=len(values), seed=0, **options)
    for value in values:
        given = value if isinstance(value, tuple) else (value,)
        tell(study, ask(study), given[0], sd=given[1] if len(given) > 1 else None)
    return study


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_the_model_sees_compressed_values_and_the_study_keeps_its_own(direction, sign):
    study = told_study([sign * value for value in (2.0, 1e6, 1.0, 3.0)], direction=direction)
    seen = observations(study, ConfigurationSpace({"x": (0.0, 1.0)}))
    np.testing.assert_allclose(sign * seen.y, [2.0, 1 + 2 * (2 - 2 / 999_999), 1.0, 3.0])
    assert [trial.value for trial in study.trials] == [sign * value for value in (2.0, 1e6, 1.0, 3.0)]


def test_the_known_error_of_a_far_value_shrinks_with_its_distance():
    study = told_study([(2.0, 0.1), (1e6, 1e4), (1.0, 0.1), (3.0, 0.1)])
    seen = observations(study, ConfigurationSpace({"x": (0.0, 1.0)}))
    np.testing.assert_allclose(seen.y_sd, [0.1, 1e4 * (2 / 999_999) ** 2, 0.1, 0.1])


@pytest.mark.stan
def test_a_study_with_penalties_warns_once_and_finds_the_minimum_beside_them():
    def objective(config):
        return 1e6 if config["x"] + config["y"] < 0.6 else (config["x"] - 0.2) ** 2 + (config["y"] - 0.5) ** 2

    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    with pytest.warns(UserWarning, match="over 100 times as far from the best one") as caught:
        result = sl.minimize(objective, space, budget=16, seed=0, progress=False)
    assert len([each for each in caught if "times as far" in str(each.message)]) == 1
    assert 1e6 in list(result.trials["value"])
    assert result.best_value < 1e-3


def test_reference_points_do_not_depend_on_penalties():
    rows = [(0.1 * i, 1 - 0.1 * i) for i in range(5)] + [(0.5, 0.9), (1e6, 1e6), (1e6, 1e6)]
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    study = create_study(space, n_initial=len(rows), seed=0, directions=["minimize", "minimize"])
    for row in rows:
        tell(study, ask(study), row)
    assert np.all(reference_of(study) < 5)
