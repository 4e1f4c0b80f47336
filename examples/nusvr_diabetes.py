"""Tune a nu support vector regression on the diabetes data that scikit-learn ships.

The objective of ``nusvr_diabetes.toml`` is the root mean squared error on held-out data, averaged over five
cross-validation folds, in the target's units (a measure of disease progression after a year, between 25 and 346). It is
deterministic and takes a fraction of a second.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVR

X, y = load_diabetes(return_X_y=True)
FOLDS = KFold(n_splits=5, shuffle=True, random_state=0)


def rmse(config: Mapping[str, Any]) -> float:
    """Compute the cross-validated test error of a configuration: kernel, gamma, shrinking, C, tol, nu.

    Inputs are standardised on the training part of each fold. The solver stops after 20,000 iterations, because a large
    C with a small tol could make it run for minutes; the unconverged model is scored.
    """
    model = make_pipeline(StandardScaler(), NuSVR(**config, max_iter=20_000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = cross_val_score(model, X, y, cv=FOLDS, scoring="neg_root_mean_squared_error")
    return -float(scores.mean())
