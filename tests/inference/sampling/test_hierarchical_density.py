"""The NumPy density of the hierarchical program against the program's own, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

import slayr_py as sl
from slayr_py.inference.model import Model
from slayr_py.inference.prediction.stan_engine import coordinate_table
from slayr_py.inference.sampling import hierarchical_density
from slayr_py.inference.sampling.hierarchical_density import HierarchicalDensity
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.space import FloatArray


def tree() -> ConfigurationSpace:
    """Return a space in which a, k and c exist for some kinds only."""
    space = ConfigurationSpace(seed=1)
    kind = Categorical("kind", ["u", "v", "w"])
    a, k, c = Float("a", (0.0, 1.0)), Integer("k", (1, 9)), Categorical("c", ["x", "y"])
    space.add(kind, a, k, c, Float("always", (0.0, 1.0)))
    space.add(EqualsCondition(a, kind, "u"), EqualsCondition(k, kind, "v"), EqualsCondition(c, kind, "v"))
    return space


CASES = {
    "default": (9, Model(tree(), "hierarchical"), None),
    "Matérn and warp": (9, Model(tree(), sl.kernels.Hierarchical(base="matern", p=1), None, "log"), None),
    "warp from the best value": (9, Model(tree(), "hierarchical", None, "best"), None),
    "other priors and known errors": (
        8,
        Model(tree(), "hierarchical", {"sigma_f": sl.HalfNormal(1.0), "sigma_n": sl.LogNormal(-3.0, 0.0)}),
        np.full(8, 0.2),
    ),
    "one observation": (1, Model(tree(), "hierarchical"), None),
}


def example(case: str) -> tuple[Model, dict, HierarchicalDensity, dict[str, FloatArray], FloatArray]:
    n, model, y_sd = CASES[case]
    rng = np.random.default_rng(0)
    train = model.encoder.encode(model.encoder.sobol(n, 1))
    data = model.stan_data(train, rng.standard_normal(n), train[:0], pointwise=False, y_sd=y_sd)
    coordinates = {name: rng.standard_normal((1, 20, *shape)) for name, shape in model.parameter_shapes.items()}
    points = np.concatenate([values.reshape(20, -1) for values in coordinates.values()], axis=1)
    return model, data, HierarchicalDensity(data, model.parameter_shapes), coordinates, points


@pytest.mark.stan
@pytest.mark.parametrize("case", CASES)
def test_density_and_hyperparameters_are_those_of_the_program(case, monkeypatch):
    monkeypatch.setattr(hierarchical_density, "BLOCK", 100)  # several blocks
    _, data, density, coordinates, points = example(case)
    assert density.serves("hierarchical_gp", data)
    table = generate(compiled("hierarchical_gp"), {**data, "want_density": 1}, coordinate_table(coordinates), seed=1)
    difference = density(points) - table["log_density.1"].to_numpy()
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-9 * np.abs(density(points)).max())
    theta = np.hstack(list(density._priors(points).theta.values()))
    np.testing.assert_allclose(theta, table.drop(columns="log_density.1").to_numpy(), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradient(case):
    _, _, density, _, points = example(case)
    values, gradient = density.with_gradient(points)
    np.testing.assert_allclose(values, density(points), rtol=1e-12)
    step = 1e-5
    for i, direction in enumerate(np.eye(points.shape[1])):
        slope = (density(points + step * direction) - density(points - step * direction)) / (2 * step)
        np.testing.assert_allclose(gradient[:, i], slope, rtol=1e-5, atol=1e-5, err_msg=str(i))


def test_a_singular_covariance_has_no_density():
    _, model, _ = CASES["default"]
    train = model.encoder.encode(model.encoder.sobol(3, 1))
    data = model.stan_data(train[[0, 0, 1]], np.zeros(3), train[:0], pointwise=False) | {"noise_floor": 0.0}
    points = np.zeros((2, 18))
    points[0, 2] = -200.0  # the noise
    values, gradient = HierarchicalDensity(data, model.parameter_shapes).with_gradient(points)
    assert values[0] == -np.inf and np.isfinite(values[1])
    assert not gradient[0].any() and np.isfinite(gradient).all()


def test_programs_compute_all_other_densities():
    _, data, density, _, _ = example("default")
    assert not density.serves("fm_gp", data)
    changes = ({"binary": 1}, {"prior_only": 1}, {"want_pointwise": 1}, {"N": 0}, {"add": 1}, {"base": 2})
    for change in changes:
        assert not density.serves("hierarchical_gp", data | change)
