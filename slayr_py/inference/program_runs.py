"""Runs of the fitted program once more: its own predictions from stored draws, and draws without the likelihood."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from slayr_py.inference.model import Model
from slayr_py.inference.output import Run
from slayr_py.inference.programs import compiled
from slayr_py.inference.run import generate, run
from slayr_py.space import Encoded
from slayr_py.space.dimension import FloatArray


def draw_prior(model: Model, train: Encoded, y: FloatArray, *, draws: int, chains: int, warmup: int, seed: int) -> Run:
    """Draws of NUTS with the likelihood off; ``y_rep`` is of the prior predictive distribution at ``train``.

    Targets y (n,) play no part but for ``log_lik``.
    """
    return run(
        compiled(model.kernel.program),
        model.stan_data(train, y, train[:0], prior_only=True),
        "nuts",
        seed=seed,
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_acceptance=0.8,
        max_treedepth=10,
        ess=None,
    )


def predict_in_stan(
    model: Model, train: Encoded, y: FloatArray, stored: xr.Dataset, new: Encoded, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations (s, m) of the latent function by the program's generated quantities.

    Parameters
    ----------
    stored : Dataset
        Draws of the program's parameters, (chain, draw, ...).
    """
    table: dict[str, FloatArray] = {}
    for name, shape in model.parameter_shapes.items():
        values = stored[name].values.reshape(stored.sizes["chain"] * stored.sizes["draw"], -1)
        table |= {f"{name}.{i + 1}" if shape else name: np.asarray(v) for i, v in enumerate(values.T)}
    output = generate(compiled(model.kernel.program), model.stan_data(train, y, new), pd.DataFrame(table), seed)
    mean = output[[f"f_mean.{i + 1}" for i in range(len(new))]].to_numpy()
    sd = output[[f"f_sd.{i + 1}" for i in range(len(new))]].to_numpy()
    return mean, sd
