"""Correlation matrices of expressions at some of the observed points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from slayr_py.kernels import MOST_LEAVES, Composite
from slayr_py.kernels.expressions import Leaf, Node, Sum, spell
from slayr_py.search.task import ScoredExpression, Task
from slayr_py.space import FloatArray

_MOST_POINTS = 128
"""A matrix of 128 points and its largest eigenvalue take 1 ms, one of 256 points 4 ms."""

_KEPT_MATRICES = 512  # 64 MB


class Correlations:
    """Correlation matrices of expressions on a fixed subset of the observed configurations.

    Hyperparameters are prior medians, or fitted ones where known. Terms of a sum have equal weights at prior medians,
    the mean of the uniform distribution on the simplex: unlike medians of the splits they do not depend on the order.

    Parameters
    ----------
    task : Task
    max_points : int
        Largest number of points n; they are drawn by the task's seed.
    """

    def __init__(self, task: Task, max_points: int = _MOST_POINTS) -> None:
        n = len(task.train)
        rows = np.random.default_rng([task.seed, n]).permutation(n)[:max_points]
        self.points = task.train[np.sort(rows)]
        self._task = task
        self._leaves: dict[Leaf, FloatArray] = {}
        self._fitted: dict[str, ScoredExpression] = {}
        self._at_fit = lru_cache(_KEPT_MATRICES)(self._compute_at_fit)
        self.normalised = lru_cache(_KEPT_MATRICES)(self._normalise)

    def learn(self, evaluations: Sequence[ScoredExpression]) -> None:
        """Use the hyperparameters of fits from now on, in :meth:`fitted`."""
        for evaluation in evaluations:
            if evaluation.theta:
                self._fitted.setdefault(evaluation.expression, evaluation)

    def fitted(self, node: Node) -> FloatArray:
        """Return the matrix (n, n) of an expression in canonical form at fitted hyperparameters, or prior medians."""
        text = spell(node)
        return self._at_fit(text) if text in self._fitted else self.at_medians(node)

    def at_medians(self, node: Node) -> FloatArray:
        """Return the matrix (n, n) of an expression at prior medians."""
        if isinstance(node, Leaf):
            if node not in self._leaves:
                self._leaves[node] = self._leaf(node)
            return self._leaves[node]
        matrix: FloatArray
        first, *others = node.terms if isinstance(node, Sum) else node.factors
        matrix = self.at_medians(first)
        for part in others:
            value = self.at_medians(part)
            matrix = matrix + value if isinstance(node, Sum) else matrix * value
        return matrix / (len(others) + 1) if isinstance(node, Sum) else matrix

    def _leaf(self, leaf: Leaf) -> FloatArray:
        kernel = Composite.from_node(leaf, self._task.given)
        informed = kernel.informed_priors(self._task.train, self._task.y)
        medians = {
            h.name: informed.get(h.name, h.prior).at_score(np.zeros(h.shape))
            for h in kernel.hyperparameters(self.points.encoder)
        }
        return kernel.gram(self.points, self.points, medians)

    def _compute_at_fit(self, text: str) -> FloatArray:
        evaluation = self._fitted[text]
        kernel = Composite.from_node(evaluation.node, self._task.given, MOST_LEAVES)
        names = {h.name for h in kernel.hyperparameters(self.points.encoder)}
        return kernel.gram(self.points, self.points, {k: v for k, v in evaluation.theta.items() if k in names})

    def _normalise(self, node: Node) -> FloatArray:
        """Return the matrix of an expression in canonical form at prior medians, divided by its largest eigenvalue."""
        matrix = self.at_medians(node)
        return np.asarray(matrix / np.linalg.eigvalsh(matrix)[-1])


def relative_distance(a: FloatArray, b: FloatArray) -> float:
    """Return the Frobenius norm of a - b divided by the norm of b."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))
