from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float, ForbiddenLessThanRelation, Integer
from testing_spaces import conditional_space, mixed_space

from slayr_py.acquisition.identity import Taken
from slayr_py.acquisition.refinement import refine
from slayr_py.space import Encoder

GAIN = 1e-9


def starts_in(encoder, n=10, seed=0):
    return encoder.from_uniform(np.random.default_rng(seed).random((n, len(encoder.dimensions))))


def column(encoder, name):
    return encoder.names.index(name)


def test_integers_are_rounded_at_the_maximum(bowl):
    landscape = bowl(mixed_space(), top=0.37, level=1)
    encoder = landscape.encoder
    reached, values, _ = refine(landscape, starts_in(encoder), GAIN)
    configs = encoder.decode(landscape.place(reached)[0])
    # 0.37 is between 2 and 3 layers; one of the two neighbours of a log-scaled integer is nearer.
    units = encoder.dimensions[column(encoder, "units")]
    nearest = min(range(8, 513), key=lambda x: abs(units.unit_value(x) - 0.37))
    assert {c["layers"] for c in configs} == {2} and {c["units"] for c in configs} == {nearest}
    assert {c["act"] for c in configs} == {"tanh"} and {c["size"] for c in configs} == {"medium"}
    np.testing.assert_allclose(reached[:, column(encoder, "lr")], 0.37, atol=1e-5)
    assert np.array_equal(values, landscape.values(reached))


def test_values_never_decrease_and_maxima_are_local(bowl, any_space):
    landscape = bowl(any_space, top=0.8, level=2)
    starts = starts_in(landscape.encoder, 30)
    starts = starts[np.isfinite(landscape.values(starts))]
    reached, values, _ = refine(landscape, starts, GAIN)
    assert np.all(values >= landscape.values(starts))
    jitter = np.random.default_rng(3).normal(0, 1e-3, reached.shape) * [
        d.kind == "float" for d in landscape.encoder.dimensions
    ]
    assert np.all(landscape.values(reached + jitter) <= values + 1e-9)


def test_conditions_are_evaluated_for_every_neighbour(landscape_of):
    """coef0 is active only for a poly kernel of degree 3, where the maximum is."""
    encoder = Encoder(conditional_space())
    kernel, degree, coef = (column(encoder, name) for name in ("kernel", "degree", "coef0"))

    def f(values, active):
        return active[:, kernel] * (values[:, kernel] == 1) + active[:, coef] * (2 - (values[:, coef] - 0.7) ** 2)

    def slope(values, active):
        out = np.zeros(values.shape)
        out[:, coef] = -2 * active[:, coef] * (values[:, coef] - 0.7)
        return out[:, [d.is_real for d in encoder.dimensions]]

    landscape = landscape_of(encoder, f, slope)
    start = np.zeros((1, len(encoder.names)))
    start[0, coef] = 0.2
    assert encoder.decode(landscape.place(start)[0])[0]["kernel"] == "linear"
    reached, *_ = refine(landscape, start, GAIN)
    config = encoder.decode(landscape.place(reached)[0])[0]
    assert config["kernel"] == "poly" and config["degree"] == 3
    assert reached[0, coef] == pytest.approx(0.7, abs=1e-6)
    assert all(c["degree"] != 5 for c in landscape.merit.predictor.visited if c["kernel"] == "poly")


def test_inactive_parameters_keep_their_unit_values(landscape_of):
    encoder = Encoder(conditional_space())
    kernel = column(encoder, "kernel")
    c = column(encoder, "C")
    n_real = len(encoder.real_names)

    def rbf_and_c(values, active):
        return (values[:, kernel] == 2) * 1.0 - (values[:, c] - 0.5) ** 2

    def slope(values, active):
        # The gradient by inactive parameters is not zero.
        out = np.full((len(values), n_real), 3.0)
        out[:, encoder.real_names.index("C")] = -2 * (values[:, c] - 0.5)
        out[:, encoder.real_names.index("gamma")] = 0.0
        return out

    start = np.random.default_rng(0).random((1, len(encoder.names)))
    start[0, kernel] = 0
    reached, *_ = refine(landscape_of(encoder, rbf_and_c, slope), start, GAIN)
    assert reached[0, kernel] == 2 and reached[0, c] == pytest.approx(0.5)
    for name in ("degree", "gamma", "coef0"):
        assert reached[0, column(encoder, name)] == start[0, column(encoder, name)]


