"""Features whose inner products are a kernel (slayR notes, "Kernel Factorization").

K = P D P' = Q'Q with Q = D^(1/2) P': the columns of Q are the features of the n training points. The features of a new
point x are D^(-1/2) P' k(X, x), its projection onto theirs. For a training point they equal its column of Q. The inner
product of any two points x, y is k(x, X) K^+ k(X, y), the Nyström extension (Williams & Seeger 2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from slayr_py.space import FloatArray
from slayr_py.svm.eigenpairs import decompose
from slayr_py.svm.kernel_function import KernelFunction
from slayr_py.svm.kernel_names import from_name
from slayr_py.svm.precomputed import Precomputed


@dataclass(eq=False, repr=False)
class KernelFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map points to features whose inner products are a kernel, for use with a linear method.

    Parameters
    ----------
    kernel : KernelFunction or str
        A Mercer kernel, or the name of one.
    rank : int or float, optional
        Largest number of features to keep, or the share of the trace of K in (0, 1) that they explain; by default all
        features whose eigenvalue is not zero up to rounding. ARPACK computes ranks up to an eighth of n.
    tol : float
        A negative eigenvalue down to ``-tol`` times the largest one is clipped as a rounding error; a smaller one is an
        error.

    Attributes
    ----------
    kernel_ : KernelFunction
        The kernel that was fitted.
    eigenvalues_ : (r,) float64
        Positive, descending.
    eigenvectors_ : (n, r) float64
        Orthonormal, as columns; the rows of a graph kernel are the graph's nodes.
    X_fit_ : points
        The training points, unless the kernel needs no factorisation.
    n_features_in_, feature_names_in_
        As in scikit-learn, if points are vectors.

    Notes
    -----
    A kernel whose ``needs_factorization`` is False provides its eigenpairs itself. A graph kernel has
    eigenpairs of all nodes, so features are exact for every node, also for nodes that were not passed to ``fit``.

    ``fit_transform`` returns the columns of Q. ``transform`` of the same points differs from them by rounding errors,
    which grow as the eigenvalue decreases; inner products do not differ.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> features = KernelFactorization("laplacian").fit_transform(X)
    >>> (features @ features.T).round(6)
    array([[1.      , 0.367879, 0.049787],
           [0.367879, 1.      , 0.135335],
           [0.049787, 0.135335, 1.      ]])
    """

    kernel: KernelFunction | str = "rbf"
    rank: float | None = None
    tol: float = 1e-10

    def fit(self, X: Any, y: object = None) -> Self:
        """Factor the training Gram matrix.

        Parameters
        ----------
        X : points
            n points of the kernel's kind: an (n, d) array, an (n, n) Gram matrix, configurations, or nodes.
        y : ignored

        Raises
        ------
        DataError
            If the Gram matrix is not square, symmetric, finite and positive semi-definite, or the kernel or the rank is
            illegal.
        SlayrError, ValueError
            If points are not of the kernel's kind.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: object = None) -> FloatArray:
        """Fit and return the columns of Q, the features of the training points, (n, r)."""
        rows = self._fit(X)
        return np.asarray(self.eigenvectors_[rows] * np.sqrt(self.eigenvalues_))

    def transform(self, X: Any) -> FloatArray:
        """Return the features of m points, (m, r).

        Raises
        ------
        sklearn.exceptions.NotFittedError
        SlayrError, ValueError
            If points are not of the kernel's kind or have another number of columns.
        """
        check_is_fitted(self)
        points = self._read(X, reset=False)
        root = np.sqrt(self.eigenvalues_)
        if not self.kernel_.needs_factorization:
            return np.asarray(self.eigenvectors_[points] * root)
        return np.asarray(self.kernel_.between(points, self.X_fit_) @ self.eigenvectors_ / root)

    def _fit(self, X: Any) -> Any:
        """Compute the eigenpairs; return the rows of the eigenvectors that belong to the training points."""
        self.kernel_ = clone(from_name(self.kernel))
        if not self.kernel_.needs_factorization:
            self.eigenvalues_, self.eigenvectors_ = self.kernel_.eigenpairs(self.rank)
            return self._read(X, reset=True)
        self.kernel_.check()
        self.X_fit_ = self._read(X, reset=True)
        gram = self.kernel_.between(self.X_fit_, self.X_fit_)
        self.eigenvalues_, self.eigenvectors_ = decompose(gram, self.rank, self.tol)
        return slice(None)

    def _read(self, X: Any, reset: bool) -> Any:
        if self.kernel_.takes_vectors:
            return validate_data(self, X, dtype=np.float64, reset=reset, copy=reset)
        return self.kernel_.read(X)

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"
        return tags
