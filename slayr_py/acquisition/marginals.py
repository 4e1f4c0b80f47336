"""Beliefs about the best value of one parameter, as densities.

Symbols
-------
v : position of a value on the scale of its parameter, in [0, 1]. `Dimension.from_uniform` maps uniform v to the space's
    own distribution. The v of a float is its unit value; an integer or level has an interval of values v.
p : density of v, so that the uniform belief is 1. It is relative to the space's own distribution: the scale of a
    logarithmic parameter is its logarithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ConfigSpace.hyperparameters import CategoricalHyperparameter, Hyperparameter
from scipy import special
from scipy.interpolate import PchipInterpolator
from typing_extensions import override

from slayr_py.errors import DataError, SpaceError, did_you_mean
from slayr_py.kernels import Prior, prior_families
from slayr_py.space import Dimension, FloatArray

UNIFORM_SHARE = 0.1
"""Share of the uniform density in a density of numbers, which is nowhere 0 then: a wrong belief can be overcome."""

LEAST_MASS = 0.01
"""Smallest probability of the range of a parameter under a distribution."""

BELIEF_FAMILIES = tuple(
    family for support in ("real", "positive", "unit interval") for family in prior_families(support)
)
"""Names of the distributions of a single number."""

_GRID = 513  # values of v, and of scores of the distribution
_LARGEST_SCORE = 6.0  # ends of the grid of scores; beyond are 2e-9 of the probability
_EDGE = 1e-6  # a density may be infinite at the bounds
_MOST_VALUES = 10_000  # of an integer with a weight for each


class ParameterBelief(ABC):
    """The belief about one parameter."""

    @abstractmethod
    def quantile(self, u: FloatArray) -> FloatArray:
        """Map uniform variates to v with this belief, by an increasing function."""

    @abstractmethod
    def log_density(self, unit_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p at unit values (m,), and its derivatives by the unit values, which are 0 for levels."""


