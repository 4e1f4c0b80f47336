"""What every kernel function offers to the factorisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from slayr_py.errors import DataError
from slayr_py.space.dimension import FloatArray
from slayr_py.svm.eigenpairs import Eigenpairs


class KernelFunction(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no type hints
    """A Mercer kernel on points of one kind: vectors, rows of a Gram matrix, configurations, nodes of a graph.

    A kernel function holds parameters and nothing else. They are checked when it is used, as scikit-learn does it, so
    that ``clone``, ``set_params`` and a grid over ``kernel__gamma`` work. ``kernel(X, Y)`` is the Gram matrix, which is
    also what ``sklearn.svm.SVC(kernel=kernel)`` calls.

    Attributes
    ----------
    needs_factorization : bool
        Whether the Gram matrix has to be decomposed; False where the kernel comes with its eigenpairs.
    takes_vectors : bool
        Whether points are rows of an array of numbers, which scikit-learn's own checks then apply to.
    """

    needs_factorization: ClassVar[bool] = True
    takes_vectors: ClassVar[bool] = False

    @abstractmethod
    def check(self) -> None:
        """Raise ``DataError`` for a parameter with which this is no Mercer kernel."""

    @abstractmethod
    def read(self, X: Any) -> Any:
        """Points in the form that :meth:`between` works on.

        Raises
        ------
        SlayrError, ValueError
            If they are not of the kernel's kind.
        """

    @abstractmethod
    def between(self, a: Any, b: Any) -> FloatArray:
        """Kernel values between points that have been read, (n_a, n_b)."""

    def eigenpairs(self, rank: float | None = None) -> Eigenpairs:
        """Eigenpairs over all points there are, whose positions :meth:`read` then gives.

        For kernels with ``needs_factorization = False`` only.
        """
        raise TypeError(f"{type(self).__name__} has no eigenpairs of its own: its Gram matrix needs factorisation")

    def __call__(self, X: Any, Y: Any = None) -> FloatArray:
        """Gram matrix.

        Parameters
        ----------
        X, Y : points
            n_x and n_y points of the kernel's kind; ``Y`` is ``X`` by default.

        Returns
        -------
        (n_x, n_y) float64

        Raises
        ------
        DataError
            For an illegal parameter of the kernel.
        SlayrError, ValueError
            For points that are not of its kind.
        """
        self.check()
        a = self.read(X)
        return self.between(a, a if Y is None else self.read(Y))

    def _check_positive(self, name: str, least: float | None = None) -> None:
        """Refuse a scalar parameter that is not positive, or below ``least`` where that is given."""
        value = getattr(self, name)
        number = float(value) if isinstance(value, Real) else np.nan
        if not (number > 0 if least is None else number >= least) or np.isinf(number):
            wanted = "positive" if least is None else f"at least {least:g}"
            raise DataError(f"{name} of {type(self).__name__} must be {wanted} and finite, got {value!r}")

    def _check_whole(self, name: str) -> None:
        """Refuse a parameter that is not an integer of at least 1."""
        value = getattr(self, name)
        if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < 1:
            raise DataError(f"{name} of {type(self).__name__} must be an integer of at least 1, got {value!r}")
