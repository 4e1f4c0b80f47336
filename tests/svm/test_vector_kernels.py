from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from slayr_py import DataError, svm

RNG = np.random.default_rng(3)
A = RNG.normal(size=(6, 4))
B = RNG.normal(size=(5, 4))


def elementwise(function):
    return np.array([[function(a, b) for b in B] for a in A])


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        (svm.Linear(), lambda a, b: sum(a * b)),
        (svm.Polynomial(3, 0.5, 2.0), lambda a, b: (0.5 * sum(a * b) + 2.0) ** 3),
        (svm.Polynomial(1, coef0=0.0), lambda a, b: sum(a * b) / 4),
        (svm.RBF(0.3), lambda a, b: np.exp(-0.3 * sum((a - b) ** 2))),
        (svm.RBF(), lambda a, b: np.exp(-sum((a - b) ** 2) / 4)),
        (svm.Laplacian(0.3), lambda a, b: np.exp(-0.3 * sum(abs(a - b)))),
        (svm.Matern(0, 2.0), lambda a, b: np.exp(-np.sqrt(sum((a - b) ** 2)) / 2)),
    ],
)
def test_formulas(kernel, function):
    np.testing.assert_allclose(kernel(A, B), elementwise(function), rtol=1e-12)


@pytest.mark.parametrize("p", [0, 1, 2])
@pytest.mark.parametrize("lengthscale", [0.7, [0.5, 1.0, 2.0, 4.0]])
def test_matern_agrees_with_scikit_learn(p, lengthscale):
    wanted = Matern(length_scale=lengthscale, nu=p + 0.5)(A, B)
    np.testing.assert_allclose(svm.Matern(p, lengthscale)(A, B), wanted, rtol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "match"),
    [
        (svm.Polynomial(coef0=-0.5), r"coef0 .* at least 0 .* -0\.5"),
        (svm.Polynomial(degree=0), "degree .* 0"),
        (svm.Polynomial(degree=2.5), r"degree .* 2\.5"),
        (svm.Polynomial(degree=True), "degree .* True"),
        (svm.Polynomial(gamma=-1.0), r"gamma .* -1\.0"),
        (svm.RBF(gamma=0.0), r"gamma of RBF .* 0\.0"),
        (svm.RBF(gamma=np.inf), "gamma .* inf"),
        (svm.RBF(gamma="scale"), "gamma .* 'scale'"),
        (svm.Laplacian(gamma=np.nan), "gamma of Laplacian .* nan"),
        (svm.Matern(p=-1), "p must be .* -1"),
        (svm.Matern(lengthscale=[1.0, 1.0, 0.0, 1.0]), r"lengthscale .* 0\.0"),
        (svm.Matern(lengthscale=[1.0, 2.0]), r"lengthscale has shape \(2,\); the points have 4 columns"),
        (svm.Matern(lengthscale="long"), "lengthscale .* 'long'"),
        (svm.Polynomial(degree=400, gamma=100.0), r"kernel value at \(0, 0\) is inf"),
    ],
)
def test_invalid_parameters_are_named(kernel, match):
    with pytest.raises(DataError, match=match):
        svm.KernelFactorization(kernel).fit(A)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("sigmoid", {}, "'sigmoid' is not a Mercer kernel"),
        ("rfb", {}, "'rfb'; did you mean 'rbf'"),
        ("rbf", {"gama": 1.0}, "'rbf' cannot be made .* 'gama'"),
        ("diffusion", {}, "'graph'"),
        (svm.RBF(), {"gamma": 1.0}, "cannot be added to RBF"),
        (3, {}, "unknown kernel 3"),
    ],
)
def test_invalid_names_and_options_raise(name, options, match):
    with pytest.raises(DataError, match=match):
        svm.from_name(name, **options)
