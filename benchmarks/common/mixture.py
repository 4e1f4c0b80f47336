"""The mixture of kernels that Shilton et al. (arXiv 1802.05370, eq. 13) compare pre-training with.

K = v_1 SE + v_2 Matern-1/2 + v_3 Matern-3/2 with v >= 0 and one length-scale each, tuned on the related data. The
document does not say of which predictor the leave-one-out error is: it is the least-squares machine here, whose penalty
is tuned too. The penalty makes the scale of v redundant, so v adds up to 1.

Symbols
-------
N : related observations; C : encoded columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import softmax

from slayr_py.kernels import matern_correlation
from slayr_py.space import FloatArray

PARTS = ("SE", "MAT12", "MAT32")
_BOUNDS = [(-6.0, 6.0)] * 3 + [(np.log(0.02), np.log(10.0))] * 3 + [(-14.0, 3.0)]


class Mixture(NamedTuple):
    """A tuned mixture.

    Attributes
    ----------
    weights : (3,) float64
        v of the parts in the order of `PARTS`.
    lengthscales : (3,) float64
        Of unit coordinates.
    penalty : float
        Of the least-squares machine, on the diagonal of K.
    loo_mse : float
        Leave-one-out mean squared error in variances of y.
    """

    weights: FloatArray
    lengthscales: FloatArray
    penalty: float
    loo_mse: float

    def gram(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return K between unit coordinates (n_a, C) and (n_b, C)."""
        parts, _ = _parts(cdist(a, b), self.lengthscales)
        return np.tensordot(self.weights, parts, axes=1)


def tuned_mixture(x: FloatArray, y: FloatArray, starts: int = 6, seed: int = 1) -> Mixture:
    """Minimise the leave-one-out error by L-BFGS-B from several starts.

    Parameters
    ----------
    x : (N, C) float64
        Unit coordinates, ``Encoded.columns``.
    y : (N,) float64
    starts : int
    seed : int
    """
    distances = cdist(x, x)
    target = (y - y.mean()) / y.std(ddof=1)
    rng = np.random.default_rng(seed)
    first = np.array([0.0, 0.0, 0.0, *np.log([0.3, 0.5, 0.5]), np.log(0.01)])
    # Within one logarithmic unit, or three for the penalty.
    spread = np.array([1.0] * 6 + [3.0])
    best = min(
        (
            minimize(_loo_mse, at, args=(distances, target), jac=True, method="L-BFGS-B", bounds=_BOUNDS)
            for at in first + spread * np.vstack([np.zeros(7), rng.uniform(-1, 1, (starts - 1, 7))])
        ),
        key=lambda found: found.fun,
    )
    return Mixture(softmax(best.x[:3]), np.exp(best.x[3:6]), float(np.exp(best.x[6])), float(best.fun))


def _parts(distances: FloatArray, lengthscales: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the three kernels (3, n_a, n_b) and their derivatives by the logarithms of the length-scales."""
    se, mat12, mat32 = (distances / one for one in lengthscales)
    mat32 = np.sqrt(3) * mat32
    k = np.stack([np.exp(-0.5 * se**2), matern_correlation(mat12, 0), matern_correlation(mat32, 1)])
    return k, np.stack([se**2 * k[0], mat12 * k[1], mat32**2 * np.exp(-mat32)])


def _loo_mse(parameters: FloatArray, distances: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Return the error of the least-squares machine and its gradient by all parameters.

    With M = [[K + penalty I, 1], [1', 0]], alpha = M^-1 (y, 0) and c = diag(M^-1), the residuals are alpha / c. Since
    d alpha = -M^-1 dM alpha and dc = -diag(M^-1 dM M^-1), the gradient by M is a matrix that serves all parameters.
    """
    n = len(y)
    weights = softmax(parameters[:3])
    penalty = np.exp(parameters[6])
    parts, slopes = _parts(distances, np.exp(parameters[3:6]))
    bordered = np.ones((n + 1, n + 1))
    bordered[:n, :n] = np.tensordot(weights, parts, axes=1) + penalty * np.eye(n)
    bordered[n, n] = 0.0
    inverse = np.linalg.inv(bordered)[:n, :n]
    alpha = inverse @ y
    c = np.diag(inverse)
    residuals = alpha / c
    by_alpha = 2 * residuals / (n * c)
    by_c = -2 * residuals * alpha / (n * c**2)
    by_matrix = -np.outer(inverse @ by_alpha, alpha) - (inverse * by_c) @ inverse
    by_weight = np.einsum("ij,kij->k", by_matrix, parts)
    gradient = np.concatenate(
        [
            weights * (by_weight - weights @ by_weight),
            weights * np.einsum("ij,kij->k", by_matrix, slopes),
            [penalty * np.trace(by_matrix)],
        ]
    )
    return float(np.mean(residuals**2)), gradient
