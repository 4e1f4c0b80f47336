from __future__ import annotations

import numpy as np
import optuna
import pytest

from slayr_py.errors import DataError
from slayr_py.study.storage.objectives import default_reference, goal_of, parse_directions


def test_an_objective_is_found_by_its_number_or_name_and_not_by_a_truth_value():
    study = optuna.create_study(directions=["minimize", "maximize"])
    assert goal_of(study, 1) == goal_of(study, "1") and goal_of(study, 1).sign == -1.0
    for unknown in (True, 2, "gain"):
        with pytest.raises(DataError, match=f"has no objective {unknown!r}; it has 0 "):
            goal_of(study, unknown)


def test_two_to_four_objectives_are_supported():
    for n in (2, 4):
        assert parse_directions(["minimize"] * n) == (["minimize"] * n, None)
    for n in (1, 5):
        with pytest.raises(DataError, match="use direction= for a single objective|5 objectives are more than 4"):
            parse_directions(["minimize"] * n)


@pytest.mark.parametrize(
    ("values", "front", "reference"),
    [
        (np.linspace(0, 1, 11), [0.0, 0.1], 0.1 + 0.4),  # half the distance of the quantiles
        (np.linspace(0, 1, 11), [0.0, 0.6], 0.6 + 0.6),  # the range of the front
        ([-3.0], [-3.0], 0.0),
        ([0.0], [0.0], 1.0),
    ],
)
def test_the_default_reference_is_worse_than_the_front_by_a_distance_of_the_values(values, front, reference):
    found = default_reference(np.reshape(values, (-1, 1)), np.reshape(front, (-1, 1)))
    assert found == pytest.approx(np.array([reference]))
