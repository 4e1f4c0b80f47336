"""The strategy "generative": Bayesian optimisation over the weights of a generator of expressions (DTerGenS).

Coordinates z give the weights of the generator (:mod:`slayr_py.search.strategies.generator`) and the distribution of
its stopping policies (:mod:`slayr_py.search.strategies.policy`). Each round chooses the z with the best expected
improvement whose expression is new. It proposes that expression and truncations of its trajectory. The distribution of
the policies then makes a step that makes the best of them more likely at z.

References
----------
Hoang & Kingsford 2020, *Optimizing Dynamic Structures with Bayesian Generative Search*.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slayr_py.arguments import check_integer
from slayr_py.inference import expected_positive_part
from slayr_py.kernels.expressions import Node, leaves, spell
from slayr_py.search.strategies.correlations import Correlations, relative_distance
from slayr_py.search.strategies.generator import (
    Embedding,
    Generator,
    Noise,
    StopProbabilities,
    Trajectory,
    draw_coordinates,
)
from slayr_py.search.strategies.policy import Policies, PolicyDistribution, PolicyMoments, policies, smoothed_gradient
from slayr_py.search.strategies.score_model import ScoreModel, standardise
from slayr_py.search.strategies.trajectories import trajectory_node, truncations
from slayr_py.search.task import Candidate, Rounds, Task
from slayr_py.space import FloatArray

# Two trajectories of one z, with different noise, agree in 40% of the symbols at 1, in 55% at 0.5, in 75% at 0.25.
# Below 0.5 searches found worse expressions.
_TEMPERATURE = 0.5
_WIDENINGS = 5  # doublings of the temperature until a search without new expressions ends
_FIRST_UPDATE = 5  # known expressions before the first update of the policies
_POLICY_DRAWS = 4  # draws of gamma for each value of the loss
_SMALLEST_BLOCK = 4  # of the first trajectories, one of which may suffice; each further block is twice as large
_LARGEST_BLOCK = 64  # the noise of 64 trajectories of 64 leaves and 44 symbols takes 90 MB


def generative(task: Task, draws: int = 2000, most_truncations: int = 8) -> Rounds:
    """Search by a recurrent generator with learned stops, and Bayesian optimisation over its weights.

    A round has the truncations of one trajectory, and of further ones until there are ``task.batch`` candidates. The
    model of scores uses its mean as the score of trajectories chosen earlier in the round. The search ends when no
    draw of z, at noise that is doubled five times, leads to a new expression.

    Parameters
    ----------
    task : Task
    draws : int
        Number of z for each choice. They are decoded in the order of expected improvement until an expression is new.
        Decoding all of them leads to the same choice and takes 3 s for 2,000 instead of 12 ms for the first four.
    most_truncations : int
        Largest number of truncations of a trajectory that are tried, itself included; at least 1.

    Raises
    ------
    DataError
        For a number below 1.

    Notes
    -----
    Measured without the fits: 1 s for 100 candidates, with 4 or 44 base kernels.

    With eight truncations of each, 100 fits are about 15 trajectories, too few for the model of scores in ten
    coordinates. With a fake score, the distance of correlation matrices from a target (48 searches), the strategy was
    as good as with z drawn at random, and worse than draws from a grammar. ``most_truncations=2`` was better up to 20
    fits.
    """
    check_integer("draws", draws)
    check_integer("most_truncations", most_truncations)
    return GenerativeSearch(task, draws, most_truncations).rounds()


@dataclass(frozen=True)
class Choice:
    """Coordinates z (d,), the seed and temperature of the noise, and the trajectory that they lead to."""

    z: FloatArray
    seed: tuple[int, ...]
    temperature: float
    trajectory: Trajectory


class GenerativeSearch:
    """State of a search."""

    def __init__(self, task: Task, draws: int, most_truncations: int) -> None:
        self.task = task
        self.draws = draws
        self.most_truncations = most_truncations
        self.generator = Generator(len(task.base))
        self.embedding = Embedding.draw(self.generator.scales, [task.seed, 1])
        self.correlations = Correlations(task)
        self.distribution = PolicyDistribution(task.train.columns.shape[1], [task.seed, 2])
        self.known: dict[str, float] = {}
        self.chosen: list[FloatArray] = []
        self.scores: list[float] = []
        self.widenings = 0
        self.node = lru_cache(10_000)(self._node)

    def rounds(self) -> Rounds:
        """Yield rounds of candidates, after the expressions of an earlier search."""
        if self.task.first:
            yield from self._evaluate([Candidate(node) for node in self.task.first])
        for step in itertools.count():
            choices, candidates = self._propose(step)
            if not candidates:
                return
            yield from self._evaluate(candidates)
            for number, choice in enumerate(choices):
                self._learn(choice, (step, number))

    def generate(self, z: FloatArray, gamma: FloatArray, noise: Noise, temperature: float) -> list[Trajectory]:
        """Return the trajectories at coordinates (m, d) with parameters (m, P) of the policies."""
        stopping = self._stopping(policies(gamma, self.correlations.points.columns))
        return self.generator.generate(self.embedding.weights(z), noise, stopping, temperature)

    def stop_probabilities(self, some: Policies, rows: NDArray[np.int64], node: Node) -> FloatArray:
        """Return the probabilities of stopping (r, 2) of those trajectories that have generated an expression."""
        return some.probabilities(rows, self.correlations.normalised(node))

    def _evaluate(self, candidates: Sequence[Candidate]) -> Rounds:
        """Yield a round, and keep its scores and hyperparameters."""
        evaluations = yield candidates
        self.known |= {evaluation.expression: evaluation.score for evaluation in evaluations}
        self.correlations.learn(evaluations)

    def _node(self, trajectory: Trajectory) -> Node:
        """Return the canonical expression of a trajectory."""
        return trajectory_node(trajectory, self.task.base)

    def _propose(self, step: int) -> tuple[list[Choice], list[Candidate]]:
        """Return the choices of a round and their candidates."""
        choices: list[Choice] = []
        candidates: dict[str, Candidate] = {}
        while len(candidates) < self.task.batch:
            choice = self._choose((step, len(choices)), [chosen.z for chosen in choices], candidates)
            if choice is None:
                break
            choices.append(choice)
            nodes = self._truncations(choice.trajectory)
            new = {spell(node): node for node in nodes if spell(node) not in self.known}
            for text, node in new.items():
                candidates.setdefault(text, Candidate(node, self._parent(node, nodes), step))
        return choices, list(candidates.values())

    def _truncations(self, trajectory: Trajectory) -> list[Node]:
        """Return the distinct expressions of a trajectory and of its first truncations."""
        # Truncations can be equal in canonical form: SE * SE is SE.
        few = itertools.islice(truncations(trajectory), 10 * self.most_truncations)
        return list(dict.fromkeys(map(self.node, few)))[: self.most_truncations]

    def _score(self, node: Node) -> float:
        """Return the score of an expression; -inf if it failed or is unknown."""
        return self.known.get(spell(node), -np.inf)

    def _parent(self, node: Node, nodes: Sequence[Node]) -> str | None:
        """Return the longest known truncation that is shorter than an expression."""
        n = len(leaves(node))
        shorter = [other for other in nodes if len(leaves(other)) < n and np.isfinite(self._score(other))]
        return spell(max(shorter, key=lambda other: len(leaves(other)))) if shorter else None

    def _choose(
        self, number: tuple[int, int], pending: Sequence[FloatArray], candidates: Collection[str]
    ) -> Choice | None:
        """Return the coordinates of the best expected improvement with a new expression; None if there are none."""
        while self.widenings <= _WIDENINGS:
            seed = (self.task.seed, 3, *number, self.widenings)
            z = draw_coordinates(self.draws, np.random.default_rng(seed))
            for choice in self._decode(z[np.argsort(-self._improvement(z, pending), kind="stable")], seed):
                text = spell(self.node(choice.trajectory))
                if text not in self.known and text not in candidates:
                    return choice
            self.widenings += 1
        return None

    def _decode(self, z: FloatArray, seed: tuple[int, ...]) -> Iterator[Choice]:
        """Yield the trajectories of coordinates in order, decoded in blocks."""
        temperature = _TEMPERATURE * 2.0**self.widenings
        start = 0
        size = _SMALLEST_BLOCK
        while start < len(z):
            block = z[start : start + size]
            seeds = [(*seed, start + i) for i in range(len(block))]
            moments = self.distribution.moments(block)
            normals = np.stack([_standard_normals(each, moments.mean.shape[1]) for each in seeds])
            gamma = moments.draw(normals * 2.0**self.widenings)
            noise = Noise.draw(seeds, self.task.max_leaves, len(self.task.base))
            for i, trajectory in enumerate(self.generate(block, gamma, noise, temperature)):
                yield Choice(block[i], seeds[i], temperature, trajectory)
            start = start + size
            size = min(2 * size, _LARGEST_BLOCK)

    def _stopping(self, some: Policies) -> StopProbabilities:
        """Return the probabilities of stopping of some policies as a function of what was generated."""

        def stopping(rows: NDArray[np.int64], trajectories: Sequence[Trajectory]) -> FloatArray:
            places: dict[Trajectory, list[int]] = {}
            for place, trajectory in enumerate(trajectories):
                places.setdefault(trajectory, []).append(place)
            probability = np.empty((len(rows), 2))
            for trajectory, where in places.items():
                probability[where] = self.stop_probabilities(some, rows[where], self.node(trajectory))
            return probability

        return stopping

    def _improvement(self, z: FloatArray, pending: Sequence[FloatArray]) -> FloatArray:
        """Return the expected improvement at coordinates (m, d); 0 without scores."""
        if len(self.chosen) < 2:
            return np.zeros(len(z))
        observed = np.stack(self.chosen)
        scores = standardise(self.scores)
        model = ScoreModel(observed, self.distribution.moments(observed), scores)
        if pending:
            more = np.stack(pending)
            believed = model.predict(more, self.distribution.moments(more))[0]
            observed = np.vstack([observed, more])
            scores = np.append(scores, believed)
            model = ScoreModel(observed, self.distribution.moments(observed), scores)
        # The best mean, not the best score: scores of one z vary with the noise of the trajectory.
        best = model.predict(observed, self.distribution.moments(observed))[0].max()
        mean, sd = model.predict(z, self.distribution.moments(z))
        return expected_positive_part(mean - best, sd)

    def _learn(self, choice: Choice, number: tuple[int, int]) -> None:
        """Add the score of a choice, and make a step of the policies towards its best truncation."""
        self.chosen.append(choice.z)
        self.scores.append(self._score(self.node(choice.trajectory)))
        best = max(self._truncations(choice.trajectory), key=self._score)
        if len(self.known) >= _FIRST_UPDATE and np.isfinite(self._score(best)):
            self._update_policy(choice, best, np.random.default_rng([self.task.seed, 4, *number]))

    def _update_policy(self, choice: Choice, best: Node, rng: np.random.Generator) -> None:
        """Make the policies at the coordinates of a choice more likely to generate something like an expression."""
        target = self.correlations.fitted(best)
        moments = self.distribution.moments(choice.z[None])
        at = np.concatenate([moments.mean[0], moments.log_sd[0]])
        noise = Noise.draw([choice.seed], self.task.max_leaves, len(self.task.base))
        # The same random numbers for every point reduce the variance of differences of losses.
        normals = rng.standard_normal((_POLICY_DRAWS, len(at) // 2))
        uniform = rng.random((_POLICY_DRAWS, *noise.uniform.shape[1:]))

        def loss(points: FloatArray) -> FloatArray:
            k = len(points)
            mean, log_sd = np.split(np.repeat(points, _POLICY_DRAWS, axis=0), 2, axis=1)
            gamma = PolicyMoments(mean, log_sd).draw(np.tile(normals, (k, 1)))
            stops = noise.with_stops(np.tile(uniform, (k, 1, 1, 1)))
            z = np.tile(choice.z, (k * _POLICY_DRAWS, 1))
            drawn = self.generate(z, gamma, stops, choice.temperature)
            matrices = {each: self.correlations.fitted(self.node(each)) for each in set(drawn)}
            distances = {each: relative_distance(matrix, target) for each, matrix in matrices.items()}
            return np.asarray(np.reshape([distances[each] for each in drawn], (k, _POLICY_DRAWS)).mean(axis=1))

        self.distribution.update(choice.z, smoothed_gradient(loss, at, rng))


def _standard_normals(seed: Sequence[int], n: int) -> FloatArray:
    # The last number keeps these apart from the noise of the same trajectory.
    return np.random.default_rng([*seed, 1]).standard_normal(n)
