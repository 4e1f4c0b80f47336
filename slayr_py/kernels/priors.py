"""Prior distributions of hyperparameters, passed to Stan as data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.space import FloatArray


@dataclass(frozen=True)
class Prior(ABC):
    """A family and its parameters, each a number or one number per dimension."""

    support: ClassVar[str]
    stan_names: ClassVar[tuple[str, ...]]
    _positive: ClassVar[tuple[str, ...]] = ()
    _scales: ClassVar[tuple[str, ...]] = ()  # 0 fixes the hyperparameter

    def __post_init__(self) -> None:
        for field in fields(self):
            try:
                value = np.asarray(getattr(self, field.name), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"{self!r}: {field.name} must be a number or a list of numbers") from error
            if value.ndim > 1 or not np.all(np.isfinite(value)):
                raise DataError(f"{self!r}: {field.name} must be finite, a number or one number for each dimension")
            if field.name in self._positive and np.any(value <= 0):
                raise DataError(f"{self!r}: {field.name} must be positive")
            if field.name in self._scales and np.any(value < 0):
                raise DataError(f"{self!r}: {field.name} must be positive, or 0 for a fixed hyperparameter")
            object.__setattr__(self, field.name, value.item() if value.ndim == 0 else tuple(value.tolist()))

    @cached_property
    def _values(self) -> tuple[FloatArray, ...]:
        """The parameters as arrays."""
        return tuple(np.asarray(getattr(self, field.name), np.float64) for field in fields(self))

    def stan_data(self, name: str, labels: Sequence[str] | None) -> dict[str, float | FloatArray]:
        """Return the data entries such as ``name_location``; numbers are repeated for each label of a vector.

        Raises
        ------
        DataError
            If the number of values does not match the scalar or the labels.
        """
        for value in self._values:
            if labels is None and value.ndim:
                raise DataError(f"the prior of {name!r} has {value.size} values, but {name!r} is a scalar")
            if labels is not None and value.ndim and value.size != len(labels):
                raise DataError(
                    f"the prior of {name!r} has {value.size} values for {len(labels)} dimensions {list(labels)}"
                )
        shape = () if labels is None else (len(labels),)
        entries: dict[str, float | FloatArray] = {}
        for suffix, value in zip(self.stan_names, self._stan_values(), strict=True):
            array = np.array(np.broadcast_to(value, (*shape, 3) if suffix == "gamma" else shape))
            entries[f"{name}_{suffix}"] = array if array.ndim else float(array)
        return entries

    def is_fixed(self, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return which entries of a hyperparameter of that shape have a single value."""
        fixed = [np.asarray(getattr(self, name)) == 0 for name in self._scales]
        return np.array(np.broadcast_to(fixed[0] if fixed else False, shape))

    def _stan_values(self) -> tuple[FloatArray, ...]:
        """Return the values of the data entries ``stan_names``."""
        return self._values

    def draw(self, labels: Sequence[str] | None, rng: np.random.Generator) -> FloatArray:
        """Draw a scalar, or a vector with an entry for each label."""
        size = None if labels is None else len(labels)
        return self._sample(rng, size)

    @abstractmethod
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        """Draw a vector of that size; a scalar if ``size`` is None."""

    @abstractmethod
    def log_density(self, value: ArrayLike) -> FloatArray:
        """Return the log density at values (...), or at vectors (..., labels) entry by entry.

        It is -inf outside the support. :class:`Dirichlet` has the joint density of each vector, (...).
        """

    @abstractmethod
    def at_score(self, z: FloatArray) -> FloatArray:
        """Return the values whose distribution is the prior if the scores z (...) are standard normal; increasing.

        Raises
        ------
        DataError
            For a prior of several values at once.
        """

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able description for :func:`prior_from_dict`."""
        return {"family": type(self).__name__} | {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Normal(Prior):
    """Normal(mu, sigma) for a hyperparameter on the real line; sigma 0 fixes it."""

    mu: ArrayLike
    sigma: ArrayLike
    support: ClassVar[str] = "real"
    stan_names: ClassVar[tuple[str, ...]] = ("location", "scale")
    _scales: ClassVar[tuple[str, ...]] = ("sigma",)

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        mu, sigma = self._values
        return np.asarray(rng.normal(mu, sigma, size))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        return _normal(np.asarray(value, np.float64), *self._values)

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        mu, sigma = self._values
        return mu + sigma * z


@dataclass(frozen=True)
class LogNormal(Prior):
    """LogNormal(mu, sigma) for a positive hyperparameter: its logarithm is Normal(mu, sigma); sigma 0 fixes it."""

    mu: ArrayLike
    sigma: ArrayLike
    support: ClassVar[str] = "positive"
    stan_names: ClassVar[tuple[str, ...]] = ("location", "scale", "gamma")
    _scales: ClassVar[tuple[str, ...]] = ("sigma",)

    @override
    def _stan_values(self) -> tuple[FloatArray, ...]:
        return (*self._values, np.zeros(3))

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        mu, sigma = self._values
        return np.asarray(rng.lognormal(mu, sigma, size))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        x = np.asarray(value, np.float64)
        logarithm = np.log(np.where(x > 0, x, 1.0))
        return np.where(x > 0, _normal(logarithm, *self._values) - logarithm, -np.inf)

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        mu, sigma = self._values
        return np.exp(mu + sigma * z)


@dataclass(frozen=True)
class _GeneralizedGamma(Prior):
    """Families whose power ``_power`` is Gamma(shape, rate) distributed: see ``stan/functions/priors.stan``.

    The program samples scores of the log-normal distribution with the same mean and standard deviation of the
    logarithm, and corrects the density.
    """

    support: ClassVar[str] = "positive"
    stan_names: ClassVar[tuple[str, ...]] = ("location", "scale", "gamma")
    _power: ClassVar[float]

    def _shape_and_rate(self) -> tuple[FloatArray, ...]:
        """Return the parameters of the gamma distribution of the power."""
        return self._values

    @override
    def _stan_values(self) -> tuple[FloatArray, ...]:
        shape, rate = np.broadcast_arrays(*self._shape_and_rate())
        location = (special.digamma(shape) - np.log(rate)) / self._power
        scale = np.sqrt(special.polygamma(1, shape)) / abs(self._power)
        return location, scale, np.stack([np.full(shape.shape, self._power), shape, rate], axis=-1)

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        shape, rate = self._shape_and_rate()
        return np.asarray((rng.gamma(shape, size=size) / rate) ** (1 / self._power))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        x = np.asarray(value, np.float64)
        shape, rate = self._shape_and_rate()
        log_power = self._power * np.log(np.where(x > 0, x, 1.0))
        density = np.log(abs(self._power)) + shape * np.log(rate) - special.gammaln(shape)
        density = density + shape * log_power - rate * np.exp(log_power) - log_power / self._power
        return np.where(x > 0, density, -np.inf)

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        shape, rate = self._shape_and_rate()
        inverse = special.gammaincinv if self._power > 0 else special.gammainccinv
        quantile = inverse(shape, special.ndtr(z))
        return np.asarray((quantile / rate) ** (1 / self._power))


@dataclass(frozen=True)
class HalfNormal(_GeneralizedGamma):
    """HalfNormal(sigma) for a positive hyperparameter: the absolute value of Normal(0, sigma)."""

    sigma: ArrayLike
    _positive: ClassVar[tuple[str, ...]] = ("sigma",)
    _power: ClassVar[float] = 2.0

    @override
    def _shape_and_rate(self) -> tuple[FloatArray, ...]:
        (sigma,) = self._values
        return np.asarray(0.5), 0.5 / np.square(sigma)


@dataclass(frozen=True)
class Gamma(_GeneralizedGamma):
    """Gamma(shape, rate) for a positive hyperparameter, with mean shape / rate."""

    shape: ArrayLike
    rate: ArrayLike
    _positive: ClassVar[tuple[str, ...]] = ("shape", "rate")
    _power: ClassVar[float] = 1.0


@dataclass(frozen=True)
class InverseGamma(_GeneralizedGamma):
    """InverseGamma(shape, scale) for a positive hyperparameter: its inverse is Gamma(shape, rate = scale)."""

    shape: ArrayLike
    scale: ArrayLike
    _positive: ClassVar[tuple[str, ...]] = ("shape", "scale")
    _power: ClassVar[float] = -1.0


@dataclass(frozen=True)
class Beta(Prior):
    """Beta(a, b) for a hyperparameter in (0, 1)."""

    a: ArrayLike
    b: ArrayLike
    support: ClassVar[str] = "unit interval"
    stan_names: ClassVar[tuple[str, ...]] = ("a", "b")
    _positive: ClassVar[tuple[str, ...]] = ("a", "b")

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        a, b = self._values
        return np.asarray(rng.beta(a, b, size))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        x = np.asarray(value, np.float64)
        a, b = self._values
        inside = (x >= 0) & (x <= 1)
        legal = np.where(inside, x, 0.5)
        return np.where(
            inside, special.xlogy(a - 1, legal) + special.xlog1py(b - 1, -legal) - special.betaln(a, b), -np.inf
        )

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        return np.asarray(special.betaincinv(*self._values, special.ndtr(z)))


@dataclass(frozen=True)
class Dirichlet(Prior):
    """Dirichlet(concentration) for non-negative weights with sum 1; concentration 1 is uniform."""

    concentration: ArrayLike
    support: ClassVar[str] = "simplex"
    stan_names: ClassVar[tuple[str, ...]] = ("concentration",)
    _positive: ClassVar[tuple[str, ...]] = ("concentration",)

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        return rng.dirichlet(np.broadcast_to(self._values[0], (size or 1,)))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        x = np.asarray(value, np.float64)
        concentration = np.broadcast_to(self._values[0], x.shape[-1:])
        inside = np.all(x >= 0, axis=-1) & (np.abs(x.sum(axis=-1) - 1) < 1e-6)
        density = np.sum(special.xlogy(concentration - 1, np.where(inside[..., None], x, 1.0)), axis=-1)
        return np.where(
            inside, density + special.gammaln(concentration.sum()) - special.gammaln(concentration).sum(), -np.inf
        )

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        raise DataError("weights with a Dirichlet prior have no scores of their own; use splits with Beta priors")


def _normal(x: FloatArray, mu: FloatArray, sigma: FloatArray) -> FloatArray:
    """Return the log density; 0 where the scale is 0, since the density of a fixed value does not exist."""
    scale = np.where(sigma > 0, sigma, 1.0)
    density = -0.5 * np.square((x - mu) / scale) - np.log(np.sqrt(2 * np.pi) * scale)
    return np.where(sigma > 0, density, 0.0)


_FAMILIES: dict[str, type[Prior]] = {
    family.__name__: family for family in (Normal, LogNormal, HalfNormal, Gamma, InverseGamma, Beta, Dirichlet)
}


def prior_families(support: str) -> tuple[str, ...]:
    """Return the names of the families with a support."""
    return tuple(name for name, family in _FAMILIES.items() if family.support == support)


def fixed_prior(value: ArrayLike, support: str) -> Prior:
    """Return the prior that fixes a hyperparameter, real or positive, to a value.

    Raises
    ------
    DataError
        For another support, or a value outside it.
    """
    try:
        number = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{value!r} is neither a prior nor a number") from error
    if support == "real":
        return Normal(number, 0.0)
    if support != "positive":
        raise DataError(f"a hyperparameter on the {support} cannot be fixed to {value!r}; use a narrow prior")
    if not np.all(number > 0):
        raise DataError(f"a positive hyperparameter cannot be fixed to {value!r}")
    return LogNormal(np.log(number), 0.0)


def stan_names(support: str) -> tuple[str, ...]:
    """Return the suffixes of a prior's data entries, such as "location", for a support."""
    return next(family.stan_names for family in _FAMILIES.values() if family.support == support)


def lengthscale_prior(n: int) -> LogNormal:
    """Return the prior for n inputs on the unit cube, with median 0.2 sqrt(n)."""
    return LogNormal(float(np.log(0.2 * np.sqrt(max(n, 1)))), 1.0)


def prior_from_dict(values: dict[str, Any]) -> Prior:
    """Construct a prior from :meth:`Prior.asdict`; ``DataError`` for an unknown family."""
    arguments = dict(values)
    family = arguments.pop("family", None)
    if family not in _FAMILIES:
        raise DataError(f"unknown prior family {family!r}; known: {', '.join(_FAMILIES)}")
    try:
        return _FAMILIES[family](**arguments)
    except TypeError as error:
        wanted = [f.name for f in fields(_FAMILIES[family])]
        raise DataError(f"a {family} prior takes {wanted}, got {sorted(arguments)}") from error
