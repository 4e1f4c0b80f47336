"""Ax, by its client."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from benchmarks.common.problems import Problem
from slayr_py.space import Encoder


class Ax:
    """A client with its default method, "fast": see `benchmarks.optimisation.peers.Optimiser`.

    The method "quality" samples the posterior of BoTorch's SAAS model by NumPyro, which takes too long for these loops.

    Ordinals and categories are choices, whose values are the indices of their levels; those of categories are texts.
    Evaluations that it is told count as initial trials, of which it wants five: if there are fewer, it suggests the
    others.
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

        if dimension.kind == "categorical":
            levels = [str(i) for i in range(len(dimension.levels))]
            return ChoiceParameterConfig(dimension.name, levels, "str", is_ordered=False)
        if dimension.kind == "ordinal":
            return ChoiceParameterConfig(dimension.name, list(range(len(dimension.levels))), "int", is_ordered=True)
        kind: Any = "int" if dimension.kind == "integer" else "float"
        scaling: Any = "log" if dimension.log else None
        bounds = (dimension.lower, dimension.upper)
        return RangeParameterConfig(dimension.name, bounds, kind, scaling=scaling)

    def ask(self) -> dict[str, Any]:
        ((self.open, parameters),) = self.client.get_next_trials(max_trials=1).items()
        return {d.name: d.levels[int(parameters[d.name])] if d.levels else parameters[d.name] for d in self.dimensions}

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        if self.open is None:
            parameters = {d.name: params[d.name] for d in self.dimensions}
            for d in self.dimensions:
                if d.levels:
                    index = d.levels.index(params[d.name])
                    parameters[d.name] = str(index) if d.kind == "categorical" else index
            self.open = self.client.attach_trial(parameters)
        self.client.complete_trial(self.open, {"value": value})
        self.open = None
