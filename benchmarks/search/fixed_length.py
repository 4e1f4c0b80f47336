"""The generative strategy without a stopping policy: every expression has the same number of factors.

Comparison (c) of the source: a term ends at random, the expression when it has a given length, and Bayesian
optimisation over the weights of the generator uses the coordinates z alone (REMBO). Truncations are not tried. In
canonical form an expression can be shorter: SE * SE is SE.

References
----------
Hoang & Kingsford 2020, *Optimizing Dynamic Structures with Bayesian Generative Search*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slayr_py.kernels.expressions import Node
from slayr_py.search.strategies.generative import GenerativeSearch
from slayr_py.search.strategies.generator import Noise, Trajectory
from slayr_py.search.task import Rounds, Task

DRAWS = 2000


class FixedLength:
    """Strategy that searches expressions of ``length`` factors."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, task: Task) -> Rounds:
        return FixedLengthSearch(task, self.length).rounds()


class FixedLengthSearch(GenerativeSearch):
    """State of a search with a fixed length."""

    def __init__(self, task: Task, length: int) -> None:
        super().__init__(task, DRAWS, most_truncations=1)
        self.length = length

    def generate(self, z: np.ndarray, gamma: np.ndarray, noise: Noise, temperature: float) -> list[Trajectory]:
        """Return the trajectories at coordinates (m, d); the parameters of policies do not count."""
        return self.generator.generate(self.embedding.weights(z), noise, self._stops, temperature)

    def _stops(self, rows: NDArray[np.int64], trajectories: Sequence[Trajectory]) -> np.ndarray:
        ends = np.array([sum(map(len, terms)) >= self.length for terms in trajectories])
        return np.stack([np.where(ends, 1.0, 0.5), ends], axis=1)

    def _update_policy(self, choice: object, best: Node, rng: np.random.Generator) -> None:
        """Leave the policies as they are."""
