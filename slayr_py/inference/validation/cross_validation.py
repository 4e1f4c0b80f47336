"""K-fold cross-validation of Gaussian processes.

With s draws of the hyperparameters the density of a new *observation* is the mixture

    p(y | x) = 1/s sum_i N(y | m_i(x), v_i(x) + sigma_n,i^2)

of the latent moments of every draw with the noise added, which includes the model's noise floor. Its logarithm, summed
over the folds, estimates the expected log predictive density, as leave-one-out does (Vehtari, Gelman & Gabry 2017),
from fits that have not seen the points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.model_selection import KFold, check_cv

from slayr_py.arguments import check_flag, check_integer, check_probability
from slayr_py.errors import DataError, did_you_mean
from slayr_py.inference.observed import check_targets
from slayr_py.inference.posterior import Posterior
from slayr_py.progress_bar import Bar
from slayr_py.space import Encoded, FloatArray

_SCORES = ("log_predictive_density", "rmse", "coverage")


def cross_validate(
    fit: Callable[..., Posterior],
    points: Encoded,
    y: ArrayLike,
    errors: FloatArray | None,
    cv: Any,
    scoring: str | Iterable[str] | None,
    seed: int,
    progress: bool,
    level: float,
    fit_options: Mapping[str, Any],
) -> pd.DataFrame:
    """Score every fold by a fit to the other folds; see `GaussianProcess.cross_validate`.

    ``fit`` is a method of a Gaussian process without a warp if ``errors`` (n,) are known, also in a fold without any.
    """
    seed = check_integer("seed", seed, minimum=0)
    progress = check_flag("progress", progress)
    if isinstance(cv, Integral):
        cv = int(cv)
        if not 2 <= cv <= len(points):
            raise DataError(f"cv is {cv}; give a number of folds from 2 to the number of observations, {len(points)}")
        cv = KFold(cv, shuffle=True, random_state=seed)
    check_probability("level", level)
    names = _score_names(scoring)
    targets = check_targets(y, len(points))
    folds = list(check_cv(cv).split(points.unit_values, targets))
    rows = []
    with Bar(folds, unit="fold", disable=not progress) as bar:
        for fold, (train, test) in enumerate(bar):
            fold_seed = int(np.random.SeedSequence([seed, fold]).generate_state(1)[0])
            options = {**fit_options, "seed": fold_seed, "progress": bar.set_postfix_str}
            start = time.perf_counter()
            if errors is not None:
                options["y_sd"] = errors[train]
            posterior = fit(points[train], targets[train], **options)
            about_fit = {"fit_time": time.perf_counter() - start, "seed": fold_seed, "ok": posterior.check().ok}
            held_out = None if errors is None else errors[test]
            scores = predictive_scores(posterior, points[test], targets[test], level, held_out)
            rows.append({"n_test": len(test)} | {name: scores[name] for name in names} | about_fit)
    return pd.DataFrame(rows).rename_axis("fold")


def predictive_scores(
    posterior: Posterior, points: Encoded, y: FloatArray, level: float = 0.9, errors: FloatArray | None = None
) -> dict[str, float]:
    """Score a posterior's predictions of m new observations.

    Parameters
    ----------
    posterior : Posterior
    points : Encoded
    y : (m,) float64
        In the user's units.
    level : float
        Nominal probability of the interval of "coverage".
    errors : (m,) float64, optional
        Known standard deviations of the errors of y, in the user's units. The posterior has no warp then.

    Returns
    -------
    dict
        "log_predictive_density", the sum over the observations; "rmse" of the mixture's mean; "coverage", the share of
        observations between the (1 - level)/2 and (1 + level)/2 quantiles of their mixtures.
    """
    prediction = posterior.predict(points)
    noise = prediction.latent.sigma_n[:, None]
    if errors is not None:
        noise = np.hypot(noise, errors / abs(posterior.y_sd))
    log_density = prediction.latent.log_density(y, noise)
    # y lies between two quantiles if its cumulative probability lies between their probabilities.
    below = prediction.latent.cumulative(y, noise)
    return {
        "log_predictive_density": float(log_density.sum()),
        "rmse": float(np.sqrt(np.mean(np.square(y - prediction.mean)))),
        "coverage": float(np.mean(np.abs(below - 0.5) <= level / 2)),
    }


def _score_names(scoring: str | Iterable[str] | None) -> tuple[str, ...]:
    names = _SCORES if scoring is None else (scoring,) if isinstance(scoring, str) else tuple(scoring)
    for name in names:
        if name not in _SCORES:
            raise DataError(f"unknown score of a Gaussian process {name!r}{did_you_mean(name, _SCORES)}")
    return names
