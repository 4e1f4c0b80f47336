"""The generative strategy as printed: what its generator, its policy and its searches lack."""

from __future__ import annotations

import numpy as np
from ConfigSpace import ConfigurationSpace

from benchmarks.search.kernel_searches import kernel_search
from benchmarks.search.printed import PrintedSearch, embedding_without_input
from slayr_py.kernels.expressions import Leaf
from slayr_py.search.strategies.generator import Embedding, Generator, Noise, draw_coordinates
from slayr_py.search.strategies.policy import n_policy_parameters, policies
from slayr_py.search.task import Evaluation, Task
from slayr_py.space import Encoder

SPACE = ConfigurationSpace({"x": (0.0, 1.0)})
BASE = tuple(Leaf(name) for name in ("SE", "RQ", "PER", "LIN"))


def search(n):
    train = Encoder(SPACE).encode(np.random.default_rng(1).random((n, 1)))
    return PrintedSearch(Task(BASE, 8, train, np.sin(7 * train.unit_values[:, 0])))


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


def test_the_printed_policy_stops_at_least_every_other_time_and_grows_with_the_number_of_points():
    saturated = []
    for n in (10, 100):
        printed = search(n)
        columns = printed.correlations.points.columns
        gamma = np.random.default_rng(0).standard_normal((200, n_policy_parameters(1)))
        probability = printed.stop_probabilities(policies(gamma, columns), np.arange(200), BASE[0])
        assert probability.min() >= 0.5
        saturated.append(np.mean(probability > 1 - 1e-6))
    assert saturated[1] > saturated[0] + 0.2


def test_the_printed_search_ends_early():
    rounds = search(60).rounds()
    batch = next(rounds)
    expressions = []
    while batch:
        expressions += [candidate.expression for candidate in batch]
        try:
            batch = rounds.send([Evaluation(one.node, one.expression, float(len(one.expression))) for one in batch])
        except StopIteration:
            break
    assert len(expressions) < 20


def test_it_is_a_strategy_of_the_benchmarks():
    assert kernel_search(SPACE, "printed", 1, base=["SE"], budget=4, restarts=1, jobs=1).strategy == "printed"
