"""Namespaces of the hyperparameters of a kernel made of two kernels."""

from __future__ import annotations

import numpy as np
from testing_kernels import SUMS, random_points, random_theta
from testing_spaces import conditional_space, mixed_space

import slayr_py as sl
from slayr_py.kernels import Hyperparameter, Matern
from slayr_py.kernels.hyperparameters import add_namespace
from slayr_py.space import Encoder


def test_a_sum_is_the_sum_of_its_parts():
    encoder = Encoder(mixed_space())
    (kernel, _) = SUMS["of two programs"]
    points = random_points(encoder, 10, 0)
    theta = random_theta(kernel, encoder, np.random.default_rng(1))
    wanted = 0
    for namespace, part in kernel.parts.items():
        names = {h.name for h in part.hyperparameters(encoder)}
        own = {name: theta[namespace + name] for name in names}
        wanted += part.gram(points, points, own | {"sigma_f": theta["sigma_f"]})
    np.testing.assert_allclose(kernel.gram(points, points, theta), wanted, rtol=1e-14)


def test_parts_of_a_model_have_names_labels_and_priors_of_their_own():
    encoder = Encoder(conditional_space())
    (kernel, _) = SUMS["of one class"]
    model = sl.GaussianProcess(encoder, kernel, {"2:lengthscale": sl.LogNormal(3.0, 0.1)})
    assert list(model.priors) == ["mu", "sigma_f", "sigma_n", "1:lengthscale", "2:lengthscale"]
    assert model.priors["1:lengthscale"] == Matern().hyperparameters(encoder)[0].prior
    assert model.hyperparameters[-1].prior == sl.LogNormal(3.0, 0.1)
    assert [h.dimension for h in model.hyperparameters[-2:]] == ["1:encoded_column", "2:encoded_column"]
    assert model.hyperparameters[-1].entries[0] == f"2:lengthscale[{encoder.column_names[0]}]"
    assert list(model.parameter_shapes) == ["z_mu", "z_sigma_f", "z_sigma_n", "z_1:lengthscale", "z_2:lengthscale"]
    assert kernel.program == "sum_gp" and Matern().program == "matern_gp"


def test_scalars_have_no_dimension_in_a_namespace():
    scalar, vector = add_namespace(
        "3:", [Hyperparameter("bias", sl.LogNormal(0, 1)), Hyperparameter("rho", sl.Beta(1, 1), ("x",), "real")]
    )
    assert (scalar.name, scalar.dimension, vector.name, vector.dimension) == ("3:bias", "", "3:rho", "3:real")
