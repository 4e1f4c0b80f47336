"""Functions drawn from a posterior: exact at their anchors, consistent elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import kstest

import slayr_py as sl
from slayr_py.inference import functions
from slayr_py.inference.functions import Exact, draw_functions
from slayr_py.inference.sensitivity.inputs import uniform

SQUARE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})


@pytest.fixture(scope="module")
def posterior():
    """A fit that needs no Stan: all observations are inducing points."""
    X = np.random.default_rng(1).random((20, 2))
    y = 5 + 3 * np.sin(6 * X[:, 0]) + X[:, 1]
    gp = sl.GaussianProcess(SQUARE, "MAT32", {"sigma_n": sl.LogNormal(-4, 1)}, inducing=20)
    return gp.fit(X, y, method="laplace", seed=1, maximize=True)


def test_values_at_the_anchors_have_the_joint_distribution_of_the_posterior(posterior):
    rng = np.random.default_rng(2)
    s = posterior.n_draws
    anchors = uniform(posterior.encoder, 16, rng)
    values = draw_functions(posterior, anchors, s, rng, each=20)(anchors)
    assert values.shape == (20 * s, 16)
    latent = ((values - posterior.y_mean) / posterior.y_sd).reshape(s, 20, 16)
    mean, covariance = posterior.predictor().joint_moments(anchors)
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (latent - mean[:, None]).transpose(0, 2, 1))
    scores = whitened.transpose(0, 2, 1).reshape(-1, 16)
    assert min(kstest(column, "norm").pvalue for column in scores.T) > 1e-3
    assert np.abs(np.cov(scores.T) - np.eye(16)).max() < 5 / np.sqrt(len(scores))


def test_values_near_the_anchors_have_the_distribution_of_the_posterior(posterior):
    rng = np.random.default_rng(2)
    anchors = uniform(posterior.encoder, 16, rng)
    new = posterior.encoder.resolve(anchors.unit_values + 1e-4)[0]
    latent = (draw_functions(posterior, anchors, posterior.n_draws, rng)(new) - posterior.y_mean) / posterior.y_sd
    prediction = posterior.predict(new).latent
    assert kstest(((latent - prediction.mean) / prediction.sd).ravel(), "norm").pvalue > 1e-3


def test_functions_interpolate_between_anchors_with_their_conditional_mean(posterior):
    encoder = posterior.encoder
    rng = np.random.default_rng(3)
    anchors = uniform(encoder, 32, rng)
    new = uniform(encoder, 10, rng)
    drawn = draw_functions(posterior, anchors, 3, rng)
    (expansion,) = drawn.expansions
    predictor = posterior.predictor(3)
    mean, covariance = predictor.joint_moments(anchors.concatenate(new))
    values = expansion(anchors.concatenate(new))
    for f, m, K in zip(values, mean, covariance, strict=True):
        expected = m[32:] + K[32:, :32] @ np.linalg.solve(K[:32, :32] + functions.NUGGET * np.eye(32), f[:32] - m[:32])
        np.testing.assert_allclose(f[32:], expected, atol=1e-3)  # the nugget is a noise of 1e-3 at the anchors


def test_lost_variance_decreases_with_anchors(posterior):
    tests = uniform(posterior.encoder, 64, np.random.default_rng(4))
    rng = np.random.default_rng(5)
    lost = [
        draw_functions(posterior, uniform(posterior.encoder, m, rng), 20, rng, tests=tests).lost for m in (4, 32, 256)
    ]
    assert lost[0] > 2 * lost[1] > 4 * lost[2] > 0
    assert draw_functions(posterior, tests, 20, rng, tests=tests).lost < 1e-4


def test_blocks_do_not_change_values(posterior, monkeypatch):
    anchors, new = (uniform(posterior.encoder, m, np.random.default_rng(m)) for m in (8, 30))
    whole = draw_functions(posterior, anchors, 20, np.random.default_rng(1))(new)
    monkeypatch.setattr(functions, "BLOCK", 2000)
    parts = draw_functions(posterior, anchors, 20, np.random.default_rng(1))
    assert len(parts.expansions) > 1 and len(parts) == 20
    np.testing.assert_allclose(parts(new), whole, rtol=1e-9)


def test_an_observation_that_is_an_anchor_is_one_centre(posterior):
    rng = np.random.default_rng(1)
    anchors = posterior.train[:5].concatenate(uniform(posterior.encoder, 3, rng))
    (expansion,) = draw_functions(posterior, anchors, 4, rng, each=2).expansions
    assert len(expansion.centres) == expansion.weights.shape[1] == len(posterior.train) + 3


def test_some_functions_are_evaluated_without_the_draws_of_the_others(posterior, monkeypatch):
    monkeypatch.setattr(functions, "BLOCK", 2000)
    anchors, new = (uniform(posterior.encoder, m, np.random.default_rng(m)) for m in (8, 5))
    drawn = draw_functions(posterior, anchors, 20, np.random.default_rng(1), each=3)
    for rows, most in ((np.arange(4, 7), 6), (np.array([59, 0, 30, 30]), 6), (np.array([8, 7]), 2)):
        few, places = drawn.some(rows)
        assert len(few) <= most
        assert sum(len(one.weights) for one in few.expansions) == len(np.unique(rows // 3)) < 20
        np.testing.assert_allclose(few(new)[places], drawn(new)[rows], rtol=1e-9)


def test_functions_of_a_stack_come_from_its_parts_by_weight(posterior):
    other = sl.GaussianProcess(SQUARE, "SE", inducing=20).fit(
        posterior.train, posterior.targets.y, method="laplace", seed=1
    )
    again = sl.GaussianProcess(SQUARE, "MAT32", inducing=20).fit(
        posterior.train, posterior.targets.y, method="laplace", seed=1
    )
    stack = sl.Posterior.stack([again, other], [0.75, 0.25])
    rng = np.random.default_rng(1)
    drawn = draw_functions(stack, uniform(stack.encoder, 16, rng), 40, rng)
    assert [len(one.weights) for one in drawn.expansions] == [30, 10]
    assert drawn(uniform(stack.encoder, 5, rng)).shape == (40, 5)


def test_functions_are_conditioned_on_an_exact_value(posterior):
    """They change by the posterior covariance with its configuration; the model with noise predicts another value."""
    encoder = posterior.encoder
    anchors = uniform(encoder, 16, np.random.default_rng(3))
    point, others = posterior.train[[4]], uniform(encoder, 10, np.random.default_rng(4))
    before = draw_functions(posterior, anchors, 3, np.random.default_rng(5), each=2)
    after = draw_functions(posterior, anchors, 3, np.random.default_rng(5), each=2, exact=Exact(point, 9.0))
    assert np.abs(before(point) - 9).min() > 0.1
    # Up to the nugget at the value, 1e-9 of the prior variance, which is a tenth of the smallest posterior variance.
    covariance = posterior.predictor(3).joint_moments(point.concatenate(others))[1]
    prior = posterior.kernel.diagonal(point, posterior.predictor(3).draws)[:, 0]
    slope = np.repeat(covariance[:, 0] / (covariance[:, 0, :1] + 1e-9 * prior[:, None]), 2, axis=0)
    both = point.concatenate(others)
    np.testing.assert_allclose(after(both) - before(both), slope * (9 - before(point)), rtol=1e-4, atol=1e-6)
