"""Call ArviZ by the names of the installed version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from slayr_py.inference.diagnostics.arviz_bridge import arviz

# Names before version 1, and since.
SINCE_VERSION_1 = {
    "plot_ppc": "plot_ppc_dist",
    "plot_posterior": "plot_dist",
    "plot_dist_comparison": "plot_prior_posterior",
}


def panels(name: str, tree: Any, options: Mapping[str, Any]) -> list[plt.Axes]:
    """Draw a plot, given by its name before version 1, and return its axes that are not empty."""
    module = arviz()
    name = name if hasattr(module, name) else SINCE_VERSION_1[name]
    if not isinstance(tree, xr.DataTree) and name == "plot_loo_pit":
        options = {**options, "y": "y"}
    if isinstance(tree, xr.DataTree) and "divergences" in options:
        options = {key: value for key, value in options.items() if key != "divergences"}
        options["visuals"] = {"divergence": True}
    drawn = getattr(module, name)(tree, **options)
    axes = drawn.viz["figure"].item().axes if hasattr(drawn, "viz") else np.ravel(drawn)
    return [each for each in axes if each.lines or each.collections or each.patches]


def elpd_loo(loo: Any) -> float:
    """Return the sum of the log predictive densities from a result of ``loo``."""
    return float(loo.elpd_loo if hasattr(loo, "elpd_loo") else loo.elpd)


def pointwise(loo: Any) -> np.ndarray:
    """Return the log predictive densities (n,) from a result of ``loo``."""
    return np.asarray(loo.loo_i if hasattr(loo, "loo_i") else loo.elpd_i)


def loo_pit(tree: Any, y_hat: xr.DataArray | None = None) -> np.ndarray:
    """Return leave-one-out probability integral transforms (n,), optionally of given replicates (chain, draw, n)."""
    module = arviz()
    if y_hat is not None:
        tree = tree.copy()
        tree.posterior_predictive["y"] = y_hat
    if isinstance(tree, xr.DataTree):
        return np.asarray(module.loo_pit(tree)["y"])
    return np.asarray(module.loo_pit(tree, y="y"))
