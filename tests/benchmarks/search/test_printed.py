"""The generative strategy as printed: what its generator lacks."""

from __future__ import annotations

import numpy as np

from benchmarks.search.printed import embedding_without_input
from slayr_py.kernels.expressions import Leaf
from slayr_py.search.strategies.generator import Embedding, Generator, Noise, draw_coordinates

BASE = tuple(Leaf(name) for name in ("SE", "RQ", "PER", "LIN"))


def test_the_printed_generator_repeats_symbols():
    generator = Generator(4)
    z = draw_coordinates(400, np.random.default_rng(0))
    noise = Noise.draw([[0, i] for i in range(400)], 10, 4)
    never = lambda rows, trajectories: np.zeros((len(rows), 2))  # noqa: E731
    repeats = []
    distinct = []
    for embedding, temperature in [
        (embedding_without_input(generator, [0]), 0.0),
        (Embedding.draw(generator.scales, [0]), 1.0),
    ]:
        trajectories = generator.generate(embedding.weights(z), noise, never, temperature)
        repeats.append(np.mean([len(set(terms[0])) == 1 for terms in trajectories]))
        distinct.append(len(set(trajectories)))
    assert 0.63 < repeats[0] < 0.98 and repeats[1] < 0.15
    assert distinct[1] > 5 * distinct[0]
