"""A Gram matrix given by the user."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.space import FloatArray
from slayr_py.svm.eigenpairs import check_finite
from slayr_py.svm.kernel_function import KernelFunction


class Precomputed(KernelFunction):
    """Points are rows of kernel values with the training points: (n, n) in ``fit``, (m, n) for m new points.

    As with scikit-learn's ``kernel="precomputed"``, cross-validation selects rows and columns of the matrix.
    """

    @override
    def read(self, X: Any) -> FloatArray:
        gram = np.asarray(check_array(X, dtype=np.float64, ensure_all_finite=False))
        check_finite(gram)
        return gram

    @override
    def between(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return ``a``, which must have one column for each training point (a column of ``b``)."""
        if a.shape[1] != b.shape[1]:
            raise DataError(
                f"the cross-Gram matrix has shape {a.shape}; with {b.shape[1]} training points it must be "
                f"({len(a)}, {b.shape[1]}), new points in rows"
            )
        return a
