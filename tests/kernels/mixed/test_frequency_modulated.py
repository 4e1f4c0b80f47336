from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer
from scipy.linalg import expm
from sklearn.metrics.pairwise import rbf_kernel
from testing_kernels import graphs_only_space, random_points, random_theta
from testing_spaces import conditional_space, mixed_space

import slayr_py as sl
from slayr_py.kernels import FrequencyModulated, Hierarchical, Separable
from slayr_py.space import Encoder


def laplacians(encoder):
    """Return the Laplacian of every graph by definition."""
    return [
        nx.laplacian_matrix(graph, nodelist=sorted(graph, key=encoder.dimensions[encoder.names.index(n)].levels.index))
        .toarray()
        .astype(float)
        for n, graph in encoder.graphs.items()
    ]


def spectral_sum(laplacian, v, w, f):
    """Return sum_i u_i[v] u_i[w] f(lambda_i) from the full decomposition, without grouping eigenvalues."""
    eigenvalues, u = np.linalg.eigh(laplacian)
    return sum(u[v, i] * u[w, i] * f(eigenvalues[i]) for i in range(len(eigenvalues)))


def arc_sine(c, d, theta):
    s = np.diag([theta["bias"] ** 2, *theta["lengthscale"] ** -2.0])
    c = np.array([1, *c])
    d = np.array([1, *d])
    return 2 / np.pi * np.arcsin(2 * c @ s @ d / np.sqrt((1 + 2 * c @ s @ c) * (1 + 2 * d @ s @ d)))


def by_definition(kernel, points, theta):
    """Evaluate the formulas of the paper one entry at a time."""
    encoder = points.encoder
    n = len(points)
    name = kernel.options()["modulator"]
    k = np.full((n, n), float(theta["sigma_f"]) ** 2)
    for i in range(n):
        for j in range(n):
            r = np.linalg.norm((points.real[i] - points.real[j]) / theta["lengthscale"])
            for p, laplacian in enumerate(laplacians(encoder)):
                beta = theta["beta"][p]
                alpha = theta["alpha"][p] if "alpha" in theta else None

                def f(x, r=r, alpha=alpha, beta=beta, i=i, j=j):
                    if name == "laplacian":
                        return 1 / (1 + beta * x + alpha * r**2)
                    if name == "power":
                        base = 1 + beta * x + alpha * r ** kernel.options()["tau"]
                        return sum(w * base ** -(m + 1.0) for m, w in enumerate(theta["weights"]))
                    if name == "neural":
                        return 1 / (2 + beta * x - arc_sine(points.real[i], points.real[j], theta))
                    return np.exp(-(1 + alpha * r**2) * beta * x)

                k[i, j] *= spectral_sum(laplacian, points.vertices[i, p], points.vertices[j, p], f)
    return k


@pytest.mark.parametrize(
    "kernel",
    [
        FrequencyModulated(),
        FrequencyModulated("power", orders=3),
        FrequencyModulated("power", orders=4, tau=0.7),
        FrequencyModulated("neural"),
        FrequencyModulated("diffusion"),
    ],
    ids=str,
)
def test_the_definition(kernel):
    encoder = Encoder(mixed_space())
    points = random_points(encoder, 8, 0)
    for seed in range(5):
        theta = random_theta(kernel, encoder, np.random.default_rng(seed))
        np.testing.assert_allclose(kernel.gram(points, points, theta), by_definition(kernel, points, theta), rtol=1e-10)


@pytest.mark.parametrize("modulator", ["laplacian", "power", "neural", "diffusion", Hierarchical("matern")], ids=str)
def test_ranks_of_ordinals_are_integers(modulator):
    ordered = mixed_space()
    counted = ConfigurationSpace()
    counted.add(*(Integer("size", (0, 2)) if name == "size" else h for name, h in ordered.items()))
    kernel = FrequencyModulated(modulator, ordinals="ranks")
    encoder = Encoder(ordered)
    configs = encoder.sobol(12, seed=4)
    points = encoder.encode(configs)
    ranks = {"small": 0, "medium": 1, "large": 2}
    same = Encoder(counted).encode([{**c, "size": ranks[c["size"]]} for c in configs])
    theta = random_theta(kernel, encoder, np.random.default_rng(5))
    k = kernel.gram(points, points, theta)
    np.testing.assert_allclose(k, FrequencyModulated(modulator).gram(same, same, theta), rtol=1e-12)


