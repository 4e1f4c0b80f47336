"""The recurrent generator: weights, noise, stops."""

from __future__ import annotations

import numpy as np
import pytest

from slayr_py.search.strategies.generator import (
    BOX,
    COORDINATES,
    Embedding,
    Generator,
    Noise,
    draw_coordinates,
)


def never(rows, trajectories):
    return np.zeros((len(rows), 2))


def sequences(generator, m=400, length=10, seed=0, stopping=never):
    embedding = Embedding.draw(generator.scales, [seed])
    z = draw_coordinates(m, np.random.default_rng(seed))
    noise = Noise.draw([[seed, i] for i in range(m)], length, generator.n_symbols)
    return generator.generate(embedding.weights(z), noise, stopping)


@pytest.mark.parametrize(("n_symbols", "wanted"), [(4, 394), (7, 442)])
def test_number_of_weights(n_symbols, wanted):
    assert len(Generator(n_symbols).scales) == wanted


def test_one_step_by_hand():
    generator = Generator(3)
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(1, len(generator.scales)))
    noise = Noise.draw([[5]], 4, 3)
    matrices = []
    at = 0
    for rows, columns in generator.shapes:
        matrices.append(weights[0, at : at + rows * columns].reshape(rows, columns))
        at += rows * columns

    def unit(matrices, values):
        for matrix in matrices[:4]:
            values = np.maximum(matrix @ np.append(values, 1), 0)
        return [matrix @ np.append(values, 1) for matrix in matrices[4:]]

    secondary = np.tanh(unit(matrices[:6], np.zeros(8))[1])
    wanted = []
    symbol = np.zeros(3)
    for factor in range(4):
        state, logits = unit(matrices[6:], np.append(secondary, symbol))
        wanted.append(int(np.argmax(logits + 0.5 * noise.gumbel[0, 0, factor])))
        secondary = np.tanh(state)
        symbol = np.eye(3)[wanted[-1]]
    assert generator.generate(weights, noise, never, temperature=0.5) == [(tuple(wanted),)]


def test_weights_have_the_scales_of_he():
    generator = Generator(4)
    z = draw_coordinates(2000, np.random.default_rng(3))
    assert z.shape == (2000, COORDINATES) and np.abs(z).max() <= BOX
    weights = Embedding.draw(generator.scales, [1]).weights(z) / generator.scales
    assert weights.shape == (2000, 394)
    assert np.abs(weights).max() <= 2
    assert np.sqrt(np.mean(weights**2)) == pytest.approx(1, abs=0.12)


def test_a_seed_fixes_the_trajectories():
    generator = Generator(4)
    assert sequences(generator, m=50) == sequences(generator, m=50)
    assert sequences(generator, m=50) != sequences(generator, m=50, seed=1)


def test_a_trajectory_does_not_depend_on_the_others():
    generator = Generator(4)
    weights = Embedding.draw(generator.scales, [1]).weights(draw_coordinates(6, np.random.default_rng(1)))
    seeds = [[9, i] for i in range(6)]
    half = lambda rows, trajectories: np.full((len(rows), 2), 0.4)  # noqa: E731
    together = generator.generate(weights, Noise.draw(seeds, 8, 4), half)
    alone = [generator.generate(weights[[i]], Noise.draw([seeds[i]], 8, 4), half)[0] for i in range(6)]
    assert together == alone


def test_symbols_of_a_term_vary():
    for seed in range(3):
        trajectories = sequences(Generator(4), seed=seed)
        assert np.mean([len(set(terms[0])) == 1 for terms in trajectories]) < 0.15


def test_stops_end_terms_and_expressions():
    after_two = lambda rows, found: np.array([[len(f[-1]) == 2, len(f) == 3] for f in found], float)  # noqa: E731
    for terms in sequences(Generator(4), m=20, stopping=after_two):
        assert [len(term) for term in terms] == [2, 2, 2]
    once = lambda rows, found: np.ones((len(rows), 2))  # noqa: E731
    assert {len(terms[0]) for terms in sequences(Generator(4), m=20, stopping=once)} == {1}


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_no_trajectory_is_longer_than_the_noise(p):
    always = lambda rows, found: np.tile([p, 0.0], (len(rows), 1))  # noqa: E731
    found = sequences(Generator(5), m=60, length=6, stopping=always)
    assert all(sum(map(len, terms)) == 6 and all(terms) for terms in found)


def test_a_shorter_term_keeps_its_symbols():
    generator = Generator(4)
    whole = sequences(generator, m=30, length=8)
    cut = lambda rows, found: np.array([[len(f[-1]) == 3, 1.0] for f in found])  # noqa: E731
    shorter = sequences(generator, m=30, length=8, stopping=cut)
    assert [terms[0][:3] for terms in whole] == [terms[0] for terms in shorter]
