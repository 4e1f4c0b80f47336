"""Results of ArviZ' functions, which differ between versions."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import arviz

HAS_TREES = not hasattr(arviz(), "from_datatree")
"""Whether the installed ArviZ, version 1 or later, uses data trees."""


def axes(drawn: Any) -> list[plt.Axes]:
    """Return the axes of a plot that are not empty; a plot is axes, an array of them, or since version 1 an object."""
    every = drawn.viz["figure"].item().axes if hasattr(drawn, "viz") else np.ravel(drawn)
    return [each for each in every if each.lines or each.collections or each.patches]


def elpd_loo(loo: Any) -> float:
    """Return the sum of the log predictive densities from a result of ``loo``."""
    return float(loo.elpd_loo if hasattr(loo, "elpd_loo") else loo.elpd)


def pointwise(loo: Any) -> np.ndarray:
    """Return the log predictive densities (n,) from a result of ``loo``."""
    return np.asarray(loo.loo_i if hasattr(loo, "loo_i") else loo.elpd_i)


def loo_pit(tree: Any) -> np.ndarray:
    """Return leave-one-out probability integral transforms (n,)."""
    return np.asarray(arviz().loo_pit(tree)["y"] if HAS_TREES else arviz().loo_pit(tree, y="y"))
