"""The NumPy densities of programs from their covariances against the programs' own."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, OrdinalHyperparameter

import slayr_py as sl
from slayr_py.inference.model import Model
from slayr_py.inference.prediction.stan_engine import coordinate_table
from slayr_py.inference.sampling import numpy_density
from slayr_py.inference.sampling.fm_density import FrequencyModulatedDensity
from slayr_py.inference.sampling.matern_density import MaternDensity
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate

SPACE = ConfigurationSpace({"a": (0.0, 1.0), "b": (1e-3, 1.0), "c": ["x", "y"]})
GRAPHS = ConfigurationSpace(
    {"a": (0.0, 1.0), "b": (1, 4), "c": ["x", "y", "z"], "d": OrdinalHyperparameter("d", [1, 2, 3, 4])}
)
LEVELS = ConfigurationSpace({"c": ["x", "y", "z"], "d": ["u", "v"]})

CASES = {
    "default": (6, Model(SPACE, sl.kernels.Matern(p=2)), None),
    "warp and gamma prior": (
        5,
        Model(SPACE, sl.kernels.Matern(p=3), {"sigma_f": sl.HalfNormal(1.0), "lengthscale": sl.Gamma(2.0, 1.0)}, "log"),
        None,
    ),
    "warp with a pivot": (5, Model(SPACE, sl.kernels.Matern(p=2), warp="best"), None),
    "fixed noise and known errors": (
        4,
        Model(SPACE, sl.kernels.Matern(p=1), {"sigma_n": sl.LogNormal(-3.0, 0.0)}),
        np.array([0.1, 0.0, 0.2, 0.3]),
    ),
    "additive": (
        6,
        Model(SPACE, sl.kernels.Additive(p=2), {"main_variance": sl.Gamma(0.5, 1.0)}, "log"),
        None,
    ),
    "one observation": (1, Model(SPACE, sl.kernels.Matern(p=0)), None),
    "frequency modulation": (7, Model(GRAPHS, "fm"), None),
    "frequency modulation with warp and errors": (
        6,
        Model(GRAPHS, "fm", {"sigma_f": sl.HalfNormal(1.0)}, "best"),
        None,
    ),
    "graphs alone": (5, Model(LEVELS, "fm"), np.array([0.1, 0.0, 0.2, 0.3, 0.1])),
}


@pytest.mark.stan
@pytest.mark.parametrize("case", CASES)
def test_density_and_hyperparameters_are_those_of_the_program(case, monkeypatch):
    monkeypatch.setattr(numpy_density, "BLOCK", 100)  # several blocks
    n, model, y_sd = CASES[case]
    rng = np.random.default_rng(0)
    train = model.encoder.encode(model.encoder.sobol(n, 1))
    data = model.stan_data(train, rng.standard_normal(n), train[:0], pointwise=False, y_sd=y_sd)
    shapes = model.parameter_shapes
    coordinates = {name: rng.standard_normal((1, 40, *shape)) for name, shape in shapes.items()}
    program = model.kernel.program
    table = generate(compiled(program), {**data, "want_density": 1}, coordinate_table(coordinates), seed=1)
    points = np.concatenate([values.reshape(40, -1) for values in coordinates.values()], axis=1)
    (kind,) = [each for each in (MaternDensity, FrequencyModulatedDensity) if each.serves(program, data)]
    density = kind(data, shapes)
    difference = density(points) - table["log_density.1"].to_numpy()
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-9 * np.abs(density(points)).max())
    theta = np.hstack(list(density.hyper(points).theta.values()))
    np.testing.assert_allclose(theta, table.drop(columns="log_density.1").to_numpy(), rtol=1e-12)


def test_a_singular_covariance_has_no_density():
    _, model, _ = CASES["default"]
    train = model.encoder.encode(model.encoder.sobol(3, 1))
    data = model.stan_data(train[[0, 0, 1]], np.zeros(3), train[:0], pointwise=False) | {"noise_floor": 0.0}
    density = MaternDensity(data, model.parameter_shapes)
    points = np.zeros((2, 7))
    points[0, 2] = -200.0  # the noise
    values = density(points)
    assert values[0] == -np.inf and np.isfinite(values[1])


def test_programs_compute_all_other_densities():
    _, model, _ = CASES["default"]
    train = model.encoder.encode(model.encoder.sobol(3, 1))
    data = model.stan_data(train, np.zeros(3), train[:0], pointwise=False)
    assert MaternDensity.serves("matern_gp", data)
    assert not MaternDensity.serves("fm_gp", data)
    for change in ({"binary": 1}, {"prior_only": 1}, {"want_pointwise": 1}, {"N": 0}):
        assert not MaternDensity.serves("matern_gp", data | change)
    for kernel in (sl.kernels.FrequencyModulated("neural"), sl.kernels.Separable()):
        other = Model(GRAPHS, kernel)
        train = other.encoder.encode(other.encoder.sobol(3, 1))
        data = other.stan_data(train, np.zeros(3), train[:0], pointwise=False)
        assert not FrequencyModulatedDensity.serves("fm_gp", data)
