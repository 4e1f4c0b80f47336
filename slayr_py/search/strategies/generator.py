"""Recurrent generator of expressions: two nested networks, and their weights as a function of a few coordinates.

The primary unit has one step for every term of a sum of products, the secondary unit one for every factor of a term.
Both have four hidden ReLU layers and a state h. The primary unit emits the first state of the secondary unit (tanh),
the secondary unit the logits of the next symbol, the place of a base kernel in ``Task.base``. The secondary unit reads
the last symbol, the primary unit the mean symbol of the last term. Symbols are sampled: the next one has the largest
logit plus Gumbel noise, which is fixed for a trajectory. The source's generator has neither input nor noise, and most
of its terms repeat one symbol.

Symbols
-------
m : trajectories; S : symbols; W : weights; d : coordinates of the embedding; L : largest number of leaves.

References
----------
Hoang & Kingsford 2020, *Optimizing Dynamic Structures with Bayesian Generative Search* (generator).
Wang et al. 2016, *Bayesian optimization in a billion dimensions via random embeddings* (embedding).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.space import FloatArray

WIDTH = 5
"""Size of the states and of the hidden layers."""

HIDDEN_LAYERS = 4  # ReLU layers of each unit

COORDINATES = 10
"""Coordinates of the embedding, d."""

BOX = float(np.sqrt(COORDINATES))
"""Coordinates are in [-BOX, BOX], the box of Wang et al."""

_CLIP = 2.0  # standard deviations at which a weight is clipped

Trajectory = tuple[tuple[int, ...], ...]
"""Symbols of the factors of each term, in the order in which they were generated."""

StopProbabilities = Callable[[NDArray[np.int64], Sequence[Trajectory]], FloatArray]
"""Maps the rows of r trajectories and their expressions so far to the probabilities (r, 2) of stopping the term after
its last factor, and the expression after its last term."""


@dataclass(frozen=True)
class Noise:
    """Random numbers of m trajectories, indexed by term and factor.

    Attributes
    ----------
    gumbel : (m, L, L, S) float64
        Added to the logits.
    uniform : (m, L, L, 2) float64
        A term or an expression stops if its number is below the probability.
    """

    gumbel: FloatArray
    uniform: FloatArray

    @classmethod
    def draw(cls, seeds: Sequence[Sequence[int]], max_leaves: int, n_symbols: int) -> Noise:
        """Draw the noise of trajectories with the given seeds."""
        generators = [np.random.default_rng([*seed]) for seed in seeds]
        shape = (max_leaves, max_leaves)
        return cls(
            np.stack([rng.gumbel(size=(*shape, n_symbols)) for rng in generators]),
            np.stack([rng.random((*shape, 2)) for rng in generators]),
        )

    def with_stops(self, uniform: FloatArray) -> Noise:
        """Return the noise of a single trajectory with m other numbers for its stops, (m, L, L, 2)."""
        return Noise(np.broadcast_to(self.gumbel, (len(uniform), *self.gumbel.shape[1:])), uniform)


@dataclass(frozen=True)
class Generator:
    """Architecture of the generator; the weights are an argument.

    Weights are one vector: the matrices of the primary unit, then of the secondary unit, row by row. A unit has a
    matrix for each of its four hidden layers, for the state and for the emission. The last column of each is the
    bias. With four symbols there are 200 + 194 = 394 weights.

    Attributes
    ----------
    n_symbols : int
        Number of base kernels, S.
    """

    n_symbols: int

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of each matrix."""
        hidden = [(WIDTH, WIDTH + self.n_symbols + 1), *[(WIDTH, WIDTH + 1)] * (HIDDEN_LAYERS - 1)]
        return tuple(
            shape
            for n_emitted in (WIDTH, self.n_symbols)
            for shape in (*hidden, (WIDTH, WIDTH + 1), (n_emitted, WIDTH + 1))
        )

    @property
    def scales(self) -> FloatArray:
        """Standard deviations of the weights by the rule of He et al. 2015, sqrt(2 / inputs), (W,)."""
        return np.concatenate([np.full(rows * columns, np.sqrt(2 / columns)) for rows, columns in self.shapes])

    def generate(
        self, weights: FloatArray, noise: Noise, stopping: StopProbabilities, temperature: float = 1.0
    ) -> list[Trajectory]:
        """Generate a trajectory for each vector of weights.

        Parameters
        ----------
        weights : (m, W) float64
        noise : Noise
            Of m trajectories. Its size L is the largest number of leaves.
        stopping : callable
            See `StopProbabilities`.
        temperature : float
            Factor of the Gumbel noise.

        Returns
        -------
        list of m trajectories
        """
        walk = _Walk(self, weights, noise.gumbel, temperature)
        terms: list[list[list[int]]] = [[] for _ in weights]
        active = np.arange(len(weights))
        starts = np.ones(len(weights), dtype=bool)
        for _ in range(noise.gumbel.shape[1]):
            walk.start_terms(starts)
            symbols = walk.next_symbols()
            for row in active:
                if starts[row]:
                    terms[row].append([])
                terms[row][-1].append(int(symbols[row]))
            probability = stopping(active, [_frozen(terms[row]) for row in active])
            stops = noise.uniform[active, walk.term[active], walk.factor[active]] < probability
            starts = np.zeros(len(weights), dtype=bool)
            starts[active] = stops[:, 0]
            active = active[~(stops[:, 0] & stops[:, 1])]
            if not len(active):
                break
        return [_frozen(each) for each in terms]


