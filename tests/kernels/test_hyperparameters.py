"""A kernel made of two kernels, whose hyperparameters live in namespaces, and the laws that every kernel obeys."""

from __future__ import annotations

import numpy as np
import pytest
import test_laws as laws
from testing_kernels import random_points, random_theta
from testing_spaces import conditional_space, mixed_space

import slayr_py as sl
from slayr_py.kernels import FrequencyModulated, Hierarchical, Hyperparameter, Kernel, Matern, Separable
from slayr_py.kernels.contracts import Contract, Parameter
from slayr_py.kernels.hyperparameters import add_namespace, part_draws
from slayr_py.space import Encoder


class Sum(Kernel):
    """The sum of two kernels, with one signal standard deviation."""

    name = "sum"

    def __init__(self, first, second):
        self.parts = {"1:": first, "2:": second}
        self.needs_graphs = first.needs_graphs or second.needs_graphs

    @property
    def contract(self):
        parameters = [
            Parameter(namespace + p.name, p.shape, p.meaning, support=p.support)
            for namespace, part in self.parts.items()
            for p in part.contract.own_parameters
        ]
        return Contract("sum_gp", (), tuple(parameters))

    def options(self):
        return dict(zip(("first", "second"), self.parts.values(), strict=True))

    @property
    def description(self):
        return " + ".join(part.description for part in self.parts.values())

    def hyperparameters(self, encoder):
        return tuple(h for ns, part in self.parts.items() for h in add_namespace(ns, part.hyperparameters(encoder)))

    def stan_data(self, train, new):
        raise NotImplementedError("evaluated in NumPy only")

    def cross(self, a, b, draws):
        return sum(part.cross(a, b, part_draws(ns, draws)) for ns, part in self.parts.items())

    def cross_gradient(self, a, b, draws):
        pairs = [part.cross_gradient(a, b, part_draws(ns, draws)) for ns, part in self.parts.items()]
        return tuple(sum(values) for values in zip(*pairs, strict=True))

    def diagonal(self, a, draws):
        return sum(part.diagonal(a, part_draws(ns, draws)) for ns, part in self.parts.items())

    def diagonal_gradient(self, a, draws):
        return sum(part.diagonal_gradient(a, part_draws(ns, draws)) for ns, part in self.parts.items())


SUMS = {
    "of one class": (Sum(Matern(1), Matern(2)), conditional_space()),
    "of two programs": (Sum(Hierarchical("rq"), FrequencyModulated("power")), mixed_space()),
    "of sums": (Sum(Sum(Matern(2), Separable()), FrequencyModulated("neural")), mixed_space()),
}


@pytest.fixture(params=sorted(SUMS))
def case(request):
    kernel, space = SUMS[request.param]
    return kernel, Encoder(space)


@pytest.mark.parametrize(
    "law",
    [
        laws.test_gram_is_symmetric_and_positive_semidefinite,
        laws.test_nothing_writes_into_the_points,
        laws.test_diagonal_is_that_of_the_gram_matrix,
        laws.test_equal_points_are_interchangeable,
        laws.test_draws_are_computed_together,
        laws.test_gradients_are_those_of_finite_differences,
        laws.test_priors_fit_the_hyperparameters,
        laws.test_bad_hyperparameters_are_named,
    ],
    ids=lambda law: law.__name__.removeprefix("test_"),
)
def test_laws_of_a_sum(law, case):
    law(case)


def test_a_sum_is_the_sum_of_its_parts():
    encoder, (kernel, _) = Encoder(mixed_space()), SUMS["of two programs"]
    points = random_points(encoder, 10, 0)
    theta = random_theta(kernel, encoder, np.random.default_rng(1))
    wanted = 0
    for namespace, part in kernel.parts.items():
        names = {h.name for h in part.hyperparameters(encoder)}
        own = {name: theta[namespace + name] for name in names}
        wanted += part.gram(points, points, own | {"sigma_f": theta["sigma_f"]})
    np.testing.assert_allclose(kernel.gram(points, points, theta), wanted, rtol=1e-14)


def test_parts_of_a_model_have_names_labels_and_priors_of_their_own():
    encoder, (kernel, _) = Encoder(conditional_space()), SUMS["of one class"]
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
