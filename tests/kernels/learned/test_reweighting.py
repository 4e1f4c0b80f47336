from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from slayr_py import DataError
from slayr_py.kernels import free, moment_features
from slayr_py.kernels.learned import reweighting

KERNELS = [
    free.Linear(),
    free.Polynomial(3, coef0=0.5),
    free.Polynomial(2, coef0=0.0),
    free.Exponential([0.8, 1.3, 1.0]),
    free.SquaredExponential(0.7),
    free.SquaredExponential([0.8, 1.3, 0.6]),
]
ENGINES = ("features", "pairs")


def points(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (n, 3))


def machine(n: int = 7) -> tuple[np.ndarray, np.ndarray]:
    alpha = np.random.default_rng(1).normal(size=n)
    return points(n, 0), alpha - alpha.mean()


def by_brute_force(kernel, u, alpha, a, b):
    """The double sum over the machine's points, of K_4 with all four arguments."""
    return np.einsum("i,j,ijab->ab", alpha, alpha, kernel.evaluate(u, u, a, b))


def scale(k, variance_a, variance_b):
    return np.abs(k) / np.sqrt(np.outer(variance_a, variance_b))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_covariances_are_the_double_sum(kernel, engine):
    u, alpha = machine()
    a = points(5, 2)
    b = points(4, 3)
    reweighted = kernel.reweighted(u, alpha, engine=engine)
    va, vb = (np.diag(by_brute_force(kernel, u, alpha, x, x)) for x in (a, b))
    error = reweighted.covariance(a, b) - by_brute_force(kernel, u, alpha, a, b)
    assert scale(error, va, vb).max() < 1e-9
    np.testing.assert_allclose(reweighted.variance(a), va, rtol=1e-9)