class _Walk:
    """States of m trajectories; rows that have ended are updated too and ignored."""

    def __init__(self, generator: Generator, weights: FloatArray, gumbel: FloatArray, temperature: float) -> None:
        m = len(weights)
        n_symbols = generator.n_symbols
        ends = np.cumsum([rows * columns for rows, columns in generator.shapes])
        blocks = np.split(weights, ends[:-1], axis=1)
        matrices = [block.reshape(m, *shape) for block, shape in zip(blocks, generator.shapes, strict=True)]
        self.primary_weights = matrices[: len(matrices) // 2]
        self.secondary_weights = matrices[len(matrices) // 2 :]
        self.gumbel = gumbel
        self.temperature = temperature
        self.primary = np.zeros((m, WIDTH))
        self.secondary = np.zeros((m, WIDTH))
        self.last = np.zeros((m, n_symbols))  # one-hot of the last symbol; 0 at the start of a term
        self.total = np.zeros((m, n_symbols))  # number of each symbol in the term
        self.term = np.full(m, -1)
        self.factor = np.full(m, -1)

    def start_terms(self, rows: NDArray[np.bool_]) -> None:
        """Make a step of the primary unit in some rows."""
        mean = self.total / np.maximum(self.total.sum(axis=1, keepdims=True), 1)
        state, emitted = self._step(self.primary_weights, self.primary, mean)
        chosen = rows[:, None]
        self.primary = np.where(chosen, state, self.primary)
        self.secondary = np.where(chosen, np.tanh(emitted), self.secondary)
        self.last = np.where(chosen, 0, self.last)
        self.total = np.where(chosen, 0, self.total)
        self.term = self.term + rows
        self.factor = np.where(rows, -1, self.factor)

    def next_symbols(self) -> NDArray[np.int64]:
        """Make a step of the secondary unit in all rows."""
        self.secondary, logits = self._step(self.secondary_weights, self.secondary, self.last)
        self.factor = self.factor + 1
        # Rows that have ended may be past the last place.
        places = np.minimum([self.term, self.factor], self.gumbel.shape[1] - 1)
        logits = logits + self.temperature * self.gumbel[np.arange(len(logits)), places[0], places[1]]
        symbols: NDArray[np.int64] = np.argmax(logits, axis=1)
        self.last = np.eye(logits.shape[1])[symbols]
        self.total = self.total + self.last
        return symbols

    def _step(
        self, matrices: Sequence[FloatArray], state: FloatArray, read: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the next state, and the emission before its activation."""
        *hidden, to_state, to_emission = matrices
        values = np.hstack([state, read])
        for matrix in hidden:
            values = np.maximum(_affine(matrix, values), 0)
        return np.tanh(_affine(to_state, values)), _affine(to_emission, values)


@dataclass(frozen=True)
class Embedding:
    """Weights of a generator as a function of coordinates z in [-BOX, BOX]^d, d = `COORDINATES`.

    Weights have the scales of the generator when z is uniform on the box.

    Attributes
    ----------
    matrix : (W, d) float64
    bound : (W,) float64
        Absolute values at which weights are clipped.
    """

    matrix: FloatArray
    bound: FloatArray

    @classmethod
    def draw(cls, scales: FloatArray, seed: Sequence[int]) -> Embedding:
        """Draw an embedding of standard normals for weights with the given standard deviations (W,)."""
        rng = np.random.default_rng([*seed])
        rows = rng.standard_normal((len(scales), COORDINATES)) / np.sqrt(COORDINATES)
        # Each coordinate has the variance BOX^2 / 3.
        return cls(rows * (np.sqrt(3) / BOX * scales)[:, None], _CLIP * scales)

    def weights(self, z: FloatArray) -> FloatArray:
        """Return the weights (m, W) at coordinates (m, d)."""
        return np.clip(z @ self.matrix.T, -self.bound, self.bound)


def draw_coordinates(n: int, rng: np.random.Generator) -> FloatArray:
    """Draw n points uniformly from the box of coordinates, (n, d)."""
    return rng.uniform(-BOX, BOX, (n, COORDINATES))


def _affine(matrix: FloatArray, values: FloatArray) -> FloatArray:
    """Return matrix (m, out, in + 1) times values (m, in) and a constant 1, (m, out)."""
    return np.asarray(np.einsum("moi,mi->mo", matrix[:, :, :-1], values) + matrix[:, :, -1])


def _frozen(terms: Sequence[Sequence[int]]) -> Trajectory:
    return tuple(tuple(term) for term in terms)
