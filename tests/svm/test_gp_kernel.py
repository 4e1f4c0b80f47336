"""Kernels of fitted Gaussian processes in support vector machines."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from slayr_py import DataError, SpaceError, svm
from slayr_py.errors import StorageError
from slayr_py.kernels import Pretrained
from slayr_py.space import Encoder

SPACE = {"x": (0.0, 1.0)}


@pytest.fixture(params=["branin_posterior", "mixed_posterior"])
def posterior(request):
    return request.getfixturevalue(request.param)


def kernel_names(posterior):
    return {"sigma_f", *(h.name for h in posterior.kernel.hyperparameters(posterior.encoder))}


@pytest.mark.stan
def test_kernel_of_a_draw_and_of_the_posterior_mean(posterior):
    points = posterior.train
    for draw, pick in ((None, lambda v: v.mean(axis=0)), (17, lambda v: v[17])):
        theta = {name: pick(posterior.draws[name]) for name in kernel_names(posterior)}
        wanted = posterior.kernel.gram(points, points, theta)
        kernel = svm.GPKernel.from_posterior(posterior, draw)
        for each in (kernel, clone(kernel)):
            np.testing.assert_allclose(each(posterior.encoder.decode(points)), wanted, rtol=1e-12)


@pytest.mark.parametrize("draw", [-1, 10**6])
def test_draw_out_of_range_raises(mixed_posterior, draw):
    with pytest.raises(DataError, match=f"draw must be an integer from 0 to 199, got {draw}"):
        svm.GPKernel.from_posterior(mixed_posterior, draw)


def test_a_machine_on_configurations(branin_data, branin_posterior):
    _, configs, y = branin_data
    machine = svm.KernelSVR(svm.GPKernel.from_posterior(branin_posterior), C=1e4, epsilon=1.0)
    assert cross_val_score(machine, configs, y, cv=5).mean() > 0.5
    # Almost without a penalty it interpolates up to the tube of 1.
    np.testing.assert_allclose(machine.set_params(C=1e6).fit(configs, y).predict(configs), y, atol=1.01)


def test_kernel_by_name_with_given_hyperparameters():
    space = ConfigurationSpace({"x": (0.0, 2.0)})
    kernel = svm.GPKernel(space, "matern", {"lengthscale": [0.5], "sigma_f": 3.0})
    wanted = 9 * svm.Matern(p=2, lengthscale=0.5)([[0.0], [0.25]], [[1.0]])
    np.testing.assert_allclose(kernel([{"x": 0.0}, {"x": 0.5}], [{"x": 2.0}]), wanted)


@pytest.mark.parametrize(
    ("theta", "configs", "error", "match"),
    [
        ({}, [{"x": 1.0}], DataError, "theta has no 'lengthscale'"),
        ({"lengthscale": [-1.0]}, [{"x": 1.0}], DataError, r"'lengthscale'.*-1\.0"),
        ({"lengthscale": [1.0]}, [{"x": 3.0}], SpaceError, "3.0"),
        ({"lengthscale": [1.0]}, [{"y": 1.0}], SpaceError, "'y'"),
    ],
)
def test_invalid_input_raises(theta, configs, error, match):
    kernel = svm.GPKernel(ConfigurationSpace({"x": (0.0, 2.0)}), "matern", theta)
    with pytest.raises(error, match=match):
        svm.KernelFactorization(kernel).fit(configs)


def test_the_space_may_be_a_dictionary():
    theta = {"lengthscale": [0.5]}
    kernel, wanted = (svm.GPKernel(space, "matern", theta) for space in (SPACE, ConfigurationSpace(SPACE)))
    X = np.array([[0.1], [0.7]])
    np.testing.assert_array_equal(kernel(X), wanted(X))
    y = np.sin(np.arange(9.0))
    related = svm.pretrain(SPACE, np.linspace(0, 1, 9)[:, None], y, C=1.0, lengthscale=0.25)
    assert related.encoder.matches(Encoder(ConfigurationSpace(SPACE)))


def test_a_stored_kernel_is_checked_with_a_dictionary(tmp_path):
    x = np.linspace(0, 1, 9)
    kernel = svm.pretrain(SPACE, x[:, None], np.sin(6 * x), C=1.0, lengthscale=0.25).kernel()
    path = kernel.save(tmp_path / "kernel.json")
    assert Pretrained.load(path, SPACE).columns == ("x",)
    with pytest.raises(StorageError, match="'z'"):
        Pretrained.load(path, {"z": (0.0, 1.0)})
