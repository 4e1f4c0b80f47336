"""Reasons to leave a fit out of a stack, or to doubt its weight."""

from __future__ import annotations

import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut
from slayr_py.inference.diagnostics.checks import Diagnostics, reason

_INFLUENTIAL_SHARE = 0.05  # of the observations, for which leave-one-out may be unreliable; chosen by hand


def failure(check: Diagnostics, loo: LeaveOneOut) -> str | None:
    """Return why a fit cannot be a part of a stack, or None: its diagnostics fail, or a density is 0."""
    if not check.ok:
        return "; ".join(reason(message) for message in check.messages)
    infinite = np.sum(~np.isfinite(loo.elpd))
    return f"{infinite} leave-one-out densities are not finite" if infinite else None


def unreliability(loo: LeaveOneOut) -> str | None:
    """Return why a weight from these densities is uncertain, or None.

    The leave-one-out densities are unreliable at more than one observation and more than 5% of them.
    """
    n = len(loo.elpd)
    above = int(np.sum(loo.pareto_k > loo.pareto_k_limit))
    if above > max(1, _INFLUENTIAL_SHARE * n):
        return f"leave-one-out is unreliable at {above} of {n} observations, Pareto k > {loo.pareto_k_limit:.2f}"
    return None
