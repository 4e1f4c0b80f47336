"""Affinities of expressions: Hellinger distances of the functions that they describe."""

from __future__ import annotations

import numpy as np
from testing_search import task

from slayr_py.kernels.expressions import canonical, parse
from slayr_py.search.expressions import sample_expression
from slayr_py.search.strategies.affinity import N_POINTS, NOISE_VARIANCE, Affinities


def affinities(seed=1, dimensions=2, n=40) -> Affinities:
    search = task(dimensions=dimensions, n=n)
    return Affinities(search.train, search.y, {}, seed)


def nodes(*texts):
    return [canonical(parse(text)) for text in texts]


def drawn(count, dimensions=2):
    base = task(dimensions=dimensions).base
    rng = np.random.default_rng(4)
    return list(dict.fromkeys(sample_expression(rng, base, 5) for _ in range(count)))


def test_the_dense_formula():
    found = affinities()
    a, b = nodes("SE[x1] * PER + LIN", "MAT52 + RQ[x2]")
    wanted = []
    for one, other in zip(found.covariance(a), found.covariance(b), strict=True):
        top = np.linalg.det(one) ** 0.25 * np.linalg.det(other) ** 0.25
        wanted.append(top / np.linalg.det((one + other) / 2) ** 0.5)
    np.testing.assert_allclose(found.between([a], [b]), np.mean(wanted), rtol=1e-10)


def test_at_most_so_many_points_are_used():
    assert len(affinities(n=5).points) == 5
    assert len(affinities(n=N_POINTS + 10).points) == N_POINTS


def test_equal_leaves_share_their_draws():
    found = affinities()
    noise = NOISE_VARIANCE * np.eye(N_POINTS)
    linear, smooth, both = (found.covariance(node) - noise for node in nodes("LIN", "SE[x1]", "LIN * SE[x1]"))
    np.testing.assert_allclose(both, linear * smooth, atol=1e-12)
    twice = found.covariance(parse("RQ * RQ")) - noise
    assert not np.allclose(twice, np.square(found.covariance(parse("RQ")) - noise))


def test_matrices_are_positive_semidefinite():
    found = affinities()
    expressions = drawn(40)
    matrix = found.between(expressions, expressions)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(np.diag(matrix), 1)
    assert np.all((matrix > 0) & (matrix <= 1 + 1e-12))
    for one in (matrix, np.exp(30 * (matrix - 1))):
        assert np.linalg.eigvalsh(one)[0] > -1e-10


def test_values_do_not_depend_on_the_order_of_questions():
    expressions = drawn(12)
    together = affinities().between(expressions, expressions)
    found = affinities()
    rows = [found.between([node], expressions[::-1])[0, ::-1] for node in reversed(expressions)]
    np.testing.assert_allclose(together, rows[::-1], rtol=1e-12)
    assert not np.allclose(together, affinities(seed=2).between(expressions, expressions))
    assert found.between([], expressions).shape == (0, len(expressions))