class BeliefDensity(ParameterBelief):
    """A density of a number.

    Parameters
    ----------
    grid : (k,) float64
        Increasing values of v, from 0 to 1.
    density : (k,) float64
        Proportional to p there.
    step : float
        Derivative of v by the unit value.
    shift : float
        v at the unit value 0.
    """

    def __init__(self, grid: FloatArray, density: FloatArray, step: float = 1.0, shift: float = 0.0) -> None:
        mass = np.concatenate([[0.0], np.cumsum(np.diff(grid) * 0.5 * (density[1:] + density[:-1]))])
        self._grid = grid
        self._cdf = mass / mass[-1]
        p = (1 - UNIFORM_SHARE) * density / mass[-1] + UNIFORM_SHARE
        self._log = PchipInterpolator(grid, np.log(p))
        self._slope = self._log.derivative()
        self._step = step
        self._shift = shift

    @override
    def quantile(self, u: FloatArray) -> FloatArray:
        return np.interp(u, self._cdf, self._grid)

    @override
    def log_density(self, unit_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        v = self._shift + self._step * unit_values
        return self._log(v), self._step * self._slope(v)


class Weights(ParameterBelief):
    """Probabilities of levels or integers; the logarithm is linear between integers, for a search that relaxes them.

    Parameters
    ----------
    probabilities : (k,) float64
        Positive numbers with sum 1.
    unit_values : (k,) float64
        Increasing unit values of the levels or integers.
    is_real : bool
        Whether the search has derivatives by the unit value.
    """

    def __init__(self, probabilities: FloatArray, unit_values: FloatArray, is_real: bool) -> None:
        self._cdf = np.concatenate([[0.0], np.cumsum(probabilities)])
        self._log = np.log(len(probabilities) * probabilities)
        self._unit_values = unit_values
        self._is_real = is_real

    @override
    def quantile(self, u: FloatArray) -> FloatArray:
        return np.interp(u, self._cdf, np.linspace(0.0, 1.0, len(self._cdf)))

    @override
    def log_density(self, unit_values: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = np.interp(unit_values, self._unit_values, self._log)
        if not self._is_real:
            return values, np.zeros(len(values))
        right = np.clip(np.searchsorted(self._unit_values, unit_values, "right"), 1, len(self._log) - 1)
        slopes = np.diff(self._log) / np.diff(self._unit_values)
        return values, slopes[right - 1]


@dataclass(frozen=True)
class ParameterScale:
    """The map between v and the numbers of a real parameter, which are not rounded.

    Attributes
    ----------
    lower, upper : float
        Numbers at 0 and 1: the bounds, and half an integer beyond those of an integer on a linear scale.
    log : bool
    """

    lower: float
    upper: float
    log: bool

    @classmethod
    def of(cls, dimension: Dimension) -> ParameterScale:
        """Return the scale of a real parameter."""
        if dimension.shift:
            raise DataError(f"prior: the scale of {dimension.name!r} is shifted; use the encoder of the declared space")
        beyond = 0.5 if dimension.kind == "integer" and not dimension.log else 0.0
        return cls(dimension.lower - beyond, dimension.upper + beyond, dimension.log)

    def position(self, numbers: FloatArray) -> FloatArray:
        """Return v of numbers, clipped to [0, 1]."""
        x = np.clip(numbers, self.lower, self.upper)
        if self.log:
            return np.asarray(np.log(x / self.lower) / np.log(self.upper / self.lower))
        return np.asarray((x - self.lower) / (self.upper - self.lower))

    def numbers_and_steps(self, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return numbers, and their derivatives by v."""
        if self.log:
            width = np.log(self.upper / self.lower)
            numbers = self.lower * np.exp(v * width)
            return numbers, numbers * width
        width = self.upper - self.lower
        return self.lower + v * width, np.full(len(v), width)


def marginal_of(belief: object, dimension: Dimension) -> tuple[ParameterBelief, dict[str, Any]]:
    """Return the belief about a parameter, and its plain JSON.

    Parameters
    ----------
    belief : Prior or mapping
        A distribution of a number, or weights of all levels or integers, which are normalised.
    dimension : Dimension

    Raises
    ------
    DataError
        For a belief of another type, weights that are not positive numbers, and a distribution of the wrong kind, of
        several values, without spread, or with a probability of the range below `LEAST_MASS`.
    SpaceError
        For an unknown level, or a level without a weight.
    """
    name = dimension.name
    if isinstance(belief, Mapping):
        probabilities = _probabilities(belief, dimension)
        named = zip(map(str, _values(dimension)), probabilities.tolist(), strict=True)
        return _weights(probabilities, dimension), {"weights": dict(named)}
    if not isinstance(belief, Prior):
        raise DataError(
            f"prior: the belief about {name!r} is {belief!r:.100}; give a distribution such as sl.Normal(3, 1), or "
            "weights such as {'a': 0.7, 'b': 0.3}"
        )
    if dimension.levels:
        raise DataError(f"prior: {name!r} has levels, but its belief is {belief}; give a weight for each level")
    if any(np.ndim(value) for value in belief.asdict().values()) or belief.support == "simplex":
        raise DataError(f"prior: the belief about {name!r} is {belief}; give a distribution of a single number")
    if belief.is_fixed(()):
        raise DataError(f"prior: the belief about {name!r} is {belief}, without spread; use fixed={{{name!r}: ...}}")
    return _density(belief, dimension), belief.asdict()


def has_belief(hyperparameter: Hyperparameter[Any, Any]) -> bool:
    """Return whether a parameter of ConfigSpace has a distribution that is not uniform, or weights."""
    weights = getattr(hyperparameter, "weights", None)
    return weights is not None or type(hyperparameter).__name__.startswith(("Normal", "Beta"))


def marginal_of_space(
    hyperparameter: Hyperparameter[Any, Any], dimension: Dimension
) -> tuple[ParameterBelief, str] | None:
    """Return the belief in a parameter of ConfigSpace and its description; None if it is uniform."""
    if not has_belief(hyperparameter):
        return None
    kind = type(hyperparameter).__name__.removesuffix("Hyperparameter")
    if isinstance(hyperparameter, CategoricalHyperparameter):
        named = dict(zip(dimension.levels, map(float, hyperparameter.probabilities), strict=True))
        return _weights(_probabilities(named, dimension), dimension), "weights"
    if dimension.kind == "float" or dimension.log:
        v = np.linspace(0.0, 1.0, _GRID)
        inside = np.clip(v, _EDGE, 1 - _EDGE)
        return BeliefDensity(v, np.asarray(hyperparameter.pdf_values(dimension.numbers(inside)))), kind
    values = _integers(dimension)
    density = np.asarray(hyperparameter.pdf_values(values.astype(np.int64)), dtype=np.float64)
    share = (1 - UNIFORM_SHARE) * density / density.sum() + UNIFORM_SHARE / len(values)
    return _weights(share, dimension), kind


def _values(dimension: Dimension) -> Sequence[Any]:
    """Return the values of a parameter with levels, or of an integer."""
    return dimension.levels or [int(value) for value in _integers(dimension)]


def _integers(dimension: Dimension) -> FloatArray:
    count = int(dimension.upper - dimension.lower) + 1
    if count > _MOST_VALUES:
        raise DataError(
            f"prior: {dimension.name!r} has {count} values, too many for a weight each; give a distribution such as "
            "sl.Normal(3, 1)"
        )
    return np.arange(dimension.lower, dimension.upper + 1)


def _weights(probabilities: FloatArray, dimension: Dimension) -> Weights:
    numbers = np.arange(len(probabilities), dtype=np.float64)
    if dimension.is_real:
        numbers += dimension.lower
    if not (dimension.is_real and dimension.log):
        return Weights(probabilities, dimension.unit_values(numbers), dimension.is_real)
    raise DataError(
        f"prior: {dimension.name!r} is an integer on a logarithmic scale, which takes no weights; give a distribution "
        "such as sl.LogNormal(3, 1)"
    )


def _probabilities(weights: Mapping[Any, Any], dimension: Dimension) -> FloatArray:
    """Return the normalised weights of all levels or integers, in their order."""
    name = dimension.name
    if dimension.kind == "float":
        raise DataError(
            f"prior: {name!r} is a float, but its belief has weights; give a distribution such as sl.Normal(3, 1), or "
            'in a file { family = "Normal", mu = 3, sigma = 1 }'
        )
    known = _values(dimension)
    found = np.full(len(known), np.nan)
    for key, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
            raise DataError(f"prior: the weight of {key!r} of {name!r} is {weight!r}; give a positive number")
        if weight == 0:
            raise DataError(
                f"prior: the weight of {key!r} of {name!r} is 0, which would exclude it for ever; give it a small "
                "number, or remove it from the space"
            )
        position = _place(key, known, name)
        if not np.isnan(found[position]):
            raise DataError(f"prior: {name!r} has two weights for {known[position]!r}; give one")
        found[position] = weight
    if (missing := np.flatnonzero(np.isnan(found))).size:
        raise SpaceError(f"prior: {name!r} has no weight for {known[missing[0]]!r}; give one to every value")
    return np.asarray(found / found.sum())


def _place(key: object, known: Sequence[Any], name: str) -> int:
    """Return the position of a value, also if it is given as text, as in configuration files."""
    for position, level in enumerate(known):
        if type(level) is not bool and type(key) is not bool and level == key or level is key:
            return position
    texts = [str(level) for level in known]
    if isinstance(key, str) and texts.count(key) == 1:
        return texts.index(key)
    raise SpaceError(f"prior: {name!r} has no value {key!r}{did_you_mean(key, texts)}")


def _density(belief: Prior, dimension: Dimension) -> BeliefDensity:
    """Return the density of a distribution, truncated to the range.

    A distribution on the unit interval is one of v.
    """
    scale = ParameterScale.of(dimension)
    z = np.linspace(-_LARGEST_SCORE, _LARGEST_SCORE, _GRID)
    on_range = belief.support == "unit interval"
    quantiles = np.asarray(belief.at_score(z), dtype=np.float64)
    if not on_range:
        ends = np.interp([scale.lower, scale.upper], quantiles, z)
        mass = float(np.diff(special.ndtr(ends))[0])
        if not mass >= LEAST_MASS:
            lower, upper = dimension.values(np.array([dimension.lower, dimension.upper]))
            raise DataError(
                f"prior: {belief} for {dimension.name!r} has a probability of {mass:.1g} between its bounds {lower} "
                f"and {upper}; correct the distribution (LogNormal takes mean and sd of the logarithm) or the bounds"
            )
    positions = quantiles if on_range else scale.position(quantiles)
    v = np.unique(np.concatenate([np.linspace(0.0, 1.0, _GRID), np.clip(positions, 0.0, 1.0)]))
    inside = np.clip(v, _EDGE, 1 - _EDGE)
    log_p = belief.log_density(inside)
    if not on_range:
        numbers, steps = scale.numbers_and_steps(inside)
        log_p = belief.log_density(numbers) + np.log(steps)
    density = np.exp(log_p - np.max(log_p))
    n = dimension.upper - dimension.lower
    is_linear_integer = dimension.kind == "integer" and not dimension.log
    return BeliefDensity(v, density, n / (n + 1), 0.5 / (n + 1)) if is_linear_integer else BeliefDensity(v, density)