@pytest.mark.parametrize("origin", [0.0, 0.5])
def test_engines_agree_for_a_machine_with_many_points(origin):
    rng = np.random.default_rng(4)
    u = rng.random((40, 2)) - origin
    alpha = rng.normal(size=40)
    alpha -= alpha.mean()
    x = np.vstack([rng.random((30, 2)), [[0, 0], [1, 1], [0, 1]]]) - origin
    features, pairs = (
        free.SquaredExponential(0.5).reweighted(u, alpha, radius=max(origin, 1 - origin), engine=engine)
        for engine in ENGINES
    )
    error = features.covariance(x, x) - pairs.covariance(x, x)
    assert scale(error, features.variance(x), features.variance(x)).max() < 1e-9


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradients_are_those_of_finite_differences(kernel, engine):
    u, alpha = machine()
    a = 0.9 * points(4, 2)
    b = points(3, 3)
    reweighted = kernel.reweighted(u, alpha, engine=engine)
    gradient = reweighted.covariance_gradient(a, b)
    by_variance = reweighted.variance_gradient(a)
    h = 1e-5
    for c, step in enumerate(h * np.eye(3)):
        slope = (reweighted.covariance(a + step, b) - reweighted.covariance(a - step, b)) / (2 * h)
        np.testing.assert_allclose(gradient[..., c], slope, rtol=1e-5, atol=1e-6)
        slope = (reweighted.variance(a + step) - reweighted.variance(a - step)) / (2 * h)
        np.testing.assert_allclose(by_variance[:, c], slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernel_is_symmetric_and_positive_semi_definite(kernel):
    u, alpha = machine()
    x = points(30, 5)
    k = kernel.reweighted(u, alpha).covariance(x, x)
    np.testing.assert_allclose(k, k.T, rtol=1e-12, atol=1e-14 * np.abs(k).max())
    assert np.linalg.eigvalsh((k + k.T) / 2).min() > -1e-12 * np.trace(k)


@pytest.mark.parametrize("engine", ENGINES)
def test_neither_the_order_of_points_nor_points_without_weight_matter(engine):
    u, alpha = machine()
    kernel = free.SquaredExponential(0.7)
    x = points(4, 2)
    order = np.random.default_rng(0).permutation(len(u))
    more = np.vstack([u[order], points(5, 9)])
    k = kernel.reweighted(u, alpha, engine=engine).covariance(x, x)
    others = kernel.reweighted(more, np.append(alpha[order], np.zeros(5)), engine=engine).covariance(x, x)
    np.testing.assert_allclose(others, k, rtol=1e-9, atol=1e-12 * k.max())


def test_theorem_3_the_features_are_weighted_by_the_machine_s_squared_weights():
    u, alpha = machine()
    a = points(3, 2)
    b = points(2, 3)
    orders = np.array(list(itertools.product(range(18), repeat=3)))

    def features(x):
        r = np.exp(-np.square(x).sum(axis=1) / 2)
        return r[:, None] * np.prod(x[:, None, :] ** orders[None], axis=2)

    tau_squared = 1 / np.prod([[float(math.factorial(k)) for k in row] for row in orders], axis=1)
    w = np.sqrt(tau_squared) * (alpha @ features(u))
    wanted = features(a) * w**2 @ features(b).T
    np.testing.assert_allclose(free.SquaredExponential(1.0).reweighted(u, alpha).covariance(a, b), wanted, rtol=1e-9)


def test_tempering_runs_from_the_kernel_itself_to_the_re_weighted_one():
    u, alpha = machine()
    kernel = free.SquaredExponential(0.9)
    x = points(4, 2)
    np.testing.assert_allclose(
        kernel.reweighted(u, alpha, tempering=0.0).covariance(x, x), kernel.evaluate(x, x), rtol=1e-8
    )
    half = kernel.reweighted(u, alpha, tempering=0.5).covariance(x, x)
    assert np.linalg.eigvalsh(half).min() > 0


def test_engine_is_chosen_by_the_number_of_features(monkeypatch):
    u, alpha = machine()
    few = free.SquaredExponential(0.7).reweighted(u, alpha)
    assert few.engine == "features"
    monkeypatch.setattr(reweighting, "MOST_FEATURES", 100)
    many = free.SquaredExponential(0.7).reweighted(u, alpha)
    assert many.engine == "pairs"


def test_a_finite_series_has_a_feature_for_each_monomial():
    u, alpha = machine()
    for kernel, count in ((free.Linear(), 3), (free.Polynomial(2, 1.0), 10)):
        found = moment_features(kernel.series(3), u, alpha, np.ones(3), 100, 1e-9)
        assert len(found) == count


@pytest.mark.parametrize("kernel", [free.SquaredExponential(0.8), free.Exponential(0.8), free.Polynomial(3)], ids=repr)
def test_binary_columns_need_one_feature(kernel):
    u = np.array([[1.0, 0.0, 0.1], [0.0, 1.0, -0.2], [1.0, 0.0, 0.4], [0.0, 0.0, 0.3]])
    alpha = np.array([1.0, -0.3, -0.9, 0.2])
    wanted = by_brute_force(kernel, u, alpha, u, u)
    plain, merged = (kernel.reweighted(u, alpha, [1.0, 1.0, 0.5], binary=columns) for columns in ((), (0, 1)))
    for reweighted in (plain, merged):
        np.testing.assert_allclose(reweighted.covariance(u, u), wanted, rtol=1e-8)
    a = plain.covariance_gradient(u, u)
    b = merged.covariance_gradient(u, u)
    np.testing.assert_allclose(b[..., 2], a[..., 2], rtol=1e-7, atol=1e-9)
    if not isinstance(kernel, free.Polynomial):
        radius = np.array([1.0, 1.0, 0.5])
        series = kernel.series(3)
        few, many = (
            moment_features(each, u, alpha, radius, 20_000, 3e-10) for each in (replace(series, binary=(0, 1)), series)
        )
        assert len(few) < len(many) / 3
    with pytest.raises(DataError, match="a binary column has the value 0.5"):
        merged.variance(np.array([[0.5, 0.0, 0.0]]))


def test_one_column_and_either_order_of_arguments():
    u = np.array([[0.3], [-0.4], [0.1]])
    alpha = np.array([1.0, -2.0, 1.0])
    kernel = free.SquaredExponential(0.3)
    a = np.array([[0.2]])
    b = np.linspace(-0.5, 0.5, 7)[:, None]
    reweighted = kernel.reweighted(u, alpha, radius=0.5)
    np.testing.assert_allclose(reweighted.covariance(a, b), by_brute_force(kernel, u, alpha, a, b), rtol=1e-9)
    np.testing.assert_allclose(reweighted.covariance(b, a), reweighted.covariance(a, b).T)
    np.testing.assert_allclose(reweighted.covariance(b, a[:0]), np.empty((7, 0)))


@pytest.mark.parametrize("lengthscale", [0.001, 0.02, 0.1])
def test_short_lengthscales_neither_overflow_nor_warn(lengthscale):
    u, alpha = machine()
    u[:, 0] = u[:, 0] > 0
    for binary in ((), (0,)):
        reweighted = free.SquaredExponential(lengthscale).reweighted(u, alpha, binary=binary)
        assert np.isfinite(reweighted.covariance(u, u)).all()
        assert reweighted.variance(u).min() >= 0


@pytest.mark.parametrize("lengthscale", [0.05, 0.1, 0.2])
def test_features_are_exact_where_the_variance_is_smaller_by_many_orders(lengthscale):
    rng = np.random.default_rng(4)
    u = rng.random((20, 2)) - 0.5
    alpha = rng.normal(size=20)
    x = np.vstack([rng.random((20, 2)), [[0, 0], [1, 1], [0.5, 0.5]]]) - 0.5
    kernel = free.SquaredExponential(lengthscale)
    features, pairs = (kernel.reweighted(u, alpha - alpha.mean(), 0.5, engine) for engine in ENGINES)
    assert features.variance(x).min() < 1e-4 * features.variance(x).max()
    np.testing.assert_allclose(features.variance(x), pairs.variance(x), rtol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": [0.0, 0.0]}, "all weights alpha are 0"),
        ({"alpha": [1.0]}, r"alpha has shape \(1,\) for 2 points"),
        ({"alpha": [1.0, math.nan]}, r"alpha\[1\] is nan"),
        ({"alpha": ["a", "b"]}, "alpha is .*; give numbers"),
        ({"radius": 0.0}, "radius is .*; give positive"),
        ({"radius": [1.0, 1.0]}, "radius is .*; give a number or 1 numbers"),
        ({"engine": "pair"}, "unknown engine 'pair'; did you mean 'pairs'?"),
        ({"tempering": -1.0}, "tempering is -1.0"),
        ({"lengthscale": 1e-5, "engine": "features"}, "more than 20000 features"),
        ({"lengthscale": 1e-5, "tempering": 0.5}, "more than 20000 features"),
    ],
)
def test_illegal_arguments_are_named(arguments, message):
    given = {"alpha": [1.0, -1.0], **arguments}
    kernel = free.SquaredExponential(given.pop("lengthscale", 0.5))
    with pytest.raises(DataError, match=message):
        kernel.reweighted([[0.1], [0.2]], **given)


