"""Hyperparameters and log prior densities of the coordinates that the programs sample, in NumPy, with derivatives.

These are the twins of ``stan/functions/priors.stan`` and ``stan/functions/coordinates.stan``, for many points at once.

Symbols
-------
s : points; P : coordinates; N : observations; z : a coordinate; q : its quantity, the logarithm of a positive
hyperparameter, the mean ``mu`` or the centre of a linear kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from slayr_py.space import FloatArray

_FAR = 60.0  # coordinates of the grid on which scores are inverted
_GRID = 1201  # points of the grid: a spacing of 0.1, between which scores are linear


class Hyper(NamedTuple):
    """Hyperparameters at points, and the prior densities of their coordinates.

    Attributes
    ----------
    theta : dict of str to (s, size) float64
        Hyperparameters by name.
    slopes : dict of str to (s, size) float64
        Derivatives of the logarithms of the hyperparameters by their coordinates; of real ones, such as ``mu``,
        themselves.
    log_prior : (s,) float64
        Log densities of the coordinates, up to a constant.
    gradient : (s, P) float64
        Derivatives of the log densities by the coordinates.
    """

    theta: dict[str, FloatArray]
    slopes: dict[str, FloatArray]
    log_prior: FloatArray
    gradient: FloatArray

    def rows(self, block: slice) -> Hyper:
        """Return those of some points."""
        theta = {name: values[block] for name, values in self.theta.items()}
        slopes = {name: values[block] for name, values in self.slopes.items()}
        return Hyper(theta, slopes, self.log_prior[block], self.gradient[block])


class _Values(NamedTuple):
    """Hyperparameters of one name (s, size), and what `Hyper` has of them."""

    theta: FloatArray
    slope: FloatArray
    log_prior: FloatArray
    gradient: FloatArray


class CoordinatePriors:
    """Priors of the coordinates of a program.

    Parameters
    ----------
    data : mapping of str to ndarray of float64
        Data of the program.
    shapes : dict
        Shapes of the coordinates by name.
    """

    def __init__(self, data: Mapping[str, FloatArray], shapes: dict[str, tuple[int, ...]]) -> None:
        self._data = data
        self._shapes = shapes
        self._n = int(data["N"])

    def split(self, points: FloatArray) -> dict[str, FloatArray]:
        """Return the coordinates by name, (s, size)."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes.values()])
        return dict(zip(self._shapes, np.split(points, ends[:-1], axis=1), strict=True))

    def __call__(self, points: FloatArray) -> Hyper:
        """Return the hyperparameters and prior densities at points (s, P)."""
        parts = {}
        for coordinate, z in self.split(points).items():
            name = coordinate.removeprefix("z_")
            if f"{name}_a" in self._data:
                parts[name] = self._weight(name, z)
            elif f"{name}_concentration" in self._data:
                parts[name] = self._shares(name, z)
            else:
                parts[name] = self._quantity(name, z)
        return Hyper(
            {name: part.theta for name, part in parts.items()},
            {name: part.slope for name, part in parts.items()},
            np.sum([part.log_prior.sum(axis=1) for part in parts.values()], axis=0),
            np.concatenate([part.gradient for part in parts.values()], axis=1),
        )

    def draw(self, s: int, rng: np.random.Generator) -> FloatArray:
        """Return s draws of the coordinates (s, P) from the prior.

        For priors that are not log-normal, the scores are nevertheless normal: such draws are near the prior.
        """
        parts = []
        for coordinate, shape in self._shapes.items():
            name = coordinate.removeprefix("z_")
            size = (s, int(np.prod(shape)))
            if f"{name}_a" in self._data:
                parts.append(logit(rng.beta(self._data[f"{name}_a"], self._data[f"{name}_b"], size)))
                continue
            if f"{name}_concentration" in self._data:
                parts.append(np.log(rng.gamma(self._data[f"{name}_concentration"], size=size)))
                continue
            parts.append(self._at_scores(name, rng.standard_normal(size)))
        return np.concatenate(parts, axis=1)

    def at_scores(self, scores: FloatArray) -> FloatArray:
        """Return the coordinates (s, P) of scores (s, P); the coordinates of weights and shares are their own scores.

        Scores are standard normal under log-normal priors, and nearly so under other ones.
        """
        parts = []
        for coordinate, values in self.split(scores).items():
            name = coordinate.removeprefix("z_")
            is_share = f"{name}_a" in self._data or f"{name}_concentration" in self._data
            parts.append(values if is_share else self._at_scores(name, values))
        return np.concatenate(parts, axis=1)

    def _at_scores(self, name: str, scores: FloatArray) -> FloatArray:
        location = np.atleast_1d(self._data[f"{name}_location"])
        scale = np.atleast_1d(self._data[f"{name}_scale"])
        grid = np.linspace(-_FAR, _FAR, _GRID)[:, None]
        on_grid = np.broadcast_to(self._score(name, grid, location, scale)[0], (_GRID, scores.shape[1]))
        columns = zip(scores.T, on_grid.T, strict=True)
        return np.stack([np.interp(score, column, grid[:, 0]) for score, column in columns], axis=1)

    def _weight(self, name: str, z: FloatArray) -> _Values:
        """Return weights in (0, 1) with beta priors, whose coordinates are logits."""
        a = self._data[f"{name}_a"]
        b = self._data[f"{name}_b"]
        theta = expit(z)
        log_prior = -a * np.logaddexp(0.0, -z) - b * np.logaddexp(0.0, z)
        return _Values(theta, 1 - theta, log_prior, a * (1 - theta) - b * theta)

    def _shares(self, name: str, z: FloatArray) -> _Values:
        """Return shares with a Dirichlet prior, whose coordinates are logarithms of gamma variates.

        Each share depends on all coordinates; the slopes are those of a gamma variate by its own one.
        """
        a = self._data[f"{name}_concentration"]
        variates = np.exp(z)
        return _Values(softmax(z, axis=1), np.ones(z.shape), a * z - variates, a - variates)

    def _quantity(self, name: str, z: FloatArray) -> _Values:
        """Return positive hyperparameters, or the mean, whose coordinates are functions of scores."""
        location = np.atleast_1d(self._data[f"{name}_location"])
        scale = np.atleast_1d(self._data[f"{name}_scale"])
        score, slope, log_jacobian, by_z = self._score(name, z, location, scale)
        log_prior = log_jacobian - 0.5 * np.square(score)
        gradient = by_z - score * slope
        value = location + scale * score
        by_coordinate = scale * slope
        if f"{name}_gamma" not in self._data:  # a real quantity
            return _Values(value, by_coordinate, log_prior, gradient)
        power, shape, rate = np.atleast_2d(self._data[f"{name}_gamma"]).T
        other: NDArray[np.bool_] = power != 0  # `generalized_gamma`: the prior is of another family than the log-normal
        if not other.any():
            return _Values(np.exp(value), by_coordinate, log_prior, gradient)
        known = np.where(scale > 0, scale, 1.0)
        powered = np.exp(power * value)
        ratio = shape * power * value - rate * powered + 0.5 * np.square((value - location) / known)
        by_value = shape * power - rate * power * powered + (value - location) / np.square(known)
        log_prior = log_prior + np.where(other, ratio, 0.0)
        gradient = gradient + np.where(other, by_value * by_coordinate, 0.0)
        return _Values(np.exp(value), by_coordinate, log_prior, gradient)

    def _score(
        self, name: str, z: FloatArray, location: FloatArray, scale: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return standard-normal scores, their slopes, the logarithms of the slopes and the derivatives of these."""
        known = np.where(scale > 0, scale, np.inf)
        if name == "lengthscale":
            return self._narrow_below(z, -location / known, np.sqrt(1 + 0.13 * self._n * np.square(scale)))
        if name == "sigma_n":
            origin = -(np.log(0.3) - location) / known
            score, slope, log_jacobian, by_z = self._narrow_below(
                -z, origin, np.sqrt(1 + 0.5 * self._n * np.square(scale))
            )
            return -score, slope, log_jacobian, -by_z
        return z, np.ones(z.shape), np.zeros(z.shape), np.zeros(z.shape)

    def _narrow_below(
        self, z: FloatArray, origin: FloatArray, ratio: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        rest = 1 - 1 / ratio
        step = expit(2 * z)
        score = origin + z / ratio + 0.5 * rest * np.logaddexp(0.0, 2 * z)
        slope = 1 / ratio + rest * step
        if self._data["omit_jacobian"]:
            return score, slope, np.zeros(z.shape), np.zeros(z.shape)
        return score, slope, np.log(slope), 2 * rest * step * (1 - step) / slope
