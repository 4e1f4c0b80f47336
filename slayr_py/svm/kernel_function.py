"""Base class of the kernel functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from slayr_py.arguments import check_integer, check_number
from slayr_py.space import FloatArray
from slayr_py.svm.eigenpairs import Eigenpairs


class KernelFunction(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no type hints
    """A Mercer kernel on points of one kind: vectors, rows of a Gram matrix, configurations, nodes of a graph.

    A kernel function holds only parameters. They are checked when it is used, as in scikit-learn, so that ``clone``,
    ``set_params`` and a grid over ``kernel__gamma`` work. ``kernel(X, Y)`` is the Gram matrix, as
    ``sklearn.svm.SVC(kernel=kernel)`` needs it.

    Attributes
    ----------
    needs_factorization : bool
        Whether the Gram matrix must be decomposed; False if the kernel provides its eigenpairs.
    takes_vectors : bool
        Whether points are rows of an array of numbers, which scikit-learn's own checks validate.
    """

    needs_factorization: ClassVar[bool] = True
    takes_vectors: ClassVar[bool] = False

    def check(self) -> None:  # noqa: B027 (many kernels have nothing to check)
        """Raise ``DataError`` for a parameter with which this is not a Mercer kernel."""

    @abstractmethod
    def read(self, X: Any) -> Any:
        """Convert points to the form that :meth:`between` needs.

        Raises
        ------
        SlayrError, ValueError
            If they are not of the kernel's kind.
        """

    @abstractmethod
    def between(self, a: Any, b: Any) -> FloatArray:
        """Return the kernel values between points converted by :meth:`read`, (n_a, n_b)."""

    def eigenpairs(self, rank: float | None = None) -> Eigenpairs:
        """Return the eigenpairs over all points of the kernel's domain; :meth:`read` returns positions in it.

        Only for kernels with ``needs_factorization = False``.
        """
        raise TypeError(f"{type(self).__name__} does not provide eigenpairs: its Gram matrix needs factorisation")

    def __call__(self, X: Any, Y: Any = None) -> FloatArray:
        """Return the Gram matrix.

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
            If points are not of its kind.
        """
        self.check()
        a = self.read(X)
        return self.between(a, a if Y is None else self.read(Y))

    def _check_number(self, name: str, least: float | None = None) -> None:
        """Raise ``DataError`` for a parameter that is not finite and positive, or not >= ``least`` if given."""
        check_number(f"{name} of {type(self).__name__}", getattr(self, name), least)

    def _check_integer(self, name: str) -> None:
        """Raise ``DataError`` for a parameter that is not an integer >= 1."""
        check_integer(f"{name} of {type(self).__name__}", getattr(self, name))
