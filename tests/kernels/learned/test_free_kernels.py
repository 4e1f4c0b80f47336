from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import slayr_py as sl
from slayr_py import DataError
from slayr_py.kernels import free

KERNELS = [
    free.Linear(),
    free.Polynomial(3, coef0=0.5),
    free.Polynomial(2, coef0=0.0),
    free.Exponential(0.9),
    free.Exponential([0.8, 1.3]),
    free.SquaredExponential(0.9),
    free.SquaredExponential([0.8, 1.3]),
]


def points(n: int, seed: int = 0, d: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def by_formula(kernel: free.FreeKernel, *us: np.ndarray) -> float:
    """One value of K_m, as in table 1 of the document with squared norms."""
    product = np.prod(us, axis=0)
    if isinstance(kernel, free.SquaredExponential):
        norms = np.square(us).sum(axis=0)
        return math.exp(np.sum((2 * product - norms) / (2 * kernel.lengthscale**2)))
    if isinstance(kernel, free.Exponential):
        return math.exp(np.sum(product / kernel.lengthscale**2))
    if isinstance(kernel, free.Polynomial):
        return (kernel.coef0 + product.sum()) ** kernel.degree
    return product.sum()


def monomials(kernel: free.FreeKernel, u: np.ndarray, order: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Squared weights tau_k^2 (R,) and theta_k(u) (n, R) of section 1.1, for two columns."""
    ks = [k for k in itertools.product(range(order), repeat=2)]
    weights = []
    for k in ks:
        q = sum(k)
        divisor = math.prod(map(math.factorial, k))
        if isinstance(kernel, free.Exponential):
            sigma = np.broadcast_to(kernel.lengthscale**2, (2,))
            weights.append(1 / (divisor * np.prod(sigma**k)))
        elif isinstance(kernel, free.Polynomial):
            rest = kernel.degree - q
            weights.append(
                math.comb(kernel.degree, q) * kernel.coef0**rest * math.factorial(q) / divisor if rest >= 0 else 0.0
            )
        else:
            weights.append(float(q == 1))
    theta = np.prod(u[:, None, :] ** np.array(ks)[None], axis=2)
    if isinstance(kernel, free.SquaredExponential):
        theta *= np.exp(-np.sum(u**2 / (2 * kernel.lengthscale**2), axis=1))[:, None]
    return np.array(weights), theta


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_values_are_those_of_the_formula(kernel, m):
    sets = [points(n, seed) for seed, n in enumerate((3, 2, 4, 2)[:m])]
    k = kernel.evaluate(*sets)
    assert k.shape == tuple(map(len, sets))
    for at in np.ndindex(k.shape):
        assert k[at] == pytest.approx(by_formula(kernel, *(s[i] for s, i in zip(sets, at, strict=True))), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("m", [2, 4])
def test_values_are_sums_over_the_same_features(kernel, m):
    sets = [points(3, seed) for seed in range(m)]
    weights = monomials(kernel, sets[0])[0]
    theta = [monomials(kernel, s)[1] for s in sets]
    wanted = np.einsum("r," + ",".join(f"{'abcd'[i]}r" for i in range(m)) + "->" + "abcd"[:m], weights, *theta)
    np.testing.assert_allclose(kernel.evaluate(*sets), wanted, rtol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_arguments_can_be_exchanged(kernel):
    a, b, c, e = (points(2, seed) for seed in range(4))
    np.testing.assert_allclose(
        kernel.evaluate(a, b, c, e), kernel.evaluate(c, a, e, b).transpose(1, 3, 0, 2), rtol=1e-12
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_normalisation_divides_by_the_kernel_of_two_arguments(kernel):
    u = points(3)
    root = np.sqrt(np.diag(kernel.evaluate(u, u)))
    np.testing.assert_allclose(np.diag(kernel.evaluate(u, u, normalised=True)), 1.0)
    four = kernel.evaluate(u, u, u, u)
    np.testing.assert_allclose(
        kernel.evaluate(u, u, u, u, normalised=True), four / np.einsum("a,b,c,d->abcd", root, root, root, root)
    )


def test_squared_exponential_of_four_arguments_is_at_most_one_in_the_cube_and_grows_outside():
    u = points(6)
    k = free.SquaredExponential(0.3).evaluate(u, u, u, u)
    assert 0 < k.min() and k.max() <= 1
    assert free.SquaredExponential(0.3).evaluate(*[[[2.0]]] * 4).item() > 1e9


def test_short_lengthscales_do_not_overflow():
    u = points(4)
    np.testing.assert_allclose(np.diag(free.SquaredExponential(0.01).evaluate(u, u)), 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: free.SquaredExponential(0.0), r"lengthscale is 0\.0; give positive"),
        (lambda: free.Exponential([0.5, -1.0]), r"lengthscale is \[0\.5, -1\.0\]; give positive"),
        (lambda: free.Exponential(math.nan), "lengthscale is nan"),
        (lambda: free.Polynomial(0), "degree must be an integer from 1 to 100, got 0"),
        (lambda: free.Polynomial(2, coef0=-1.0), "coef0 must be at least 0 and finite, got -1.0"),
        (lambda: free.Polynomial(2, coef0=math.inf), "coef0 must be at least 0 and finite, got inf"),
        (lambda: free.Linear().evaluate(), "at least one"),
        (lambda: free.Linear().evaluate([1.0, 2.0]), r"shape \(n, d\)"),
        (lambda: free.Linear().evaluate([[1.0]], [[1.0, 2.0]]), "set 1 of points has 2 columns and set 0 has 1"),
        (lambda: free.Linear().evaluate([[1.0], [math.nan]]), "not finite in row 1"),
        (lambda: free.Linear().evaluate([["a"]]), "give numbers"),
        (lambda: free.Linear().evaluate([[0.0, 0.0]], normalised=True), r"linear kernel is 0 at \[0\.0, 0\.0\]"),
        (lambda: free.SquaredExponential([1.0, 2.0]).evaluate([[0.0]]), "2 length-scales for points with 1 columns"),
        (lambda: free.from_family("rbf"), "unknown family 'rbf'"),
        (lambda: free.from_family("linear", degree=2), "linear kernel takes no 'degree'"),
    ],
)
def test_illegal_arguments_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_kernels_are_public_and_show_their_arguments():
    assert repr(sl.kernels.free.Polynomial(2, 1)) == "Polynomial(degree=2, coef0=1.0)"
    assert repr(free.from_family("se", lengthscale=[0.5, 1.0])) == "SquaredExponential(lengthscale=[0.5, 1.0])"