def test_with_ranks_no_level_of_an_ordinal_has_a_larger_variance():
    encoder = Encoder(graphs_only_space())
    sizes = encoder.encode([{"colour": "red", "size": size} for size in ["s", "m", "l", "xl", "xxl"]])
    path = FrequencyModulated().gram(sizes, sizes, {"beta": [1.0, 10.0]})
    assert path[0, 0] > 1.2 * path[2, 2]
    ranks = FrequencyModulated(ordinals="ranks").gram(
        sizes, sizes, {"lengthscale": [0.5], "alpha": [1.0], "beta": [1.0]}
    )
    np.testing.assert_allclose(np.diag(ranks), ranks[0, 0], rtol=1e-12)


def test_without_real_parameters_it_is_the_graph_kernel():
    # U 1/(1 + beta Lambda) U' is the inverse of I + beta L, which needs no eigenvectors.
    encoder = Encoder(graphs_only_space())
    points = random_points(encoder, 20, 1)
    theta = {"lengthscale": [], "alpha": [1.0, 2.0], "beta": [0.3, 4.0]}
    wanted = np.ones((20, 20))
    for p, (laplacian, beta) in enumerate(zip(laplacians(encoder), theta["beta"], strict=True)):
        inverse = np.linalg.inv(np.eye(len(laplacian)) + beta * laplacian)
        wanted *= inverse[np.ix_(points.vertices[:, p], points.vertices[:, p])]
    for given in (theta, {"beta": theta["beta"]}):
        k = FrequencyModulated().gram(points, points, given)
        np.testing.assert_allclose(k, wanted, rtol=1e-10, atol=1e-15)
    for combine in ("product", "sum"):
        k = FrequencyModulated(Hierarchical(combine=combine)).gram(points, points, {"beta": theta["beta"]})
        np.testing.assert_allclose(k, wanted, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("combine", ["product", "sum"])
@pytest.mark.parametrize("graph", ["laplacian", "diffusion"])
def test_separate_kernels(graph, combine):
    encoder = Encoder(mixed_space())
    kernel = Separable(graph, combine)
    points = random_points(encoder, 15, 2)
    theta = random_theta(kernel, encoder, np.random.default_rng(3))
    smooth = rbf_kernel(points.real / theta["lengthscale"], gamma=0.5)
    on_graphs = np.ones((15, 15))
    for p, (laplacian, beta) in enumerate(zip(laplacians(encoder), theta["beta"], strict=True)):
        of_graph = {"laplacian": lambda m: np.linalg.inv(np.eye(len(m)) + m), "diffusion": lambda m: expm(-m)}[graph]
        on_graphs *= of_graph(beta * laplacian)[np.ix_(points.vertices[:, p], points.vertices[:, p])]
    wanted = theta["sigma_f"] ** 2 * (smooth * on_graphs if combine == "product" else smooth + on_graphs)
    np.testing.assert_allclose(kernel.gram(points, points, theta), wanted, rtol=1e-9)


def ladder(levels):
    """Return configurations with every level of a path graph at increasing values of one real parameter."""
    space = ConfigurationSpace()
    space.add(Float("c", (0.0, 1.0)), Categorical("v", list(range(levels)), ordered=True))
    encoder = Encoder(space)
    origins = encoder.encode([{"c": 0.0, "v": v} for v in range(levels)])
    rungs = [encoder.encode([{"c": c, "v": v} for v in range(levels)]) for c in np.linspace(0, 1, 40)]
    return encoder, origins, rungs


@pytest.mark.parametrize("levels", [2, 5, 9])
@pytest.mark.parametrize(
    "kernel", [FrequencyModulated(), FrequencyModulated("power", orders=3, tau=1.3)], ids=["laplacian", "power"]
)
def test_modulation_principle(kernel, levels):
    encoder, origins, rungs = ladder(levels)
    for seed in range(10):
        theta = random_theta(kernel, encoder, np.random.default_rng(seed))
        k = np.array([kernel.gram(origins, rung, theta) for rung in rungs])
        assert k.min() > -1e-15
        assert np.diff(k, axis=0).max() < 1e-15


@pytest.mark.parametrize("levels", [2, 5, 9])
def test_modulation_principle_in_the_neural_kernel(levels):
    # The kernel never increases as k_NN decreases: sort the values by k_NN.
    encoder, origins, rungs = ladder(levels)
    kernel = FrequencyModulated("neural")
    for seed in range(10):
        theta = random_theta(kernel, encoder, np.random.default_rng(seed))
        theta["beta"] = theta["beta"] * 3
        similarity = [arc_sine(origins.real[0], rung.real[0], theta) for rung in rungs]
        k = np.array([kernel.gram(origins, rungs[i], theta) for i in np.argsort(similarity)[::-1]])
        assert k.min() > -1e-15
        assert np.diff(k, axis=0).max() < 1e-15


def test_diffusion_violates_the_principle():
    encoder, origins, rungs = ladder(5)
    theta = {"lengthscale": [0.5], "alpha": [1.0], "beta": [1.0]}
    k = np.array([FrequencyModulated("diffusion").gram(origins, rung, theta) for rung in rungs])
    # The correlation of two different levels increases with the distance of the real parameter.
    assert k[:, 0, 1].max() > k[0, 0, 1] + 1e-3


def test_a_hierarchical_modulator_by_hand():
    encoder = Encoder(conditional_space())
    modulator = Hierarchical("matern")
    kernel = FrequencyModulated(modulator)
    points = random_points(encoder, 30, 4)
    theta = random_theta(kernel, encoder, np.random.default_rng(5))
    labels = {h.name: h.labels for h in kernel.hyperparameters(encoder)}
    assert labels["gamma"] == tuple(n for n in encoder.names if n in {"kernel", "degree", "gamma", "coef0", "C"})
    # Evaluate the modulator on the whole space; a huge length-scale removes its only categorical dimension.
    position = {name: encoder.real_names.index(name) for name in encoder.real_names}
    whole = {
        "gamma": theta["gamma"],
        "rho": [theta["rho"][position[n]] if n in position else 0.5 for n in encoder.names],
        "lengthscale": [theta["lengthscale"][position[n]] if n in position else 1e12 for n in encoder.names],
    }
    inner = modulator.gram(points, points, whole)
    laplacian = laplacians(encoder)[0]
    v = points.vertices[:, 0]
    eigenvalues, u = np.linalg.eigh(laplacian)
    f = 1 / (1 + theta["beta"][0] * eigenvalues[:, None, None] + theta["alpha"][0] * (1 - inner))
    wanted = np.einsum("ig,gij,jg->ij", u[v], f, u[v])
    np.testing.assert_allclose(
        kernel.gram(points, points, theta), theta["sigma_f"] ** 2 * wanted, rtol=1e-9, atol=1e-15
    )


def test_inactive_category_is_an_extra_vertex():
    space = conditional_space()
    encoder = Encoder(space)
    assert [len(s.group_of) for s in encoder.spectra.values()] == [3]


@pytest.mark.parametrize("modulator", ["laplacian", "power", "neural", "diffusion"])
def test_two_levels_correlate_one_half_at_the_prior_median(modulator):
    encoder = Encoder(mixed_space())
    kernel = FrequencyModulated(modulator)
    beta = np.exp(sl.GaussianProcess(encoder, kernel).priors["beta"].mu)
    for laplacian, b in zip(laplacians(encoder), beta, strict=True):
        eigenvalues, u = np.linalg.eigh(laplacian)
        f = {
            "power": lambda z: ((1 + z) ** -1 + (1 + z) ** -2 + (1 + z) ** -3) / 3,
            "diffusion": lambda z: np.exp(-z),
        }.get(modulator, lambda z: 1 / (1 + z))(b * eigenvalues)
        k = u @ np.diag(f) @ u.T
        m = len(k)
        assert (k.sum() - np.trace(k)) / (m - 1) / np.trace(k) == pytest.approx(0.5, rel=1e-9)


def test_real_parameters_have_as_much_influence_as_a_squared_exponential_at_the_prior_median():
    encoder = Encoder(mixed_space())
    graphs = len(encoder.graph_names)

    def medians(kernel, name):
        return np.exp(sl.GaussianProcess(encoder, kernel).priors[name].mu)

    for modulator in ("laplacian", "power", "diffusion"):
        np.testing.assert_allclose(medians(FrequencyModulated(modulator), "alpha"), 1 / (2 * graphs))
    neural = medians(FrequencyModulated("neural"), "lengthscale")
    np.testing.assert_allclose(neural, 0.3 * np.sqrt(len(encoder.real_names)))
    # Under a conditional kernel the farthest configurations correlate 1/20 over all graphs.
    np.testing.assert_allclose((1 + medians(FrequencyModulated(Hierarchical("se")), "alpha")) ** graphs, 20)


def test_many_categories_are_no_white_noise_under_the_prior():
    """At the prior medians each of 20 categories leaves a correlation of 7/8; a single level does not count."""
    encoder = Encoder(ConfigurationSpace({f"h{i}": [*range(4)] for i in range(20)} | {"one": ["level"]}))
    beta = np.exp(sl.GaussianProcess(encoder, FrequencyModulated()).priors["beta"].mu)
    points = encoder.encode([{f"h{i}": level for i in range(20)} | {"one": "level"} for level in (0, 3)])
    k = FrequencyModulated().gram(points, points, {"lengthscale": [], "alpha": np.ones(len(beta)), "beta": beta})
    assert k[0, 1] / k[0, 0] == pytest.approx((7 / 8) ** 20, rel=1e-9)


def test_neural_takes_and_ignores_alpha():
    encoder = Encoder(mixed_space())
    kernel = FrequencyModulated("neural")
    points = random_points(encoder, 4, 6)
    theta = random_theta(kernel, encoder, np.random.default_rng(7))
    with_alpha = theta | {"alpha": np.full(len(encoder.graph_names), 5.0)}
    assert np.array_equal(kernel.gram(points, points, theta), kernel.gram(points, points, with_alpha))


def test_no_damping_makes_levels_independent():
    encoder = Encoder(graphs_only_space())
    kernel = FrequencyModulated()
    points = encoder.encode([{"colour": c, "size": s} for c in ("red", "white") for s in ("s", "xl")])
    k = kernel.gram(points, points, {"lengthscale": [], "alpha": [0.0, 0.0], "beta": [0.0, 0.0]})
    np.testing.assert_allclose(k, np.eye(4), atol=1e-14)


@pytest.mark.parametrize("modulator", ["laplacian", "power", "neural", "diffusion"])
def test_the_response_at_zero_is_the_response_under_the_prior_mean(modulator):
    """Prior locations depend on its last digits, so that the mixture of powers has its own formula."""
    kernel = FrequencyModulated(modulator)
    z = np.array([0.0, 0.3, 40.0])
    orders = getattr(kernel.modulator, "orders", 1)
    response = kernel.modulator.response({"weights": np.full((1, orders), 1 / orders)})
    expected = response.term(np.ones(3), z, np.ones(3), out=np.empty(3))
    np.testing.assert_allclose(kernel.modulator.response_at_zero(z), expected, rtol=1e-14)
