"""Save ArviZ's figures of a posterior, with any supported version of ArviZ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from slayr_py.inference import Posterior, save_plot

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
