"""Laws that every kernel obeys."""

from __future__ import annotations

import numpy as np
import pytest
from testing_kernels import CASES, own_names, random_points, random_theta

from slayr_py import DataError, SpaceError
from slayr_py.space import Encoded, Encoder


@pytest.fixture(params=sorted(CASES))
def case(request):
    kernel, space = CASES[request.param]
    return kernel, Encoder(space)


def draws_of(theta):
    return {name: np.asarray(value)[None] for name, value in theta.items()}


def test_every_registered_kernel_has_a_case():
    assert {kernel.name for kernel, _ in CASES.values()} == own_names()


def test_gram_is_symmetric_and_positive_semidefinite(case):
    kernel, encoder = case
    points = random_points(encoder, 200, 0)
    rng = np.random.default_rng(1)
    for _ in range(10):
        k = kernel.gram(points, points, random_theta(kernel, encoder, rng))
        np.testing.assert_allclose(k, k.T, rtol=1e-12)
        assert np.linalg.eigvalsh(k).min() > -1e-12 * np.trace(k)


def test_points_of_two_spaces_have_no_covariance(case):
    kernel, encoder = case
    points = random_points(encoder, 3, 0)
    theta = random_theta(kernel, encoder, np.random.default_rng(1))
    other = random_points(Encoder({"other": (0.0, 1.0)}), 3, 0)
    for a, b in ((points, other), (other, points)):
        with pytest.raises(SpaceError, match="encode both with one encoder"):
            kernel.gram(a, b, theta)
    equal = random_points(Encoder(encoder.space, encoder.requested_graphs), 3, 0)
    assert np.array_equal(kernel.gram(points, equal, theta), kernel.gram(points, points, theta))


def test_nothing_writes_into_the_points(case):
    kernel, encoder = case
    points = random_points(encoder, 5, 0)
    before = points.unit_values.copy(), points.active.copy()
    draws = draws_of(random_theta(kernel, encoder, np.random.default_rng(0)))
    kernel.cross_gradient(points, points, draws)
    kernel.diagonal_gradient(points, draws)
    assert np.array_equal(before[0], points.unit_values) and np.array_equal(before[1], points.active)


def test_diagonal_is_that_of_the_gram_matrix(case):
    kernel, encoder = case
    points = random_points(encoder, 30, 2)
    theta = random_theta(kernel, encoder, np.random.default_rng(3))
    diagonal = kernel.diagonal(points, draws_of(theta))[0]
    np.testing.assert_allclose(diagonal, np.diag(kernel.gram(points, points, theta)), rtol=1e-12)


def test_equal_points_are_interchangeable(case):
    kernel, encoder = case
    points = random_points(encoder, 6, 4)
    doubled = points.concatenate(points)
    k = kernel.gram(doubled, doubled, random_theta(kernel, encoder, np.random.default_rng(5)))
    np.testing.assert_allclose(k[:6, :6], k[6:, :6], rtol=1e-13)


def test_draws_are_computed_together(case):
    kernel, encoder = case
    a = random_points(encoder, 7, 6)
    b = random_points(encoder, 5, 7)
    rng = np.random.default_rng(8)
    thetas = [random_theta(kernel, encoder, rng) for _ in range(4)]
    draws = {name: np.array([theta[name] for theta in thetas]) for name in thetas[0]}
    for k, theta in zip(kernel.cross(a, b, draws), thetas, strict=True):
        np.testing.assert_allclose(k, kernel.gram(a, b, theta), rtol=1e-12)


def test_no_points_have_empty_matrices(case):
    kernel, encoder = case
    none = random_points(encoder, 3, 6)[:0]
    points = random_points(encoder, 5, 7)
    draws = draws_of(random_theta(kernel, encoder, np.random.default_rng(8)))
    for a, b in ((none, points), (points, none), (none, none)):
        assert kernel.cross(a, b, draws).shape == (1, len(a), len(b))
        assert kernel.component_cross(a, b, draws).shape[1:] == (1, len(a), len(b))
    assert kernel.diagonal(none, draws).shape == (1, 0)


def test_gradients_are_those_of_finite_differences(case):
    kernel, encoder = case
    a = random_points(encoder, 12, 9)
    b = random_points(encoder, 6, 10)
    b = a[:2].concatenate(b)  # coinciding points
    draws = draws_of(random_theta(kernel, encoder, np.random.default_rng(11)))
    k, gradient = kernel.cross_gradient(a, b, draws)
    np.testing.assert_allclose(k, kernel.cross(a, b, draws), rtol=1e-12)
    own = kernel.diagonal_gradient(a, draws)
    h = 1e-6
    for position, name in enumerate(encoder.real_names):
        j = encoder.names.index(name)
        step = np.zeros_like(a.unit_values)
        step[:, j] = h * a.active[:, j]
        up, down = (Encoded(a.unit_values + sign * step, a.active, encoder) for sign in (1, -1))
        wanted = (kernel.cross(up, b, draws) - kernel.cross(down, b, draws)) / (2 * h)
        # Derivatives by inactive inputs are not used.
        on = a.active[:, j]
        np.testing.assert_allclose(gradient[0, on, :, position], wanted[0, on], atol=2e-6 * np.abs(k).max())
        wanted = (kernel.diagonal(up, draws) - kernel.diagonal(down, draws)) / (2 * h)
        np.testing.assert_allclose(own[0, on, position], wanted[0, on], atol=2e-6 * np.abs(k).max())


def test_priors_fit_the_hyperparameters(case):
    kernel, encoder = case
    hyperparameters = kernel.hyperparameters(encoder)
    assert len({h.name for h in hyperparameters}) == len(hyperparameters)
    for h in hyperparameters:
        entries = h.prior.stan_data(h.name, h.labels)
        shapes = {name: (*h.shape, 3) if name.endswith("_gamma") else h.shape for name in entries}
        assert {name: np.shape(value) for name, value in entries.items()} == shapes
        assert h.labels is None or h.dimension


@pytest.mark.parametrize(("case", "name"), [("fm-power", "weights"), ("pretrained-plain", "share")], indirect=["case"])
def test_weights_in_single_precision_are_accepted(case, name):
    kernel, encoder = case
    points = random_points(encoder, 3, 14)
    theta = random_theta(kernel, encoder, np.random.default_rng(15))
    for w in (np.array([0.2, 0.3, 0.5]), np.array([0.7, 0.1, 0.2])):
        single = kernel.gram(points, points, theta | {name: w.astype(np.float32)})
        np.testing.assert_allclose(single, kernel.gram(points, points, theta | {name: w}), rtol=1e-6)
    with pytest.raises(DataError, match=r"with sum 0.999; it must be non-negative with sum 1"):
        kernel.gram(points, points, theta | {name: [0.2, 0.3, 0.499]})


def test_bad_hyperparameters_are_named(case):
    kernel, encoder = case
    points = random_points(encoder, 3, 14)
    theta = random_theta(kernel, encoder, np.random.default_rng(15))
    name = next(h.name for h in kernel.hyperparameters(encoder) if h.shape != (0,))
    without = {k: v for k, v in theta.items() if k != name}
    negative = theta | {name: -np.ones_like(theta[name])}
    for bad, phrase in [
        (theta | {"sigma": 1.0}, "no hyperparameter ['sigma']"),
        (without, f"theta has no {name!r}"),
        (theta | {name: np.ones(77)}, "has shape (77,)"),
        (negative, f"theta[{name!r}] is"),
        (theta | {"sigma_f": np.nan}, "'sigma_f'"),
    ]:
        with pytest.raises(DataError) as error:
            kernel.gram(points, points, bad)
        assert phrase in str(error.value)
