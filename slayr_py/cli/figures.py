"""Save ArviZ's figures of a posterior, with any supported version of ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from slayr_py.inference import Posterior
from slayr_py.inference.diagnostics.arviz_bridge import arviz, to_arviz

_MOST_IN_PAIRS = 8  # a figure with more variables is illegible


def save_posterior_figures(post: Posterior, folder: Path) -> list[Path]:
    """Save ``trace.png`` and ``pair.png``, or nothing for a point estimate.

    Positive hyperparameters are drawn on a log10 scale because their posteriors have long tails.

    Parameters
    ----------
    post : Posterior
    folder : Path
        An existing folder.

    Returns
    -------
    list of Path
        The files.
    """
    if post.n_draws < 5:
        return []
    import matplotlib

    module, dataset = arviz(), _drawable(post)
    names = [str(name) for name in dataset.data_vars]
    entries = sum(dataset[name][0, 0].size for name in names)
    paired = names if entries <= _MOST_IN_PAIRS else [name for name in names if dataset[name].ndim == 2]
    figures: dict[str, tuple[Callable[..., Any], list[str]]] = {
        "trace": (getattr(module, "plot_trace_dist", module.plot_trace), names),
        "pair": (module.plot_pair, paired),
    }
    tree = to_arviz(xr.DataTree.from_dict({"posterior": dataset}))
    written = []
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    try:
        # ArviZ warns of future versions and missing fonts, not of this posterior. By default it draws only 40 panels,
        # and from version 1 on none if there are more.
        with warnings.catch_warnings(), module.rc_context({"plot.max_subplots": None}):
            warnings.simplefilter("ignore")
            for name, (plot, variables) in figures.items():
                path = folder / f"{name}.png"
                _save(plot(tree, var_names=variables), path)
                written.append(path)
    finally:
        matplotlib.use(before)
    return written


def _drawable(post: Posterior) -> xr.Dataset:
    dataset = post.idata["posterior"].to_dataset()
    positive = [name for name, prior in post.model.priors.items() if prior.support == "positive"]
    return xr.Dataset(
        {
            f"log10 {name}" if name in positive else name: np.log10(v) if name in positive else v
            for name, v in dataset.items()
        }
    )


def _save(drawn: Any, path: Path) -> None:
    if hasattr(drawn, "savefig"):  # a PlotCollection of ArviZ 1.x
        drawn.savefig(path)
        return
    import matplotlib.pyplot as plt

    figure = np.ravel(drawn)[0].figure
    figure.set_layout_engine("constrained")
    figure.savefig(path, dpi=100)
    plt.close(figure)
