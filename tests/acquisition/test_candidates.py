from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float, ForbiddenEqualsClause, ForbiddenInClause, Integer
from testing_spaces import conditional_space, mixed_space

from slayr_py.acquisition.candidates import candidates, enumeration, perturb
from slayr_py.acquisition.identity import distinct
from slayr_py.space import Encoder


def observed(space, n=8, within=None):
    """Make the attributes of a posterior that candidates need; the best observed configuration is the last."""
    encoder = Encoder(space, within=within)
    return SimpleNamespace(
        encoder=encoder, train=encoder.encode(encoder.sobol(n, 1)), targets=SimpleNamespace(y=-np.arange(n))
    )


def test_candidates_are_valid_distinct_and_numerous(any_space):
    posterior = observed(any_space)
    found = candidates(posterior, np.random.default_rng(0), 2000)
    assert 2000 <= len(found) < 4200
    encoded, allowed = posterior.encoder.resolve(found.genotypes)
    assert allowed.all() and len(distinct(found.encoded)) == len(found)
    assert np.array_equal(encoded.unit_values, found.encoded.unit_values)
    assert np.array_equal(encoded.active, found.encoded.active)
    for config in posterior.encoder.decode(found.encoded[:200]):
        config.check_valid_configuration()


def test_candidates_contain_the_incumbent_and_points_near_it():
    posterior = observed(conditional_space())
    found = candidates(posterior, np.random.default_rng(0), 2000)
    best = posterior.train[[-1]]
    alike = np.all(found.encoded.active == best.active, axis=1)
    distance = np.abs(found.encoded.unit_values - best.unit_values)[alike].max(axis=1)
    assert np.sum(distance < 1e-9) == 1 and np.sum(distance < 0.1) >= 10


def test_given_values_replace_the_observed_ones():
    """The best of noisy values is partly luck: the best posterior mean is the incumbent."""
    posterior = observed(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    values = np.ones(len(posterior.train))
    values[3] = 0.0
    for given, row in ((None, int(np.argmin(posterior.targets.y))), (values, 3)):
        found = candidates(posterior, np.random.default_rng(0), 50, values=given)
        np.testing.assert_array_equal(found.encoded.unit_values[0], posterior.train.unit_values[row])


def test_more_batches_are_drawn_if_most_points_are_forbidden():
    space = ConfigurationSpace()
    size = Integer("size", (1, 20), default=1)
    space.add(Float("x", (0.0, 1.0)), size)
    space.add(ForbiddenInClause(size, list(range(2, 21))))
    posterior = observed(space)
    found = candidates(posterior, np.random.default_rng(0), 2000)
    # A batch of 2000 has 100 valid points; batches are drawn until there are 2000.
    assert 2000 <= len(found) < 2200


def test_no_more_batches_are_drawn_if_an_equality_leaves_few_points(monkeypatch):
    """The sum of two integers in 0 to 4 has to be from 2 to 6: 19 of 25 pairs determine the float."""
    posterior = observed(ConfigurationSpace({"i": (0, 4), "j": (0, 4), "x": (0.0, 4.0)}), within=["i + j + x == 6"])
    calls = []
    uniform = Encoder.uniform
    monkeypatch.setattr(Encoder, "uniform", lambda *a: calls.append(1) or uniform(*a))
    found = candidates(posterior, np.random.default_rng(0), 500)
    pairs = {(config["i"], config["j"]) for config in posterior.encoder.decode(found.encoded)}
    assert len(pairs) == 19 and len(calls) < 10


def test_a_small_space_is_enumerated():
    space = ConfigurationSpace()
    space.add(
        Integer("n", (1, 4)),
        Integer("units", (8, 11), log=True),
        Categorical("act", ["relu", "tanh", "gelu"]),
        Categorical("size", ["s", "l"], ordered=True),
    )
    space.add(ForbiddenEqualsClause(space["act"], "tanh"))
    encoder = Encoder(space)
    assert len(enumeration(encoder)) == 96
    found = candidates(observed(space), np.random.default_rng(0), 2000)
    assert {tuple(c.values()) for c in encoder.decode(found.encoded)} == {
        (a, n, s, u) for n in range(1, 5) for u in range(8, 12) for a in ("relu", "gelu") for s in ("s", "l")
    }


def test_infinite_spaces_are_not_enumerated():
    assert enumeration(Encoder(mixed_space())) is None
    many = ConfigurationSpace({f"c{i}": ["a", "b", "c", "d"] for i in range(40)})
    assert enumeration(Encoder(many)) is None


@pytest.mark.parametrize("n", [1, 200])
def test_perturbations_stay_in_the_box_and_near(n):
    encoder = Encoder(mixed_space())
    centres = encoder.from_uniform(np.random.default_rng(1).random((n, 5)))
    kept = centres.copy()
    points = perturb(encoder, centres, np.random.default_rng(2))
    assert np.array_equal(centres, kept)
    real = np.array([d.is_real for d in encoder.dimensions])
    assert np.all((points[:, real] >= 0) & (points[:, real] <= 1))
    hopped = points[:, ~real] != centres[:, ~real]
    assert np.array_equal(points[:, ~real], np.rint(points[:, ~real]))
    assert hopped.mean() < 0.5 and (n == 1 or hopped.any())
    assert n == 1 or 1e-3 < np.median(np.abs(points - centres)[:, real]) < 0.2


def test_all_candidates_have_the_fixed_values():
    posterior = observed(mixed_space())
    encoder = posterior.encoder
    found = candidates(posterior, np.random.default_rng(0), 500, encoder.fix({"lr": 0.01, "act": "gelu"}))
    assert len(found) >= 500
    assert {(config["lr"], config["act"]) for config in encoder.decode(found.encoded)} == {(0.01, "gelu")}
    assert np.array_equal(encoder.resolve(found.genotypes)[0].unit_values, found.encoded.unit_values)


def test_a_conditional_parameter_restricts_the_candidates_to_those_in_which_it_is_active():
    posterior = observed(conditional_space())
    found = candidates(posterior, np.random.default_rng(0), 200, posterior.encoder.fix({"degree": 2}))
    assert all(config["degree"] == 2 for config in posterior.encoder.decode(found.encoded))


def test_the_rest_of_a_space_is_enumerated():
    space = ConfigurationSpace([Float("x", (0.0, 1.0)), Categorical("k", ["a", "b", "c"]), Integer("n", (1, 2))])
    encoder = Encoder(space)
    fixed = encoder.fix({"x": 0.25})
    assert enumeration(encoder) is None and len(enumeration(encoder, fixed)) == 6
    assert len(candidates(observed(space), np.random.default_rng(0), 2000, fixed)) == 6
