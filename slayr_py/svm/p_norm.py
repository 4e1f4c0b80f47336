"""Support vector regression with a p-norm of the weights (Shilton et al., arXiv 1802.05370, section 2.2).

With 1/p + 1/(2q) = 1 the machine minimises |w|_p^p / p + C sum_i max(0, |<w, phi(u_i)> + b - y_i| - epsilon) over the
weights of features phi(u) = |tau|^(1/q) theta(u). Its dual is convex,

    min 1/(2q) sum_k s_k^(2q) + epsilon |alpha|_1 - y' alpha,  |alpha_i| <= C, sum_i alpha_i = 0,  s = phi(U)' alpha,

and w = s^(2q - 1) element by element. The sums over 2q points in the document's equations (5) and (6) give the same
numbers; the cost of features is linear in the number of points.

Symbols
-------
N : training points; n : points; d : columns; R : features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from slayr_py.arguments import check_integer, check_number
from slayr_py.errors import DataError, level_outside
from slayr_py.kernels import MOST_FEATURES, FreeKernel, MomentFeatures, PowerSeries, SquaredExponential, moment_features
from slayr_py.space import FloatArray

_ACCURACY = 1e-10  # of K_2 at the points
_MOST_ROUNDS = 60  # of the augmented Lagrangian
_LARGEST_GAP = 0.01  # between the primal and the dual objective, relative to errors as large as the range of y


@dataclass(eq=False, repr=False)
class PNormSVR(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Support vector regression with a p-norm of the weights.

    Parameters
    ----------
    kernel : FreeKernel, optional
        Kernel whose features are weighted; the squared exponential with length-scale 1 by default.
    q : int
        1/p + 1/(2q) = 1, at least 1. 1 is the machine of scikit-learn; p approaches 1 as q grows.
    C : float
        Positive; cost of errors.
    epsilon : float
        Errors up to this size, in the units of y, cost nothing.

    Attributes
    ----------
    dual_coef_ : (N,) float64
        Signed weights alpha of the points.
    coef_ : (R,) float64
        Weights w of the features.
    intercept_ : float
    n_features_in_ : int

    Notes
    -----
    Features of an infinite series are truncated at the largest coordinate of the training points, so predictions are
    for points in the same box.
    """

    kernel: FreeKernel | None = None
    q: int = 2
    C: float = 1.0
    epsilon: float = 0.1

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : (N, d) array_like
        y : (N,) array_like

        Warns
        -----
        ConvergenceWarning
            If the minimum was not found.

        Raises
        ------
        DataError
            For illegal parameters, or a kernel with too many features for these points.
        ValueError
            If X or y are not finite numbers, or their lengths differ.
        """
        kernel = self._check_kernel()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._features = _features(kernel.series(X.shape[1]), X)
        phi = self._phi(X)
        values = np.asarray(y, dtype=np.float64)
        # The tolerances of the solver are for values of order one. Values c y with the parameters c^(p - 1) C and
        # c epsilon have the weights c w and c^(p - 1) alpha.
        centre = float(values.mean())
        scale = float(values.std()) or 1.0
        by_cost = scale ** (1 / (2 * self.q - 1))  # scale^(p - 1)
        alpha, b = _solve(phi, (values - centre) / scale, self.q, self.C / by_cost, self.epsilon / scale)
        self.dual_coef_ = by_cost * alpha
        self.intercept_ = centre + scale * b
        self.coef_ = (phi.T @ self.dual_coef_) ** (2 * self.q - 1)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict the values of n points, (n,).

        Raises
        ------
        sklearn.exceptions.NotFittedError
        ValueError
            If X is not finite or has another number of columns.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self._phi(X) @ self.coef_ + self.intercept_)

    def _phi(self, X: FloatArray) -> FloatArray:
        """Return |tau|^(1/q) theta(X), (n, R): the features tau theta of K_2, times tau^(1/q - 1)."""
        features = self._features
        indices = self._features.indices
        totals = features.series.coefficients(indices.sum(axis=1))
        divisors = gammaln(indices + 1).sum(axis=1) + indices @ np.log(features.series.sigma)
        tau = np.sqrt(totals) * np.exp(-0.5 * divisors)
        factors = np.zeros(len(tau))
        used = tau > 0
        factors[used] = np.sqrt(totals[used]) * tau[used] ** (1 / self.q - 1)
        return features.features(X).T * factors

    def _check_kernel(self) -> FreeKernel:
        """Check the parameters and return the kernel."""
        check_integer("q", self.q)
        for name, value, least in (("C", self.C, None), ("epsilon", self.epsilon, 0.0)):
            check_number(name, value, least)
        kernel = SquaredExponential(1.0) if self.kernel is None else self.kernel
        if not isinstance(kernel, FreeKernel):
            raise DataError(f"kernel must be a free kernel such as free.SquaredExponential(0.5), got {kernel!r:.200}")
        return kernel


def _features(series: PowerSeries, X: FloatArray) -> MomentFeatures:
    """Return the features of K_2 that matter at the points."""
    radius = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny ** 0.25)
    features = moment_features(series, X, np.ones(len(X)), radius, MOST_FEATURES, _ACCURACY, tempering=0.0)
    if features is None:
        raise DataError(
            f"the kernel has more than {MOST_FEATURES} features at these points; scale the columns, or use longer "
            "length-scales"
        )
    return features


def _solve(phi: FloatArray, y: FloatArray, q: int, C: float, epsilon: float) -> tuple[FloatArray, float]:
    """Return alpha and b by L-BFGS-B on alpha = a - a', with an augmented Lagrangian for sum_i alpha_i = 0.

    The multiplier of the constraint is b.
    """
    n = len(y)
    bounds = [(0.0, C)] * (2 * n)
    parts = np.zeros(2 * n)
    b = float(np.median(y))
    penalty = 1.0
    target = 1e-6 * max(float(np.max(np.abs(y))), np.finfo(float).tiny)

    def objective(parts: FloatArray) -> tuple[float, FloatArray]:
        alpha = parts[:n] - parts[n:]
        s = phi.T @ alpha
        total = alpha.sum()
        value = np.sum(s ** (2 * q)) / (2 * q) + epsilon * parts.sum() - y @ alpha + b * total + penalty / 2 * total**2
        slope = phi @ s ** (2 * q - 1) - y + b + penalty * total
        return float(value), np.concatenate([slope + epsilon, epsilon - slope])

    for _ in range(_MOST_ROUNDS):
        options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": target}
        parts = minimize(objective, parts, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        violation = float(np.sum(parts[:n] - parts[n:]))
        b += penalty * violation
        if abs(violation) <= target:
            break
        penalty = min(4 * penalty, 1e6)
    else:
        warnings.warn(
            f"the sum of alpha is {violation:.3g} instead of 0", ConvergenceWarning, stacklevel=level_outside()
        )
    alpha = parts[:n] - parts[n:]
    s = phi.T @ alpha
    errors = np.maximum(0.0, np.abs(phi @ s ** (2 * q - 1) + b - y) - epsilon)
    gap = np.sum(s ** (2 * q)) + C * errors.sum() + epsilon * np.abs(alpha).sum() - y @ alpha
    if not gap <= _LARGEST_GAP * C * n * np.ptp(y):
        warnings.warn(
            f"the minimum was not found: the dual objective is {gap:.3g} below the primal one; scale the columns, or "
            "use a longer length-scale, or a smaller q or C",
            ConvergenceWarning,
            stacklevel=level_outside(),
        )
    return alpha, b
