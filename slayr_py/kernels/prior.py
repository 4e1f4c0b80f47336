"""The interface of prior distributions of hyperparameters, whose parameters are data of the Stan programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slayr_py.errors import DataError
from slayr_py.space import FloatArray

SUM_ROUNDING = 1e-6
"""Accepted rounding error of the sum of weights; weights in single precision have 1e-7."""


@dataclass(frozen=True)
class Prior(ABC):
    """A family and its parameters, each a number or one number per dimension."""

    support: ClassVar[str]
    stan_names: ClassVar[tuple[str, ...]]
    _real: ClassVar[tuple[str, ...]] = ()  # parameters of any sign; all others are positive
    _scales: ClassVar[tuple[str, ...]] = ()  # 0 fixes the hyperparameter

    def __post_init__(self) -> None:
        for field in fields(self):
            try:
                value = np.asarray(getattr(self, field.name), dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"{self!r}: {field.name} must be a number or a list of numbers") from error
            if value.ndim > 1 or not np.all(np.isfinite(value)):
                raise DataError(f"{self!r}: {field.name} must be finite, a number or one number for each dimension")
            if field.name in self._scales and np.any(value < 0):
                raise DataError(f"{self!r}: {field.name} must be positive, or 0 for a fixed hyperparameter")
            if field.name not in (*self._real, *self._scales) and np.any(value <= 0):
                raise DataError(f"{self!r}: {field.name} must be positive")
            object.__setattr__(self, field.name, value.item() if value.ndim == 0 else tuple(value.tolist()))
        sizes = {field.name: v.size for field, v in zip(fields(self), self._values, strict=True) if v.ndim}
        if len(set(sizes.values())) > 1:
            lengths = " and ".join(f"{name} has {size}" for name, size in sizes.items())
            raise DataError(f"{self!r}: {lengths} values; give one for each dimension, or a single number")

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
        """Return which entries of a hyperparameter of that shape are fixed to a value."""
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
        """Map standard normal scores z (...) to values with this prior by an increasing function.

        Raises
        ------
        DataError
            For a joint prior of several values.
        """

    def __str__(self) -> str:
        """Return family and parameters with four digits, or a fixed value; long vectors show only their ends."""
        shape = np.broadcast_shapes(*(value.shape for value in self._values))
        if self.is_fixed(shape).all():
            return f"fixed at {_short(self.at_score(np.zeros(shape)), small=False)}"
        texts = [f"{field.name}={_short(value)}" for field, value in zip(fields(self), self._values, strict=True)]
        return f"{type(self).__name__}({', '.join(texts)})"

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able description for :func:`prior_from_dict`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"family": type(self).__name__} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _short(value: FloatArray, small: bool = True) -> str:
    """Return numbers with four digits; with ``small``, those below 1e-4 are 0."""
    return np.array2string(value, precision=4, suppress_small=small, threshold=4, edgeitems=1)
