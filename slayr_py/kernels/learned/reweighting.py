"""Kernels re-weighted by a machine: K^E(u, u') = sum_ij alpha_i alpha_j K_4(u_i, u_j, u, u').

Shilton et al. (arXiv 1802.05370, theorem 3) show that K^E has the same features as K_2, weighted by the machine's
squared weights. Two engines compute it. They agree to 1e-9 of sqrt(K^E(u, u) K^E(u', u')), or less closely where the
terms of the double sum cancel to more than seven digits, as with large alpha; the features are then more accurate:

- "features": one feature for each monomial that matters, see :mod:`slayr_py.kernels.learned.moments`;
- "pairs": the double sum over the products of the machine's points, for kernels with more than 20,000 features.

Symbols
-------
N : points of the machine; R : their pairs, N (N + 1) / 2; n_a, n_b : points; d : columns.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.learned.enumeration import MOST_FEATURES, moment_features
from slayr_py.kernels.learned.moments import MomentFeatures
from slayr_py.kernels.learned.points import numbers
from slayr_py.kernels.learned.power_series import PowerSeries
from slayr_py.space import FloatArray

ENGINES = ("features", "pairs")
_BLOCK = 2**22  # doubles of a block of the double sum
_ACCURACY = 3e-10  # of the variances that features reproduce


class Reweighted:
    """The kernel sum_ij alpha_i alpha_j K_4(u_i, u_j, ., .).

    Methods take points (n, d) in the coordinates of the machine's points. Points with alpha = 0 have no influence.
    Derivatives by the binary columns of the series have no meaning.

    Parameters
    ----------
    series : PowerSeries
    points : (N, d) float64
    alpha : (N,) array_like
        Signed weights, not all zero.
    radius : float or (d,) array_like
        Largest |u_c| at which the kernel will be evaluated. The features of an infinite series are chosen for it.
    engine : {"features", "pairs"} or None
        None chooses "features" if at most 20,000 features matter.
    tempering : float
        Features are weighted by |m_k|^(2 tempering) instead of m_k^2: 0 gives K_2, and 1 gives K^E. Another
        value than 1 needs the engine "features".

    Attributes
    ----------
    engine : str

    Raises
    ------
    DataError
        For weights of the wrong shape, not finite or all zero, a radius that is not positive, a negative tempering, an
        unknown engine, or an engine that cannot represent the kernel.
    """

    def __init__(
        self,
        series: PowerSeries,
        points: FloatArray,
        alpha: ArrayLike,
        radius: ArrayLike,
        engine: str | None,
        tempering: float,
    ) -> None:
        if engine is not None and engine not in ENGINES:
            raise DataError(f"unknown engine {engine!r}{did_you_mean(engine, ENGINES)}")
        if not (np.isfinite(tempering) and tempering >= 0):
            raise DataError(f"tempering is {tempering!r}; give a finite number that is not negative")
        weights = _checked_weights(alpha, len(points))
        self.radius = _checked_radius(radius, points.shape[1])
        self.series = series
        self._check_binary(points)
        used = weights != 0
        features: MomentFeatures | None = None
        if engine != "pairs":
            features = moment_features(
                series, points[used], weights[used], self.radius, MOST_FEATURES, _ACCURACY, tempering
            )
        if features is None and (engine == "features" or tempering != 1):
            raise DataError(
                f"the kernel has more than {MOST_FEATURES} features within |u| <= {self.radius.max():g}; "
                "use longer length-scales, or the engine 'pairs' without tempering"
            )
        self._engine: MomentFeatures | _Pairs
        self._engine = _Pairs(series, points[used], weights[used]) if features is None else features

    @property
    def engine(self) -> str:
        """Name of the engine in use."""
        return self._engine.name

    def covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return K^E(a, b), (n_a, n_b).

        Raises
        ------
        DataError
            If a point is outside the radius, with the features of an infinite series.
        """
        return self._at(a, b).covariance(a, b)

    def variance(self, a: FloatArray) -> FloatArray:
        """Return K^E(a, a), (n_a,), as computed: it may underflow to 0, or be a rounding error below it.

        Raises
        ------
        DataError
            As :meth:`covariance`.
        """
        return self._at(a).variance(a)

    def covariance_and_variances(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return K^E(a, b) (n_a, n_b), K^E(a, a) (n_a,) and K^E(b, b) (n_b,) together, which takes less time.

        Raises
        ------
        DataError
            As :meth:`covariance`.
        """
        return self._at(a, b).covariance_and_variances(a, b)

    def covariance_gradient(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the derivatives of K^E(a, b) by a, (n_a, n_b, d).

        Raises
        ------
        DataError
            As :meth:`covariance`.
        """
        return self._at(a, b).covariance_gradient(a, b)

    def variance_gradient(self, a: FloatArray) -> FloatArray:
        """Return the derivatives of K^E(a, a) by a, (n_a, d).

        Raises
        ------
        DataError
            As :meth:`covariance`.
        """
        return self._at(a).variance_gradient(a)

    def _at(self, *points: FloatArray) -> MomentFeatures | _Pairs:
        """Return the engine, after a check of the points."""
        for u in points:
            self._check_binary(u)
        for u in points if self._engine.bounded else ():
            outside = np.abs(u) > self.radius * (1 + 1e-9)
            if outside.any():
                raise DataError(
                    f"the point {u[int(np.argmax(outside.any(axis=1)))].tolist()} is outside the radius "
                    f"{self.radius.tolist()} for which the features were chosen"
                )
        return self._engine

    def _check_binary(self, u: FloatArray) -> None:
        values = u[:, self.series.binary]
        other = (values != 0) & (values != 1)
        if other.any():
            raise DataError(f"a binary column has the value {values[other][0]}; use 0 or 1")


class _Pairs:
    """The double sum, over products of the machine's points.

    K_4(u_i, u_j, a, b) depends on u_i o u_j and a o b only, apart from the factors r. All exponents are added before
    exp, so that neither a factor nor a product overflows.
    """

    name: ClassVar[str] = "pairs"
    bounded: ClassVar[bool] = False

    def __init__(self, series: PowerSeries, points: FloatArray, alpha: FloatArray) -> None:
        i, j = np.triu_indices(len(points))
        self.series = series
        self.products = points[i] * points[j] / series.sigma
        self.weights = alpha[i] * alpha[j] * np.where(i == j, 1.0, 2.0)
        damping = series.log_damping(points)
        self.damping = damping[i] + damping[j]

    def covariance(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return self._sums(*_cross(self.series, a, b)).reshape(len(a), len(b))

    def covariance_and_variances(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.covariance(a, b), self.variance(a), self.variance(b)

    def variance(self, a: FloatArray) -> FloatArray:
        return self._sums(np.square(a), 2 * self.series.log_damping(a))

    def covariance_gradient(self, a: FloatArray, b: FloatArray) -> FloatArray:
        gradient = self._slopes(*_cross(self.series, a, b)).reshape(len(a), len(b), -1) * b
        if self.series.damped:
            gradient -= self.covariance(a, b)[..., None] * (a / self.series.sigma)[:, None, :]
        return gradient

    def variance_gradient(self, a: FloatArray) -> FloatArray:
        gradient = 2 * a * self._slopes(np.square(a), 2 * self.series.log_damping(a))
        if self.series.damped:
            gradient -= 2 * self.variance(a)[:, None] * a / self.series.sigma
        return gradient

    def _sums(self, v: FloatArray, damping: FloatArray) -> FloatArray:
        """Return sum_ij alpha_i alpha_j h(<<u_i, u_j, v>>) with all factors r for products v = a o b, (n,)."""
        k = np.empty(len(v))
        for rows in self._blocks(len(v)):
            h = self.series.of(v[rows] @ self.products.T, np.add.outer(damping[rows], self.damping))
            k[rows] = h @ self.weights
        return k

    def _slopes(self, v: FloatArray, damping: FloatArray) -> FloatArray:
        """Return the derivatives of the sums by v, (n, d), without the derivatives of the factors r."""
        slopes = np.empty(v.shape)
        weighted = self.weights[:, None] * self.products
        for rows in self._blocks(len(v)):
            h = self.series.slope(v[rows] @ self.products.T, np.add.outer(damping[rows], self.damping))
            slopes[rows] = h @ weighted
        return slopes

    def _blocks(self, n: int) -> list[slice]:
        step = max(_BLOCK // len(self.weights), 1)
        return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _cross(series: PowerSeries, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a o b for all pairs, (n_a n_b, d), and the logarithms of r(a) r(b), (n_a n_b,)."""
    v = (a[:, None, :] * b[None, :, :]).reshape(-1, a.shape[1])
    return v, np.add.outer(series.log_damping(a), series.log_damping(b)).ravel()


def _checked_weights(alpha: ArrayLike, n: int) -> FloatArray:
    weights = numbers("alpha", alpha)
    if weights.shape != (n,):
        raise DataError(f"alpha has shape {weights.shape} for {n} points; give one weight for each")
    if not np.isfinite(weights).all():
        i = int(np.argmin(np.isfinite(weights)))
        raise DataError(f"alpha[{i}] is {weights[i]}; give finite weights")
    if not weights.any():
        raise DataError("all weights alpha are 0, so the kernel is 0 everywhere; use a machine with support vectors")
    return weights


def _checked_radius(radius: ArrayLike, d: int) -> FloatArray:
    try:
        largest = np.broadcast_to(np.asarray(radius, dtype=np.float64), (d,))
    except (TypeError, ValueError) as error:
        raise DataError(f"radius is {radius!r:.200}; give a number or {d} numbers") from error
    if not (np.isfinite(largest).all() and (largest > 0).all()):
        raise DataError(f"radius is {largest.tolist()}; give positive finite numbers")
    return largest