def test_points_beyond_the_radius_are_refused_by_infinite_series_only():
    u = np.array([[0.3], [-0.4]])
    alpha = np.array([1.0, -1.0])
    far = np.array([[0.1], [0.6]])
    with pytest.raises(DataError, match=r"\[0\.6\] is outside the radius \[0\.5\]"):
        free.SquaredExponential(0.5).reweighted(u, alpha, radius=0.5).variance(far)
    assert free.Linear().reweighted(u, alpha, radius=0.5).variance(far).shape == (2,)
    assert free.SquaredExponential(0.5).reweighted(u, alpha, radius=0.5, engine="pairs").variance(far).shape == (2,)


@pytest.mark.parametrize("engine", ["features", "pairs"])
def test_covariances_and_variances_together(engine):
    rng = np.random.default_rng(3)
    points = rng.uniform(-0.5, 0.5, (12, 2))
    alpha = rng.normal(size=12)
    kernel = free.SquaredExponential(0.4).reweighted(points, alpha, 0.5, engine=engine)
    a = rng.uniform(-0.5, 0.5, (9, 2))
    b = rng.uniform(-0.5, 0.5, (4, 2))
    for x, y in ((a, b), (b, a)):
        found = kernel.covariance_and_variances(x, y)
        for value, wanted in zip(found, (kernel.covariance(x, y), kernel.variance(x), kernel.variance(y)), strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-12)
