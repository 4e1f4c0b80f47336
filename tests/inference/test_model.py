"""Kernel and priors of a model."""

from __future__ import annotations

import numpy as np
import pytest
from testing_fits import QUICK
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.space import Encoder


@pytest.mark.stan
def test_priors_change_the_posterior_without_compiling():
    y = [1.0, 3.0, 2.0, 5.0]
    configs = Encoder(plain_space()).sobol(4, 1)
    tight = {"lengthscale": sl.LogNormal([-2.0, 3.0], 0.01), "sigma_n": sl.LogNormal(-6, 0.01)}
    posterior = sl.GaussianProcess(plain_space(), priors=tight).fit(configs, y, **QUICK)
    np.testing.assert_allclose(np.log(posterior.draws["lengthscale"]).mean(axis=0), [-2, 3], atol=0.02)


def test_an_unknown_kernel():
    with pytest.raises(sl.DataError, match="unknown kernel 'rbf'"):
        sl.GaussianProcess(plain_space(), kernel="rbf")


def test_a_short_description_has_the_priors():
    gp = sl.GaussianProcess(plain_space(), priors={"sigma_n": sl.LogNormal(-6, 1)}, warp="log")
    first, header, *rows = repr(gp).splitlines()
    assert first == "GaussianProcess: Matérn kernel (p = 2), 2 parameters, warp 'log'"
    assert header.split() == ["hyperparameter", "size", "prior"]
    assert [row.split()[0] for row in rows] == ["mu", "sigma_f", "sigma_n", "warp", "lengthscale"]
    assert rows[2].split(maxsplit=2)[1:] == ["1", "LogNormal(mu=-6., sigma=1.)"]
    assert "<td>lengthscale</td><td>2</td>" in gp._repr_html_()
