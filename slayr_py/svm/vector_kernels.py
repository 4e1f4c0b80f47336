"""Kernels on vectors: linear, polynomial, radial, Laplacian, Matérn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils import check_array
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.kernels import checked_order, matern_correlation
from slayr_py.space import FloatArray
from slayr_py.svm.kernel_function import KernelFunction


class VectorKernel(KernelFunction):
    """A kernel whose points are the rows of an (n, d) array of finite numbers."""

    takes_vectors = True

    @override
    def check(self) -> None:
        if getattr(self, "gamma", None) is not None:
            self._check_number("gamma")

    @override
    def read(self, X: Any) -> FloatArray:
        return np.asarray(check_array(X, dtype=np.float64))


class Linear(VectorKernel):
    """Linear kernel, the inner product ``x'y``."""

    @override
    def between(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(linear_kernel(a, b))


@dataclass(eq=False, repr=False)
class Polynomial(VectorKernel):
    """Polynomial kernel ``(gamma x'y + coef0)^degree``.

    Parameters
    ----------
    degree : int
        At least 1.
    gamma : float, optional
        Positive; one over the number of columns by default, as in :mod:`sklearn.metrics.pairwise`.
    coef0 : float
        At least 0: if it is negative, the expansion has negative coefficients and the kernel is not Mercer.
    """

    degree: int = 3
    gamma: float | None = None
    coef0: float = 1.0

    @override
    def check(self) -> None:
        super().check()
        self._check_integer("degree")
        self._check_number("coef0", least=0.0)

    @override
    def between(self, a: FloatArray, b: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # the factorisation reports infinite values
            return np.asarray(polynomial_kernel(a, b, degree=self.degree, gamma=self.gamma, coef0=self.coef0))


@dataclass(eq=False, repr=False)
class _DistanceKernel(VectorKernel):
    """A kernel of a distance scaled by gamma."""

    gamma: float | None = None


class RBF(_DistanceKernel):
    """Squared-exponential kernel ``exp(-gamma |x - y|^2)``.

    Parameters
    ----------
    gamma : float, optional
        Positive; one over the number of columns by default.
    """

    @override
    def between(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(rbf_kernel(a, b, gamma=self.gamma))


class Laplacian(_DistanceKernel):
    """Laplacian kernel ``exp(-gamma sum_i |x_i - y_i|)``, of the city-block distance.

    The exponential of the Euclidean distance is ``Matern(p=0)``.

    Parameters
    ----------
    gamma : float, optional
        Positive; one over the number of columns by default.
    """

    @override
    def between(self, a: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(laplacian_kernel(a, b, gamma=self.gamma))


@dataclass(eq=False, repr=False)
class Matern(VectorKernel):
    """Matérn kernel of half-integer order, nu = p + 1/2 (Rasmussen & Williams 2006, eq. 4.16).

    Parameters
    ----------
    p : int
        0 gives the exponential kernel ``exp(-|x - y| / lengthscale)``; large p approaches the squared exponential.
    lengthscale : float or (d,) array_like
        Positive, one for all columns or one for each.
    """

    p: int = 2
    lengthscale: ArrayLike = 1.0

    @override
    def check(self) -> None:
        checked_order(self.p)
        try:
            lengthscale = np.asarray(self.lengthscale, dtype=np.float64)
        except (TypeError, ValueError):
            lengthscale = np.array(np.nan)
        if not (np.isfinite(lengthscale).all() and (lengthscale > 0).all()):
            raise DataError(f"lengthscale of Matern must be positive and finite, got {self.lengthscale!r}")

    @override
    def between(self, a: FloatArray, b: FloatArray) -> FloatArray:
        lengthscale = np.asarray(self.lengthscale, dtype=np.float64)
        if lengthscale.ndim and lengthscale.shape != (a.shape[1],):
            raise DataError(f"lengthscale has shape {lengthscale.shape}; the points have {a.shape[1]} columns")
        scale = np.sqrt(2 * self.p + 1) / lengthscale
        return matern_correlation(cdist(a * scale, b * scale), self.p)
