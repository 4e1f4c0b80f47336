from __future__ import annotations

import numpy as np
import pytest

from benchmarks.search import recovery
from benchmarks.search.recovery import DOCUMENT, Problem, columns_of, errors, multiplied_out


def test_errors_of_the_truth_are_zero():
    data = Problem(DOCUMENT[0], 2, "sd 0.1", 0).data(30)
    assert errors(data, data.covariance, data.noise) == pytest.approx(dict.fromkeys(recovery.ERRORS, 0.0), abs=1e-6)
    twice = errors(data, 2 * data.covariance, data.noise)
    assert twice["frobenius"] == twice["centred"] == pytest.approx(1)
    # A constant changes the covariance, but hardly the function without its mean.
    assert errors(data, data.covariance + 1, data.noise)["centred"] == pytest.approx(0, abs=1e-8)


def test_bhattacharyya_of_two_normal_distributions():
    data = recovery.Data(None, np.zeros((2, 1)), np.zeros(2), 3.0 * np.eye(2), 1.0)
    found = errors(data, 0.5 * np.eye(2), 0.5)
    affinity = 2 * np.sqrt(4.0 * 1.0) / (4.0 + 1.0)
    assert found["bhattacharyya"] == pytest.approx(-np.log(affinity))
    assert found["hellinger"] == pytest.approx(np.sqrt(1 - affinity))


def test_equivalent_expressions():
    assert multiplied_out("LIN * (PER + SE)", 1) == multiplied_out("SE * LIN + LIN * PER", 1)
    assert multiplied_out("SE[x1] * SE[x2]", 2) == multiplied_out("SE", 2) != multiplied_out("SE[x1]", 2)
    assert multiplied_out("RQ", 1) != multiplied_out("RQ * RQ", 1)
    assert columns_of("SE[x1] + LIN[x3]", 4) == {"x1", "x3"}
