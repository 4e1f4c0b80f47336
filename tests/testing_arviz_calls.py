"""Calls of every plot and statistic of the installed ArviZ on the data of a posterior.

An entry is the keywords of a function whose first argument is the data, or a function of ArviZ and two such data, of
which the first also has the groups of the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import isfunction
from typing import Any

import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import arviz

Call = Mapping[str, Any] | Callable[[Any, Any, Any], Any]

_SCALARS = {"var_names": ["mu", "sigma_f", "sigma_n"]}
_PRIOR_TOO = {"var_names": ["sigma_n", "lengthscale"]}


def _mu(data: Any) -> np.ndarray:
    return np.asarray(data["posterior"]["mu"])


def _observed(data: Any) -> np.ndarray:
    return np.asarray(data["observed_data"]["y"])


def _replicates(data: Any) -> np.ndarray:
    """Return the replicates (s, n)."""
    return np.asarray(data["posterior_predictive"]["y"]).reshape(-1, len(_observed(data)))


def _values(data: Any) -> np.ndarray:
    """Return one input (n,)."""
    return np.asarray(data["constant_data"]["values"])[:, 0]


def _with_predictions(data: Any) -> Any:
    """Return a copy with predictions in the posterior group, where a few functions read them."""
    data = data.copy()
    data["posterior"]["predicted"] = data["posterior_predictive"]["y"]
    return data


def _without_alpha(data: Any) -> Any:
    """Return a copy without the hyperparameter whose name ArviZ' sensitivity plots use for a dimension."""
    data = data.copy()
    data["posterior"] = data["posterior"].to_dataset().drop_vars("alpha", errors="ignore")
    return data


def _log_ratios(data: Any) -> np.ndarray:
    return -np.asarray(data["log_likelihood"]["y"])[..., 0].ravel()


BEFORE_1: dict[str, Call] = {
    "plot_autocorr": {},
    "plot_bf": lambda az, one, two: az.plot_bf(one, var_name="mu")[1],
    "plot_bpv": {},
    "plot_compare": lambda az, one, two: az.plot_compare(az.compare({"one": one, "two": two})),
    "plot_density": {},
    "plot_dist": lambda az, one, two: az.plot_dist(one.posterior["mu"]),
    "plot_dist_comparison": _PRIOR_TOO,
    "plot_dot": lambda az, one, two: az.plot_dot(_mu(one).flatten()),
    "plot_ecdf": lambda az, one, two: az.plot_ecdf(_mu(one).flatten()),
    "plot_elpd": lambda az, one, two: az.plot_elpd({"one": one, "two": two}),
    "plot_energy": {},
    "plot_ess": {},
    "plot_forest": {},
    "plot_hdi": lambda az, one, two: az.plot_hdi(_values(one), one.posterior_predictive["y"], smooth=False),
    "plot_kde": lambda az, one, two: az.plot_kde(_mu(one).flatten()),
    "plot_khat": lambda az, one, two: az.plot_khat(az.loo(one, pointwise=True)),
    "plot_lm": lambda az, one, two: az.plot_lm("y", idata=one, x=_values(one), y_hat="y"),
    "plot_loo_pit": {"y": "y"},
    "plot_mcse": {},
    "plot_pair": {**_SCALARS, "divergences": True},
    "plot_parallel": _SCALARS,
    "plot_posterior": {},
    "plot_ppc": {},
    "plot_rank": {},
    "plot_trace": {},
    "plot_ts": {"y": "y", "y_hat": "y"},
    "plot_violin": {},
    "apply_test_function": {"func": lambda y, theta: np.mean(y), "inplace": False},
    "autocorr": lambda az, one, two: az.autocorr(_mu(one)),
    "autocov": lambda az, one, two: az.autocov(_mu(one)),
    "bayes_factor": {"var_name": "mu"},
    "bfmi": {},
    "compare": lambda az, one, two: az.compare({"one": one, "two": two}),
    "ess": {},
    "hdi": {},
    "kde": lambda az, one, two: az.kde(_mu(one)),
    "loo": {},
    "loo_pit": {"y": "y"},
    "mcse": {},
    "psens": {},
    "psislw": lambda az, one, two: az.psislw(_log_ratios(one)),
    "r2_samples": lambda az, one, two: az.r2_samples(_observed(one), _replicates(one)),
    "r2_score": lambda az, one, two: az.r2_score(_observed(one), _replicates(one)),
    "rhat": {},
    "smooth_data": lambda az, one, two: az.smooth_data(_observed(one), _replicates(one)),
    "summary": {},
    "waic": {},
    "weight_predictions": lambda az, one, two: az.weight_predictions([one, two]),
}
OMITTED_BEFORE_1 = {
    "plot_separation": "for binary observations",
    "reloo": "needs an object that refits the model",
    **dict.fromkeys(("create_layout", "output_file", "output_notebook", "show_layout", "to_cds"), "for Bokeh"),
    "ColumnDataSource": "for Bokeh",
    "make_ufunc": "makes functions of functions",
    "wrap_xarray_ufunc": "applies functions",
}

