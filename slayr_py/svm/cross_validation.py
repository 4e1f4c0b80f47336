"""K-fold cross-validation of support vector machines and other scikit-learn estimators."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate as cross_validate_estimator

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError


def cross_validate(
    estimator: Any, X: Any, y: ArrayLike, cv: Any = 5, scoring: Any = None, seed: int = 1
) -> pd.DataFrame:
    """Cross-validate a machine or another scikit-learn estimator: for every fold, fit to the other folds and score it.

    Parameters
    ----------
    estimator : scikit-learn estimator
        A machine of this module, a pipeline, or any other estimator.
    X : points
    y : (n,) array_like
    cv : int, splitter, or iterable of pairs of index arrays
        An integer gives shuffled folds, stratified for a classifier.
    scoring : str or sequence of str, optional
        As in ``sklearn.model_selection.cross_validate``.
    seed : int
        Fixes the folds.

    Returns
    -------
    DataFrame
        One row per fold, with scikit-learn's columns.

    Raises
    ------
    DataError
        If the estimator does not have scikit-learn's interface, or the seed is illegal.
    """
    if not hasattr(estimator, "get_params"):
        raise DataError(
            f"{type(estimator).__name__} is not a scikit-learn estimator; for a Gaussian process use "
            "GaussianProcess.cross_validate, or slayr_py.sklearn.BayesianGPRegressor"
        )
    seed = check_integer("seed", seed, minimum=0)
    if isinstance(cv, Integral):
        splitter = StratifiedKFold if is_classifier(estimator) else KFold
        cv = splitter(int(cv), shuffle=True, random_state=seed)
    return pd.DataFrame(cross_validate_estimator(estimator, X, y, cv=cv, scoring=scoring)).rename_axis("fold")
