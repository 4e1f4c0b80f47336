"""Stopping policies: correlation matrices, probabilities, the policy kernel, and updates."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from testing_spaces import mixed_space

from slayr_py.kernels import Composite
from slayr_py.kernels.expressions import Leaf, canonical, parse
from slayr_py.search.strategies.correlations import Correlations, relative_distance
from slayr_py.search.strategies.policy import (
    Adam,
    Policies,
    PolicyDistribution,
    PolicyMoments,
    n_policy_parameters,
    policies,
    policy_kernel,
    smoothed_gradient,
)
from slayr_py.search.task import ScoredExpression, Task
from slayr_py.space import Encoder

BASE = tuple(Leaf(name) for name in ("SE", "RQ", "PER", "LIN"))
EXPRESSIONS = ("SE", "LIN", "LIN * LIN", "PER * RQ + LIN", "(SE + LIN) * PER", "SE * SE + C", "LIN * PER * PER + RQ")


def some_task(n=20, space=None, seed=1):
    space = ConfigurationSpace({"x": (0.0, 1.0)}, seed=seed) if space is None else space
    encoder = Encoder(space)
    train = encoder.encode([dict(c) for c in space.sample_configuration(n)])
    return Task(BASE, 6, train, np.sin(7 * train.unit_values[:, 0]), seed=seed)


def evaluation(text, score=0.0, theta=None):
    node = canonical(parse(text))
    return ScoredExpression(node, text, score, theta or {})


def medians(kernel, encoder):
    """Prior medians of an expression whose sums have two terms."""
    values = {}
    for h in kernel.hyperparameters(encoder):
        prior = h.prior
        values[h.name] = np.full(h.shape, 0.5) if h.name == "split" else np.array(prior.mu, dtype=float)
        if h.name not in ("split", "centre"):
            values[h.name] = np.exp(values[h.name])
    return values


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_matrices_at_prior_medians_are_those_of_the_kernel(text):
    task = some_task()
    correlations = Correlations(task)
    kernel = Composite(text)
    points = correlations.points
    wanted = kernel.gram(points, points, medians(kernel, points.encoder))
    np.testing.assert_allclose(correlations.at_medians(parse(text)), wanted, atol=1e-12)
    top = np.linalg.eigvalsh(correlations.normalised(parse(text)))[-1]
    assert top == pytest.approx(1)


def test_terms_have_equal_weights():
    correlations = Correlations(some_task())
    parts = [correlations.at_medians(parse(text)) for text in ("SE", "LIN", "PER * RQ")]
    np.testing.assert_allclose(correlations.at_medians(parse("SE + LIN + PER * RQ")), np.mean(parts, axis=0))


def test_periods_start_at_the_peak_of_the_periodogram():
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0)}))
    x = np.linspace(0, 1, 60)
    train = encoder.encode([{"x": value} for value in x])
    task = Task(BASE, 6, train, np.sin(2 * np.pi * x / 0.125))
    matrix = Correlations(task).at_medians(Leaf("PER"))
    theta = {"lengthscale": [1.0], "period": [0.125]}
    assert relative_distance(matrix, Composite("PER").gram(train, train, theta)) < 0.1


def test_fitted_hyperparameters_are_used_where_known():
    correlations = Correlations(some_task())
    node = canonical(parse("LIN + SE"))
    before = correlations.fitted(node)
    np.testing.assert_array_equal(before, correlations.at_medians(node))
    theta = {"lengthscale": np.array([2.0, 0.3]), "centre": np.array([0.1]), "split": np.array([0.7])}
    fit = ScoredExpression(node, "LIN + SE", 1.0, theta | {"sigma_f": np.array(3.0), "mu": np.array(0.5)})
    correlations.learn([fit, evaluation("RQ")])
    wanted = Composite("LIN + SE").gram(correlations.points, correlations.points, theta)
    np.testing.assert_allclose(correlations.fitted(node), wanted)
    np.testing.assert_array_equal(correlations.fitted(Leaf("RQ")), correlations.at_medians(Leaf("RQ")))


def test_points_are_a_seeded_subset():
    task = some_task(50)
    few = [Correlations(task, max_points=10).points.unit_values for _ in range(2)]
    np.testing.assert_array_equal(*few)
    assert few[0].shape == (10, 1)
    assert set(few[0].ravel()) <= set(task.train.unit_values.ravel())
    assert len(Correlations(task).points) == 50


def draws_of_policies(correlations, m=200, seed=0):
    columns = correlations.points.columns
    gamma = np.random.default_rng(seed).standard_normal((m, n_policy_parameters(columns.shape[1])))
    return policies(gamma, columns)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_networks_by_hand(n_columns):
    rng = np.random.default_rng(2)
    p = n_policy_parameters(n_columns)
    assert p == 2 * (8 * n_columns + 19)
    gamma = rng.normal(size=(2, p))
    columns = rng.random((5, n_columns))
    found = policies(gamma, columns)
    for row in range(2):
        for which, own in enumerate(np.split(gamma[row], 2)):
            hidden = own[: 8 * (n_columns + 1)].reshape(8, -1)
            output = own[8 * (n_columns + 1) : -2]
            for point, value in zip(columns, found.values[row, which], strict=True):
                units = np.tanh(hidden @ np.append(12**0.5 * (point - 0.5), 1) / (n_columns + 1) ** 0.5)
                assert value == pytest.approx(output @ np.append(units, 1) / 3)
            assert found.slope[row, which] == 4 * own[-2]
            assert found.offset[row, which] == own[-1]


@pytest.mark.parametrize("space", [None, mixed_space()])
def test_probabilities(space):
    task = some_task(space=space)
    correlations = Correlations(task)
    drawn = draws_of_policies(correlations)
    rows = np.arange(200)
    plain = Policies(drawn.values, np.ones((200, 2)), np.full((200, 2), 0.5))  # sigmoid(q)
    for text in ("SE", "RQ * RQ", "SE + RQ * MAT52"):
        matrix = correlations.normalised(parse(text))
        sigmoid_of_q = plain.probabilities(rows, matrix)
        assert sigmoid_of_q.min() >= 0.5 and sigmoid_of_q.max() <= 1 / (1 + np.exp(-1))
        mended = drawn.probabilities(rows, matrix)
        assert mended.shape == (200, 2)
        assert mended.min() < 0.2 and mended.max() > 0.8


def test_q_by_hand_and_at_its_limits():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    matrix = root @ root.T
    top = np.linalg.eigh(matrix)
    values = np.stack([[rng.normal(size=6), top[1][:, -1]], [top[1][:, 0], np.zeros(6)]])
    one = Policies(values, np.full((2, 2), 2.0), np.full((2, 2), -1.0))
    v = values[0, 0]
    q = np.array([[v @ matrix @ v / (v @ v * top[0][-1]), 1.0], [top[0][0] / top[0][-1], 0.0]])
    wanted = 1 / (1 + np.exp(-(2 * (q - 0.5) - 1)))
    np.testing.assert_allclose(one.probabilities(np.arange(2), matrix / top[0][-1]), wanted)


def test_the_distribution_starts_with_variance_one():
    distribution = PolicyDistribution(2, [1])
    p = n_policy_parameters(2)
    rng = np.random.default_rng(0)
    z = rng.uniform(-(10**0.5), 10**0.5, (4000, 10))
    moments = distribution.moments(z)
    assert moments.mean.shape == moments.log_sd.shape == (4000, p)
    gamma = moments.draw(rng.standard_normal((4000, p)))
    assert np.mean(gamma[:, [p // 2 - 1, p - 1]]) == pytest.approx(-0.5, abs=0.2)
    assert np.mean(np.var(gamma, axis=0)) == pytest.approx(1, abs=0.15)


def test_updates_lower_a_loss_of_the_moments():
    distribution = PolicyDistribution(1, [1])
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, 10)
    p = n_policy_parameters(1)
    target = rng.normal(size=2 * p) * 0.3

    def loss(points):
        return np.sum((points - target) ** 2, axis=1)

    def at():
        moments = distribution.moments(z[None])
        return np.concatenate([moments.mean[0], moments.log_sd[0]])

    before = loss(at()[None])[0]
    for _ in range(40):
        distribution.update(z, smoothed_gradient(loss, at(), rng))
    assert loss(at()[None])[0] < 0.5 * before


def test_the_antithetic_estimator_is_right_for_quadratics():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5))
    linear = rng.normal(size=5)
    at = rng.normal(size=5)
    matrix = root @ root.T

    def loss(points):
        return np.einsum("ki,ij,kj->k", points, matrix, points) / 2 + points @ linear + 100

    exact = matrix @ at + linear
    estimates = np.array([smoothed_gradient(loss, at, rng, nu=0.7) for _ in range(4000)])
    error = estimates.std(axis=0) / np.sqrt(len(estimates))
    assert np.all(np.abs(estimates.mean(axis=0) - exact) < 4.5 * error)


def random_moments(rng, m, p):
    return PolicyMoments(rng.normal(size=(m, p)), rng.normal(size=(m, p)))


@pytest.mark.parametrize("p", [1, 2, 54])
def test_the_policy_kernel_is_positive_semidefinite(p):
    rng = np.random.default_rng(p)
    for _ in range(20):
        moments = random_moments(rng, 12, p)
        matrix = policy_kernel(moments, moments)
        np.testing.assert_allclose(np.diag(matrix), 1)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-10
    a = random_moments(rng, 1, p)
    b = random_moments(rng, 1, p)
    distance = np.sum((a.mean - b.mean) ** 2 + (a.log_sd - b.log_sd) ** 2)
    assert policy_kernel(a, b)[0, 0] == pytest.approx(np.exp(-distance / (2 * p)))


def test_adam():
    adam = Adam((2,), 0.1)
    np.testing.assert_allclose(adam.step(np.array([3.0, -0.01])), [-0.1, 0.1], atol=1e-6)
    x = np.array([1.0, -2.0])
    adam = Adam((2,), 0.05)
    for _ in range(300):
        x = x + adam.step(2 * x)
    assert np.all(np.abs(x) < 0.05)
