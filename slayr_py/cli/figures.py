"""ArviZ's figures of a posterior, saved as files, whichever ArviZ is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from slayr_py.inference import Posterior
from slayr_py.inference.diagnostics.arviz_bridge import save_plot

_MOST_IN_PAIRS = 8  # beyond that a figure of all pairs shows nothing


def save_posterior_figures(post: Posterior, folder: Path) -> list[Path]:
    """Save ``trace.png`` and ``pair.png``; a point estimate has neither.

    Positive hyperparameters are drawn as their logarithms to base 10: their posteriors have long tails.

    Parameters
    ----------
    post : Posterior
        With at least a few draws.
    folder : Path
        Exists.

    Returns
    -------
    list of Path
        What was written.
    """
    if post.n_draws < 5:
        return []
    import matplotlib

    dataset = _drawable(post)
    names = [str(name) for name in dataset.data_vars]
    entries = sum(dataset[name][0, 0].size for name in names)
    paired = names if entries <= _MOST_IN_PAIRS else [name for name in names if dataset[name].ndim == 2]
    written = [folder / "trace.png", folder / "pair.png"]
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    try:
        save_plot("trace", dataset, names, written[0])
        save_plot("pair", dataset, paired, written[1])
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
