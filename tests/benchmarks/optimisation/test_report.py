"""Statistics in the tables of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.optimisation.report import critical_difference, value_cell


@pytest.mark.parametrize(("samplers", "problems", "expected"), [(4, 14, 1.25), (2, 14, 0.52), (5, 30, 1.11)])
def test_critical_difference_is_that_of_the_literature(samplers, problems, expected):
    # Demšar (2006), section 3.2.3 (1.25) and table 5 (a): 1.960 for two classifiers, 2.728 for five.
    assert critical_difference(pd.DataFrame(np.zeros((problems, samplers)))) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(("smallest", "expected"), [(0.1, "**0.1** ± 0.029, 1/3"), (0.09, "0.1 ± 0.029, 1/3")])
def test_smallest_mean_is_bold_whatever_its_last_digit(smallest, expected):
    values = pd.Series([0.05, 0.1, 0.15])
    assert value_cell(values, limit=0.07, smallest=smallest * (1 + 1e-14)) == expected
