"""The one place that knows which ArviZ is installed.

ArviZ 1.x works on ``xarray.DataTree``; 0.23, the last for Python 3.11, on its own ``InferenceData``. The package
hands out a DataTree in both cases and converts where it calls ArviZ.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from slayr_py.space.dimension import FloatArray


@cache
def arviz() -> Any:
    """ArviZ, imported on first use (it takes a second) and without its notice about version 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz as module
    return module


class LeaveOneOut(NamedTuple):
    """PSIS leave-one-out, observation by observation (Vehtari, Gelman & Gabry 2017).

    Attributes
    ----------
    elpd : (n,) float64
        Log predictive density of each observation given the others.
    pareto_k : (n,) float64
        Shape of the tail of its importance ratios; infinite where they have too few distinct values to fit one.
    pareto_k_limit : float
        Above it a value is unreliable: min(1 - 1 / log10(s), 0.7) with s draws (Vehtari et al. 2024).
    """

    elpd: FloatArray
    pareto_k: FloatArray
    pareto_k_limit: float


def leave_one_out(tree: xr.DataTree) -> LeaveOneOut | None:
    """ArviZ' PSIS leave-one-out of a tree's ``log_likelihood``; None with fewer than five draws.

    It takes 4, 8 and 27 ms for 25, 100 and 400 observations and 200 draws: a trifle beside a fit.
    """
    sizes = tree["log_likelihood"].sizes
    if sizes["chain"] * sizes["draw"] < 5:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Below four draws a chain the relative efficiency that ArviZ would compute is undefined.
        result = arviz().loo(to_arviz(tree), pointwise=True, reff=1.0 if sizes["draw"] < 4 else None)
    elpd = result.loo_i if hasattr(result, "loo_i") else result.elpd_i
    return LeaveOneOut(np.asarray(elpd), np.asarray(result.pareto_k), float(result.good_k))


def to_arviz(tree: xr.DataTree) -> Any:
    """What the installed ArviZ takes: the tree itself, or an ``InferenceData`` before version 1."""
    module = arviz()
    return module.from_datatree(tree) if hasattr(module, "from_datatree") else tree


def convergence(variables: Mapping[str, FloatArray]) -> dict[str, float]:
    """Worst rank-normalised split R-hat, bulk and tail effective sample size over variables (c, s, ...).

    The halves of a single chain are compared with each other; below four draws each there is nothing to compare.
    """
    module = arviz()
    flat = np.concatenate([v.reshape(*v.shape[:2], -1) for v in variables.values()], axis=-1)
    if len(flat) == 1:
        half = flat.shape[1] // 2
        flat = flat[0, : 2 * half].reshape(2, half, -1)
    if flat.shape[1] < 4:
        return dict.fromkeys(("rhat_max", "ess_bulk_min", "ess_tail_min"), float("nan"))
    dataset = xr.Dataset({"x": (("chain", "draw", "i"), flat)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "rhat_max": float(module.rhat(dataset)["x"].max()),
            "ess_bulk_min": float(module.ess(dataset, method="bulk")["x"].min()),
            "ess_tail_min": float(module.ess(dataset, method="tail")["x"].min()),
        }


def standard_error(values: FloatArray) -> float:
    """Monte Carlo standard error of the mean of draws (c, s), which may be correlated; NaN below four draws a chain."""
    if values.shape[1] < 4:
        return float("nan")
    if not np.ptp(values):
        return 0.0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        # Where numba is installed, ArviZ 0.23 gives an array with one entry.
        return float(np.asarray(arviz().mcse(values, method="mean")).item())


def energy_fractions(energy: FloatArray) -> FloatArray:
    """E-BFMI of every chain (Betancourt 2016) from energies (c, s); NaN where a chain is too short or stands still."""
    tree = xr.DataTree.from_dict({"sample_stats": xr.Dataset({"energy": (("chain", "draw"), energy)})})
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        fractions = arviz().bfmi(to_arviz(tree))
    values = fractions["energy"] if isinstance(fractions, xr.Dataset) else fractions
    return np.asarray(values, dtype=np.float64)


def pareto_smooth(log_ratio: FloatArray) -> tuple[FloatArray, float]:
    """Normalised Pareto-smoothed weights of log importance ratios (s,), and the shape k of their tail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = arviz()
        if hasattr(module, "psislw"):
            log_weights, pareto_k = module.psislw(log_ratio)
        else:
            array = xr.DataArray(log_ratio[None, :], dims=("chain", "draw"))
            log_weights, pareto_k = array.azstats.psislw(dim=("chain", "draw"), r_eff=1)
            log_weights = np.asarray(log_weights).ravel()
    weights = np.exp(log_weights - np.max(log_weights))
    return weights / weights.sum(), float(pareto_k)
