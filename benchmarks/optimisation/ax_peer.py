"""Ax, by its client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from benchmarks.common.problems import Problem
from benchmarks.optimisation.told import with_indices
from slayr_py.space import Encoder


class Ax:
    """A client with its default method, "fast": see `benchmarks.optimisation.peers.Optimiser`.

    The method "quality" samples the posterior of BoTorch's SAAS model by NumPyro, which takes too long for these loops.

    Ordinals and categories are choices, whose values are the indices of their levels. Evaluations that it is told count
    as initial trials, of which it wants five: if there are fewer, it suggests the others.
    """

    packages = ("ax-platform", "botorch", "gpytorch", "torch")
    own_design = False
    resumes = False
    conditional = False
    rhat = None

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch
        from ax.api.client import Client

        logging.getLogger("ax").setLevel(logging.ERROR)
        torch.manual_seed(seed)
        self.dimensions = Encoder(problem.space).dimensions
        self.client = Client(random_seed=seed)
        self.client.configure_experiment([self._parameter(d) for d in self.dimensions])
        self.client.configure_optimization("-value")
        self.client.configure_generation_strategy(initialization_random_seed=seed, initialize_with_center=False)
        self.open: int | None = None

    @staticmethod
    def _parameter(dimension: Any) -> Any:
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        if dimension.levels:
            indices = list(range(len(dimension.levels)))
            return ChoiceParameterConfig(dimension.name, indices, "int", is_ordered=dimension.kind == "ordinal")
        kind: Any = "int" if dimension.kind == "integer" else "float"
        scaling: Any = "log" if dimension.log else None
        bounds = (dimension.lower, dimension.upper)
        return RangeParameterConfig(dimension.name, bounds, kind, scaling=scaling)

    def ask(self) -> dict[str, Any]:
        ((self.open, parameters),) = self.client.get_next_trials(max_trials=1).items()
        return {d.name: d.levels[parameters[d.name]] if d.levels else parameters[d.name] for d in self.dimensions}

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        if self.open is None:
            self.open = self.client.attach_trial(with_indices(self.dimensions, params))
        self.client.complete_trial(self.open, {"value": value})
        self.open = None
