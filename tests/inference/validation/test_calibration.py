"""Simulated observations and their density; `tests/stan/test_calibration.py` runs the programs."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.inference import Model, calibrate, check_kernel
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.validation.calibration import draw_values, log_likelihood

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})


def densities(y, errors=0.0, warp=None, binary=False):
    """Return the density of one observation with each of the values y."""
    s = len(y)
    draws = {"mu": np.full(s, 0.2), "sigma_f": np.ones(s), "sigma_n": np.full(s, 0.3), "lengthscale": np.ones((s, 1))}
    if warp is not None:
        draws["warp"] = np.full(s, warp)
    train = Model(SPACE).encoder.encode([{"x": 0.4}])
    targets = Targets(y[:, None], np.full(1, errors), binary=binary)
    return np.exp(log_likelihood(KernelPredictor.factorise(sl.kernels.Matern(), train, targets, draws)))


@pytest.mark.parametrize(("warp", "errors"), [(None, 0.3), (None, 0.6), (0.37, 0.0), (1.0, 0.0), (1.9, 0.0)])
def test_the_density_of_an_observation_integrates_to_one(warp, errors):
    u = np.linspace(-3, 15, 6001)
    y = np.sinh(u)
    assert np.trapezoid(densities(y, errors, warp) * np.cosh(u), u) == pytest.approx(1, abs=1e-6)


def test_probabilities_of_a_success_and_a_failure_add_up_to_one():
    # Expectation propagation is exact for one observation.
    success, failure = (densities(np.array([y]), binary=True)[0] for y in (1.0, -1.0))
    assert success + failure == pytest.approx(1, abs=1e-6)


def test_binary_observations_and_known_errors_are_simulated():
    rng = np.random.default_rng(1)
    model = Model(SPACE, priors={"mu": 0.5}, likelihood="probit")
    points = model.encoder.encode(np.linspace(0, 1, 2000)[:, None])
    theta = {"mu": 0.5, "sigma_f": 1e-6, "sigma_n": 1.0, "lengthscale": np.ones(1)}
    theta = {name: np.asarray(value) for name, value in theta.items()}
    y = draw_values(model, points[:-1], points[-1:], theta, rng)[:-1]
    assert set(y) == {-1.0, 1.0}
    # P(success) = Phi(0.5) = 0.69, with a standard error of 0.010
    assert np.mean(y > 0) == pytest.approx(0.69, abs=0.045)
    errors = np.full(1999, 2.0)
    y = draw_values(Model(SPACE), points[:-1], points[-1:], theta | {"sigma_n": np.asarray(0.1)}, rng, errors)[:-1]
    assert y.std() == pytest.approx(2.0, abs=4.5 * 2 / np.sqrt(2 * 1999))


def test_simulated_observations_have_the_noise_floor_of_the_model():
    model = Model(SPACE)
    points = model.encoder.encode(np.linspace(0, 1, 2000)[:, None])
    theta = {"mu": 0.0, "sigma_f": 1e-9, "sigma_n": 0.0, "lengthscale": np.ones(1)}
    theta = {name: np.asarray(value) for name, value in theta.items()}
    y = draw_values(model, points[:-1], points[-1:], theta, np.random.default_rng(1))[:-1]
    assert y.std() == pytest.approx(model.noise_floor, rel=0.1)


@pytest.mark.stan
@pytest.mark.parametrize(("likelihood", "errors"), [("probit", None), ("gaussian", 0.5)])
def test_ranks_of_free_hyperparameters(likelihood, errors):
    gp = sl.GaussianProcess(SPACE, likelihood=likelihood)
    ranks = calibrate(gp, gp.encoder.sobol(5, 0), 1, 9, warmup=50, y_sd=errors).ranks
    free = ["mu", "sigma_f", *(["sigma_n"] if likelihood == "gaussian" else [])]
    assert list(ranks) == [*free, "lengthscale[x]", "log_likelihood", "f"]


def test_an_illegal_seed_is_refused():
    gp = sl.GaussianProcess(SPACE)
    with pytest.raises(sl.DataError, match="seed must be an integer >= 0, got -1"):
        calibrate(gp, gp.encoder.sobol(4, 0), 1, 9, seed=-1)
    with pytest.raises(sl.DataError, match="seed must be an integer >= 0, got -1"):
        check_kernel("matern", gp.encoder, seed=-1)


@pytest.mark.stan
def test_known_errors_that_a_model_cannot_use():
    gp = sl.GaussianProcess(SPACE, likelihood="probit")
    with pytest.raises(sl.DataError, match="binary observations cannot have known errors"):
        calibrate(gp, gp.encoder.sobol(5, 0), 1, 9, y_sd=0.5)
