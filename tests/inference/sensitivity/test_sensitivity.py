"""Sobol indices against known ones, and quadrature against Monte Carlo."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, ForbiddenEqualsClause, Integer
from scipy.special import ndtri

import slayr_py as sl
from slayr_py.errors import DataError
from slayr_py.inference import importance
from slayr_py.inference.functions import draw_functions
from slayr_py.inference.sensitivity.inputs import quadrature, uniform
from slayr_py.inference.sensitivity.pick_freeze import pick_freeze
from slayr_py.inference.sensitivity.product import product_indices
from slayr_py.space import Encoder

CUBE = ConfigurationSpace({"x1": (-np.pi, np.pi), "x2": (-np.pi, np.pi), "x3": (-np.pi, np.pi)})
MIXED = ConfigurationSpace(
    {"rate": Float("rate", (1e-4, 1.0), log=True), "n": (1, 6), "act": ["a", "b", "c"], "x": (0.0, 1.0)}
)


def ishigami(x, a=7.0, b=0.1):
    return np.sin(x[0]) + a * np.sin(x[1]) ** 2 + b * x[2] ** 4 * np.sin(x[0])


def ishigami_indices(a=7.0, b=0.1):
    """First-order and total indices, Ishigami & Homma (1990)."""
    main = np.array([0.5 * (1 + b * np.pi**4 / 5) ** 2, a**2 / 8, 0.0])
    both = b**2 * np.pi**8 * (1 / 18 - 1 / 50)  # of x1 and x3
    variance = main.sum() + both
    return main / variance, (main + np.array([both, 0, both])) / variance


def g_function_indices(a):
    """First-order and total indices of prod_i (|4 x_i - 2| + a_i) / (1 + a_i) (Saltelli & Sobol 1995)."""
    return indices_of_product(1 / (3 * (1 + np.asarray(a)) ** 2))


def indices_of_product(variances):
    """First-order and total indices of a product of functions of one parameter with means 1 and these variances."""
    variance = np.prod(1 + variances) - 1
    others = np.array([np.prod(1 + np.delete(variances, i)) for i in range(len(variances))])
    return variances / variance, variances * others / variance


def test_monte_carlo_finds_the_indices_of_ishigami():
    def values(points):
        return ishigami(-np.pi + 2 * np.pi * points.unit_values.T)[None]

    found = pick_freeze(values, Encoder(CUBE), 2048, 4, np.random.default_rng(1))
    first, total = ishigami_indices()
    assert 0 < found.error < 0.01
    np.testing.assert_allclose(found.first[0], first, atol=4 * found.error)
    np.testing.assert_allclose(found.total[0], total, atol=4 * found.error)


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_monte_carlo_does_not_depend_on_the_unit_of_the_values(scale):
    def indices(factor):
        values = lambda points: factor * ishigami(-np.pi + 2 * np.pi * points.unit_values.T)[None]  # noqa: E731
        return pick_freeze(values, Encoder(CUBE), 64, 2, np.random.default_rng(1))

    np.testing.assert_allclose(indices(scale).total, indices(1.0).total)


@pytest.mark.parametrize("a", [[0, 1, 4.5, 9, 99, 99], [99, 0, 0.5, 3]])
def test_monte_carlo_finds_the_indices_of_g_functions(a):
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(len(a))})

    def values(points):
        return np.prod((np.abs(4 * points.unit_values - 2) + a) / (1 + np.asarray(a)), axis=1)[None]

    found = pick_freeze(values, Encoder(space), 2048, 4, np.random.default_rng(1))
    first, total = g_function_indices(a)
    np.testing.assert_allclose(found.first[0], first, atol=4 * found.error)
    np.testing.assert_allclose(found.total[0], total, atol=4 * found.error)


HEAVY = np.array([1.5, 1.0, 0.1])  # standard deviations of the logarithms of a function's factors
SAMPLES = 100


def heavy_tailed(points):
    return np.exp(ndtri(points.unit_values) @ HEAVY)[None]


def test_monte_carlo_finds_the_indices_of_a_heavy_tailed_function():
    """Of a product of log-normal factors, one in 2000 values makes half of the variance, from the default points.

    With the variance of the two designs, and with means of the quotients, the root mean squared error of the largest
    total index was 1.9, and its largest estimate 15.
    """
    encoder = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(3)}))
    rng = np.random.default_rng(1)
    found = [pick_freeze(heavy_tailed, encoder, 256, 4, rng) for _ in range(SAMPLES)]
    first, total = indices_of_product(np.expm1(np.square(HEAVY)))
    estimates = np.array([(each.first[0], each.total[0]) for each in found])
    assert np.all(estimates[:, 0] >= 0) and np.all(estimates[:, 0] <= estimates[:, 1]) and estimates.max() <= 1
    errors = np.sqrt(np.square(estimates - [first, total]).mean(axis=0))
    # 0.16, 0.08 and 0.005, and 0.07, 0.15 and 0.006; such an error of 100 samples has a relative one below 0.15.
    assert np.all(errors < 1.5 * np.array([[0.16, 0.09, 0.005], [0.07, 0.15, 0.006]]))
    assert np.mean([each.error for each in found]) > 0.5 * errors.max()


@pytest.mark.parametrize("weights", [[3.0, 1.0, 0.3, 0.03], [1.0, 1.0]])
def test_both_indices_of_a_sum_are_the_same_and_in_order(weights):
    encoder = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(len(weights))}))
    found = pick_freeze(lambda points: (points.unit_values @ weights)[None], encoder, 256, 4, np.random.default_rng(1))
    expected = np.square(weights) / np.sum(np.square(weights))
    assert 0 < found.error < 0.002
    for indices in (found.first, found.total):
        np.testing.assert_allclose(indices[0], expected, atol=4 * found.error)
    assert np.all(found.first <= found.total)


def test_a_value_that_only_one_of_the_mixed_designs_has_gives_no_index_above_1():
    """A spike that the two designs miss has made total indices of any size, or infinite ones."""
    square = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)}))
    count = 0

    def values(points):
        nonlocal count
        f = np.zeros(len(points))
        f[2 * 16 + 5] = np.inf if count == 0 else 0.0  # of the design with the second sample's x
        count += 1
        return np.stack([f, np.where(np.isinf(f), 1.0, 1e-3 * points.unit_values[:, 0])])

    found = pick_freeze(values, square, 16, 4, np.random.default_rng(1))
    # The correlation of a spike with anything else is 0, up to its effect on the mean of 64 pairs.
    np.testing.assert_allclose(found.total[0], [1.0, 0.0], atol=2 / 64)
    np.testing.assert_allclose(found.first[0], 0.0, atol=2 / 64)
    assert np.all((found.first >= 0) & (found.first <= found.total) & (found.total <= 1))


def test_the_mean_of_a_small_index_has_no_bias_from_its_bound():
    """Bounded before the mean, the third index, which is 0, would be 0.011 on average."""
    shifts = np.random.default_rng(0).random((48, 1, 3))

    def values(points):
        x = -np.pi + 2 * np.pi * ((points.unit_values + shifts) % 1)
        return ishigami(np.moveaxis(x, 2, 0))

    seeds = map(np.random.default_rng, range(20))
    found = [pick_freeze(values, Encoder(CUBE), 256, 4, rng) for rng in seeds]
    means = np.mean([each.means for each in found], axis=0)
    np.testing.assert_allclose(means, ishigami_indices(), atol=0.004)
    assert np.mean([each.first[:, 2].mean() for each in found]) > 0.01
    assert np.all([0 <= each.means[0, 2] <= each.means[1, 2] for each in found])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_only_parameter_has_all_of_the_variance(k):
    def values(points):
        return np.arange(k)[:, None] * np.square(points.unit_values[:, 0])  # the first function is constant

    found = pick_freeze(values, Encoder(ConfigurationSpace({"x": (0.0, 1.0)})), 16, 2, np.random.default_rng(1))
    for indices in (found.first, found.total):
        np.testing.assert_array_equal(indices[:, 0], [np.nan, 1.0, 1.0][:k])
    assert found.error == 0


def sparse_fit(space, y_of, n, kernel, method="laplace"):
    """Fit without Stan, with all observations as inducing points."""
    train = uniform(Encoder(space), n, np.random.default_rng(1))
    return sl.GaussianProcess(space, kernel, inducing=n).fit(train, y_of(train), method=method, seed=1)


def test_importance_of_a_well_observed_ishigami_function_is_known():
    post = sparse_fit(CUBE, lambda t: ishigami(-np.pi + 2 * np.pi * t.unit_values.T), 250, "SE")
    table = importance(post, draws=20)
    (first, total) = ishigami_indices()
    assert table.attrs["method"] == "quadrature" and table.attrs["error"] == 0
    assert table.index.tolist() == ["x1", "x2", "x3"] and table.index.name == "parameter"
    np.testing.assert_allclose(table["first"], first, atol=0.02)
    np.testing.assert_allclose(table["total"], total, atol=0.02)
    assert np.all(table["total_low"] < table["total"]) and np.all(table["total"] < table["total_high"])


@pytest.mark.parametrize("expression", ["SE", "SE[x] * LIN[rate] + MAT32[n] * SE[act] + C", "SE[act] * PER[x] + SE"])
def test_quadrature_agrees_with_monte_carlo(expression):
    def y_of(t):
        rate, n, act, x = t.unit_values.T
        return np.sin(5 * x) * (1 + rate) + n * (act == 1) + 0.3 * act

    post = sparse_fit(MIXED, y_of, 40, expression, "map")
    rng = np.random.default_rng(2)
    functions = draw_functions(post, uniform(post.encoder, 32, rng), 1, rng, each=3)
    exact = product_indices(functions.expansions, post.encoder)
    assert exact is not None
    estimated = pick_freeze(functions, post.encoder, 4096, 4, rng)
    np.testing.assert_allclose(exact.first, estimated.first, atol=0.02)
    np.testing.assert_allclose(exact.total, estimated.total, atol=0.02)
    assert np.all(exact.first <= exact.total + 1e-9) and np.all(exact.first.sum(axis=1) <= 1 + 1e-9)


@pytest.mark.parametrize(("cycles", "method"), [(25, "quadrature"), (300, "monte carlo")])
def test_many_cycles_are_resolved(cycles, method):
    square = ConfigurationSpace({"t": (0.0, 1.0), "u": (0.0, 1.0)})
    priors = {"period": sl.LogNormal(-np.log(cycles), 1e-6), "lengthscale": sl.LogNormal(0.5, 0.01)}
    gp = sl.GaussianProcess(square, "PER[t] + SE[u]", priors=priors, inducing=60)
    train = uniform(gp.encoder, 60, np.random.default_rng(1))
    t, u = train.unit_values.T
    table = importance(gp.fit(train, np.sin(2 * np.pi * cycles * t) + np.sqrt(6) * u, method="map"), draws=20)
    assert table.attrs["method"] == method
    np.testing.assert_allclose(table["first"], 0.5, atol=0.01 + 3 * table.attrs["error"])


def test_a_constant_function_has_no_indices():
    posterior = sparse_fit(CUBE, lambda t: np.sin(t.unit_values[:, 0]), 20, "C", "map")
    with pytest.warns(UserWarning, match="all 1 functions drawn from the posterior are constant"):
        table = importance(posterior, draws=4)
    assert table.isna().all(axis=None) and table.attrs["method"] == "quadrature"
    assert any("1 of 1 functions are constant" in note for note in table.attrs["notes"])
    assert not any("missing from the indices" in note for note in table.attrs["notes"])


def test_a_kernel_that_is_no_product_needs_monte_carlo():
    post = sparse_fit(CUBE, lambda t: t.unit_values @ [1, 2, 0], 20, "MAT52", "map")
    table = importance(post, draws=4, points=64)
    assert table.attrs["method"] == "monte carlo" and table.attrs["error"] > 0
    assert table.index.tolist()[:2] == ["x2", "x1"]
    assert any("only 1 posterior draws" in note for note in table.attrs["notes"])


@pytest.mark.parametrize(("points", "noted"), [(2, True), (256, False)])
def test_a_large_monte_carlo_error_has_a_note_and_a_warning(points, noted):
    post = sparse_fit(CUBE, lambda t: ishigami(-np.pi + 2 * np.pi * t.unit_values.T), 60, "MAT52", "map")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = importance(post, draws=4, points=points)
    text = f"Monte Carlo error of the mean indices: {table.attrs['error']:.2g}; use more points"
    assert (table.attrs["error"] > 0.03) == noted == (text in table.attrs["notes"])
    assert [str(each.message).startswith(f"{text}, now {points}: ") for each in caught] == [True] * noted


def test_inactive_parameters_have_no_effect():
    space = ConfigurationSpace(
        {"kind": Categorical("kind", ["on", "off"]), "child": Float("child", (0.0, 1.0)), "x": Float("x", (0.0, 1.0))}
    )
    space.add(EqualsCondition(space["child"], space["kind"], "on"))

    def values(points):
        on = points.active[:, points.encoder.names.index("child")]
        return np.where(on, points.unit_values[:, points.encoder.names.index("child")], 0.0)[None]

    encoder = Encoder(space)
    found = pick_freeze(values, encoder, 2048, 4, np.random.default_rng(1))
    # f = B U with B in {0, 1} fair and U uniform: var f = 5/48, var E(f | B) = 1/16, var E(f | U) = 1/48.
    first = dict(zip(encoder.names, found.first[0], strict=True))
    total = dict(zip(encoder.names, found.total[0], strict=True))
    assert first["kind"] == pytest.approx(0.6, abs=4 * found.error)
    assert first["child"] == pytest.approx(0.2, abs=4 * found.error)
    assert total["kind"] == pytest.approx(0.8, abs=4 * found.error)
    assert total["child"] == pytest.approx(0.4, abs=4 * found.error)
    assert total["x"] == first["x"] == 0
    post = sparse_fit(space, lambda t: values(t)[0] + 0.1 * t.unit_values[:, 2], 20, "SE", "map")
    table = importance(post, draws=4, points=64)
    assert table.attrs["method"] == "monte carlo"
    assert any("inactive values of child" in note for note in table.attrs["notes"])


def test_forbidden_configurations_are_noted():
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 3)})
    space.add(ForbiddenEqualsClause(space["n"], 3))
    table = importance(sparse_fit_of_allowed(space), draws=4, points=64)
    assert "forbidden configurations count like others" in table.attrs["notes"]


def sparse_fit_of_allowed(space):
    configs = Encoder(space).sobol(10, 1)
    y = [config["x"] + config["n"] for config in configs]
    return sl.GaussianProcess(space, "SE", inducing=10).fit(configs, y, method="map", seed=1)


def test_seed_fixes_the_result_and_illegal_arguments_are_named():
    post = sparse_fit(CUBE, lambda t: t.unit_values[:, 0], 10, "MAT52", "map")
    one, other = (importance(post, draws=2, points=32, seed=3) for _ in range(2))
    assert one.equals(other)
    with pytest.raises(DataError, match="draws must be an integer >= 1, got 0"):
        importance(post, draws=0)


@pytest.mark.parametrize("log", [False, True])
def test_quadrature_has_the_moments_of_the_distribution(log):
    encoder = Encoder(ConfigurationSpace({"n": Integer("n", (1, 9), log=log), "x": (0.0, 1.0), "act": ["a", "b"]}))
    sample = uniform(encoder, 4096, np.random.default_rng(1)).unit_values
    for column, dimension in zip(sample.T, encoder.dimensions, strict=True):
        rule = quadrature(dimension)
        assert rule.weights.sum() == pytest.approx(1)
        for power in (1, 2):
            assert rule.weights @ rule.nodes**power == pytest.approx(np.mean(column**power), abs=0.01)