def test_a_forbidden_relation_between_floats_is_not_crossed(bowl):
    space = ConfigurationSpace()
    a = Float("a", (0.0, 1.0))
    b = Float("b", (0.0, 1.0))
    space.add(a, b)
    space.add(ForbiddenLessThanRelation(a, b))
    landscape = bowl(space, top=np.array([0.2, 0.8]))
    reached, values, _ = refine(landscape, np.array([[0.9, 0.1], [0.5, 0.3]]), GAIN)
    assert np.all(np.isfinite(values)) and np.all(reached[:, 0] >= reached[:, 1])


def test_discrete_steps_follow_the_graph(landscape_of):
    """On a path the search does not cross the low values between start and maximum; on a complete graph it does."""
    space = ConfigurationSpace([Categorical("level", ["a", "b", "c", "d"])])
    height = np.array([0.5, 0.0, 0.2, 1.0])
    for graph, end in ((nx.path_graph(4), 0), (nx.complete_graph(4), 3)):
        encoder = Encoder(space, graphs={"level": nx.relabel_nodes(graph, dict(enumerate("abcd")))})
        landscape = landscape_of(encoder, lambda v, _: height[v[:, 0].astype(int)], lambda v, _: np.zeros((len(v), 0)))
        reached, *_ = refine(landscape, np.array([[0.0]]), GAIN)
        assert reached.tolist() == [[end]]


def test_taken_configurations_are_not_final(bowl):
    space = ConfigurationSpace([Integer("n", (0, 10)), Integer("m", (0, 10))])
    encoder = Encoder(space)
    taken = encoder.encode([{"n": 4, "m": 4}])
    landscape = bowl(encoder, top=0.41, taken=Taken(taken))
    reached, values, _ = refine(landscape, starts_in(encoder, 20), GAIN)
    assert np.all(np.isfinite(values))
    best = encoder.decode(landscape.place(reached[[np.argmax(values)]])[0])[0]
    assert sorted(best.values()) in ([4, 5],)


def test_integers_move_past_taken_values(bowl):
    encoder = Encoder(ConfigurationSpace([Integer("n", (0, 40))]))
    taken = Taken(encoder.encode([{"n": n} for n in range(10, 30)]))
    reached, *_ = refine(bowl(encoder, top=0.8, taken=taken), np.array([[0.1]]), GAIN)
    assert encoder.decode(encoder.resolve(reached)[0])[0]["n"] == 32


@pytest.mark.parametrize("within", [None, ["n + m == 5000"]])
def test_an_integer_reaches_a_maximum_that_is_thousands_of_steps_away(landscape_of, within):
    """Without a slope that the continuous search could follow."""
    encoder = Encoder({"n": (0, 5000), "m": (0, 5000), "level": ["a", "b"]}, within=within)
    columns = [column(encoder, name) for name in ("n", "m", "level")]
    top = [0.8124, 0.5 if within is None else 0.1876, 0]

    def height(values, _):
        return -np.abs(values[:, columns] - top).sum(axis=1)

    landscape = landscape_of(encoder, height, lambda values, _: np.zeros((len(values), 2)))
    reached, _, _ = refine(landscape, encoder.encode([{"n": 500, "m": 4500, "level": "b"}]).unit_values, GAIN)
    (best,) = encoder.decode(landscape.place(reached)[0])
    assert dict(best) == {"n": 4062, "m": 2500 if within is None else 938, "level": "a"}


def test_fixed_values_are_kept(bowl):
    encoder = Encoder(mixed_space())
    fixed = encoder.fix({"lr": 0.01, "layers": 5, "act": "gelu"})
    landscape = bowl(encoder, top=0.37, level=1, fixed=fixed)
    starts = fixed.put(starts_in(encoder))
    reached, values, _ = refine(landscape, starts, GAIN)
    configs = encoder.decode(landscape.place(reached)[0])
    assert {(c["lr"], c["layers"], c["act"], c["size"]) for c in configs} == {(0.01, 5, "gelu", "medium")}
    assert np.array_equal(reached[:, fixed.columns], starts[:, fixed.columns])
    assert np.array_equal(values, landscape.values(reached))
    gradients = landscape.relax().values_and_gradients(starts)[1]
    assert np.all(gradients[:, fixed.columns] == 0) and np.any(gradients != 0)


def test_genotypes_in_which_a_fixed_parameter_is_inactive_are_not_allowed(landscape_of):
    encoder = Encoder(conditional_space())
    landscape = landscape_of(
        encoder,
        lambda values, active: np.zeros(len(values)),
        lambda values, active: np.zeros(values.shape),
        fixed=encoder.fix({"degree": 2}),
    )
    starts = starts_in(encoder, 40)
    active = encoder.resolve(starts)[0].active[:, column(encoder, "degree")]
    assert 0 < active.sum() < 40
    assert np.array_equal(np.isfinite(landscape.values(starts)), active)
