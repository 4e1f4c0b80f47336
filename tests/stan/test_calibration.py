"""Simulation-based calibration of every program, reduced; ``benchmarks.correctness.calibration`` runs all of it.

A mistake must be found where the correct program passes: a variance that is used as a standard deviation, and a density
without Jacobian. The first mistake shows if points coincide, so that the data determine the noise. The second shifts
quantities that the data leave to their priors. Hence four points in six dimensions, observed twice, with wide priors.
"""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import slayr_py as sl
from slayr_py.inference import calibrate
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.validation import calibration as calibration_module
from slayr_py.inference.validation.calibration import draw_values
from slayr_py.kernels import FrequencyModulated, Hierarchical

LIMIT = 0.001
REPLICATIONS = 20
DRAWS = 19


def conditional_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kind = Categorical("kind", ["flat", "deep"])
    depth = Float("depth", (0.0, 1.0))
    space.add(kind, depth, EqualsCondition(depth, kind, "deep"))
    return space


def mixed_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), Categorical("act", ["relu", "tanh", "gelu"]))
    return space


PRIORS = {"sigma_n": sl.LogNormal(-1.2, 1.5), "lengthscale": sl.LogNormal(0.0, 3.0)}


def calibration(gp, n, **options):
    """Calibrate with n points observed twice and one new point."""
    *observed, new = gp.encoder.sobol(n + 1, 1)
    return calibrate(gp, [*observed, *observed, new], REPLICATIONS, DRAWS, warmup=200, **options)


@pytest.fixture
def wide() -> sl.GaussianProcess:
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(6)})
    return sl.GaussianProcess(space, priors=PRIORS)


@pytest.mark.slow
@pytest.mark.stan
def test_matern_with_a_warp_from_a_given_pivot(wide):
    result = calibration(sl.GaussianProcess(wide.encoder, priors=PRIORS, warp="best"), 4)
    assert list(result.ranks) == [
        "mu",
        "sigma_f",
        "sigma_n",
        "warp",
        *(f"lengthscale[x{i}]" for i in range(6)),
        "lengthscale, all",
        "log_likelihood",
        "f",
    ]
    assert result.ranks.shape == (REPLICATIONS, 13) and result.fits["ess"].median() > DRAWS
    assert result.p_value() > LIMIT, result.p_values()


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.parametrize(
    ("kernel", "space"),
    [(Hierarchical(), conditional_space()), (FrequencyModulated(), mixed_space())],
    ids=["hierarchical", "fm"],
)
def test_other_programs_under_default_priors_with_a_warp(kernel, space):
    result = calibration(sl.GaussianProcess(space, kernel, warp="log"), 4)
    assert "warp" in result.ranks
    assert result.p_value() > LIMIT, result.p_values()


@pytest.mark.slow
@pytest.mark.stan
def test_a_missing_jacobian_is_found(wide):
    result = calibration(wide, 4, data={"omit_jacobian": 1})
    assert result.p_value() < LIMIT, result.p_values()


@pytest.mark.slow
@pytest.mark.stan
def test_a_variance_for_a_standard_deviation_is_found(wide, monkeypatch):
    """Data are simulated as if ``sigma_n`` were a variance, so that no wrong program has to be compiled."""

    def wrong(model, train, new, theta, rng, errors):
        return draw_values(model, train, new, {**theta, "sigma_n": np.sqrt(theta["sigma_n"])}, rng, errors)

    monkeypatch.setattr(calibration_module, "draw_values", wrong)
    result = calibration(wide, 4)
    assert result.p_value() < LIMIT, result.p_values()


@pytest.mark.stan
def test_replications_depend_on_their_number_alone():
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    configs = gp.encoder.sobol(4, 0)
    counts = []
    whole = calibrate(gp, configs, 3, 9, seed=5, progress=counts.append)
    assert counts == [1, 2, 3] and whole.ranks.to_numpy().min() >= 0 and whole.ranks.to_numpy().max() <= 9
    rest = calibrate(gp, configs, 2, 9, seed=5, first=1, program=compiled("matern_gp"))
    assert rest.ranks.to_numpy().tolist() == whole.ranks[1:].to_numpy().tolist()


@pytest.mark.parametrize(
    ("n", "replications", "draws", "message"),
    [
        (1, 5, 9, "1 configuration given; calibration needs at least 2"),
        (3, 0, 9, "replications must be an integer >= 1, got 0"),
        (3, 5, 0, "draws must be an integer >= 1, got 0"),
    ],
)
def test_too_little_to_calibrate(n, replications, draws, message):
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}))
    with pytest.raises(sl.DataError, match=message):
        calibrate(gp, gp.encoder.sobol(n, 0), replications, draws)
