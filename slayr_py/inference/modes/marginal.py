r"""Log posterior density of the coordinates of the hyperparameters of a composite kernel, with its gradient.

The exact log marginal likelihood, with C = K + diag(noise), r = y - mu and alpha = C^-1 r,

    log p(y | theta) = -r' alpha / 2 - log det(C) / 2 - n log(2 pi) / 2,
    d log p / dC = (alpha alpha' - C^-1) / 2

(Rasmussen & Williams 2006, eqs. 5.8 and 5.9). ``stan/accelerated/composite.hpp`` has the same function in C++.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.inference.model import Model
from slayr_py.inference.modes.normal_coordinates import NormalCoordinates
from slayr_py.kernels import Draws, Pairs, Planned
from slayr_py.space import Encoded, FloatArray


class LogDensity(NamedTuple):
    """Log density of coordinates and its gradient.

    Attributes
    ----------
    value : float
        log p(y | theta(z)) + log Normal(z; 0, I); -inf where the covariance is not positive definite.
    gradient : (P,) float64
    likelihood : float
        log p(y | theta(z)), or the bound that replaces it.
    """

    value: float
    gradient: FloatArray
    likelihood: float


class Marginal(ABC):
    """Density of the coordinates of the hyperparameters given n observations.

    Parameters
    ----------
    model : Model
        With a composite kernel.
    train : Encoded
    y : (n,) float64
        Standardised targets.

    Attributes
    ----------
    coordinates : NormalCoordinates
        Map from coordinates to hyperparameters.
    n : int
    """

    def __init__(self, model: Model, train: Encoded, y: FloatArray) -> None:
        self.coordinates = NormalCoordinates(model.hyperparameters)
        self.n = len(train)
        self._y = y
        self._train = train
        self._kernel = require_planned(model)
        self._plan = self._kernel.plan(train.encoder)

    @abstractmethod
    def __call__(self, z: FloatArray) -> LogDensity:
        """Return the density at coordinates (P,)."""

    def thinned(self) -> Marginal | None:
        """Return the density given a random sample of the observations; None if it would not be much faster."""
        return None

    @abstractmethod
    def leave_one_out(self, z: FloatArray) -> float:
        """Return the sum of the log densities of each target given the others; NaN if it is not available."""

    @abstractmethod
    def mean(self, z: FloatArray, new: Encoded) -> FloatArray:
        """Return the posterior mean (k,) of the function at k configurations; NaN where it does not exist."""


def log_prior(z: FloatArray) -> float:
    """Return the log density of coordinates (P,) under the prior."""
    return -0.5 * float(z @ z) - 0.5 * len(z) * float(np.log(2 * np.pi))


def with_prior(
    coordinates: NormalCoordinates, z: FloatArray, likelihood: float, slopes: dict[str, FloatArray]
) -> LogDensity:
    """Return the density of coordinates from a likelihood and its derivatives by the hyperparameters."""
    return LogDensity(likelihood + log_prior(z), coordinates.by_coordinate(z[None], slopes)[0] - z, likelihood)


def require_planned(model: Model) -> Planned:
    """Return the kernel of a model; raise an error unless its density is available in NumPy.

    Raises
    ------
    DataError
        For another kernel, a warp or binary observations.
    """
    if not isinstance(model.kernel, Planned) or model.warp != "none" or model.likelihood != "gaussian":
        raise DataError(
            f"{model.kernel.description} with warp {model.warp!r} and likelihood {model.likelihood!r} has no "
            "density in NumPy; use a composite kernel, warp='none' and likelihood='gaussian'"
        )
    return model.kernel


class ExactMarginal(Marginal):
    """Exact marginal likelihood of n targets.

    Parameters
    ----------
    model, train, y
        As of `Marginal`.
    errors : (n,) float64, optional
        Known standard deviations of the errors of the targets.
    """

    def __init__(self, model: Model, train: Encoded, y: FloatArray, errors: FloatArray | None = None) -> None:
        super().__init__(model, train, y)
        self._errors = model.noise_floor**2 + (np.zeros(self.n) if errors is None else np.square(errors))
        # Pairs (column, row) of the lower triangle, column by column: the order of LAPACK's matrices.
        self._columns, self._rows = np.triu_indices(self.n)
        self._places = self._columns * self.n + self._rows
        self._diagonal = np.flatnonzero(self._columns == self._rows)
        X = train.columns
        given = [leaf.between(train, train)[self._rows, self._columns] for leaf in self._plan.given]
        self._pairs = Pairs(X[self._rows], X[self._columns], given)

    @override
    def __call__(self, z: FloatArray) -> LogDensity:
        theta = self.coordinates.theta(z[None])
        correlation, pullback = self._plan.correlation_pullback(self._pairs, theta)
        sigma_f = float(theta["sigma_f"][0])
        sigma_n = float(theta["sigma_n"][0])
        factor = self._factor(correlation[0], sigma_f, sigma_n)
        if factor is None:
            return LogDensity(-np.inf, np.zeros(len(z)), -np.inf)
        residual = self._y - theta["mu"][0]
        alpha = dpotrs(factor, residual, lower=1)[0]
        likelihood = -0.5 * float(residual @ alpha) - float(np.sum(np.log(np.diagonal(factor))))
        likelihood -= 0.5 * self.n * np.log(2 * np.pi)
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
        by_pair = alpha[self._rows] * alpha[self._columns] - inverse.T.ravel()[self._places]
        by_pair[self._diagonal] *= 0.5
        slopes = pullback(sigma_f**2 * by_pair[None])
        slopes["sigma_f"] = np.array([2 * sigma_f * (by_pair @ correlation[0])])
        slopes["sigma_n"] = np.array([2 * sigma_n * by_pair[self._diagonal].sum()])
        slopes["mu"] = np.array([alpha.sum()])
        return with_prior(self.coordinates, z, likelihood, slopes)

    @override
    def leave_one_out(self, z: FloatArray) -> float:
        # Rasmussen & Williams (2006), eqs. 5.10 to 5.12.
        theta = self.coordinates.theta(z[None])
        if (solved := self._solve(theta)) is None:
            return -np.inf
        factor, alpha = solved
        precision = np.diagonal(dpotri(factor, lower=1, overwrite_c=1)[0])
        return float(0.5 * np.sum(np.log(precision / (2 * np.pi)) - np.square(alpha) / precision))

    @override
    def mean(self, z: FloatArray, new: Encoded) -> FloatArray:
        theta = self.coordinates.theta(z[None])
        if (solved := self._solve(theta)) is None:
            return np.full(len(new), np.nan)
        return np.asarray(theta["mu"][0] + self._kernel.cross(new, self._train, theta)[0] @ solved[1])

    def _solve(self, theta: Draws) -> tuple[FloatArray, FloatArray] | None:
        """Return the factor of the covariance of the targets and alpha; None if there is no factor."""
        correlation = self._plan.correlation(self._pairs, theta)[0]
        factor = self._factor(correlation, float(theta["sigma_f"][0]), float(theta["sigma_n"][0]))
        if factor is None:
            return None
        return factor, np.asarray(dpotrs(factor, self._y - theta["mu"][0], lower=1)[0])

    def _factor(self, correlation: FloatArray, sigma_f: float, sigma_n: float) -> FloatArray | None:
        """Return the lower Cholesky factor of the covariance of the targets; None if there is none."""
        packed = sigma_f**2 * correlation
        packed[self._diagonal] += sigma_n**2 + self._errors
        covariance = np.zeros(self.n * self.n)
        covariance[self._places] = packed
        factor, info = dpotrf(covariance.reshape(self.n, self.n).T, lower=1, overwrite_a=1, clean=0)
        return None if info else np.asarray(factor)
