"""Statistics in the tables of runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.optimisation.report import critical_difference


@pytest.mark.parametrize(("samplers", "problems", "expected"), [(4, 14, 1.25), (2, 14, 0.52), (5, 30, 1.11)])
def test_critical_difference_is_that_of_the_literature(samplers, problems, expected):
    # Demšar (2006), section 3.2.3 (1.25) and table 5 (a): 1.960 for two classifiers, 2.728 for five.
    assert critical_difference(pd.DataFrame(np.zeros((problems, samplers)))) == pytest.approx(expected, abs=0.006)
