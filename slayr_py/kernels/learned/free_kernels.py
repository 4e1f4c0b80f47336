"""Free kernels of m arguments (Shilton et al., arXiv 1802.05370, theorem 2 and table 1).

A free kernel has the same features and feature weights for every number m of arguments,

    K_m(u_1, ..., u_m) = sum_k tau_k^2 theta_k(u_1) ... theta_k(u_m).

All four families are power series of the semi-inner product <<u_1, ..., u_m>> = sum_c u_1c ... u_mc. For m > 2 their
values depend on the origin, the scale and the rotation of the coordinates, even if the values for m = 2 do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.arguments import check_integer, check_number
from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.learned.points import checked_points
from slayr_py.kernels.learned.power_series import PowerSeries
from slayr_py.kernels.learned.reweighting import Reweighted
from slayr_py.space import FloatArray

__all__ = ["Exponential", "FreeKernel", "Linear", "Polynomial", "SquaredExponential", "from_family"]

_LARGEST_DEGREE = 100  # of a polynomial; larger ones are mistakes, chosen by hand


class FreeKernel(ABC):
    """A kernel with any number of arguments.

    Attributes
    ----------
    family : str
        Name of the family.
    """

    family: ClassVar[str]

    @abstractmethod
    def series(self, n_columns: int) -> PowerSeries:
        """Return the power series of the kernel on points with ``n_columns`` columns.

        Raises
        ------
        DataError
            If the kernel has length-scales for another number of columns.
        """

    def options(self) -> dict[str, Any]:
        """Return the arguments that construct this kernel; JSON-able."""
        return {name: np.asarray(getattr(self, name)).tolist() for name in signature(type(self)).parameters}

    def evaluate(self, *points: ArrayLike, normalised: bool = False) -> FloatArray:
        """Return the kernel of m sets of points.

        Parameters
        ----------
        *points : (n_1, d), ..., (n_m, d) array_like
            Any number m >= 1 of sets.
        normalised : bool
            Divide every argument by sqrt(K_2(u, u)) (definition 3), for every m. A normalised kernel of four arguments
            is therefore not 1 on its diagonal.

        Returns
        -------
        (n_1, ..., n_m) float64

        Raises
        ------
        DataError
            If the sets are not tables of finite numbers with the same columns, or if K_2(u, u) = 0 at a point that has
            to be normalised.
        """
        if not points:
            raise DataError("there is no set of points; evaluate needs at least one")
        sets = [checked_points(f"set {i} of points", u) for i, u in enumerate(points)]
        n_columns = sets[0].shape[1]
        for i, u in enumerate(sets):
            if u.shape[1] != n_columns:
                raise DataError(f"set {i} of points has {u.shape[1]} columns and set 0 has {n_columns}")
        series = self.series(n_columns)
        factors = [series.log_damping(u) for u in sets]
        if normalised:
            factors = [f - 0.5 * self._log_diagonal(series, u) for f, u in zip(factors, sets, strict=True)]
        chi = _semi_inner_products(series, sets)
        return series.of(chi, reduce(np.add.outer, factors))

    def reweighted(
        self,
        points: ArrayLike,
        alpha: ArrayLike,
        radius: ArrayLike = 1.0,
        engine: str | None = None,
        tempering: float = 1.0,
        binary: Sequence[int] = (),
    ) -> Reweighted:
        """Return the kernel sum_ij alpha_i alpha_j K_4(u_i, u_j, ., .) (theorem 3).

        Parameters
        ----------
        points : (N, d) array_like
            The points u_i.
        alpha : (N,) array_like
            Signed weights, not all zero.
        radius : float or (d,) array_like
            Largest ``|u_c|`` at which the kernel is evaluated. The features of an infinite series are chosen for it.
        engine : {"features", "pairs"}, optional
            By default "features" if at most 20,000 features matter.
        tempering : float
            Features have the weights ``|m_k|^(2 tempering)`` instead of ``m_k^2``: 0 gives K_2, 1 (default) the kernel
            above. Another value than 1 needs the engine "features".
        binary : sequence of int
            Columns of categorical parameters, which are 0 or 1 in all points and then need fewer features.
            Derivatives by them are not available.

        Raises
        ------
        DataError
            For weights of the wrong shape, not finite or all zero, a radius that is not positive, a negative tempering,
            an unknown engine, or an engine that cannot represent the kernel.
        """
        u = checked_points("points", points)
        series = replace(self.series(u.shape[1]), binary=tuple(int(c) for c in binary))
        return Reweighted(series, u, alpha, radius, engine, tempering)

    def _log_diagonal(self, series: PowerSeries, u: FloatArray) -> FloatArray:
        """Return log K_2(u, u), (n,)."""
        squares = np.square(u) @ (1 / series.sigma)
        if series.degree is None:
            return np.asarray(squares + 2 * series.log_damping(u))
        diagonal = series.of(squares)
        if not diagonal.all():
            zero = u[int(np.argmin(diagonal))].tolist()
            raise DataError(f"the {self.family} kernel is 0 at {zero} and cannot be normalised there")
        return np.asarray(np.log(diagonal))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.options().items())})"


class Polynomial(FreeKernel):
    """(coef0 + <<u_1, ..., u_m>>)^degree.

    Parameters
    ----------
    degree : int
        From 1 to 100.
    coef0 : float
        At least 0, since the expansion has negative coefficients otherwise.

    Raises
    ------
    DataError
        For other values.

    Examples
    --------
    >>> Polynomial(2, coef0=1.0).evaluate([[1.0, 2.0]], [[3.0, 0.5]], [[1.0, 1.0]]).tolist()
    [[[25.0]]]
    """

    family: ClassVar[str] = "polynomial"

    def __init__(self, degree: int = 2, coef0: float = 1.0) -> None:
        self.degree = check_integer("degree", degree, 1, _LARGEST_DEGREE)
        self.coef0 = check_number("coef0", coef0, least=0.0)

    def series(self, n_columns: int) -> PowerSeries:
        """Return (coef0 + chi)^degree."""
        return PowerSeries(np.ones(n_columns), self.degree, self.coef0)


class Linear(FreeKernel):
    """The semi-inner product <<u_1, ..., u_m>>."""

    family: ClassVar[str] = "linear"

    def series(self, n_columns: int) -> PowerSeries:
        """Return chi."""
        return PowerSeries(np.ones(n_columns), 1, 0.0)


class Exponential(FreeKernel):
    """exp(sum_c u_1c ... u_mc / lengthscale_c^2).

    Parameters
    ----------
    lengthscale : float or (d,) array_like
        Positive, a number for all columns or for each; its square is the document's sigma.

    Raises
    ------
    DataError
        If a length-scale is not positive and finite.
    """

    family: ClassVar[str] = "exponential"
    _damped: ClassVar[bool] = False

    def __init__(self, lengthscale: ArrayLike = 1.0) -> None:
        self.lengthscale = checked_lengthscale(lengthscale)

    def series(self, n_columns: int) -> PowerSeries:
        """Return exp(chi)."""
        if self.lengthscale.ndim and self.lengthscale.shape != (n_columns,):
            raise DataError(f"{len(self.lengthscale)} length-scales for points with {n_columns} columns")
        return PowerSeries(np.broadcast_to(np.square(self.lengthscale), (n_columns,)), damped=self._damped)


class SquaredExponential(Exponential):
    """exp(sum_c (2 u_1c ... u_mc - sum_i u_ic^2) / (2 lengthscale_c^2)).

    For m = 2 this is the squared exponential exp(-sum_c (u_1c - u_2c)^2 / (2 lengthscale_c^2)). The norms are squared,
    unlike in table 1 of the document.

    Parameters
    ----------
    lengthscale : float or (d,) array_like
        As for :class:`Exponential`.

    Raises
    ------
    DataError
        As for :class:`Exponential`.

    Examples
    --------
    >>> SquaredExponential(0.5).evaluate([[0.0]], [[0.5]]).round(6).tolist()
    [[0.606531]]
    """

    family: ClassVar[str] = "se"
    _damped: ClassVar[bool] = True


FAMILIES: dict[str, type[FreeKernel]] = {k.family: k for k in (SquaredExponential, Exponential, Polynomial, Linear)}


def from_family(family: str, **options: Any) -> FreeKernel:
    """Return a free kernel by the name of its family: "se", "exponential", "polynomial" or "linear".

    Raises
    ------
    DataError
        For an unknown name, or options that the family does not take.
    """
    if not isinstance(family, str) or family not in FAMILIES:
        raise DataError(f"unknown family {family!r}{did_you_mean(family, FAMILIES)}")
    known = FAMILIES[family]().options()
    for option in options:
        if option not in known:
            raise DataError(f"the {family} kernel takes no {option!r}{did_you_mean(option, known)}")
    return FAMILIES[family](**options)


def checked_lengthscale(lengthscale: ArrayLike) -> FloatArray:
    """Return length-scales as an array () or (d,); ``DataError`` unless they are positive and finite."""
    try:
        array = np.array(lengthscale, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim > 1 or not array.size or not (np.isfinite(array).all() and (array > 0).all()):
        raise DataError(
            f"lengthscale is {lengthscale!r}; give positive finite numbers, one for all columns or one for each"
        )
    return array


def _semi_inner_products(series: PowerSeries, sets: list[FloatArray]) -> FloatArray:
    """Return <<u_1, ..., u_m>> for all combinations, (n_1, ..., n_m)."""
    products = (1 / series.sigma)[None]
    for u in sets[:-1]:
        products = (products[:, None, :] * u[None, :, :]).reshape(-1, len(series.sigma))
    return np.asarray(products @ sets[-1].T).reshape([len(u) for u in sets])
