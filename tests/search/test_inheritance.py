"""Starts of fits: what a parent has, what is new."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import norm

from slayr_py.inference.model import Model
from slayr_py.inference.modes.normal_coordinates import NormalCoordinates
from slayr_py.kernels.expressions import parse
from slayr_py.search.inheritance import Parent, starts

SQUARE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})


def begin(expression, count=3, parent=None, peaks=None, seed=1):
    model = Model(SQUARE, expression)
    scores = NormalCoordinates(model.hyperparameters)
    found = starts(model, scores, count, seed, peaks or {}, parent)
    return found, scores, [dict(zip(scores.entries, z, strict=True)) for z in found]


def parent_of(expression, seed=7):
    """Return a parent with random scores, and the scores by name and label."""
    model = Model(SQUARE, expression)
    scores = NormalCoordinates(model.hyperparameters)
    z = np.random.default_rng(seed).normal(size=scores.size)
    nested = {}
    for (name, label), value in zip(scores.entries, z, strict=True):
        nested.setdefault(name, {})[label] = value
    theta = {name: np.ravel(v).tolist() for name, v in scores.theta(z[None]).items()}
    return Parent(parse(expression), nested, theta), nested


def test_without_a_parent_the_first_start_is_the_median_and_the_others_are_prior_draws():
    found, scores, _ = begin("LIN * PER + RQ", count=200)
    noise = scores.place("sigma_n")
    np.testing.assert_array_equal(found[0], np.where(np.arange(scores.size) == noise.start, -2, 0))  # little noise
    others = np.array(found[1:])
    assert np.all(np.abs(others.mean(axis=0)) < 4 / np.sqrt(199))
    assert len(found[0]) == scores.size


def test_leaves_and_scalars_keep_their_scores():
    parent, old = parent_of("LIN + SE[x]")
    _, _, (first, second, third, fourth) = begin("LIN + RQ + SE[x]", count=4, parent=parent)
    for name in ("mu", "sigma_f", "sigma_n"):
        assert first[name, ""] == old[name][""]
    assert first["lengthscale", "1:LIN[z]"] == old["lengthscale"]["1:LIN[z]"]
    assert first["centre", "1:LIN[x]"] == old["centre"]["1:LIN[x]"]
    assert first["lengthscale", "3:SE[x]"] == old["lengthscale"]["2:SE[x]"]
    assert first["lengthscale", "2:RQ[x]"] == 0
    assert first["rq_alpha", "2:RQ"] == 0
    assert 0 < abs(fourth["lengthscale", "3:SE[x]"] - old["lengthscale"]["2:SE[x]"]) < 2
    assert {name: score for (name, _), score in third.items() if score} == {"sigma_n": -2}  # little noise
    short = {"2:RQ[x]", "2:RQ[z]", "3:SE[x]"}
    assert {label for (name, label), score in second.items() if score and name != "sigma_n"} == short


def test_a_stationary_leaf_takes_the_lengthscales_of_the_one_it_replaces():
    parent, old = parent_of("LIN * SE")
    _, _, (first, *_) = begin("LIN * MAT32", parent=parent)
    assert first["lengthscale", "2:MAT32[z]"] == old["lengthscale"]["2:SE[z]"]


def test_terms_keep_their_relative_shares_and_a_new_one_gets_an_equal_part():
    parent, _ = parent_of("LIN + SE[x]")
    share = parent.theta["split"][0]
    _, _, (first, *_) = begin("LIN + RQ + SE[x]", parent=parent)
    # Splits are Beta(i, 1): the distribution function of the score is the i-th power of the split.
    splits = [norm.cdf(first["split", "1:LIN"]), norm.cdf(first["split", "2:LIN + RQ"]) ** 0.5]
    shares = [splits[0] * splits[1], (1 - splits[0]) * splits[1], 1 - splits[1]]
    np.testing.assert_allclose(shares, [2 / 3 * share, 1 / 3, 2 / 3 * (1 - share)], rtol=1e-9)


def test_sums_of_brackets_are_told_apart():
    parent, _ = parent_of("(LIN + SE) * PER + RQ")
    _, _, (first, *_) = begin("(LIN + SE) * PER * SE[x] + RQ", parent=parent)
    splits = np.array(parent.theta["split"])
    values = [v for (name, _), v in first.items() if name == "split"]
    np.testing.assert_allclose(norm.cdf(values[0]), splits[0], rtol=1e-9)
    assert norm.cdf(values[1]) == pytest.approx(0.5)  # its terms are new: they share equally


def test_periods_start_at_the_peaks():
    peaks = {0: np.array([0.1, 0.3]), 1: np.array([])}
    _, _, found = begin("PER[x] * PER[x] + PER[z]", peaks=peaks)
    labels = ["1:PER", "2:PER"]
    periods = [[0.2 * np.exp(one["period", label]) for label in labels] for one in found]
    np.testing.assert_allclose(periods, [[0.1, 0.3], [0.3, 0.1], [0.1, 0.3]])
    assert found[0]["period", "3:PER"] == 0


def test_starts_depend_on_the_seed_and_the_expression_only():
    one, two, other = (begin("SE + LIN", seed=seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one[2], other[2])
