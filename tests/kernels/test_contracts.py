from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from testing_kernels import CASES, random_points

import slayr_py as sl
from slayr_py.kernels import Hyperparameter, program_contracts
from slayr_py.kernels.contracts import LENGTHS
from slayr_py.kernels.matern import MATERN_GP
from slayr_py.kernels.mixed.contract import FM_GP
from slayr_py.space import Encoder


@pytest.fixture(params=sorted(CASES))
def model(request):
    kernel, space = CASES[request.param]
    return sl.GaussianProcess(Encoder(space), kernel).model


def entries(model, n=4, m=2):
    points = random_points(model.encoder, n + m, 0)
    return model.kernel.stan_data(points[:n], points[n:]) | {"y": np.zeros(n)}


def test_data_have_every_entry_in_its_shape(model):
    contract = model.kernel.contract
    data = contract.data(entries(model), model.hyperparameters)
    priors = {
        name: replace(parameter, shape=axes)
        for parameter in contract.parameters
        for name, axes in parameter.prior_entries.items()
    }
    assert set(data) == {entry.name for entry in contract.entries} | set(priors)
    for entry in contract.entries:
        assert np.shape(data[entry.name]) == entry.lengths(data)
    for name, parameter in priors.items():
        assert np.shape(data[name]) == parameter.lengths(data)


def test_shapes_of_coordinates_are_those_of_their_priors(model):
    contract = model.kernel.contract
    data = contract.data(entries(model), model.hyperparameters)
    lengths = {parameter.coordinate: parameter.lengths(data) for parameter in contract.parameters}
    shapes = {name: shape for name, shape in lengths.items() if shape != (0,)}
    assert list(model.parameter_shapes.items()) == list(shapes.items())


def test_theta_is_split_in_the_order_of_the_program(model):
    lengths = {h.name: int(np.prod(h.shape)) for h in model.hyperparameters if h.shape != (0,)}
    theta = np.arange(2.0 * sum(lengths.values())).reshape(2, -1)
    parts = model.kernel.contract.split(theta, dict(reversed(lengths.items())))
    order = [parameter.name for parameter in model.kernel.contract.parameters]
    assert list(parts) == [name for name in order if name in lengths]
    assert {name: part.shape for name, part in parts.items()} == {name: (2, n) for name, n in lengths.items()}
    assert np.array_equal(np.hstack(list(parts.values())), theta)
    for wrong in (lengths | {"sigma_n": 2}, lengths | {"other": 0}):
        with pytest.raises(ValueError, match=f"has {theta.shape[1]} entries"):
            model.kernel.contract.split(theta, wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": 1}, "unknown or missing entries ['q']"),
        ({"U": None}, "unknown or missing entries ['U']"),
        ({"U": np.zeros((4, 1))}, "'U' is real of shape (4, 6)"),
        ({"N": 5}, "'y' is real of shape (5,), got float64 of shape (4,)"),
        ({"P": 2.0}, "'P' is int of shape (), got float64"),
        ({"modulator": 6}, "'modulator' is int"),
        ({"modulator": 2}, "'weights_concentration' is real of shape (1,), got float64 of shape (0,)"),
        ({"y": np.array(["1"] * 4)}, "'y' is real of shape (4,), got <U1"),
    ],
)
def test_wrong_data_are_named(change, message):
    kernel, space = CASES["fm-laplacian"]
    model = sl.GaussianProcess(Encoder(space), kernel)
    given = {name: value for name, value in (entries(model) | change).items() if value is not None}
    with pytest.raises(ValueError, match=re.escape(message)):
        FM_GP.data(given, model.hyperparameters)


@pytest.mark.parametrize(
    ("h", "message"),
    [
        (Hyperparameter("rho", sl.Beta(1, 1), ("x",)), "matern_gp has no hyperparameter 'rho'"),
        (Hyperparameter("lengthscale", sl.Beta(1, 1), ("x",)), "declares 'lengthscale' as positive"),
        (Hyperparameter("mu", sl.Normal(0, 1), ("x",)), "declares 'mu' as real of shape ()"),
    ],
)
def test_wrong_hyperparameters_are_named(h, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MATERN_GP.ordered([h])


def test_a_length_or_a_condition_is_an_integer_of_the_data():
    for contract in program_contracts().values():
        scalars = {entry.name for entry in contract.entries if entry.type == "int" and not entry.shape}
        for variable in (*contract.entries, *contract.parameters):
            assert {axis for axis in variable.shape if not axis.isdigit()} | set(variable.when) <= scalars | set(
                LENGTHS
            )
