"""The variational bound of sparse Gaussian processes, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import multivariate_normal

import slayr_py as sl
from slayr_py.acquisition import suggest
from slayr_py.errors import DataError
from slayr_py.inference import WarmStart
from slayr_py.inference.model import Model
from slayr_py.inference.modes.laplace import find_mode
from slayr_py.inference.modes.marginal import ExactMarginal
from slayr_py.inference.modes.sparse_bound import JITTER, SparseMarginal, inducing_points
from slayr_py.kernels import Hierarchical, Matern
from slayr_py.space import Encoder

SQUARE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})
EXPRESSIONS = ["SE", "LIN * PER + RQ[x] * MAT52 + C", "(MAT12 + LIN[z]) * (PER[x] + MAT32)"]


def data(n=60, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + rng.normal(size=n) / 5


def marginals(expression, n=60, m=12):
    X, y = data(n)
    model = Model(SQUARE, expression)
    train = model.encoder.encode(X)
    y = (y - y.mean()) / y.std(ddof=1)
    return SparseMarginal(model, train, y, inducing_points(train, m, 1)), ExactMarginal(model, train, y), model


def dense(sparse, model, theta):
    """Return K_mm, K_nm, the noise and the variances by the kernel itself."""
    own = model.kernel.cross(sparse.inducing, sparse.inducing, theta)[0]
    own += JITTER * np.mean(np.diagonal(own)) * np.eye(len(own))
    cross = model.kernel.cross(sparse._train, sparse.inducing, theta)[0]
    noise = theta["sigma_n"][0] ** 2 + model.noise_floor**2
    return own, cross, noise, model.kernel.diagonal(sparse._train, theta)[0]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_bound_is_that_of_dense_algebra(expression):
    sparse, exact, model = marginals(expression)
    z = np.random.default_rng(2).normal(size=sparse.coordinates.size) / 2
    theta = sparse.coordinates.theta(z[None])
    own, cross, noise, variances = dense(sparse, model, theta)
    Q = cross @ np.linalg.solve(own, cross.T)
    low_rank = multivariate_normal(np.full(60, theta["mu"][0]), Q + noise * np.eye(60)).logpdf(sparse._y)
    expected = low_rank - (variances.sum() - np.trace(Q)) / (2 * noise)
    density = sparse(z)
    assert density.likelihood == pytest.approx(expected, rel=1e-7)
    assert sparse.log_density(z) == pytest.approx(density.value, rel=1e-12)
    assert density.likelihood <= exact(z).likelihood


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_gradient_is_that_of_differences(expression):
    sparse, _, _ = marginals(expression)
    z = np.random.default_rng(3).normal(size=sparse.coordinates.size) / 2
    steps = 1e-5 * np.eye(len(z))
    expected = [(sparse(z + step).value - sparse(z - step).value) / 2e-5 for step in steps]
    np.testing.assert_allclose(sparse(z).gradient, expected, rtol=1e-5, atol=1e-4)


def test_gradient_keeps_its_digits_where_the_inducing_covariance_is_nearly_singular():
    sparse, _, _ = marginals("SE", n=300, m=60)
    z = np.zeros(sparse.coordinates.size)
    z[sparse.coordinates.place("lengthscale")] = 3.0  # length-scales of about 6 on the unit square
    steps = 1e-4 * np.eye(len(z))
    expected = [(sparse(z + step).value - sparse(z - step).value) / 2e-4 for step in steps]
    np.testing.assert_allclose(sparse(z).gradient, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("expression", ["SE", "SE * LIN + RQ"])
def test_the_mode_of_a_sample_leads_to_the_mode_of_all_observations(expression, monkeypatch):
    sparse = marginals(expression, n=4000)[0]
    starts = list(np.random.default_rng(3).normal(size=(2, sparse.coordinates.size)))
    counts = {}

    def counted(marginal, z, evaluate=SparseMarginal.__call__):
        counts[marginal.n] = counts.get(marginal.n, 0) + 1
        return evaluate(marginal, z)

    monkeypatch.setattr(SparseMarginal, "__call__", counted)
    by_sample = find_mode(sparse, starts)
    assert set(counts) == {2000, 4000}
    with_sample = counts[4000]
    monkeypatch.setattr(SparseMarginal, "thinned", lambda marginal: None)
    direct = find_mode(sparse, starts)
    assert with_sample < 0.75 * (counts[4000] - with_sample)
    assert by_sample.density.value > direct.density.value - 0.01


def test_few_observations_are_not_thinned():
    assert marginals("SE", n=3999)[0].thinned() is None


def test_all_points_as_inducing_points_give_the_exact_likelihood():
    sparse, exact, _ = marginals("MAT32", m=60)
    z = np.zeros(sparse.coordinates.size)
    # The jitter of 1e-8 is far below the noise variance of 3e-4.
    assert sparse(z).likelihood == pytest.approx(exact(z).likelihood, rel=1e-4)
    np.testing.assert_allclose(sparse(z).gradient, exact(z).gradient, rtol=1e-2, atol=1e-2)
    assert np.isnan(sparse.leave_one_out(z))


@pytest.mark.parametrize("expression", ["SE", "LIN + MAT52"])
def test_predictions_are_those_of_the_variational_posterior(expression):
    sparse, _, model = marginals(expression)
    z = np.random.default_rng(4).normal(size=sparse.coordinates.size) / 2
    theta = sparse.coordinates.theta(z[None])
    new = model.encoder.encode(Encoder(SQUARE).sobol(7, 3))
    own, cross, noise, _ = dense(sparse, model, theta)
    factor, weights = sparse.pseudo_factor(theta)
    new_cross = model.kernel.cross(new, sparse.inducing, theta)[0]
    precise = own + cross.T @ cross / noise
    mean = theta["mu"][0] + new_cross @ np.linalg.solve(precise, cross.T @ (sparse._y - theta["mu"][0])) / noise
    reduction = new_cross @ (np.linalg.inv(own) - np.linalg.inv(precise)) @ new_cross.T
    solved = np.linalg.solve(factor, new_cross.T)
    np.testing.assert_allclose(theta["mu"][0] + new_cross @ weights, mean, rtol=1e-5)
    np.testing.assert_allclose(sparse.mean(z, new), mean, rtol=1e-5)
    np.testing.assert_allclose(solved.T @ solved, reduction, rtol=1e-4, atol=1e-6)
    assert np.allclose(factor, np.tril(factor))


def test_inducing_points_are_distinct_configurations():
    train = Encoder(SQUARE).encode(np.repeat(data(10)[0], 3, axis=0))
    columns = inducing_points(train, 20, 1).columns
    assert len(columns) == len(np.unique(columns, axis=0)) == 10
    np.testing.assert_array_equal(columns, inducing_points(train, 20, 1).columns)
    assert len(inducing_points(train, 4, 1)) == 4


@pytest.fixture(scope="module")
def fitted() -> sl.Posterior:
    X, y = data(400)
    return sl.GaussianProcess(SQUARE, inducing=30).fit(X, 10 + 5 * y, draws=25)


def test_a_fit_predicts_thousands_of_observations(fitted):
    X, y = data(500, seed=2)
    prediction = fitted.predict(X)
    truth = 10 + 5 * (np.sin(6 * X[:, 0]) + X[:, 1])
    assert fitted.check().ok
    assert np.sqrt(np.mean(np.square(prediction.mean - truth))) < 0.3  # a third of the noise, whose sd is 1
    inside = np.abs(10 + 5 * y - prediction.mean) < 1.645 * np.hypot(prediction.sd, 1.0)
    assert abs(inside.mean() - 0.9) < 4 * np.sqrt(0.09 / 500)


def test_a_fit_says_what_is_approximate(fitted):
    assert "30 inducing points represent 400" in fitted.check().notes[0]
    assert fitted.record["arguments"]["method"] == "laplace"
    assert fitted.idata["posterior"].sizes["draw"] == 100
    assert "MAT52" in repr(fitted)


def test_draws_of_functions_have_the_moments_of_the_prediction(fitted):
    X = data(5, seed=3)[0]
    draws = fitted.sample(X, n=4000, seed=1)
    prediction = fitted.predict(X)
    assert np.all(np.abs(draws.mean(axis=0) - prediction.mean) < 5 * prediction.sd / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=0), prediction.sd, rtol=0.1)


def test_an_acquisition_works_with_it(fitted):
    found = suggest(fitted, "ei", best=10.0, t=1, rng=np.random.default_rng(1))
    assert set(found.config) == {"x", "z"}
    assert np.isfinite(found.value)


def test_the_same_seed_gives_the_same_fit():
    X, y = data(200)
    one, two = (sl.GaussianProcess(SQUARE, "SE", inducing=10).fit(X, y, method="map", seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X).mean, two.predict(X).mean)
    assert one.n_draws == 1
    assert not np.array_equal(one.support.columns, sl_inducing(X, y, seed=4))


def sl_inducing(X, y, seed):
    return (
        sl.GaussianProcess(SQUARE, "SE", inducing=10)
        .fit(X, y, method="map", seed=seed)
        .parts[0]
        .factorisation.support.columns
    )


@pytest.mark.parametrize("call", ["loo", "warm_start", "with_prior", "with_pointwise"])
def test_what_a_sparse_fit_lacks_is_refused(fitted, call, tmp_path):
    with pytest.raises(DataError, match="a sparse fit has no"):
        getattr(fitted, call)()
    with pytest.raises(DataError, match="saved form"):
        fitted.save(tmp_path)
    with pytest.raises(DataError, match="prediction by engine='stan'"):
        fitted.predict([{"x": 0.1, "z": 0.2}], engine="stan")
    with pytest.raises(DataError, match="components"):
        fitted.components([{"x": 0.1, "z": 0.2}])


def test_other_models_are_refused():
    with pytest.raises(DataError, match="'hierarchical' is not supported with inducing="):
        sl.GaussianProcess(SQUARE, Hierarchical(), inducing=10)
    with pytest.raises(DataError, match="inducing must be"):
        sl.GaussianProcess(SQUARE, "SE", inducing=0)
    with pytest.raises(DataError, match="inducing= supports Matérn kernels up to p = 2, not p = 3; use a smaller p"):
        sl.GaussianProcess(SQUARE, Matern(p=3), inducing=5)


def test_a_start_and_an_effective_number_are_refused():
    X = np.random.default_rng(0).uniform(size=(12, 2))
    with pytest.raises(DataError, match="ess is 100, but inducing= has a fixed number of draws; leave ess out"):
        sl.GaussianProcess(SQUARE, "SE", inducing=5).fit(X, X.sum(axis=1), ess=100)
    start = WarmStart.of_mode({"z_mu": np.zeros((1, 1))}, 1)
    with pytest.raises(DataError, match="start is not supported with inducing=; leave start= out"):
        sl.GaussianProcess(SQUARE, "SE", inducing=5).fit(X, X.sum(axis=1), start=start)


def test_it_can_be_a_part_of_a_stack(fitted, tmp_path):
    stacked = sl.Posterior.stack([fitted, fitted], weights=[0.5, 0.5])
    with pytest.raises(DataError, match="a sparse fit has no saved form"):
        stacked.save(tmp_path / "stack")
    X = data(5, seed=3)[0]
    np.testing.assert_allclose(stacked.predict(X).mean, fitted.predict(X).mean, rtol=1e-9)
    moments = stacked.predictor(20).moments(fitted.encoder.encode(X))
    assert moments[0].shape == (20, 5)
    assert stacked.sample(X, n=3).shape == (3, 5)
