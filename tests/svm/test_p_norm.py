from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVR

from slayr_py import DataError, svm
from slayr_py.kernels import free


def data(n: int = 14) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 5.0


def polynomial_features(X: np.ndarray, q: int, degree: int = 2, coef0: float = 0.5) -> np.ndarray:
    """|tau|^(1/q) theta of the polynomial kernel, (N, R)."""
    columns = []
    for k in itertools.product(range(degree + 1), repeat=2):
        total = sum(k)
        if total <= degree:
            squared = math.comb(degree, total) * coef0 ** (degree - total) * math.factorial(total)
            squared /= math.prod(map(math.factorial, k))
            columns.append(squared ** (1 / (2 * q)) * np.prod(X ** np.array(k), axis=1))
    return np.column_stack(columns)


def by_primal(phi: np.ndarray, y: np.ndarray, q: int, C: float, epsilon: float) -> tuple[np.ndarray, float]:
    """Weights and intercept of the smooth primal with slack variables above and below, by SLSQP."""
    n, r = phi.shape
    p = 2 * q / (2 * q - 1)

    def objective(z):
        return np.sum(np.abs(z[:r]) ** p) / p + C * np.sum(z[r + 1 :])

    def gradient(z):
        w = z[:r]
        return np.concatenate([np.sign(w) * np.abs(w) ** (p - 1), [0.0], np.full(2 * n, C)])

    ones = np.ones((n, 1))
    eye = np.eye(n)
    zero = np.zeros((n, n))
    matrix = np.block([[phi, ones, eye, zero], [-phi, -ones, zero, eye]])
    least = np.concatenate([y - epsilon, -y - epsilon])
    found = minimize(
        objective,
        np.concatenate([np.full(r, 0.1), [y.mean()], np.full(2 * n, np.ptp(y))]),
        jac=gradient,
        bounds=[(None, None)] * (r + 1) + [(0, None)] * (2 * n),
        constraints={"type": "ineq", "fun": lambda z: matrix @ z - least, "jac": lambda z: matrix},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.x[:r], found.x[r]


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("C", [0.05, 5.0])
def test_the_machine_minimises_the_primal(q, C):
    X, y = data()
    phi = polynomial_features(X, q)
    p = 2 * q / (2 * q - 1)
    machine = svm.PNormSVR(free.Polynomial(2, 0.5), q=q, C=C, epsilon=0.1).fit(X, y)

    def primal(w, predicted):
        return np.sum(np.abs(w) ** p) / p + C * np.sum(np.maximum(np.abs(predicted - y) - 0.1, 0))

    w, b = by_primal(phi, y, q, C, 0.1)
    best = primal(w, phi @ w + b)
    s = phi.T @ machine.dual_coef_
    dual = y @ machine.dual_coef_ - 0.1 * np.abs(machine.dual_coef_).sum() - np.sum(s ** (2 * q)) / (2 * q)
    # The features have another order than here, which the norm does not see.
    assert primal(machine.coef_, machine.predict(X)) == pytest.approx(best, rel=1e-4)
    assert dual == pytest.approx(best, rel=1e-4)
    assert abs(machine.dual_coef_.sum()) <= 1e-5 * np.abs(y).max()
    if C == 5.0:  # otherwise all points are at the bound, and a range of intercepts is optimal
        new = np.random.default_rng(0).uniform(-1, 1, (20, 2))
        np.testing.assert_allclose(machine.predict(new), polynomial_features(new, q) @ w + b, atol=2e-3)


KERNELS = [free.SquaredExponential([0.7, 1.2]), free.Exponential(1.0), free.Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_two_norm_is_support_vector_regression(kernel):
    X, y = data(25)
    theirs = SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-8).fit(kernel.evaluate(X, X), y)
    ours = svm.PNormSVR(kernel, q=1, C=2.0, epsilon=0.1).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(kernel.evaluate(X, X)), atol=1e-3)


def test_predictions_are_the_sums_over_three_further_points_for_q_of_2():
    X, y = data(8)
    kernel = free.SquaredExponential(0.9)
    machine = svm.PNormSVR(kernel, q=2, C=1.0).fit(X, y)
    alpha = machine.dual_coef_
    wanted = np.einsum("i,j,k,ijkn->n", alpha, alpha, alpha, kernel.evaluate(X, X, X, X)) + machine.intercept_
    np.testing.assert_allclose(machine.predict(X), wanted, atol=1e-8)


def test_a_minimum_that_was_not_found_is_a_warning():
    """Features up to 6e10 stop the optimiser at its start, where the prediction is constant."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    machine = svm.PNormSVR(free.SquaredExponential(0.5), q=3, epsilon=0.01)
    with pytest.warns(ConvergenceWarning, match="the minimum was not found: the dual objective is .* smaller q"):
        machine.fit(X, np.sin(X[:, 0]))


def test_it_is_an_estimator_of_scikit_learn():
    X, y = data(20)
    machine = svm.PNormSVR(free.SquaredExponential(0.8), q=2, C=10.0, epsilon=0.01)
    assert repr(clone(machine)) == repr(machine)
    assert cross_val_score(machine, X, y, cv=4).mean() > 0.5
    assert svm.PNormSVR().fit(X, y).n_features_in_ == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": 0}, "q must be an integer >= 1, got 0"),
        ({"C": 0.0}, "C must be positive and finite, got 0.0"),
        ({"epsilon": -1.0}, "epsilon must be at least 0 and finite, got -1.0"),
        ({"kernel": "se"}, "kernel must be a free kernel .* got 'se'"),
        ({"kernel": free.SquaredExponential(1e-4)}, "more than 20000 features .* scale the columns"),
    ],
)
def test_illegal_parameters_are_named(arguments, message):
    with pytest.raises(DataError, match=message):
        svm.PNormSVR(**arguments).fit(*data())


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("scale", [1e-8, 1e9])
def test_units_of_y_do_not_matter(q, scale):
    """In other units the same machine has the parameters scale^(p - 1) C and scale epsilon."""
    X, y = data()
    by_cost = scale ** (1 / (2 * q - 1))
    one = svm.PNormSVR(q=q, C=3.0, epsilon=0.05).fit(X, y)
    other = svm.PNormSVR(q=q, C=3.0 * by_cost, epsilon=0.05 * scale).fit(X, scale * (y + 7))
    np.testing.assert_allclose(other.predict(X) / scale - 7, one.predict(X), atol=1e-3)
    np.testing.assert_allclose(other.dual_coef_ / by_cost, one.dual_coef_, atol=1e-2)
