"""The NumPy densities of programs against the programs' own, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer, OrdinalHyperparameter
from testing_kernels import pretrained

import slayr_py as sl
from slayr_py.inference.expectation_propagation import Tolerance
from slayr_py.inference.model import Model
from slayr_py.inference.prediction.stan_engine import coordinate_table
from slayr_py.inference.sampling import numpy_density
from slayr_py.inference.sampling.composite_density import CompositeDensity
from slayr_py.inference.sampling.fm_density import FrequencyModulatedDensity
from slayr_py.inference.sampling.hierarchical_density import HierarchicalDensity
from slayr_py.inference.sampling.matern_density import MaternDensity
from slayr_py.inference.sampling.numpy_density import NumpyDensity
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.space import FloatArray

SPACE = ConfigurationSpace({"a": (0.0, 1.0), "b": (1e-3, 1.0), "c": ["x", "y"]})
GRAPHS = ConfigurationSpace(
    {"a": (0.0, 1.0), "b": (1, 4), "c": ["x", "y", "z"], "d": OrdinalHyperparameter("d", [1, 2, 3, 4])}
)
LEVELS = ConfigurationSpace({"c": ["x", "y", "z"], "d": ["u", "v"]})
PLANE = ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)})
POINTS = 40
BINARY_POINTS = 8  # expectation propagation to the last digits takes long


def tree() -> ConfigurationSpace:
    """Return a space in which a, k and c exist for some kinds only."""
    space = ConfigurationSpace(seed=1)
    kind = Categorical("kind", ["u", "v", "w"])
    a, k, c = Float("a", (0.0, 1.0)), Integer("k", (1, 9)), Categorical("c", ["x", "y"])
    space.add(kind, a, k, c, Float("always", (0.0, 1.0)))
    space.add(EqualsCondition(a, kind, "u"), EqualsCondition(k, kind, "v"), EqualsCondition(c, kind, "v"))
    return space


CASES = {
    "default": (6, Model(SPACE, sl.kernels.Matern(p=2)), None),
    "warp and gamma prior": (
        5,
        Model(SPACE, sl.kernels.Matern(p=3), {"sigma_f": sl.HalfNormal(1.0), "lengthscale": sl.Gamma(2.0, 1.0)}, "log"),
        None,
    ),
    "ties at the pivot of the warp": (8, Model(SPACE, sl.kernels.Matern(p=2), warp="best"), None),
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
    "diffusion": (7, Model(GRAPHS, sl.kernels.FrequencyModulated("diffusion")), None),
    "diffusion of graphs alone": (5, Model(LEVELS, sl.kernels.FrequencyModulated("diffusion")), None),
    "neural": (7, Model(GRAPHS, sl.kernels.FrequencyModulated("neural"), None, "log"), None),
    "neural on graphs alone": (5, Model(LEVELS, sl.kernels.FrequencyModulated("neural")), np.full(5, 0.2)),
    "power": (7, Model(GRAPHS, sl.kernels.FrequencyModulated("power"), None, "best"), None),
    "power, four orders of r": (6, Model(GRAPHS, sl.kernels.FrequencyModulated("power", orders=4, tau=1.0)), None),
    "power, one order": (6, Model(GRAPHS, sl.kernels.FrequencyModulated("power", orders=1, tau=0.5)), None),
    "power on graphs alone": (5, Model(LEVELS, sl.kernels.FrequencyModulated("power")), None),
    "product": (7, Model(GRAPHS, sl.kernels.Separable("laplacian", "product"), None, "log"), None),
    "sum": (7, Model(GRAPHS, sl.kernels.Separable("laplacian", "sum")), np.full(7, 0.2)),
    "product, diffusion and Matérn": (6, Model(GRAPHS, sl.kernels.Separable("diffusion", base="matern", p=1)), None),
    "sum, diffusion and Matérn": (6, Model(GRAPHS, sl.kernels.Separable("diffusion", "sum", base="matern")), None),
    "sum of graphs alone": (5, Model(LEVELS, sl.kernels.Separable("laplacian", "sum")), None),
    "composite": (6, Model(PLANE, "SE * PER[a] + RQ + LIN[b] + C", {"split": sl.Beta(2.0, 3.0)}), None),
    "composite of Matérn kernels": (7, Model(PLANE, "MAT12 + MAT32[a] * MAT52[b]", None, "log"), None),
    "composite of one leaf": (5, Model(SPACE, "MAT52"), np.full(5, 0.2)),
    "pre-trained": (8, Model(SPACE, pretrained(SPACE, (2,), None)), None),
    "pre-trained, several parts": (8, Model(SPACE, pretrained(SPACE), None, "best"), None),
    "hierarchical": (9, Model(tree(), "hierarchical"), None),
    "hierarchical, Matérn and warp": (9, Model(tree(), sl.kernels.Hierarchical(base="matern", p=1), None, "log"), None),
    "hierarchical, warp with a pivot": (9, Model(tree(), "hierarchical", None, "best"), None),
    "hierarchical, other priors and known errors": (
        8,
        Model(tree(), "hierarchical", {"sigma_f": sl.HalfNormal(1.0), "sigma_n": sl.LogNormal(-3.0, 0.0)}),
        np.full(8, 0.2),
    ),
    "hierarchical sum": (9, Model(tree(), sl.kernels.Hierarchical(combine="sum")), None),
    "hierarchical sum, Matérn": (9, Model(tree(), sl.kernels.Hierarchical("matern", "sum", 1), None, "best"), None),
    "hierarchical, rational quadratic": (9, Model(tree(), sl.kernels.Hierarchical("rq")), np.full(9, 0.2)),
    "hierarchical sum, rational quadratic": (9, Model(tree(), sl.kernels.Hierarchical("rq", combine="sum")), None),
    "by a hierarchical kernel": (
        9,
        Model(tree(), sl.kernels.FrequencyModulated(sl.kernels.Hierarchical()), None, "log"),
        None,
    ),
    "by a hierarchical sum": (
        7,
        Model(GRAPHS, sl.kernels.FrequencyModulated(sl.kernels.Hierarchical("rq", combine="sum"))),
        None,
    ),
    "hierarchical, one observation": (1, Model(tree(), "hierarchical"), None),
    "binary": (9, Model(SPACE, sl.kernels.Matern(p=2), likelihood="probit"), None),
    "binary, additive": (9, Model(SPACE, sl.kernels.Additive(p=2), likelihood="probit"), None),
    "binary, frequency modulation": (9, Model(GRAPHS, "fm", likelihood="probit"), None),
    "binary, composite": (9, Model(PLANE, "SE * PER[a] + RQ", likelihood="probit"), None),
    "binary, hierarchical": (9, Model(tree(), "hierarchical", likelihood="probit"), None),
}


def example(case: str) -> tuple[str, dict, NumpyDensity, dict[str, FloatArray], FloatArray]:
    """Return the program and its data, the density, and coordinates by name and as points."""
    n, model, y_sd = CASES[case]
    rng = np.random.default_rng(0)
    train = model.encoder.encode(model.encoder.sobol(n, 1))
    y = rng.standard_normal(n)
    y = np.sign(y) if model.likelihood == "probit" else y
    if case.startswith("ties"):
        y[[1, 4, 6]] = y.min()
    data = model.stan_data(train, y, train[:0], pointwise=False, y_sd=y_sd)
    s = BINARY_POINTS if data["binary"] else POINTS
    coordinates = {name: rng.standard_normal((1, s, *shape)) for name, shape in model.parameter_shapes.items()}
    points = np.concatenate([values.reshape(s, -1) for values in coordinates.values()], axis=1)
    program = model.kernel.program
    kinds = (MaternDensity, FrequencyModulatedDensity, HierarchicalDensity, CompositeDensity)
    (kind,) = [each for each in kinds if each.serves(program, data)]
    return program, data, kind(data, model.parameter_shapes), coordinates, points


@pytest.fixture
def converged(monkeypatch):
    """Let expectation propagation run to the last digits, so that densities are smooth and those of the programs."""
    monkeypatch.setattr(numpy_density, "CONVERGED_EVIDENCE", Tolerance(1e-8, np.inf))


@pytest.mark.stan
@pytest.mark.usefixtures("converged")
@pytest.mark.parametrize("case", CASES)
def test_density_and_hyperparameters_are_those_of_the_program(case, monkeypatch):
    monkeypatch.setattr(numpy_density, "BLOCK", 100)  # several blocks
    program, data, density, coordinates, points = example(case)
    table = generate(compiled(program), {**data, "want_density": 1}, coordinate_table(coordinates), seed=1)
    difference = density(points) - table["log_density.1"].to_numpy()
    # The program's sites are converged to 1e-5, and its evidence has differences of variances of up to 1e10.
    accuracy = 1e-7 if data["binary"] else 1e-9
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=accuracy * np.abs(density(points)).max())
    theta = np.hstack(list(density.hyper(points).theta.values()))
    np.testing.assert_allclose(theta, table.drop(columns="log_density.1").to_numpy(), rtol=1e-12)


@pytest.mark.usefixtures("converged")
@pytest.mark.parametrize("case", CASES)
def test_gradient(case, monkeypatch):
    *_, density, _, points = example(case)
    with monkeypatch.context() as patch:
        patch.setattr(numpy_density, "BLOCK", 100)  # several blocks
        values, gradient = density.with_gradient(points)
        np.testing.assert_allclose(values, density(points), rtol=1e-12)
    step = 1e-4  # differences of fourth order: smaller steps lose digits where the covariance is nearly singular
    multiples = np.array([-2, -1, 1, 2])[:, None, None, None]
    beside = points + multiples * step * np.eye(points.shape[1])[:, None]
    # All at once, because an evaluation of few points takes as long.
    further_back, back, ahead, further_ahead = density(beside.reshape(-1, points.shape[1])).reshape(beside.shape[:3])
    slopes = (8 * (ahead - back) - (further_ahead - further_back)) / (12 * step)
    np.testing.assert_allclose(gradient, slopes.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("case", "kind"), [("default", MaternDensity), ("hierarchical", HierarchicalDensity)])
def test_a_singular_covariance_has_no_density(case, kind):
    _, model, _ = CASES[case]
    train = model.encoder.encode(model.encoder.sobol(3, 1))
    data = model.stan_data(train[[0, 0, 1]], np.zeros(3), train[:0], pointwise=False) | {"noise_floor": 0.0}
    shapes = model.parameter_shapes
    points = np.zeros((2, sum(int(np.prod(shape)) for shape in shapes.values())))
    points[0, 2] = -200.0  # the noise
    values, gradient = kind(data, shapes).with_gradient(points)
    assert values[0] == -np.inf and np.isfinite(values[1])
    assert not gradient[0].any() and np.isfinite(gradient).all()


@pytest.mark.parametrize("base", ["matern", "rq"])
def test_correlations_that_vanish_have_the_same_density_with_and_without_gradient(base):
    # Tempering compares the values of both; a logarithm of 0 in one of them would refuse every move.
    model = Model(tree(), sl.kernels.Hierarchical(base))
    train = model.encoder.encode(model.encoder.sobol(9, 1))
    data = model.stan_data(train, np.zeros(9), train[:0], pointwise=False)
    names = [name for name, shape in model.parameter_shapes.items() for _ in range(int(np.prod(shape)))]
    points = np.where(np.array(names) == "z_lengthscale", -30.0, 0.0)[None]
    density = HierarchicalDensity(data, model.parameter_shapes)
    values, gradient = density.with_gradient(points)
    np.testing.assert_allclose(values, density(points), rtol=1e-12)
    assert np.isfinite(values).all() and np.isfinite(gradient).all()


def test_programs_compute_all_other_densities():
    _, model, _ = CASES["default"]
    train = model.encoder.encode(model.encoder.sobol(3, 1))
    data = model.stan_data(train, np.zeros(3), train[:0], pointwise=False)
    assert MaternDensity.serves("matern_gp", data)
    assert not MaternDensity.serves("fm_gp", data)
    for change in ({"prior_only": 1}, {"N": 0}):
        assert not MaternDensity.serves("matern_gp", data | change)
    _, data, density, *_ = example("hierarchical")
    assert not density.serves("fm_gp", data)
    for change in ({"prior_only": 1}, {"N": 0}):
        assert not density.serves("hierarchical_gp", data | change)
