"""Draws of a fit as plain arrays; ArviZ' groups are built from them when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np
import xarray as xr

from slayr_py.inference.diagnostics.arviz_tree import arviz_tree
from slayr_py.inference.model import Model
from slayr_py.inference.observed import Observed
from slayr_py.inference.records.data_tree import flat_draws, posterior_groups
from slayr_py.inference.sampling.output import Run
from slayr_py.space import FloatArray


@dataclass(frozen=True, eq=False)
class Contents:
    """Draws and scale of a fit.

    The groups of a small fit take longer than a tenth of a suggestion, and a loop reads only the draws.

    Attributes
    ----------
    draws : dict of str to (s, ...) float64
        Hyperparameters by name, with the chains concatenated.
    coordinates : dict of str to (c, s, ...) float64
        The program's parameters by name, without empty ones.
    log_likelihood : (s, n) float64 or None
        Log densities of the standardised observations, with the chains concatenated; None without them.
    acceptance_rate : float
        Mean acceptance statistic of the chains; NaN for a method without chains.
    n_chains : int
        Number of chains; 1 for a method without chains.
    y_mean, y_sd : float
        Moments by which the values were standardised.
    """

    draws: dict[str, FloatArray]
    coordinates: dict[str, FloatArray]
    log_likelihood: FloatArray | None
    acceptance_rate: float
    n_chains: int
    y_mean: float
    y_sd: float
    _build: Callable[[], xr.DataTree]

    @classmethod
    def of_run(cls, observed: Observed, run: Run) -> Self:
        """Return the contents of a run."""
        model = observed.model
        s = run.variables["mu"].size
        # Stan writes no column for an empty vector, such as length-scales of a space without real parameters.
        empty = np.zeros((s, 0))
        draws = {
            h.name: np.ascontiguousarray(run.variables.get(h.name, empty).reshape(s, *h.shape))
            for h in model.hyperparameters
        }
        coordinates = {
            name: run.variables[name].reshape(*run.variables[name].shape[:2], *shape)
            for name, shape in model.parameter_shapes.items()
            if name in run.variables
        }
        acceptance = run.sampler.get("acceptance_rate")
        rate = float("nan") if acceptance is None else float(acceptance.mean())
        build = partial(_tree_of_run, observed, run)
        pointwise = run.variables.get("log_lik")
        log_likelihood = None if pointwise is None else pointwise.reshape(s, -1)
        return cls(draws, coordinates, log_likelihood, rate, run.chains, observed.y_mean, observed.y_sd, build)

    @classmethod
    def of_tree(cls, model: Model, tree: xr.DataTree) -> Self:
        """Return the contents of stored groups."""
        posterior = tree["posterior"].to_dataset()
        coordinates = {}
        if "unconstrained_posterior" in tree.children:
            stored = tree["unconstrained_posterior"].to_dataset()
            for name, shape in model.parameter_shapes.items():
                if name in stored:
                    coordinates[name] = stored[name].values.reshape(*stored[name].shape[:2], *shape)
        statistics = tree["sample_stats"].to_dataset() if "sample_stats" in tree.children else {}
        rate = float(statistics["acceptance_rate"].mean()) if "acceptance_rate" in statistics else float("nan")
        constant = tree["constant_data"].to_dataset()
        log_likelihood = None
        if "log_likelihood" in tree.children:
            pointwise = tree["log_likelihood"].to_dataset()["y"].values
            log_likelihood = pointwise.reshape(-1, pointwise.shape[-1])
        return cls(
            flat_draws(model, posterior),
            coordinates,
            log_likelihood,
            rate,
            int(posterior.sizes["chain"]),
            float(constant["y_mean"]),
            float(constant["y_sd"]),
            partial(_unchanged, tree),
        )

    @cached_property
    def tree(self) -> xr.DataTree:
        """ArviZ' groups."""
        return self._build()


def _tree_of_run(observed: Observed, run: Run) -> xr.DataTree:
    y = np.asarray(observed.data["y"], dtype=np.float64)
    return arviz_tree(posterior_groups(observed.model, observed.train, y, run, observed.y_mean, observed.y_sd))


def _unchanged(tree: xr.DataTree) -> xr.DataTree:
    return tree
