"""Families of prior distributions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.kernels.prior import SUM_ROUNDING, Prior
from slayr_py.space import FloatArray

_LARGEST_LOGARITHM = 300.0  # exp(300)^2, a variance, is a finite number


@dataclass(frozen=True)
class _LocationScale(Prior):
    """Families with the location and the scale of a normal distribution."""

    mu: ArrayLike
    sigma: ArrayLike
    _real: ClassVar[tuple[str, ...]] = ("mu",)
    _scales: ClassVar[tuple[str, ...]] = ("sigma",)

    def _normal_log_density(self, x: FloatArray) -> FloatArray:
        """Return the log density; 0 where the scale is 0, since the density of a fixed value does not exist."""
        mu, sigma = self._values
        scale = np.where(sigma > 0, sigma, 1.0)
        density = -0.5 * np.square((x - mu) / scale) - np.log(np.sqrt(2 * np.pi) * scale)
        return np.where(sigma > 0, density, 0.0)


@dataclass(frozen=True)
class Normal(_LocationScale):
    """Normal(mu, sigma) for a hyperparameter on the real line; sigma 0 fixes it."""

    support: ClassVar[str] = "real"
    stan_names: ClassVar[tuple[str, ...]] = ("location", "scale")

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        mu, sigma = self._values
        return np.asarray(rng.normal(mu, sigma, size))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        return self._normal_log_density(np.asarray(value, np.float64))

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        mu, sigma = self._values
        return mu + sigma * z


@dataclass(frozen=True)
class LogNormal(_LocationScale):
    """LogNormal(mu, sigma) for a positive hyperparameter: its logarithm is Normal(mu, sigma); sigma 0 fixes it."""

    support: ClassVar[str] = "positive"
    stan_names: ClassVar[tuple[str, ...]] = ("location", "scale", "gamma")

    def __post_init__(self) -> None:
        super().__post_init__()
        mu, sigma = self._values
        if np.any(np.abs(mu) + 2 * np.minimum(sigma, _LARGEST_LOGARITHM) > _LARGEST_LOGARITHM):
            raise DataError(
                f"{self!r}: the logarithm of the hyperparameter is beyond the range of floating-point numbers; give mu "
                f"and sigma with |mu| + 2 sigma <= {_LARGEST_LOGARITHM:g}"
            )

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
        density = self._normal_log_density(logarithm) - np.where(self._values[1] > 0, logarithm, 0.0)
        return np.where(x > 0, density, -np.inf)

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
    _power: ClassVar[float] = 1.0


@dataclass(frozen=True)
class InverseGamma(_GeneralizedGamma):
    """InverseGamma(shape, scale) for a positive hyperparameter: its inverse is Gamma(shape, rate = scale)."""

    shape: ArrayLike
    scale: ArrayLike
    _power: ClassVar[float] = -1.0


@dataclass(frozen=True)
class Beta(Prior):
    """Beta(a, b) for a hyperparameter in (0, 1)."""

    a: ArrayLike
    b: ArrayLike
    support: ClassVar[str] = "unit interval"
    stan_names: ClassVar[tuple[str, ...]] = ("a", "b")

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

    @override
    def _sample(self, rng: np.random.Generator, size: int | None) -> FloatArray:
        return rng.dirichlet(np.broadcast_to(self._values[0], (size or 1,)))

    @override
    def log_density(self, value: ArrayLike) -> FloatArray:
        x = np.asarray(value, np.float64)
        concentration = np.broadcast_to(self._values[0], x.shape[-1:])
        inside = np.all(x >= 0, axis=-1) & (np.abs(x.sum(axis=-1) - 1) < SUM_ROUNDING)
        density = np.sum(special.xlogy(concentration - 1, np.where(inside[..., None], x, 1.0)), axis=-1)
        return np.where(
            inside, density + special.gammaln(concentration.sum()) - special.gammaln(concentration).sum(), -np.inf
        )

    @override
    def at_score(self, z: FloatArray) -> FloatArray:
        raise DataError("weights with a Dirichlet prior have no separate scores; use splits with Beta priors")


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
        raise DataError(
            f"the prior {value!r} is neither a prior nor a number; use a prior such as LogNormal(0, 1), or a number"
        ) from error
    if support == "real":
        return Normal(number, 0.0)
    if support != "positive":
        raise DataError(f"a hyperparameter on the {support} cannot be fixed to {value!r}; use a narrow prior")
    if not np.all(number > 0):
        raise DataError(f"a positive hyperparameter cannot be fixed to {value!r}; use a positive number")
    return LogNormal(np.log(number), 0.0)


def stan_names(support: str) -> tuple[str, ...]:
    """Return the suffixes of a prior's data entries, such as "location", for a support."""
    return next(family.stan_names for family in _FAMILIES.values() if family.support == support)


def lengthscale_prior(n: int) -> LogNormal:
    """Return the prior for n inputs on the unit cube, with median 0.2 sqrt(n)."""
    return LogNormal(float(np.log(0.2 * np.sqrt(max(n, 1)))), 1.0)


def prior_from_dict(values: dict[str, Any], families: Iterable[str] | None = None) -> Prior:
    """Construct a prior from :meth:`Prior.asdict`; ``DataError`` for another family than these, by default all."""
    arguments = dict(values)
    family = arguments.pop("family", None)
    known = list(_FAMILIES if families is None else families)
    if family not in known:
        raise DataError(f"unknown prior family {family!r}; known: {', '.join(known)}")
    try:
        return _FAMILIES[family](**arguments)
    except TypeError as error:
        names = [f.name for f in fields(_FAMILIES[family])]
        raise DataError(f"a {family} prior has the parameters {sorted(arguments)}; give {names}") from error
