"""Leave-one-out densities of a part of a stack, and the reasons to leave it out or to doubt its weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from slayr_py.inference.diagnostics.checks import reason
from slayr_py.inference.posterior import Posterior
from slayr_py.space import FloatArray

FEWEST_DRAWS = 5
"""With fewer draws, such as the mode, the densities given the draws are used without importance sampling."""

_INFLUENTIAL_SHARE = 0.05


class LeaveOneOutScore(NamedTuple):
    """Leave-one-out densities of n observations under a posterior, in the user's units.

    Attributes
    ----------
    elpd : (n,) float64
        Log densities.
    pareto_k : (n,) float64
        Tail shapes of the importance ratios; NaN for a point estimate.
    limit : float
        Limit of ``pareto_k``; NaN for a point estimate.
    """

    elpd: FloatArray
    pareto_k: FloatArray
    limit: float


def score(posterior: Posterior) -> LeaveOneOutScore:
    """Return the leave-one-out densities of a posterior.

    A point estimate has the density of each observation given the others at the same hyperparameters, in closed form:
    the hyperparameters have seen the observation.
    """
    if posterior.n_draws >= FEWEST_DRAWS:
        found = posterior.loo()
        return LeaveOneOutScore(found.values, found["pareto_k"].values, found.attrs["pareto_k_limit"])
    if "log_likelihood" not in posterior.idata.children:
        posterior = posterior.with_pointwise()
    log_lik = posterior.idata["log_likelihood"].to_dataset()["y"].values
    given = log_lik.reshape(-1, log_lik.shape[-1])
    elpd = logsumexp(given, axis=0) - np.log(len(given)) - np.log(abs(posterior.y_sd))
    return LeaveOneOutScore(np.asarray(elpd), np.full(len(elpd), np.nan), float("nan"))


def failure(posterior: Posterior, found: LeaveOneOutScore) -> str | None:
    """Return why a posterior cannot be a part of a stack, or None: its diagnostics fail, or a density is 0."""
    check = posterior.check()
    if not check.ok:
        return "; ".join(reason(message) for message in check.messages)
    infinite = np.sum(~np.isfinite(found.elpd))
    return f"{infinite} leave-one-out densities are not finite" if infinite else None


def unreliability(found: LeaveOneOutScore) -> str | None:
    """Return why a weight from these densities is uncertain, or None.

    The leave-one-out densities are unreliable at more than one observation and more than 5% of them.
    """
    n = len(found.elpd)
    above = int(np.sum(found.pareto_k > found.limit))
    if above > max(1, _INFLUENTIAL_SHARE * n):
        return f"leave-one-out is unreliable at {above} of {n} observations, Pareto k > {found.limit:.2f}"
    return None
