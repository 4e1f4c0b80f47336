"""K-fold cross-validation of machines and of Gaussian processes, the other heading of the slayR notes.

For a Gaussian process with s draws of hyperparameters the density of a new *observation* is the mixture

    p(y | x) = 1/s sum_i N(y | m_i(x), v_i(x) + sigma_n,i^2)

of the draws' latent moments with the noise added. Summed over the folds, its logarithm estimates the expected log
predictive density, as leave-one-out does (Vehtari, Gelman & Gabry 2017), by fits that have never seen the points.
"""

from __future__ import annotations

import time
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr
from scipy.stats import norm
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.model_selection import cross_validate as cross_validate_estimator
from tqdm import tqdm

from slayr_py.errors import DataError, did_you_mean
from slayr_py.space import Encoded
from slayr_py.space.dimension import FloatArray

if TYPE_CHECKING:
    from slayr_py.inference import GaussianProcess, Posterior

_SCORES = ("log_predictive_density", "rmse", "coverage")


def cross_validate(
    estimator: GaussianProcess | Any,
    X: Any,
    y: ArrayLike,
    cv: Any = 5,
    scoring: Any = None,
    seed: int = 1,
    progress: bool = True,
    level: float = 0.9,
    **fit_options: Any,
) -> pd.DataFrame:
    """Fit to all folds but one and look at that one, for every fold.

    Parameters
    ----------
    estimator : GaussianProcess or scikit-learn estimator
        The latter, pipelines and the machines of this module among them, goes to
        ``sklearn.model_selection.cross_validate``.
    X : points
        For a Gaussian process n configurations, as :meth:`~slayr_py.GaussianProcess.fit` takes them.
    y : (n,) array_like
    cv : int, splitter, or iterable of pairs of index arrays
        A number of folds is shuffled, and stratified for a classifier.
    scoring : str or sequence of str, optional
        For a Gaussian process any of "log_predictive_density", "rmse", "coverage", by default all; else what
        scikit-learn takes.
    seed : int
        Fixes the folds and, for each of them, the draws of its fit.
    progress : bool
        Whether a bar shows the folds of a Gaussian process.
    level : float
        Nominal probability of the central predictive interval of which "coverage" is the observed share.
    **fit_options
        For a Gaussian process arguments of :meth:`~slayr_py.GaussianProcess.fit`, such as ``chains=2``.

    Returns
    -------
    DataFrame
        One row a fold. For a Gaussian process: ``n_test``; the scores, of observations in the user's units, the log
        predictive density being summed over the fold; ``fit_time`` in seconds; the ``seed`` with which the fit can be
        repeated; and ``ok``, whether its diagnostics are within their limits. Else scikit-learn's columns.

    Raises
    ------
    DataError
        For an unknown score, a level outside (0, 1), a target that is not finite, or options that nobody takes.
    SpaceError
        If a configuration does not belong to the space of the Gaussian process.
    """
    is_process = hasattr(estimator, "encoder")
    if isinstance(cv, Integral):
        splitter = StratifiedKFold if not is_process and is_classifier(estimator) else KFold
        cv = splitter(int(cv), shuffle=True, random_state=seed)
    if not is_process:
        if fit_options:
            raise DataError(f"{sorted(fit_options)} are options of a Gaussian process; set them on the estimator")
        return pd.DataFrame(cross_validate_estimator(estimator, X, y, cv=cv, scoring=scoring)).rename_axis("fold")
    if not 0 < level < 1:
        raise DataError(f"level must be a probability between 0 and 1, got {level!r}")
    wanted, points = _checked_scores(scoring), estimator.encoder.encode(X)
    targets = _checked_targets(y, len(points))
    folds = list(check_cv(cv).split(points.unit_values, targets))
    rows = []
    with tqdm(folds, unit="fold", disable=not progress) as bar:
        for fold, (train, test) in enumerate(bar):
            options = fit_options | {"seed": int(np.random.SeedSequence([seed, fold]).generate_state(1)[0])}
            start = time.perf_counter()
            posterior = estimator.fit(points[train], targets[train], progress=bar.set_postfix_str, **options)
            took = {"fit_time": time.perf_counter() - start, "seed": options["seed"], "ok": posterior.check().ok}
            scores = predictive_scores(posterior, points[test], targets[test], level)
            rows.append({"n_test": len(test)} | {name: scores[name] for name in wanted} | took)
    return pd.DataFrame(rows).rename_axis("fold")


def predictive_scores(posterior: Posterior, points: Encoded, y: FloatArray, level: float = 0.9) -> dict[str, float]:
    """How well a posterior predicts m new observations.

    Parameters
    ----------
    posterior : Posterior
    points : Encoded
    y : (m,) float64
        In the user's units.
    level : float
        Nominal probability of the interval of "coverage".

    Returns
    -------
    dict
        "log_predictive_density", the sum over the observations; "rmse" of the mixture's mean; "coverage", the share of
        observations between the (1 - level)/2 and (1 + level)/2 quantiles of their mixtures.
    """
    prediction = posterior.predict(points)
    noise = posterior.draws["sigma_n"][:, None] * posterior.y_sd
    mean, sd = prediction.draw_mean, np.hypot(prediction.draw_sd, noise)
    log_density = logsumexp(norm.logpdf(y, mean, sd), axis=0) - np.log(len(mean))
    # y lies between two quantiles when its own probability lies between theirs: the mixture needs no inversion.
    below = ndtr((y - mean) / sd).mean(axis=0)
    return {
        "log_predictive_density": float(log_density.sum()),
        "rmse": float(np.sqrt(np.mean(np.square(y - prediction.mean)))),
        "coverage": float(np.mean(np.abs(below - 0.5) <= level / 2)),
    }


def _checked_scores(scoring: Any) -> tuple[str, ...]:
    wanted = _SCORES if scoring is None else (scoring,) if isinstance(scoring, str) else tuple(scoring)
    for name in wanted:
        if name not in _SCORES:
            raise DataError(f"unknown score of a Gaussian process {name!r}{did_you_mean(name, _SCORES)}")
    return wanted


def _checked_targets(y: ArrayLike, n: int) -> FloatArray:
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y must be numbers, got {y!r:.200}") from error
    if values.shape != (n,):
        raise DataError(f"y has shape {values.shape} for {n} configurations; one number each is needed")
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before the folds are made")
    return values
