"""Output of a run as groups of labelled arrays, named as ArviZ expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from slayr_py.inference.model import Model
from slayr_py.inference.sampling.output import Run
from slayr_py.kernels import SIGNAL
from slayr_py.space import Encoded, FloatArray

STANDARDISED = "of standardised y; subtract log(abs(constant_data.y_sd)) for the units of the data, as posterior.loo()"
"""Note on the log densities in ``idata``."""


def posterior_groups(
    model: Model, train: Encoded, y: FloatArray, run: Run, y_mean: float, y_sd: float
) -> dict[str, xr.Dataset]:
    """Return the groups of a fit to targets y (n,), standardised with ``y_mean`` and ``y_sd``."""
    constant = {
        "y_mean": y_mean,
        "y_sd": y_sd,
        "X": (("observation", "encoded_column"), train.columns),
        "values": (("observation", "parameter"), train.unit_values),
        "active": (("observation", "parameter"), train.active),
    }
    names = {"encoded_column": _texts(model.encoder.column_names), "parameter": _texts(model.encoder.names)}
    observed = _observed(train)
    posterior = _hyperparameters(model, run)
    return {
        "posterior": posterior,
        "unconstrained_posterior": _hyperparameters(model, run, "z_"),
        "sample_stats": _statistics(run),
        "log_prior": log_prior(model, posterior),
        **pointwise_groups(train, run.variables),
        "observed_data": xr.Dataset({"y": ("observation", y)}, observed),
        "constant_data": xr.Dataset(constant, observed | names),
    }


def log_prior(model: Model, posterior: xr.Dataset) -> xr.Dataset:
    """Return the log prior density of each hyperparameter for every draw, in its own unit.

    A vector with independent entries has a density for each entry. The density of ``sigma_f`` is conditional on the
    kernel's hyperparameters, since its prior describes the function's standard deviation. That of a fixed value is 0.
    The sum of all densities is the joint density.
    """
    reference = model.kernel.reference_variance(model.encoder, flat_draws(model, posterior))
    function_sd = np.sqrt(reference).reshape(posterior.sizes["chain"], posterior.sizes["draw"])
    arrays = {}
    for name, prior in model.priors.items():
        if name in posterior:  # vectors of length 0 are omitted
            is_scaled = name == SIGNAL.name and not model.fixed[name].all()
            factor = function_sd if is_scaled else np.ones(())
            density = prior.log_density(posterior[name].to_numpy() * factor) + np.log(factor)
            arrays[name] = (posterior[name].dims[: density.ndim], density)
    return xr.Dataset(arrays, posterior.coords)


def flat_draws(model: Model, posterior: xr.Dataset) -> dict[str, FloatArray]:
    """Return the hyperparameters of a group by name, (s, ...), with the chains concatenated."""
    draws = {
        str(name): np.ascontiguousarray(values.to_numpy().reshape(-1, *values.shape[2:]))
        for name, values in posterior.data_vars.items()
    }
    # Stan writes no column for an empty vector, such as length-scales of a space without real parameters.
    empty = {h.name: np.zeros((len(draws["mu"]), 0)) for h in model.hyperparameters if h.shape == (0,)}
    return empty | draws


def prior_groups(model: Model, train: Encoded, run: Run) -> dict[str, xr.Dataset]:
    """Return the groups of a run without the likelihood."""
    return {
        "prior": _hyperparameters(model, run),
        "sample_stats_prior": _statistics(run),
        "prior_predictive": _pointwise(train, run.variables["y_rep"]),
    }


def pointwise_groups(train: Encoded, variables: Mapping[str, FloatArray]) -> dict[str, xr.Dataset]:
    """Return the groups of ``log_lik`` and ``y_rep`` (c, s, n); none if the run did not compute them."""
    names = {"log_likelihood": "log_lik", "posterior_predictive": "y_rep"}
    groups = {group: _pointwise(train, variables[name]) for group, name in names.items() if name in variables}
    if "log_likelihood" in groups:
        groups["log_likelihood"]["y"].attrs["note"] = STANDARDISED
    return groups


def _hyperparameters(model: Model, run: Run, prefix: str = "") -> xr.Dataset:
    arrays: dict[str, tuple[tuple[str, ...], FloatArray]] = {}
    coords: dict[str, NDArray[np.str_]] = {}
    for h in model.hyperparameters:
        name = prefix + h.name
        # CmdStan writes no columns for a vector of length 0, and some approximations have no unconstrained draws.
        if (array := run.variables.get(name)) is None:
            continue
        if h.labels is None:
            arrays[name] = (("chain", "draw"), array[..., 0])
        else:
            arrays[name] = (("chain", "draw", h.dimension), array)
            coords[h.dimension] = _texts(h.labels)
    return xr.Dataset(arrays, coords)


def _pointwise(train: Encoded, values: FloatArray) -> xr.Dataset:
    return xr.Dataset({"y": (("chain", "draw", "observation"), values)}, _observed(train))


def _observed(train: Encoded) -> dict[str, NDArray[np.intp]]:
    return {"observation": np.arange(len(train))}


def _texts(labels: tuple[str, ...]) -> NDArray[np.str_]:
    return np.array(labels, dtype=np.str_)


def _statistics(run: Run) -> xr.Dataset:
    """Return sampler statistics with the types that ArviZ expects; without a sampler only the log density."""
    arrays: dict[str, NDArray[Any]] = dict(run.sampler)
    if run.sampler:
        arrays["diverging"] = run.sampler["diverging"] > 0
        arrays |= {name: run.sampler[name].astype(np.int64) for name in ("tree_depth", "n_steps")}
    elif "lp__" in run.variables:
        arrays["lp"] = run.variables["lp__"]
    return xr.Dataset({name: (("chain", "draw"), values) for name, values in arrays.items()})
