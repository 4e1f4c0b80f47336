from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from benchmarks.correctness.binary import cases, hyperparameters
from slayr_py.inference import Model
from slayr_py.inference.model import NOISE_FLOOR

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})
X = np.linspace(0, 1, 12)[:, None]
QUICK = {"chains": 2, "warmup": 150, "draws": 100, "seed": 1}


@pytest.mark.stan
def test_hyperparameters_of_a_binary_model_are_those_of_the_exact_posterior():
    """Reference: importance sampling with simulated orthant probabilities, of ``benchmarks/correctness/binary.py``."""
    case = cases()["one failure of 12"]
    gp = sl.GaussianProcess(case.space, likelihood="probit")
    posterior = gp.fit(case.X, case.success, chains=2, warmup=200, draws=700, seed=1)
    means = hyperparameters(posterior.draws).mean(axis=0)
    # Standard deviations away; four standard errors with 300 effective draws. Under Laplace's approximation of the
    # likelihood, mu is 0.42 away and log sigma_f -0.4.
    apart = (means - [0.25, 2.28, -0.81, -0.84]) / [1.01, 0.51, 0.77, 0.76]
    np.testing.assert_allclose(apart, 0, atol=0.23)
    assert np.isfinite(posterior.check().pareto_k) and posterior.check().limits["pareto_k"] == 0.7


@pytest.mark.stan
def test_known_errors_are_noise_in_the_users_units():
    rng = np.random.default_rng(1)
    truth = 100 * np.sin(6 * X[:, 0])
    errors = np.where(np.arange(12) % 3 == 0, 80.0, 1.0)
    y = truth + errors * rng.normal(size=12)
    gp = sl.GaussianProcess(SPACE)
    posterior = gp.fit(X, y, y_sd=errors, **QUICK)
    np.testing.assert_allclose(posterior.data["y_sd"], errors / posterior.y_sd)
    known, unknown = (p.predict(X) for p in (posterior, gp.fit(X, y, **QUICK)))
    exact = errors == 1.0
    # The known errors explain the outliers: the precise values are followed, and the function is closer to the truth.
    assert np.abs(known.mean - y)[exact].max() < np.abs(known.mean - y)[~exact].max()
    assert np.sqrt(np.mean((known.mean - truth) ** 2)) < np.sqrt(np.mean((unknown.mean - truth) ** 2))
    again = posterior.predict(X, engine="stan")
    np.testing.assert_allclose(again.draw_mean, known.draw_mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(again.draw_sd, known.draw_sd, rtol=1e-4, atol=1e-4)


@pytest.mark.stan
@pytest.mark.parametrize("warp", ["none", "log"])
def test_nearly_coinciding_observations_without_noise_stay_finite(warp):
    """They drive sigma_n to where the covariance would be singular without the floor."""
    x = np.concatenate([X[:, 0], X[:6, 0] + 1e-9])[:, None]
    gp = sl.GaussianProcess(SPACE, priors={"sigma_n": sl.LogNormal(-30, 1)}, warp=warp)
    posterior = gp.fit(x, np.sin(3 * x[:, 0]), **QUICK)
    assert posterior.data["noise_floor"] == NOISE_FLOOR
    for name in ("log_likelihood", "posterior_predictive"):
        assert np.isfinite(posterior.idata[name]["y"].values).all()
    assert np.isfinite(posterior.predict(x, engine="stan").draw_mean).all()


@pytest.mark.stan
def test_a_number_fixes_a_hyperparameter():
    gp = sl.GaussianProcess(SPACE, priors={"sigma_n": 1e-3, "lengthscale": {"x": 0.3}, "mu": 0.5})
    posterior = gp.fit(X, np.sin(6 * X[:, 0]), **QUICK)
    for name, value in (("sigma_n", 1e-3), ("lengthscale", 0.3), ("mu", 0.5)):
        np.testing.assert_allclose(posterior.draws[name], value, rtol=1e-12)
    assert posterior.draws["sigma_f"].std() > 0.01
    assert posterior.check().ok, posterior.check().messages
    assert Model.fromdict(gp.model.asdict()).priors == gp.priors


@pytest.mark.stan
def test_priors_of_other_families_are_sampled():
    priors = {"sigma_f": sl.Gamma(3.0, 2.0), "sigma_n": sl.HalfNormal(0.3), "lengthscale": sl.InverseGamma(4.0, 1.0)}
    posterior = sl.GaussianProcess(SPACE, priors=priors).fit(X, X[:, 0], **QUICK)
    draws = posterior.with_prior(draws=1000, warmup=300).idata["prior"]
    rng = np.random.default_rng(2)
    for name, prior in priors.items():
        exact = np.array([np.ravel(prior.draw(None, rng))[0] for _ in range(4000)])
        got = draws[name].values.ravel()
        # About 2000 effective draws: four standard errors of the quartiles of the logarithm.
        error = 4 * np.std(np.log(exact)) * 1.4 / np.sqrt(1500)
        for q in (0.25, 0.5, 0.75):
            assert np.log(np.quantile(got, q)) == pytest.approx(np.log(np.quantile(exact, q)), abs=error)


def test_illegal_binary_models():
    with pytest.raises(sl.DataError, match="unknown likelihood 'probt'.*'probit'"):
        sl.GaussianProcess(SPACE, likelihood="probt")
    gp = sl.GaussianProcess(SPACE, likelihood="probit")
    with pytest.raises(sl.DataError, match="a binary observation is 0.5; use True or False"):
        gp.fit(X, np.full(12, 0.5))
