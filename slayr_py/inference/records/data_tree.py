"""What a run wrote as groups of labelled arrays, by the names that ArviZ knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from slayr_py.inference.model import Model
from slayr_py.inference.sampling.output import Run
from slayr_py.space import Encoded
from slayr_py.space.dimension import FloatArray


def posterior_groups(
    model: Model, train: Encoded, y: FloatArray, run: Run, y_mean: float, y_sd: float
) -> dict[str, xr.Dataset]:
    """Groups of a fit to standardised targets y (n,) that had that mean and standard deviation."""
    constant = {
        "y_mean": y_mean,
        "y_sd": y_sd,
        "X": (("observation", "encoded_column"), train.columns),
        "values": (("observation", "parameter"), train.unit_values),
        "active": (("observation", "parameter"), train.active),
    }
    names = {"encoded_column": _texts(model.encoder.column_names), "parameter": _texts(model.encoder.names)}
    observed = _observed(train)
    return {
        "posterior": _hyperparameters(model, run),
        "unconstrained_posterior": _hyperparameters(model, run, "z_"),
        "sample_stats": _statistics(run),
        "log_likelihood": _pointwise(train, run, "log_lik"),
        "posterior_predictive": _pointwise(train, run, "y_rep"),
        "observed_data": xr.Dataset({"y": ("observation", y)}, observed),
        "constant_data": xr.Dataset(constant, observed | names),
    }


def prior_groups(model: Model, train: Encoded, run: Run) -> dict[str, xr.Dataset]:
    """Groups of a run without the likelihood."""
    return {
        "prior": _hyperparameters(model, run),
        "sample_stats_prior": _statistics(run),
        "prior_predictive": _pointwise(train, run, "y_rep"),
    }


def _hyperparameters(model: Model, run: Run, prefix: str = "") -> xr.Dataset:
    labels, dims = model.kernel.labels(model.encoder), model.kernel.dims
    arrays: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name in model.priors:
        # Stan writes nothing of a vector without entries, and no coordinates of what an approximation has none of.
        if (array := run.variables.get(prefix + name)) is None:
            continue
        label = labels.get(name)
        if label is None:
            arrays[prefix + name] = (("chain", "draw"), array[..., 0])
        else:
            arrays[prefix + name] = (("chain", "draw", dims[name]), array)
            coords[dims[name]] = _texts(label)
    return xr.Dataset(arrays, coords)


def _pointwise(train: Encoded, run: Run, name: str) -> xr.Dataset:
    return xr.Dataset({"y": (("chain", "draw", "observation"), run.variables[name])}, _observed(train))


def _observed(train: Encoded) -> dict[str, Any]:
    return {"observation": np.arange(len(train))}


def _texts(labels: tuple[str, ...]) -> Any:
    return np.array(labels, dtype=np.str_)


def _statistics(run: Run) -> xr.Dataset:
    """Sampler statistics with the types that ArviZ expects; the log density of methods without a sampler."""
    arrays: dict[str, Any] = dict(run.sampler)
    if run.sampler:
        arrays["diverging"] = run.sampler["diverging"] > 0
        arrays |= {name: run.sampler[name].astype(np.int64) for name in ("tree_depth", "n_steps")}
    elif "lp__" in run.variables:
        arrays["lp"] = run.variables["lp__"]
    return xr.Dataset({name: (("chain", "draw"), values) for name, values in arrays.items()})
