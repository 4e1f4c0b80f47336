"""K-fold cross-validation of support vector machines, other scikit-learn estimators and Gaussian processes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.model_selection import cross_validate as cross_validate_estimator

from slayr_py.errors import DataError


def cross_validate(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    cv: Any = 5,
    scoring: Any = None,
    seed: int = 1,
    progress: bool = True,
    level: float = 0.9,
    **fit_options: Any,
) -> pd.DataFrame:
    """Fit to all folds but one and score the remaining fold, for every fold.

    Parameters
    ----------
    estimator : GaussianProcess or scikit-learn estimator
        An estimator with a method ``cross_validate``, such as :meth:`slayr_py.GaussianProcess.cross_validate`, which
        gets all other arguments. Any other estimator, including pipelines and the machines of this module, goes to
        ``sklearn.model_selection.cross_validate``.
    X : points
        For a Gaussian process n configurations, as :meth:`~slayr_py.GaussianProcess.fit` takes them.
    y : (n,) array_like
    cv : int, splitter, or iterable of pairs of index arrays
        An integer gives shuffled folds, stratified for a classifier.
    scoring : str or sequence of str, optional
        For a Gaussian process any of "log_predictive_density", "rmse", "coverage", by default all; otherwise as in
        scikit-learn.
    seed : int
        Fixes the folds and, for a Gaussian process, the draws of every fit.
    progress, level, **fit_options
        Of a Gaussian process, see :meth:`slayr_py.GaussianProcess.cross_validate`.

    Returns
    -------
    DataFrame
        One row per fold, with scikit-learn's columns or those of :meth:`slayr_py.GaussianProcess.cross_validate`.

    Raises
    ------
    DataError
        For fit options with a scikit-learn estimator, or as in :meth:`slayr_py.GaussianProcess.cross_validate`.
    """
    if hasattr(estimator, "cross_validate"):
        options = {"cv": cv, "scoring": scoring, "seed": seed, "progress": progress, "level": level}
        frame: pd.DataFrame = estimator.cross_validate(X, y, **options, **fit_options)
        return frame
    if fit_options:
        raise DataError(f"{sorted(fit_options)} are options of a Gaussian process; set them on the estimator")
    if isinstance(cv, Integral):
        splitter = StratifiedKFold if is_classifier(estimator) else KFold
        cv = splitter(int(cv), shuffle=True, random_state=seed)
    return pd.DataFrame(cross_validate_estimator(estimator, X, y, cv=cv, scoring=scoring)).rename_axis("fold")
