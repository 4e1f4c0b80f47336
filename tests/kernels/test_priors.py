from __future__ import annotations

import json
from dataclasses import astuple

import numpy as np
import pytest
from scipy.stats import beta, dirichlet, gamma, halfnorm, invgamma, kstest, lognorm, norm
from testing_spaces import mixed_space

import slayr_py as sl
from slayr_py.kernels.priors import fixed_prior, prior_from_dict
from slayr_py.space import Encoder


def test_scalars_spread_over_dimensions():
    data = sl.LogNormal(0.5, 2).stan_data("lengthscale", ("a", "b"))
    assert data["lengthscale_location"].tolist() == [0.5, 0.5]
    assert data["lengthscale_scale"].tolist() == [2, 2]
    assert data["lengthscale_gamma"].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert sl.Normal(1, 2).stan_data("mu", None) == {"mu_location": 1.0, "mu_scale": 2.0}
    assert sl.LogNormal([1, 2], 1).stan_data("l", ("a", "b"))["l_location"].tolist() == [1, 2]
    assert set(sl.Beta(2, 3).stan_data("rho", None)) == {"rho_a", "rho_b"}


@pytest.mark.parametrize(
    "prior", [sl.Normal(0, 1), sl.LogNormal([0.0, 1.0], 2.0), sl.Beta(2, (3, 4)), sl.Gamma(2, (3, 4)), sl.HalfNormal(1)]
)
def test_round_trip(prior):
    assert prior_from_dict(prior.asdict()) == prior


@pytest.mark.parametrize(
    ("prior", "marginal"),
    [
        (sl.Normal([9.0, 1.0], 2), norm(1, 2)),
        (sl.LogNormal([9.0, 1.0], 2), lognorm(2, scale=np.e)),
        (sl.Beta(2, [1.0, 3.0]), beta(2, 3)),
        (sl.Dirichlet([1.5, 2.5]), beta(2.5, 1.5)),
        (sl.HalfNormal([9.0, 2.0]), halfnorm(scale=2)),
        (sl.Gamma(2, [9.0, 3.0]), gamma(2, scale=1 / 3)),
        (sl.InverseGamma([9.0, 2.0], 3), invgamma(2, scale=3)),
    ],
)
def test_draws_follow_the_distribution(prior, marginal):
    rng = np.random.default_rng(5)
    draws = np.array([prior.draw(("a", "b"), rng) for _ in range(1000)])
    assert draws.shape == (1000, 2) and kstest(draws[:, 1], marginal.cdf).pvalue > 0.001
    if not isinstance(prior, sl.Dirichlet):
        assert type(prior)(*[np.ravel(value)[-1] for value in astuple(prior)]).draw(None, rng).shape == ()


@pytest.mark.parametrize(
    ("prior", "distribution"),
    [
        (sl.HalfNormal(2), halfnorm(scale=2)),
        (sl.Gamma(2, 3), gamma(2, scale=1 / 3)),
        (sl.InverseGamma(2, 3), invgamma(2, scale=3)),
    ],
)
def test_data_of_generalized_gamma_families(prior, distribution):
    data = prior.stan_data("x", None)
    power, shape, rate = data["x_gamma"]
    u = np.linspace(-2, 1, 5)
    # Density of the logarithm, as in stan/functions/priors.stan.
    mine = shape * power * u - rate * np.exp(power * u)
    np.testing.assert_allclose(np.diff(mine), np.diff(distribution.logpdf(np.exp(u)) + u), rtol=1e-12)
    logs = np.log(distribution.rvs(100_000, random_state=1))
    assert data["x_location"] == pytest.approx(logs.mean(), abs=4 * logs.std() / np.sqrt(1e5))
    assert data["x_scale"] == pytest.approx(logs.std(), rel=0.03)


@pytest.mark.parametrize(
    ("value", "support", "wanted"),
    [(2.0, "real", sl.Normal(2.0, 0.0)), ([1.0, 2.0], "positive", sl.LogNormal([0.0, np.log(2.0)], 0.0))],
)
def test_a_number_fixes_a_hyperparameter(value, support, wanted):
    assert fixed_prior(value, support) == wanted and wanted.is_fixed((2,)).all()
    assert sl.LogNormal(0, [0.0, 1.0]).is_fixed((2,)).tolist() == [True, False]
    assert not sl.Beta(1, 1).is_fixed(()) and not sl.Gamma(1, 1).is_fixed((3,)).any()


