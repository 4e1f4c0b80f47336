"""Statistics and plots of the installed ArviZ, whose functions differ between 0.23 and 1.x."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from slayr_py.space import FloatArray
from slayr_py.threads import ignored_warnings

_FEWEST = 5
"""Fewest distinct values in a tail whose shape is fitted; ArviZ asks for as many values."""


@cache
def arviz() -> Any:
    """Import ArviZ on first use (it takes a second), without its notice about version 1.

    Version 0.23 stores the date of the notice in the user's cache, and reads its settings from the home folder. Where
    there is none, or it cannot be written, as in many containers, it gets a temporary one.
    """
    with ignored_warnings():
        try:
            return import_module("arviz")
        except (OSError, RuntimeError):
            with tempfile.TemporaryDirectory() as folder, _home(folder):
                return import_module("arviz")


@contextmanager
def _home(folder: str) -> Iterator[None]:
    """Make a folder the home folder and the user's cache."""
    before = {name: os.environ.get(name) for name in ("HOME", "XDG_CACHE_HOME")}
    os.environ.update(dict.fromkeys(before, folder))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class LeaveOneOut(NamedTuple):
    """PSIS leave-one-out of each observation (Vehtari, Gelman & Gabry 2017).

    Attributes
    ----------
    elpd : (n,) float64
        Log predictive density of each observation given the others.
    pareto_k : (n,) float64
        Tail shape of its importance ratios; infinite if they have too few distinct values to fit one.
    pareto_k_limit : float
        Limit above which a density is unreliable: min(1 - 1 / log10(s), 0.7) for s draws (Vehtari et al. 2024).
    """

    elpd: FloatArray
    pareto_k: FloatArray
    pareto_k_limit: float


def leave_one_out(tree: xr.DataTree) -> LeaveOneOut | None:
    """Return the PSIS leave-one-out of a tree's ``log_likelihood``; None without it or with fewer than five draws.

    The numbers equal the result of ArviZ' ``loo``, which since version 1 rejects all observations if one has no tail.
    The computation for 200 draws takes 2, 6 and 22 ms for 25, 100 and 400 observations, and three times as long with
    ArviZ 1, which is negligible beside a fit.
    """
    if "log_likelihood" not in tree.children:
        return None
    log_density = tree["log_likelihood"].to_dataset()["y"].values
    chains, draws, n = log_density.shape
    s = chains * draws
    if s < 5:
        return None
    log_density = log_density.reshape(s, n).T
    # The relative efficiency is undefined below four draws per chain.
    efficiency = _relative_efficiency(tree["posterior"].to_dataset()) if chains > 1 and draws >= 4 else 1.0
    log_weights, pareto_k = _smooth(-log_density, efficiency)
    elpd = logsumexp(log_weights + log_density, axis=1)
    return LeaveOneOut(elpd, pareto_k, min(1 - 1 / math.log10(s), 0.7))


def _relative_efficiency(posterior: xr.Dataset) -> float:
    """Return the effective number of draws divided by their number, averaged over variables as in ArviZ' ``loo``."""
    with ignored_warnings():
        ess = arviz().ess(posterior, method="mean")
    mean = np.hstack([values.values.ravel() for values in ess.values()]).mean()
    return float(mean / (posterior.sizes["chain"] * posterior.sizes["draw"]))


def save_plot(kind: Literal["trace", "pair"], posterior: xr.Dataset, names: list[str], path: Path) -> None:
    """Save ArviZ' trace or pair plot of variables of a posterior."""
    module = arviz()
    trace = getattr(module, "plot_trace_dist", module.plot_trace)  # the plot of ArviZ 1 that shows densities too
    # ArviZ warns about later versions and missing fonts. Beyond 40 panels it omits some, and version 1 omits all.
    with ignored_warnings(), module.rc_context({"plot.max_subplots": None}):
        drawn = (trace if kind == "trace" else module.plot_pair)(posterior, var_names=names)
        if hasattr(drawn, "savefig"):  # a PlotCollection of ArviZ 1.x
            drawn.savefig(path)
            return
        import matplotlib.pyplot as plt

        figure = np.ravel(drawn)[0].figure
        figure.set_layout_engine("constrained")
        figure.savefig(path, dpi=100)
        plt.close(figure)


def fewest_draws(chains: int) -> int:
    """Return the number of draws per chain below which convergence is undefined: four, for a single chain eight."""
    return 8 if chains == 1 else 4


