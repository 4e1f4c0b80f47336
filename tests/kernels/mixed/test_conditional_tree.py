"""Distances between configurations in a tree of conditions."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from testing_spaces import conditional_space

from slayr_py.kernels import Hierarchical
from slayr_py.space import Encoder


def distances(rho, gamma=0.6):
    """Return the distances along x: end to end, active to inactive, inactive to inactive."""
    space = ConfigurationSpace()
    parent = Categorical("parent", ["on", "off", "out"])
    x = Float("x", (-3.0, 5.0))
    space.add(parent, x, EqualsCondition(x, parent, "on"))
    encoder = Encoder(space)
    configs = [{"parent": "on", "x": -3.0}, {"parent": "on", "x": 5.0}, {"parent": "off"}, {"parent": "out"}]
    points = encoder.encode(configs)
    theta = {"gamma": [1.0, 1.0], "rho": [1e-9, 1e-9], "lengthscale": [1.0, 1.0]}
    i = encoder.names.index("x")
    theta["gamma"][i] = gamma
    theta["rho"][i] = rho
    k = Hierarchical("se").gram(points, points, theta)
    d = np.sqrt(-2 * np.log(k))
    return d[0, 1], d[0, 2], d[2, 3]


def test_a_third_makes_activity_count_as_much_as_the_whole_range():
    end_to_end, to_inactive, _ = distances(1 / 3)
    assert end_to_end == pytest.approx(to_inactive, rel=1e-7)
    assert to_inactive == pytest.approx(0.6, rel=1e-7)
    for rho in (0.34, 0.9, 1.0):
        end_to_end, to_inactive, _ = distances(rho)
        assert end_to_end > to_inactive
    for rho in (0.01, 0.33):
        end_to_end, to_inactive, _ = distances(rho)
        assert end_to_end < to_inactive


@pytest.mark.parametrize("rho", [0.01, 1 / 3, 1.0])
def test_inactive_in_both_is_no_distance(rho):
    # Only the distance along the parent remains, at rho = 1e-9.
    assert distances(rho)[2] == pytest.approx(0.0, abs=1e-7)


def test_different_levels_at_rho_one_are_the_root_of_two_apart():
    encoder = Encoder(ConfigurationSpace({"a": ["x", "y", "z"]}))
    points = encoder.encode([{"a": level} for level in "xyz"])
    k = Hierarchical("se").gram(points, points, {"gamma": [0.7], "rho": [1.0], "lengthscale": [1.0]})
    np.testing.assert_allclose(k, np.where(np.eye(3), 1.0, np.exp(-0.49)), rtol=1e-14)


def test_ancestors_weigh_on_their_descendants():
    encoder = Encoder(conditional_space())
    kernel = Hierarchical("se")
    shared = {"kernel": "poly", "degree": 3, "gamma": 1.0, "C": 1.0}
    points = encoder.encode([shared | {"coef0": c} for c in (-1.0, 1.0)])
    n = len(encoder.names)
    gamma = {name: 0.9 - 0.1 * i for i, name in enumerate(encoder.names)}
    theta = {"gamma": list(gamma.values()), "rho": [1 / 3] * n, "lengthscale": [1.0] * n}
    omega = gamma["coef0"] * gamma["degree"] * gamma["kernel"]
    assert kernel.gram(points, points, theta)[0, 1] == pytest.approx(np.exp(-0.5 * omega**2), rel=1e-13)
