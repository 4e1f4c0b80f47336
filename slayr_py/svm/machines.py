"""Support vector machines with any kernel: scikit-learn's linear machines on the features of the factorisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.svm import SVC, SVR, NuSVR
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from slayr_py.space import FloatArray
from slayr_py.svm.factorization import KernelFactorization
from slayr_py.svm.kernel_function import KernelFunction


class KernelMachine(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base class of the three machines.

    Attributes
    ----------
    factorization_ : KernelFactorization
    machine_ : sklearn.svm.SVC, SVR or NuSVR
        The linear machine on the features.
    """

    kernel: KernelFunction | str
    rank: float | None

    @abstractmethod
    def _machine(self) -> Any:
        """Return an unfitted linear machine of scikit-learn."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Factor the Gram matrix of n points and fit the linear machine to the features.

        Parameters
        ----------
        X : points
            As for :meth:`KernelFactorization.fit`.
        y : (n,) array_like
            Classes or values.
        sample_weight : (n,) array_like, optional
            Factors of C.

        Raises
        ------
        SlayrError, ValueError
            As for :meth:`KernelFactorization.fit`, or if y does not match X.
        """
        factorization = KernelFactorization(self.kernel, self.rank)
        features = factorization.fit_transform(X)
        self.machine_ = self._machine().fit(features, y, sample_weight)
        self.factorization_ = factorization
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the classes or values of m points, (m,).

        Raises
        ------
        sklearn.exceptions.NotFittedError
        SlayrError, ValueError
            As for :meth:`KernelFactorization.transform`.
        """
        check_is_fitted(self)
        return np.asarray(self.machine_.predict(self.factorization_.transform(X)))

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training points, if these are vectors."""
        return int(self.factorization_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of these columns, if they have names."""
        return np.asarray(self.factorization_.feature_names_in_)

    @property
    def n_iter_(self) -> Any:
        """Iterations of the solver."""
        return self.machine_.n_iter_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = get_tags(KernelFactorization(self.kernel)).input_tags.pairwise
        return tags


@dataclass(eq=False, repr=False)
class KernelSVC(ClassifierMixin, KernelMachine):  # type: ignore[misc]
    """Support vector classification with any Mercer kernel.

    The optimum equals the optimum of ``sklearn.svm.SVC`` with the same kernel, unless the rank is truncated.

    Parameters
    ----------
    kernel, rank
        As for :class:`KernelFactorization`.
    C : float
        Positive; cost of errors relative to the width of the margin.
    class_weight : mapping of class to float, or "balanced", optional
        Factors of C.
    tol : float
        Stopping tolerance of the solver.
    max_iter : int
        Largest number of iterations of the solver; -1 for no limit.

    Attributes
    ----------
    classes_ : (k,) array
    factorization_ : KernelFactorization
    machine_ : sklearn.svm.SVC

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(KernelSVC("laplacian", C=10.0).fit(X, y).score(X, y), 2)
    0.99
    """

    kernel: KernelFunction | str = "rbf"
    C: float = 1.0
    rank: float | None = None
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = -1

    def _machine(self) -> Any:
        return SVC(C=self.C, kernel="linear", class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter)

    def decision_function(self, X: Any) -> FloatArray:
        """Return decision values: (m,), positive for the second of two classes, or (m, k) for k > 2 classes."""
        check_is_fitted(self)
        return np.asarray(self.machine_.decision_function(self.factorization_.transform(X)))

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        return np.asarray(self.machine_.classes_)


@dataclass(eq=False, repr=False)
class KernelSVR(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Support vector regression with any Mercer kernel.

    Parameters
    ----------
    kernel, rank, C, tol, max_iter
        As for :class:`KernelSVC`.
    epsilon : float
        Errors up to this size, in the units of y, cost nothing.

    Attributes
    ----------
    factorization_ : KernelFactorization
    machine_ : sklearn.svm.SVR
    """

    kernel: KernelFunction | str = "rbf"
    C: float = 1.0
    epsilon: float = 0.1
    rank: float | None = None
    tol: float = 1e-3
    max_iter: int = -1

    def _machine(self) -> Any:
        return SVR(C=self.C, epsilon=self.epsilon, kernel="linear", tol=self.tol, max_iter=self.max_iter)


@dataclass(eq=False, repr=False)
class KernelNuSVR(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Support vector regression with any Mercer kernel; a share of points determines the width of the tube.

    Parameters
    ----------
    kernel, rank, C, tol, max_iter
        As for :class:`KernelSVC`.
    nu : float
        In (0, 1]: lower bound of the share of support vectors, upper bound of the share of points outside the tube.

    Attributes
    ----------
    factorization_ : KernelFactorization
    machine_ : sklearn.svm.NuSVR
    """

    kernel: KernelFunction | str = "rbf"
    C: float = 1.0
    nu: float = 0.5
    rank: float | None = None
    tol: float = 1e-3
    max_iter: int = -1

    def _machine(self) -> Any:
        return NuSVR(C=self.C, nu=self.nu, kernel="linear", tol=self.tol, max_iter=self.max_iter)
