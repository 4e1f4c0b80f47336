"""The generative strategy on fake scores: proposals, hindsight, the model of scores, and the end of a search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_spaces import mixed_space

from slayr_py.errors import DataError
from slayr_py.kernels.expressions import Leaf, Product, Sum, canonical, leaves, parse, spell
from slayr_py.search.strategies.correlations import Correlations, relative_distance
from slayr_py.search.strategies.generative import Choice, GenerativeSearch, generative
from slayr_py.search.strategies.generator import Noise, draw_coordinates
from slayr_py.search.strategies.policy import PolicyDistribution, policy_kernel
from slayr_py.search.strategies.score_model import ScoreModel, standardise
from slayr_py.search.strategies.trajectories import trajectory_node, truncations
from slayr_py.search.task import ScoredExpression, Task
from slayr_py.space import Encoder

BASE = tuple(Leaf(name) for name in ("SE", "RQ", "PER", "LIN"))


def some_task(base=BASE, max_leaves=8, seed=1, batch=4, space=None, n=20):
    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=1) if space is None else space
    train = Encoder(space).encode([dict(c) for c in space.sample_configuration(n)])
    return Task(base, max_leaves, train, np.sin(7 * train.unit_values[:, 0]), batch=batch, seed=seed)


class FakeScores:
    """Scores an expression by its distance to a target."""

    def __init__(self, task, target="LIN * RQ + PER"):
        self.matrices = Correlations(task)
        self.target = self.matrices.at_medians(canonical(parse(target)))

    def __call__(self, candidate):
        score = -relative_distance(self.matrices.at_medians(candidate.node), self.target)
        return ScoredExpression(candidate.node, candidate.expression, score)


def run(task, budget=60, score=None, **settings):
    """Candidates of each round and all evaluations of a search."""
    score = score or FakeScores(task)
    strategy = generative(task, **settings)
    rounds = []
    evaluations = []
    batch = next(strategy, None)
    while batch is not None:
        rounds.append(batch)
        found = [score(candidate) for candidate in batch]
        evaluations += found
        if len(evaluations) >= budget:
            strategy.close()
            break
        try:
            batch = strategy.send(found)
        except StopIteration:
            break
    return rounds, evaluations


def test_every_candidate_is_new_canonical_and_small_enough():
    for seed in range(3):
        task = some_task(max_leaves=5, seed=seed)
        rounds, evaluations = run(task, draws=300)
        texts = [one.expression for one in evaluations]
        assert len(texts) == len(set(texts)) >= 60
        for step, candidates in enumerate(rounds):
            assert len(candidates) >= task.batch
            for one in candidates:
                assert one.step == step
                assert len(leaves(one.node)) <= task.max_leaves
                assert one.node == canonical(one.node)


def test_a_seed_fixes_the_search():
    texts = [[one.expression for one in run(some_task(seed=seed), 30, draws=200)[1]] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_parents_are_shorter_and_known():
    rounds, _ = run(some_task(), draws=200)
    known: dict[str, int] = {}
    parents = 0
    for candidates in rounds:
        for one in candidates:
            if one.parent is not None:
                parents += 1
                assert known[one.parent] < len(leaves(one.node))
        known |= {one.expression: len(leaves(one.node)) for one in candidates}
    assert parents > 10


def test_scores_improve():
    gains = []
    for seed in range(3):
        scores = [one.score for one in run(some_task(seed=seed), 60, draws=300)[1]]
        gains.append(max(scores) - max(scores[:8]))
    assert np.mean(gains) > 0.03


def expressions(base, most):
    """All canonical sums of products of at most `most` leaves."""
    products = [factors for n in range(1, most + 1) for factors in itertools.product(base, repeat=n)]
    found = set()
    for n in range(1, most + 1):
        for terms in itertools.combinations_with_replacement(products, n):
            if sum(map(len, terms)) <= most:
                nodes = [Product(factors) if len(factors) > 1 else factors[0] for factors in terms]
                found.add(spell(canonical(Sum(tuple(nodes)) if n > 1 else nodes[0])))
    return found


@pytest.mark.parametrize(("n_symbols", "most"), [(1, 1), (2, 3)])
def test_a_search_ends_when_everything_is_known(n_symbols, most):
    task = some_task(BASE[:n_symbols], most)
    _, evaluations = run(task, budget=1000, draws=400)
    assert {one.expression for one in evaluations} == expressions(task.base, most)


def test_failed_fits_do_not_stop_it():
    def score(candidate):
        fails = "PER" in candidate.expression
        value = -np.inf if fails else -float(len(leaves(candidate.node)))
        return ScoredExpression(candidate.node, candidate.expression, value)

    rounds, evaluations = run(some_task(), 40, score, draws=200)
    failed = {one.expression for one in evaluations if one.score == -np.inf}
    assert 0 < len(failed) < len(evaluations)
    assert not failed & {one.parent for candidates in rounds for one in candidates}

    def all_fail(candidate):
        return ScoredExpression(candidate.node, candidate.expression, -np.inf)

    assert len(run(some_task(), 30, all_fail, draws=200)[1]) >= 30


def test_fitted_hyperparameters_reach_the_policies():
    task = some_task(BASE[:1], 1)
    search = GenerativeSearch(task, 10, 8)
    rounds = search.rounds()
    (candidate,) = next(rounds)
    theta = {"lengthscale": np.array([5.0]), "sigma_f": np.array(2.0), "sigma_n": np.array(0.1)}
    with pytest.raises(StopIteration):
        rounds.send([ScoredExpression(candidate.node, "SE", 0.0, theta)])
    assert search.correlations.fitted(Leaf("SE")).min() > 0.95 > search.correlations.at_medians(Leaf("SE")).min()


def test_mixed_spaces_and_leaves_of_single_parameters():
    base = (Leaf("SE"), Leaf("MAT52"), Leaf("SE", ("act",)), Leaf("PER", ("lr",)), Leaf("LIN", ("size",)))
    task = some_task(base, 4, space=mixed_space())
    _, evaluations = run(task, 40, FakeScores(task, "SE[act] * LIN[size] + MAT52"), draws=200)
    assert {leaf for one in evaluations for leaf in leaves(one.node)} == set(base)


@pytest.mark.parametrize("name", ["draws", "most_truncations"])
def test_numbers_below_one(name):
    with pytest.raises(DataError, match=name):
        generative(some_task(), **{name: 0})


def searched(n_rounds=6, draws=60):
    """A search after some rounds."""
    task = some_task()
    search = GenerativeSearch(task, draws, 4)
    score = FakeScores(task)
    rounds = search.rounds()
    candidates = next(rounds)
    for _ in range(n_rounds):
        candidates = rounds.send([score(one) for one in candidates])
    rounds.close()
    return search


def test_the_choice_has_the_best_expected_improvement_of_all_new_expressions():
    search = searched()
    choice = search._choose((99, 0), [], {})
    seed = choice.seed[:-1]
    z = draw_coordinates(60, np.random.default_rng(seed))
    improvement = search._improvement(z, [])
    order = np.argsort(-improvement, kind="stable")
    new = [spell(search.node(one.trajectory)) not in search.known for one in search._decode(z[order], seed)]
    assert np.any(z[order[np.argmax(new)]] == choice.z) and choice.seed[-1] == np.argmax(new)
    assert np.ptp(improvement) > 0
    again = search._choose((99, 0), [], {spell(search.node(choice.trajectory)): None})
    assert again.seed != choice.seed


def test_pending_coordinates_are_less_promising():
    search = searched()
    z = draw_coordinates(60, np.random.default_rng(1))
    place = np.argmax(search._improvement(z, []))
    before, after = (search._improvement(z, pending)[place] for pending in ([], [z[place]]))
    assert after < before


def test_number_of_truncations():
    rounds, _ = run(some_task(batch=1), 30, draws=200, most_truncations=1)
    assert {len(candidates) for candidates in rounds} == {1}
    rounds, _ = run(some_task(batch=1), 60, draws=200)
    assert 4 < max(len(candidates) for candidates in rounds) <= 8


def test_trajectories_as_expressions():
    assert spell(trajectory_node(((1,), (0, 0, 3)), BASE)) == "LIN * SE + RQ"
    assert trajectory_node(((2,),), BASE) == Leaf("PER")


@pytest.mark.parametrize(("lengths", "wanted"), [((3,), 3), ((3, 2, 2), 21), ((4, 4, 4), 84)])
def test_truncations(lengths, wanted):
    symbols = itertools.count()
    trajectory = tuple(tuple(itertools.islice(symbols, n)) for n in lengths)
    found = list(truncations(trajectory))
    assert len(found) == len(set(found)) == wanted
    sizes = [sum(map(len, one)) for one in found[: sum(lengths)]]
    assert found[0] == trajectory and sizes == list(range(sum(lengths), 0, -1))
    for one in found:
        assert all(term == whole[: len(term)] and term for term, whole in zip(one, trajectory, strict=False))


@pytest.mark.parametrize("long", [False, True])
def test_the_policies_learn_the_length_of_the_best_truncation(long):
    search = GenerativeSearch(some_task(), 10, 8)
    z = np.random.default_rng(3).uniform(-3, 3, 10)
    choice = Choice(z, (5,), 0.5, ())
    noise = Noise.draw([choice.seed], 8, 4).with_stops(Noise.draw([(8, i) for i in range(100)], 8, 4).uniform)
    scores = np.random.default_rng(1).standard_normal((100, search.distribution.moments(z[None]).mean.shape[1]))

    def found():
        moments = search.distribution.moments(np.tile(z, (100, 1)))
        return search.generate(np.tile(z, (100, 1)), moments.draw(scores), noise, 0.5)

    whole = max(found(), key=lambda one: sum(map(len, one)))
    best = trajectory_node(whole if long else (whole[0][:1],), BASE)

    def mean_distance():
        matrices = search.correlations
        target = matrices.fitted(best)
        return np.mean([relative_distance(matrices.fitted(trajectory_node(one, BASE)), target) for one in found()])

    before = mean_distance()
    for i in range(25):
        search._update_policy(choice, best, np.random.default_rng(i))
    assert mean_distance() < 0.75 * before


def test_standardised_scores():
    values = standardise([3.0, 1.0, 2.0, -np.inf, 4.0, 5.0, -1e9])
    unit = (3.75 - 1.25) / 1.349
    np.testing.assert_allclose(values[[0, 4]], [0.5 / unit, 1.5 / unit])
    assert values[3] == values[6] == -3
    np.testing.assert_array_equal(standardise([-np.inf, -np.inf]), [0, 0])
    np.testing.assert_array_equal(standardise([2.0, 2.0]), [0, 0])
    np.testing.assert_allclose(standardise([0.0, 0, 0, 0, 1])[-1], 1 / 0.4)


def test_the_model_of_scores_is_a_gaussian_process():
    rng = np.random.default_rng(0)
    distribution = PolicyDistribution(1, [1])
    z = rng.uniform(-3, 3, (30, 10))
    new = rng.uniform(-3, 3, (5, 10))
    moments = distribution.moments(z)
    others = distribution.moments(new)
    scores = np.sin(z[:, 0]) + 0.1 * rng.normal(size=30)
    model = ScoreModel(z, moments, scores)

    def covariance(a, of_a, b, of_b):
        squares = np.sum((a[:, None] - b) ** 2, axis=2)
        return model.variance * np.exp(-squares / (2 * model.lengthscale**2)) * policy_kernel(of_a, of_b)

    k = covariance(z, moments, z, moments) + model.variance * model.noise * np.eye(30)
    cross = covariance(new, others, z, moments)
    mean, sd = model.predict(new, others)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(k, scores), atol=1e-10)
    wanted = model.variance - np.einsum("ij,ji->i", cross, np.linalg.solve(k, cross.T))
    np.testing.assert_allclose(sd**2, wanted, atol=1e-10)


def test_the_model_of_scores_finds_structure_and_noise():
    rng = np.random.default_rng(0)
    distribution = PolicyDistribution(1, [1])
    z = rng.uniform(-3, 3, (60, 10))
    moments = distribution.moments(z)
    smooth = ScoreModel(z, moments, z @ rng.normal(size=10))
    noise = ScoreModel(z, moments, rng.normal(size=60))
    assert smooth.lengthscale > 3 and smooth.noise == 0.01
    assert noise.noise >= 0.3 or noise.lengthscale < 1
