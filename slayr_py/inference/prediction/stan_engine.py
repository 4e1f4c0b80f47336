"""Predictions from the generated quantities of the Stan program."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from slayr_py.inference.model import Model
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.space import Encoded, FloatArray


def predict_in_stan(
    model: Model, train: Encoded, targets: Targets, stored: xr.Dataset, new: Encoded, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (s, m) of the latent function from the program's generated quantities.

    Parameters
    ----------
    stored : Dataset
        Draws of the program's parameters, (chain, draw, ...).
    """
    data = model.stan_data(train, targets.y, new, pointwise=False, y_sd=targets.y_sd)
    data["noise_floor"] = targets.noise_floor
    output = generate(compiled(model.kernel.program), data, coordinate_table(model, stored), seed)
    mean = output[[f"f_mean.{i + 1}" for i in range(len(new))]].to_numpy()
    sd = output[[f"f_sd.{i + 1}" for i in range(len(new))]].to_numpy()
    return mean, sd


def coordinate_table(model: Model, stored: xr.Dataset) -> pd.DataFrame:
    """Return draws of the program's parameters, (chain, draw, ...), as one row per draw, with CmdStan's names."""
    table: dict[str, FloatArray] = {}
    for name, shape in model.parameter_shapes.items():
        values = stored[name].values.reshape(stored.sizes["chain"] * stored.sizes["draw"], -1)
        table |= {f"{name}.{i + 1}" if shape else name: np.asarray(v) for i, v in enumerate(values.T)}
    return pd.DataFrame(table)