def convergence(variables: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the worst rank-normalised split R-hat, bulk and tail effective sample size over variables (c, s, ...).

    The two halves of a single chain count as two chains. All are NaN below :func:`fewest_draws`.
    """
    module = arviz()
    flat = np.concatenate([v.reshape(*v.shape[:2], -1) for v in variables.values()], axis=-1)
    enough = flat.shape[1] >= fewest_draws(len(flat))
    if len(flat) == 1:
        half = flat.shape[1] // 2
        flat = flat[0, : 2 * half].reshape(2, half, flat.shape[-1])
    if not enough:
        return dict.fromkeys(("rhat_max", "ess_bulk_min", "ess_tail_min"), float("nan"))
    dataset = xr.Dataset({"x": (("chain", "draw", "i"), flat)})
    with ignored_warnings():
        return {
            "rhat_max": float(module.rhat(dataset)["x"].max()),
            "ess_bulk_min": float(module.ess(dataset, method="bulk")["x"].min()),
            "ess_tail_min": float(module.ess(dataset, method="tail", prob=(0.05, 0.95))["x"].min()),
        }


def standard_error(values: FloatArray) -> float:
    """Return the Monte Carlo standard error of the mean of correlated draws (c, s); NaN below four draws per chain."""
    if values.shape[1] < 4:
        return float("nan")
    if not np.ptp(values):
        return 0.0
    with ignored_warnings(), np.errstate(all="ignore"):
        # ArviZ 0.23 returns an array with one entry if numba is installed.
        return float(np.asarray(arviz().mcse(values, method="mean")).item())


def energy_fractions(energy: FloatArray) -> FloatArray:
    """Return the E-BFMI (c,) (Betancourt 2016) of energies (c, s); NaN if a chain is too short or does not move."""
    with ignored_warnings(), np.errstate(all="ignore"):
        return np.asarray(arviz().bfmi(energy), dtype=np.float64)


def pareto_smooth(log_ratio: FloatArray) -> tuple[FloatArray, float]:
    """Return the normalised Pareto-smoothed weights of log importance ratios (s,), and their tail shape k."""
    (log_weights,), (pareto_k,) = _smooth(log_ratio[None, :], 1.0)
    weights = np.exp(log_weights - np.max(log_weights))
    return weights / weights.sum(), float(pareto_k)


def _smooth(log_ratio: FloatArray, efficiency: float) -> tuple[FloatArray, FloatArray]:
    """Smooth log importance ratios row by row.

    Parameters
    ----------
    log_ratio : (n, s) float64
    efficiency : float
        Effective number of draws divided by their number; a smaller efficiency gives a longer tail.

    Returns
    -------
    log_weights : (n, s) float64
        The weights of each row sum to 1.
    pareto_k : (n,) float64
        Infinite if the tail has under five distinct values or no shape fits it; its row of weights is then not
        smoothed.
    """
    module = arviz()
    with ignored_warnings(), np.errstate(all="ignore"):
        if hasattr(module, "psislw"):
            log_weights, pareto_k = module.psislw(log_ratio, efficiency)
        else:
            log_weights, pareto_k = _smooth_rows(log_ratio, efficiency)
    # The shape is NaN if a quarter of the tail equals its smallest value.
    pareto_k = np.where(np.isnan(pareto_k), np.inf, pareto_k)
    # Versions of ArviZ differ about a tail of few distinct values: NaN with a finite shape, or four values become many.
    tail = math.ceil(min(log_ratio.shape[1] / 5, 3 * math.sqrt(log_ratio.shape[1] / efficiency)))
    largest = np.sort(log_ratio, axis=1)[:, -tail:]
    failed = np.count_nonzero(largest[:, 1:] > largest[:, :-1], axis=1) < _FEWEST - 1
    failed |= np.any(~np.isfinite(log_weights) & np.isfinite(log_ratio), axis=1)
    if failed.any():
        log_weights = np.array(log_weights)
        log_weights[failed] = log_ratio[failed] - logsumexp(log_ratio[failed], axis=1, keepdims=True)
    return log_weights, np.where(failed, np.inf, pareto_k)


def _smooth_rows(log_ratio: FloatArray, efficiency: float) -> tuple[FloatArray, FloatArray]:
    """Smooth log importance ratios row by row with ArviZ 1."""
    array_stats = import_module("arviz_stats.base").array_stats
    log_weights = np.empty_like(log_ratio)
    pareto_k = np.empty(len(log_ratio))
    for i, row in enumerate(log_ratio):
        try:
            # Since version 1, psislw takes log densities: the negative log ratios.
            log_weights[i], pareto_k[i] = array_stats.psislw(-row, efficiency)
        except ValueError:  # fewer than five values in the tail, or all of them equal
            log_weights[i] = row - logsumexp(row)
            pareto_k[i] = np.inf
    return log_weights, pareto_k
