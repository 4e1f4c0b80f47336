"""Initial values of periods from the periodogram."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.inference.sampling.guesses import period_guesses
from slayr_py.kernels.expressions.periodogram import peaks
from slayr_py.space import Encoder

SPACE = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)}))
X, Z = np.random.default_rng(1).random((2, 120))
WAVES = np.sin(2 * np.pi * X / 0.2) + 0.5 * np.sin(2 * np.pi * X / 0.07) + np.sin(2 * np.pi * Z / 0.13)


def data_of(expression, y=WAVES, priors=None, **options):
    gp = sl.GaussianProcess(SPACE, expression, priors)
    train = SPACE.encode([{"x": x, "z": z} for x, z in zip(X[: len(y)], Z, strict=False)])
    return gp.model.stan_data(train, y, train[:0], **options)


def periods(data, guess):
    return np.exp(data["period_location"] + data["period_scale"] * guess["z_period"])


def test_the_first_guess_has_the_highest_peak_of_each_column():
    data = data_of("PER[z] * PER[x] + SE")
    first, *others = period_guesses(data, 4)
    np.testing.assert_allclose(periods(data, first), [0.13, 0.2], rtol=0.02)
    assert len(others) == 3 and set(first) == {"z_period"}
    in_x = peaks(X, WAVES, 8)
    for k, guess in enumerate(others, start=1):
        np.testing.assert_allclose(periods(data, guess)[1], in_x[k % len(in_x)])


def test_leaves_of_one_column_start_at_different_peaks():
    data = data_of("PER[x] * PER[x] + SE")
    in_x = peaks(X, WAVES, 8)
    for k, guess in enumerate(period_guesses(data, 3)):
        np.testing.assert_allclose(periods(data, guess), [in_x[0], in_x[k]])


@pytest.mark.parametrize("prior", [sl.LogNormal(0, 0.1), sl.Gamma(2.0, 5.0), sl.HalfNormal(0.3)])
def test_guesses_are_on_the_scale_of_the_prior(prior):
    data = data_of("PER[x]", priors={"period": prior})
    np.testing.assert_allclose(periods(data, period_guesses(data, 1)[0]), 0.2, rtol=0.02)


def test_a_fixed_period_has_the_coordinate_zero():
    data = data_of("PER[x] + PER[z]", priors={"period": {"1:PER": 0.3}})
    guess = period_guesses(data, 1)[0]["z_period"]
    assert guess[0] == 0.0
    np.testing.assert_allclose(periods(data, period_guesses(data, 1)[0]), [0.3, 0.13], rtol=0.02)


def test_there_are_no_guesses_without_periods_or_peaks():
    assert period_guesses(data_of("SE + LIN"), 4) == []
    assert period_guesses(data_of("SE + PER", prior_only=True), 4) == []
    assert period_guesses(data_of("PER[x] + PER[z]", y=WAVES[:4]), 4) == []
    assert period_guesses(data_of("PER[x]", y=np.zeros(120)), 4) == []
    matern = sl.GaussianProcess(SPACE, "matern")
    train = SPACE.encode([{"x": 0.5, "z": 0.5}])
    assert period_guesses(matern.model.stan_data(train, np.zeros(1), train[:0]), 4) == []
