"""The generative strategy with the generator and the stopping policy of its source as printed.

The generator has no input and no noise, so most of its terms repeat one symbol. The probability of stopping is
sigmoid(v'K v), with the correlation matrix K of what has been generated and the policy v at the points; it is at least
1/2 and grows with the number of points. `docs/kernel-search.md` lists the formulas that slayr_py changes.

References
----------
Hoang & Kingsford 2020, *Optimizing Dynamic Structures with Bayesian Generative Search*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from slayr_py.kernels.expressions import Node
from slayr_py.search.strategies.generative import GenerativeSearch
from slayr_py.search.strategies.generator import COORDINATES, WIDTH, Embedding, Generator, Noise, Trajectory
from slayr_py.search.strategies.policy import Policies
from slayr_py.search.task import Rounds, Task

DRAWS = 2000
MOST_TRUNCATIONS = 8


def printed(task: Task) -> Rounds:
    """Search by the formulas as printed."""
    return PrintedSearch(task).rounds()


class PrintedSearch(GenerativeSearch):
    """State of a search by the formulas as printed."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, DRAWS, MOST_TRUNCATIONS)
        self.embedding = embedding_without_input(self.generator, [task.seed, 1])

    def generate(self, z: np.ndarray, gamma: np.ndarray, noise: Noise, temperature: float) -> list[Trajectory]:
        """Return the trajectories at coordinates (m, d), each symbol having the largest logit."""
        return super().generate(z, gamma, noise, temperature=0.0)

    def stop_probabilities(self, some: Policies, rows: np.ndarray, node: Node) -> np.ndarray:
        """Return the probabilities (r, 2) of stopping after a factor and after a term."""
        values = some.values[rows]
        return np.asarray(expit(np.einsum("rpn,rpn->rp", values @ self.correlations.at_medians(node), values)))


def embedding_without_input(generator: Generator, seed: Sequence[int]) -> Embedding:
    """Draw an embedding whose weights of the symbols that a unit reads are 0."""
    blocks = [np.ones(shape, dtype=bool) for shape in generator.shapes]
    for first in (blocks[0], blocks[len(blocks) // 2]):
        first[:, WIDTH:-1] = False
    used = np.concatenate([block.ravel() for block in blocks])
    drawn = Embedding.draw(np.full(np.count_nonzero(used), np.sqrt(2 / (WIDTH + 1))), seed)
    matrix = np.zeros((len(used), COORDINATES))
    matrix[used] = drawn.matrix
    bound = np.zeros(len(used))
    bound[used] = drawn.bound
    return Embedding(matrix, bound)