@pytest.mark.parametrize(
    ("prior", "distribution"),
    [
        (sl.Normal([9.0, 1.0], 2), norm([9, 1], 2)),
        (sl.LogNormal(-4.0, [0.1, 2]), lognorm([0.1, 2], scale=np.exp(-4))),
        (sl.Beta([1.0, 0.5], [3.0, 1.0]), beta([1, 0.5], [3, 1])),
        (sl.Dirichlet([0.5, 2.5]), dirichlet([0.5, 2.5])),
        (sl.Dirichlet(1.5), dirichlet([1.5, 1.5])),
        (sl.HalfNormal([1.0, 2.0]), halfnorm(scale=[1, 2])),
        (sl.Gamma(2, [1.0, 3.0]), gamma(2, scale=[1, 1 / 3])),
        (sl.InverseGamma([1.0, 2.0], 3), invgamma([1, 2], scale=3)),
    ],
)
def test_log_densities_are_those_of_scipy(prior, distribution):
    rng = np.random.default_rng(5)
    draws = np.array([[prior.draw(("a", "b"), rng) for _ in range(3)] for _ in range(50)])
    if isinstance(prior, sl.Dirichlet):
        expected = [[distribution.logpdf(x) for x in row] for row in draws]
    else:
        expected = distribution.logpdf(draws)
        scalar = type(prior)(*[np.ravel(value)[-1] for value in astuple(prior)])
        np.testing.assert_allclose(scalar.log_density(draws[..., 1]), np.array(expected)[..., 1], rtol=1e-12)
    density = prior.log_density(draws)
    assert density.shape == np.shape(expected)
    np.testing.assert_allclose(density, expected, rtol=1e-12)


def test_the_log_density_of_a_fixed_value_is_0():
    assert np.all(sl.LogNormal(0, 0).log_density([0.5, 1.0, 2.0]) == 0)
    assert np.array_equal(sl.LogNormal([1.0, 0.0], [0.0, 1.0]).log_density([3.0, 1.0])[:1], [0.0])
    assert sl.Normal(1.0, 0).log_density(1.0) == 0


def test_log_densities_outside_the_support():
    assert np.all(sl.LogNormal(0, 1).log_density([0.0, -1.0]) == -np.inf)
    assert np.all(sl.Beta(2, 2).log_density([-0.1, 0.0, 1.0, 1.1]) == -np.inf)
    assert sl.Beta(1, 1).log_density(0.0) == 0
    assert np.all(sl.Dirichlet(2.0).log_density([[0.5, 0.6], [1.5, -0.5], [1.0, 0.0]]) == -np.inf)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fixed_prior(0.5, "unit interval"), "cannot be fixed to 0.5"),
        (lambda: fixed_prior(-1, "positive"), "cannot be fixed to -1"),
        (lambda: fixed_prior("wide", "positive"), "neither a prior nor a number"),
        (lambda: sl.Gamma(0, 1), "shape must be positive"),
        (lambda: sl.LogNormal(0, -1), "sigma must be positive"),
        (lambda: sl.Normal(np.inf, 1), "mu must be finite"),
        (lambda: sl.Normal("x", 1), "mu must be a number"),
        (lambda: sl.Beta(0, 1), "a must be positive"),
        (lambda: sl.Normal([0, 1], [1, 2, 3]), "mu has 2 and sigma has 3"),
        (lambda: sl.LogNormal([0, 1], [1, 2, 3]), "mu has 2 and sigma has 3"),
        (lambda: sl.Beta([1], [1, 2]), "a has 1 and b has 2"),
        (lambda: sl.Gamma([1, 1], [1, 2, 3]), "values; give one for each dimension, or a single number"),
        (lambda: sl.InverseGamma([1, 1, 1], [1, 2]), "shape has 3 and scale has 2"),
        (lambda: sl.LogNormal([0, 0], 1).stan_data("sigma_f", None), "scalar"),
        (lambda: sl.LogNormal([0, 0], 1).stan_data("lengthscale", ("a", "b", "c")), "2 values for 3"),
        (lambda: prior_from_dict({"family": "Cauchy"}), "Cauchy"),
        (lambda: prior_from_dict({"family": "Normal", "mean": 1}), "give .*mu.*sigma"),
    ],
)
def test_wrong_priors(make, words):
    with pytest.raises(sl.DataError, match=words):
        make()


def test_defaults_are_those_documented():
    encoder = Encoder(mixed_space())
    priors = sl.GaussianProcess(encoder, sl.kernels.Matern()).priors
    columns = len(encoder.column_names)
    assert priors["lengthscale"] == sl.LogNormal(np.log(0.2 * np.sqrt(columns)), 1.0)
    assert priors["sigma_f"] == sl.LogNormal(0, 0.5)
    assert priors["sigma_n"] == sl.HalfNormal(1)
    assert priors["mu"] == sl.Normal(0, 1)


@pytest.mark.parametrize("make", [sl.GaussianProcess, sl.search.KernelSearch])
def test_priors_that_are_no_mapping_are_refused(make):
    with pytest.raises(sl.DataError, match=r"priors is \[1\]; give a mapping of hyperparameters, as in priors="):
        make({"x": (0.0, 1.0)}, priors=[1])


def test_a_record_of_a_prior_is_the_same_after_json():
    prior = sl.LogNormal([0.0, 1.0], 1.0)
    assert json.loads(json.dumps(prior.asdict())) == prior.asdict()


def test_a_fixed_hyperparameter_is_shown_by_its_value():
    assert str(sl.Normal(0.5, 0.0)) == "fixed at 0.5" and str(sl.LogNormal(np.log(1e-5), 0.0)) == "fixed at 1.e-05"
    assert str(sl.LogNormal([np.log(0.3), np.log(0.4)], 0.0)) == "fixed at [0.3 0.4]"
    assert str(sl.LogNormal([0.0, 1.0], [0.0, 1.0])) == "LogNormal(mu=[0. 1.], sigma=[0. 1.])"
