"""Predictions from the generated quantities of the Stan program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from slayr_py.inference.model import Model
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.space import Encoded, FloatArray


def predict_in_stan(
    model: Model, train: Encoded, targets: Targets, coordinates: Mapping[str, FloatArray], new: Encoded, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (s, m) of the latent function from the program's generated quantities.

    Parameters
    ----------
    coordinates : mapping of str to (c, s, ...) float64
        Draws of the program's parameters.
    """
    data = model.stan_data(train, targets.y, new, pointwise=False, y_sd=targets.errors)
    data["noise_floor"] = targets.noise_floor
    output = generate(compiled(model.kernel.program), data, coordinate_table(coordinates), seed)
    mean, sd = (output[[f"{name}.{i + 1}" for i in range(len(new))]].to_numpy() for name in ("f_mean", "f_sd"))
    return np.ascontiguousarray(mean), np.ascontiguousarray(sd)


def coordinate_table(coordinates: Mapping[str, FloatArray]) -> pd.DataFrame:
    """Return draws of the program's parameters, (c, s, ...), as one row per draw, with CmdStan's names."""
    table: dict[str, FloatArray] = {}
    for name, values in coordinates.items():
        columns = values.reshape(values.shape[0] * values.shape[1], -1).T
        table |= {f"{name}.{i + 1}" if values.ndim > 2 else name: column for i, column in enumerate(columns)}
    return pd.DataFrame(table)
