"""Regression of scores on expressions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slayr_py.search.strategies.surrogate import NOISE, STEEPNESS, Surrogate, targets_of

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(size=(25, 1))
AFFINITY = np.exp(-np.square(POINTS - POINTS.T))


def test_targets_are_standardised_and_bad_scores_count_as_the_median():
    found = targets_of([-1e5, -math.inf, 3.0, 1.0, 2.0])
    assert found.mean() == pytest.approx(0)
    assert found.std() == pytest.approx(1)
    assert found[0] == found[1] == found[3] < found[4] < found[2]
    np.testing.assert_allclose(found, targets_of([-50.0, -51.0, 7.0, 3.0, 5.0]))


def test_targets_without_information_are_zero():
    assert targets_of([2.0, 2.0]).tolist() == [0.0, 0.0]
    assert targets_of([-math.inf] * 3).tolist() == [0.0] * 3
    assert np.isfinite(targets_of([-math.inf] * 3 + [1.0])).all()


def test_predictions_against_dense_algebra():
    targets = np.sin(6 * POINTS[:, 0])
    model = Surrogate(AFFINITY[:20, :20], targets[:20], steepness=7.0, noise=0.1, mean=0.3, scale=2.0)
    similar = np.exp(7 * (AFFINITY - 1))
    inverse = np.linalg.inv(similar[:20, :20] + 0.1 * np.eye(20))
    mean, sd = model.predict(AFFINITY[20:, :20])
    np.testing.assert_allclose(mean, 0.3 + similar[20:, :20] @ inverse @ (targets[:20] - 0.3))
    variance = 4 * (1 - np.diag(similar[20:, :20] @ inverse @ similar[:20, 20:]))
    np.testing.assert_allclose(np.square(sd), variance)


def test_the_fit_maximises_the_marginal_likelihood():
    """Mean and scale are integrated out: a multivariate t density with one degree of freedom."""
    targets = np.sin(6 * POINTS[:, 0])

    def evidence(c, noise):
        covariance = np.exp(c * (AFFINITY - 1)) + noise * np.eye(25) + 1e4  # the variance of the mean
        squares = targets @ np.linalg.solve(covariance, targets)
        return -np.linalg.slogdet(covariance)[1] / 2 - (25 + 1) / 2 * np.log(1 + squares)

    best = max(((c, noise) for c in STEEPNESS for noise in NOISE), key=lambda pair: evidence(*pair))
    found = Surrogate.fit(AFFINITY, targets)
    assert (found.steepness, found.noise) == best


def test_a_believed_expression_is_known_afterwards():
    model = Surrogate.fit(AFFINITY[:20, :20], targets_of(list(np.sin(6 * POINTS[:20, 0]))))
    mean, sd = model.predict(AFFINITY[20:, :20])
    more = model.given(AFFINITY[20, :20], float(mean[0]))
    new_mean, new_sd = more.predict(np.hstack([AFFINITY[20:, :20], AFFINITY[20:, [20]]]))
    np.testing.assert_allclose(new_mean, mean, atol=1e-8)
    assert np.all(new_sd <= sd + 1e-12)
