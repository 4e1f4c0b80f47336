"""What an optimiser has been told, if the seed and all of it determine each suggestion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.common.problems import Problem
from slayr_py.space import Encoder


def with_indices(dimensions: Sequence[Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with the indices of levels in place of the levels."""
    return {d.name: d.levels.index(params[d.name]) if d.levels else params[d.name] for d in dimensions}


class Told:
    """Keep the genotype and the value of every evaluation: see `benchmarks.optimisation.peers.Optimiser`."""

    own_design = False
    resumes = True
    conditional = False
    rhat = None

    def __init__(self, problem: Problem, seed: int) -> None:
        self.encoder = Encoder(problem.space)
        self.seed = seed
        self.rows: list[np.ndarray] = []
        self.values: list[float] = []

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        self.rows.append(self.encoder.encode([params]).unit_values[0])
        self.values.append(value)
