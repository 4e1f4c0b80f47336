"""The strategy "generative": Bayesian optimisation over the weights of a generator of expressions (DTerGenS).

Coordinates z give the weights of the generator (:mod:`slayr_py.search.generator`) and the distribution of its stopping
policies (:mod:`slayr_py.search.policy`). Each round chooses the z with the best expected improvement whose expression
is new. It proposes that expression and truncations of its trajectory. The best of them, in hindsight, is what the
policies at z should have generated: their distribution makes a step towards it.

References
----------
Hoang & Kingsford 2020, *Optimizing Dynamic Structures with Bayesian Generative Search*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from slayr_py.arguments import check_integer
from slayr_py.kernels.expressions import Leaf, Node, add, canonical, leaves, multiply, spell
from slayr_py.search.generator import (
    BOX,
    Embedding,
    Generator,
    Noise,
    StopProbabilities,
    Trajectory,
    draw_coordinates,
)
from slayr_py.search.policy import (
    Correlations,
    Moments,
    Policies,
    PolicyDistribution,
    policies,
    policy_kernel,
    relative_distance,
    smoothed_gradient,
    squared_distances,
)
from slayr_py.search.surrogate import expected_improvement
from slayr_py.search.task import Candidate, Rounds, Task
from slayr_py.space import FloatArray

# Two trajectories of one z, with different noise, agree in 40% of the symbols at 1, in 55% at 0.5, in 75% at 0.25.
# Below 0.5 searches found worse expressions.
_TEMPERATURE = 0.5
_WIDENINGS = 5  # doublings of the temperature until a search without new expressions ends
_FIRST_UPDATE = 5  # known expressions before the first update of the policies
_POLICY_DRAWS = 4  # draws of gamma for each value of the loss
_SMALLEST_BLOCK = 4
_LARGEST_BLOCK = 64  # the noise of 64 trajectories of 64 leaves and 44 symbols takes 90 MB
_LENGTHSCALES = BOX * np.array([0.25, 0.5, 1.0, 2.0, 4.0])
_NOISE_VARIANCES = (0.01, 0.1, 0.3, 1.0, 3.0)  # relative to the signal's
_WORST = -3.0  # bound of standardised scores below


def generative(
    task: Task,
    argmax: bool = False,
    printed_policy: bool = False,
    embedding: str = "gaussian",
    draws: int = 2000,
    most_truncations: int = 8,
) -> Rounds:
    """Search by a recurrent generator with learned stops, and Bayesian optimisation over its weights.

    A round has the truncations of one trajectory, and of further ones until there are ``task.batch`` candidates; the
    model of scores believes its own mean for those before. The search ends when no draw of z, at noise that is doubled
    five times, leads to a new expression.

    Parameters
    ----------
    task : Task
    argmax : bool
        Use the document's generator, without feedback and noise.
    printed_policy : bool
        Use the document's probabilities of stopping. Most of its expressions have one or two leaves.
    embedding : {"gaussian", "count sketch"}
        Weights as a function of z.
    draws : int
        Number of z for each choice. They are decoded from the best expected improvement on, until one is new. This is
        the choice that decoding all would make: measured, 12 ms for the first four against 3 s for all 2,000.
    most_truncations : int
        Largest number of truncations of a trajectory that are tried, itself included; at least 1.

    Raises
    ------
    DataError
        For an unknown embedding or a number below 1.

    Notes
    -----
    Measured without the fits: 1 s for 100 candidates, with 4 or 44 base kernels.

    With eight truncations of each, 100 fits are about 15 trajectories, too few for the model of scores in ten
    coordinates. With a fake score, the distance of correlation matrices from a target (48 searches), the strategy was
    as good as with z drawn at random, and worse than draws from a grammar. ``most_truncations=2`` was better up to 20
    fits.
    """
    check_integer("draws", draws, 1)
    check_integer("most_truncations", most_truncations, 1)
    return _Search(task, argmax, printed_policy, embedding, draws, most_truncations).rounds()


@dataclass(frozen=True)
class _Choice:
    """Coordinates z (d,), the seed and temperature of the noise, and the trajectory that they lead to."""

    z: FloatArray
    seed: tuple[int, ...]
    temperature: float
    trajectory: Trajectory


class _Search:
    """State of a search."""

    def __init__(
        self, task: Task, argmax: bool, printed_policy: bool, embedding: str, draws: int, most_truncations: int
    ) -> None:
        self.task = task
        self.printed_policy = printed_policy
        self.draws = draws
        self.most_truncations = most_truncations
        self.generator = Generator(len(task.base), argmax)
        self.embedding = Embedding.draw(self.generator.scales, [task.seed, 1], embedding)
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
            evaluations = yield [Candidate(node) for node in self.task.first]
            self.known |= {one.expression: one.score for one in evaluations}
            self.correlations.learn(evaluations)
        for step in itertools.count():
            choices, candidates = self._propose(step)
            if not candidates:
                return
            evaluations = yield candidates
            self.known |= {one.expression: one.score for one in evaluations}
            self.correlations.learn(evaluations)
            for number, choice in enumerate(choices):
                self._learn(choice, (step, number))

    def _node(self, trajectory: Trajectory) -> Node:
        """Return the canonical expression of a trajectory."""
        return trajectory_node(trajectory, self.task.base)

    def _propose(self, step: int) -> tuple[list[_Choice], list[Candidate]]:
        """Return the choices of a round and their candidates."""
        choices: list[_Choice] = []
        candidates: dict[str, Candidate] = {}
        while len(candidates) < self.task.batch:
            choice = self._choose((step, len(choices)), [one.z for one in choices], candidates)
            if choice is None:
                break
            choices.append(choice)
            nodes = self._truncations(choice.trajectory)
            new = {spell(node): node for node in nodes if spell(node) not in self.known}
            for text, node in new.items():
                candidates.setdefault(text, Candidate(node, self._parent(node, nodes), step))
        return choices, list(candidates.values())

    def _truncations(self, trajectory: Trajectory) -> list[Node]:
        """Return the distinct expressions of the first truncations of a trajectory, its own first."""
        # Truncations can be equal in canonical form: SE * SE is SE.
        few = itertools.islice(truncations(trajectory), 10 * self.most_truncations)
        return list(dict.fromkeys(map(self.node, few)))[: self.most_truncations]

    def _parent(self, node: Node, nodes: Sequence[Node]) -> str | None:
        """Return the longest known truncation that is shorter than an expression."""
        n = len(leaves(node))
        shorter = [one for one in nodes if len(leaves(one)) < n and np.isfinite(self.known.get(spell(one), -np.inf))]
        return spell(max(shorter, key=lambda one: len(leaves(one)))) if shorter else None

    def _choose(
        self, number: tuple[int, int], pending: Sequence[FloatArray], candidates: dict[str, Candidate]
    ) -> _Choice | None:
        """Return the coordinates of the best expected improvement with a new expression; None if there are none."""
        while self.widenings <= _WIDENINGS:
            seed = (self.task.seed, 3, *number, self.widenings)
            z = draw_coordinates(self.draws, np.random.default_rng(seed))
            for choice in self._decoded(z[np.argsort(-self._improvement(z, pending), kind="stable")], seed):
                text = spell(self.node(choice.trajectory))
                if text not in self.known and text not in candidates:
                    return choice
            self.widenings += 1
        return None

    def _decoded(self, z: FloatArray, seed: tuple[int, ...]) -> Iterator[_Choice]:
        """Yield the trajectories of coordinates in order, decoded in blocks."""
        temperature = _TEMPERATURE * 2.0**self.widenings
        start = 0
        size = _SMALLEST_BLOCK
        while start < len(z):
            block = z[start : start + size]
            seeds = [(*seed, start + i) for i in range(len(block))]
            moments = self.distribution.moments(block)
            scores = np.stack([_normal_scores(one, moments.mean.shape[1]) for one in seeds])
            gamma = moments.draw(scores * 2.0**self.widenings)
            noise = Noise.draw(seeds, self.task.max_leaves, len(self.task.base))
            for i, trajectory in enumerate(self._generate(block, gamma, noise, temperature)):
                yield _Choice(block[i], seeds[i], temperature, trajectory)
            start = start + size
            size = min(2 * size, _LARGEST_BLOCK)

    def _generate(self, z: FloatArray, gamma: FloatArray, noise: Noise, temperature: float) -> list[Trajectory]:
        """Return the trajectories at coordinates (m, d) with parameters (m, P) of the policies."""
        stopping = self._stopping(policies(gamma, self.correlations.points.columns))
        return self.generator.generate(self.embedding.weights(z), noise, stopping, temperature)

    def _stopping(self, of_rows: Policies) -> StopProbabilities:
        """Return the probabilities of stopping of some policies as a function of what was generated."""

        def stopping(rows: NDArray[np.int64], trajectories: Sequence[Trajectory]) -> FloatArray:
            places: dict[Trajectory, list[int]] = {}
            for place, trajectory in enumerate(trajectories):
                places.setdefault(trajectory, []).append(place)
            probability = np.empty((len(rows), 2))
            for trajectory, where in places.items():
                node = self.node(trajectory)
                matrix = (self.correlations.at_medians if self.printed_policy else self.correlations.normalised)(node)
                probability[where] = of_rows.probabilities(rows[where], matrix, self.printed_policy)
            return probability

        return stopping

    def _improvement(self, z: FloatArray, pending: Sequence[FloatArray]) -> FloatArray:
        """Return the expected improvement at coordinates (m, d); 0 without scores."""
        if len(self.chosen) < 2:
            return np.zeros(len(z))
        observed = np.stack(self.chosen)
        scores = standardised(self.scores)
        model = ScoreModel(observed, self.distribution.moments(observed), scores)
        if pending:
            more = np.stack(pending)
            believed = model.predict(more, self.distribution.moments(more))[0]
            observed = np.vstack([observed, more])
            scores = np.append(scores, believed)
            model = ScoreModel(observed, self.distribution.moments(observed), scores)
        # The best mean, not the best score: scores of one z vary with the noise of the trajectory.
        best = model.predict(observed, self.distribution.moments(observed))[0].max()
        return expected_improvement(*model.predict(z, self.distribution.moments(z)), float(best))

    def _learn(self, choice: _Choice, number: tuple[int, int]) -> None:
        """Add the score of a choice, and make a step of the policies towards its best truncation."""
        self.chosen.append(choice.z)
        self.scores.append(self.known[spell(self.node(choice.trajectory))])
        nodes = self._truncations(choice.trajectory)
        best = max(nodes, key=lambda node: self.known.get(spell(node), -np.inf))
        if len(self.known) >= _FIRST_UPDATE and np.isfinite(self.known.get(spell(best), -np.inf)):
            self._update_policy(choice, best, np.random.default_rng([self.task.seed, 4, *number]))

    def _update_policy(self, choice: _Choice, best: Node, rng: np.random.Generator) -> None:
        """Make the policies at the coordinates of a choice more likely to generate something like an expression."""
        target = self.correlations.fitted(best)
        moments = self.distribution.moments(choice.z[None])
        at = np.concatenate([moments.mean[0], moments.log_sd[0]])
        own = Noise.draw([choice.seed], self.task.max_leaves, len(self.task.base))
        # The same random numbers for every point: differences of losses vary less.
        scores = rng.standard_normal((_POLICY_DRAWS, len(at) // 2))
        uniform = rng.random((_POLICY_DRAWS, *own.uniform.shape[1:]))

        def loss(points: FloatArray) -> FloatArray:
            k = len(points)
            mean, log_sd = np.split(np.repeat(points, _POLICY_DRAWS, axis=0), 2, axis=1)
            gamma = Moments(mean, log_sd).draw(np.tile(scores, (k, 1)))
            noise = own.with_stops(np.tile(uniform, (k, 1, 1, 1)))
            z = np.tile(choice.z, (k * _POLICY_DRAWS, 1))
            found = self._generate(z, gamma, noise, choice.temperature)
            distances = {one: relative_distance(self.correlations.fitted(self.node(one)), target) for one in set(found)}
            return np.asarray(np.reshape([distances[one] for one in found], (k, _POLICY_DRAWS)).mean(axis=1))

        self.distribution.update(choice.z, smoothed_gradient(loss, at, rng))


def trajectory_node(trajectory: Trajectory, base: Sequence[Leaf]) -> Node:
    """Return the canonical expression of a trajectory, a sum of products of base kernels."""
    total: Node | None = None
    for term in trajectory:
        product: Node = base[term[0]]
        for symbol in term[1:]:
            product = multiply(product, base[symbol])
        total = product if total is None else add(total, product)
    assert total is not None
    return canonical(total)


def truncations(trajectory: Trajectory) -> Iterator[Trajectory]:
    """Yield truncations of a trajectory: itself, then its prefixes from the longest on, then the others.

    A truncation has the first terms, and of each of them the first factors.
    """
    n_terms = len(trajectory)
    for m in range(n_terms, 0, -1):
        for n in range(len(trajectory[m - 1]), 0, -1):
            yield (*trajectory[: m - 1], trajectory[m - 1][:n])
    for m in range(n_terms, 1, -1):
        for lengths in itertools.product(*(range(len(term), 0, -1) for term in trajectory[:m])):
            if any(n < len(term) for n, term in zip(lengths[:-1], trajectory, strict=False)):
                yield tuple(term[:n] for n, term in zip(lengths, trajectory, strict=False))


class ScoreModel:
    """Gaussian process of standardised scores over z, squared exponential times the policy kernel.

    Length-scale and noise have the largest marginal likelihood on a grid, with the variance at its optimum. The model
    has to be made again when the policies have moved, since their kernel has changed.

    Parameters
    ----------
    z : (n, d) float64
    moments : Moments
        Of the policies at z.
    scores : (n,) float64
        From :func:`standardised`.
    """

    def __init__(self, z: FloatArray, moments: Moments, scores: FloatArray) -> None:
        self._z = z
        self._moments = moments
        distances = squared_distances(z, z)
        of_policies = policy_kernel(moments, moments)
        best = -np.inf
        for lengthscale, noise in itertools.product(_LENGTHSCALES, _NOISE_VARIANCES):
            matrix = np.exp(-distances / (2 * lengthscale**2)) * of_policies + noise * np.eye(len(z))
            factor = cho_factor(matrix, lower=True)
            weights = cho_solve(factor, scores)
            variance = max(float(scores @ weights) / len(z), 1e-12)
            value = -0.5 * len(z) * np.log(variance) - np.log(np.diag(factor[0])).sum()
            if value > best:
                best = value
                self.lengthscale = float(lengthscale)
                self.noise = noise
                self.variance = variance
                self._factor = factor
                self._weights = weights

    def predict(self, z: FloatArray, moments: Moments) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation without noise at coordinates (m, d), (m,) each."""
        cross = np.exp(-squared_distances(z, self._z) / (2 * self.lengthscale**2))
        cross *= policy_kernel(moments, self._moments)
        scaled = solve_triangular(self._factor[0], cross.T, lower=True)
        variance = self.variance * np.maximum(1 - np.sum(scaled**2, axis=0), 0)
        return cross @ self._weights, np.sqrt(variance)


def standardised(scores: Sequence[float]) -> FloatArray:
    """Return scores minus their median, divided by their interquartile range / 1.349, and at least -3.

    A failed fit, -inf, counts as -3. If more than half of the scores are equal, the unit is their standard deviation.
    """
    values = np.array(scores, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return np.zeros(len(values))
    quartiles = np.quantile(finite, [0.25, 0.75])
    unit = (quartiles[1] - quartiles[0]) / 1.349 or float(np.std(finite)) or 1.0
    return np.maximum(np.where(np.isfinite(values), (values - np.median(finite)) / unit, _WORST), _WORST)


def _normal_scores(seed: Sequence[int], n: int) -> FloatArray:
    # The last number keeps these apart from the noise of the same trajectory.
    return np.random.default_rng([*seed, 1]).standard_normal(n)