SINCE_1: dict[str, Call] = {
    "combine_plots": lambda az, one, two: az.combine_plots(one, [(az.plot_trace, {}), (az.plot_rank, {})], **_SCALARS),
    "plot_autocorr": {},
    "plot_bf": {"var_names": "mu"},
    "plot_compare": lambda az, one, two: az.plot_compare(az.compare({"one": one, "two": two})),
    "plot_convergence_dist": {},
    "plot_dgof": _SCALARS,
    "plot_dgof_dist": _SCALARS,
    "plot_dist": {},
    "plot_energy": {},
    "plot_ess": {},
    "plot_ess_evolution": _SCALARS,
    "plot_forest": {},
    "plot_khat": lambda az, one, two: az.plot_khat(az.loo(one, pointwise=True)),
    "plot_lm": {"x": "X", "y": "y", "plot_dim": "observation"},
    "plot_loo_interval": {},
    "plot_loo_pit": {},
    "plot_mcse": _SCALARS,
    "plot_pair": {**_SCALARS, "visuals": {"divergence": True}},
    "plot_pair_focus": {"focus_var": "mu"},
    "plot_parallel": _SCALARS,
    "plot_ppc_dist": {},
    "plot_ppc_dist_pit": {},
    "plot_ppc_interval": {},
    "plot_ppc_pit": {},
    "plot_ppc_tstat": {},
    "plot_prior_posterior": _PRIOR_TOO,
    "plot_psense_dist": lambda az, one, two: az.plot_psense_dist(_without_alpha(one), **_SCALARS),
    "plot_psense_quantities": lambda az, one, two: az.plot_psense_quantities(_without_alpha(one), **_SCALARS),
    "plot_rank": {},
    "plot_rank_dist": _SCALARS,
    "plot_ridge": {},
    "plot_trace": {},
    "plot_trace_dist": {},
    "add_bands": lambda az, one, two: az.add_bands(az.plot_dist(one, **_SCALARS), values=[(-1, 1)]),
    "add_lines": lambda az, one, two: az.add_lines(az.plot_dist(one, **_SCALARS), values=[0]),
    "bayes_factor": {"var_names": "mu"},
    "bayesian_r2": lambda az, one, two: az.bayesian_r2(_with_predictions(one), pred_mean="predicted", scale="sigma_n"),
    "bfmi": {},
    "ci_in_rope": {"rope": (-1, 1)},
    "compare": lambda az, one, two: az.compare({"one": one, "two": two}),
    "diagnose": {},
    "ecdf": lambda az, one, two: az.ecdf(one["posterior"].dataset),  # not available for trees
    "ess": {},
    "eti": {},
    "get_log_likelihood": {},
    "hdi": {},
    "hexbin": lambda az, one, two: az.hexbin(_mu(one).flatten(), _mu(two).flatten()),
    "histogram": {},
    "histogram2d": lambda az, one, two: az.histogram2d(_mu(one).flatten(), _mu(two).flatten()),
    "iqr": {},
    "kde": {},
    "kde2d": lambda az, one, two: az.kde2d(_mu(one).flatten(), _mu(two).flatten()),
    "kl_divergence": lambda az, one, two: az.kl_divergence(one, two, num_samples=100),
    "loo": {},
    "loo_expectations": {},
    "loo_i": lambda az, one, two: az.loo_i(0, one),
    "loo_influence": {},
    "loo_metrics": {},
    "loo_pit": {},
    "loo_r2": {"var_name": "y"},
    "loo_score": {},
    "loo_subsample": {"observations": 5},
    "mad": {},
    "mcse": {},
    "mean": {},
    "median": {},
    "metrics": {},
    "mode": {},
    "psense": {},
    "psense_summary": {},
    "qds": {},
    "residual_r2": lambda az, one, two: az.residual_r2(_with_predictions(one), pred_mean="predicted", obs_name="y"),
    "rhat": {},
    "rhat_nested": {"superchain_ids": [0, 1]},
    "std": {},
    "summary": {},
    "thin": {},
    "update_subsample": lambda az, one, two: az.update_subsample(az.loo_subsample(one, 5, pointwise=True), one, 2),
    "var": {},
    "wasserstein": lambda az, one, two: az.wasserstein(one, two, num_samples=100),
    "weight_predictions": lambda az, one, two: az.weight_predictions([one, two]),
}
OMITTED_SINCE_1 = {
    "plot_ecdf_pit": "for the ranks of simulation-based calibration",
    "plot_loo_pava": "for binary observations",
    "plot_ppc_pava": "for binary observations",
    "plot_ppc_pava_residuals": "for binary observations",
    "plot_ppc_rootogram": "for counts",
    "plot_ppc_censored": "for survival times",
    "generate_survival_curves": "for survival times",
    "kaplan_meier": "for survival times",
    "lfo_cv": "needs an object that refits the model, to a time series",
    "loo_kfold": "needs an object that refits the model",
    "reloo": "needs an object that refits the model",
    "loo_moment_match": "needs the log density as a function of unconstrained values",
    "loo_approximate_posterior": "needs the log densities of an approximation and of the posterior",
    "get_function": "returns a function by its name",
}

HAS_TREES = not hasattr(arviz(), "from_datatree")
CALLS, OMITTED = (SINCE_1, OMITTED_SINCE_1) if HAS_TREES else (BEFORE_1, OMITTED_BEFORE_1)


def offered() -> set[str]:
    """Return the names of all plots and statistics of the installed ArviZ."""
    packages = ("arviz.plots.", "arviz.stats.", "arviz_plots.", "arviz_stats.")
    functions = {name: value for name, value in vars(arviz()).items() if isfunction(value)}
    public = {name for name, value in functions.items() if value.__module__.startswith(packages)}
    return {name for name in public if not name.startswith("_")}
