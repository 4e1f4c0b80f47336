"""Validation of fit options."""

from __future__ import annotations

import pytest
from testing_fits import quick_fit

import slayr_py as sl


@pytest.mark.parametrize("wrong", [-1, 0.5, True, "1", None])
def test_illegal_retries(wrong):
    with pytest.raises(sl.DataError, match="retries must be an integer >= 0"):
        quick_fit([1.0, 2.0], retries=wrong)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "vi"}, "unknown method 'vi'"),
        ({"chains": 0}, "chains"),
        ({"draws": 2.5}, "draws"),
        ({"warmup": 0}, "warmup"),
        ({"target_acceptance": 1.0}, "target_acceptance"),
        ({"max_treedepth": 0}, "max_treedepth"),
        ({"ess": 0}, "ess must be an integer >= 1, got 0"),
    ],
)
def test_illegal_options(change, words):
    with pytest.raises(sl.DataError, match=words):
        quick_fit([1.0, 2.0], **change)
