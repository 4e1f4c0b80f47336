"""What is found is an ordinary kernel: it is fitted by Stan, replayed and averaged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.errors import DataError
from slayr_py.inference import replay
from slayr_py.search import KernelSearch, SearchResult

LINE = ConfigurationSpace({"x": (0.0, 4.0)})


@pytest.fixture(scope="module")
def found() -> SearchResult:
    x = np.linspace(0, 4, 25)
    y = 3 * x + np.sin(4 * np.pi * x) + 0.05 * np.random.default_rng(1).normal(size=25)
    return KernelSearch(LINE, ["SE", "PER", "LIN"], budget=8, restarts=2).run(pd.DataFrame({"x": x}), y, progress=False)


@pytest.mark.stan
def test_the_best_kernel_is_fitted_and_replayed(found, tmp_path):
    posterior = sl.GaussianProcess(LINE, kernel=found.best).fit(found.train, found.y, method="laplace")
    assert posterior.kernel.expression == found.best.expression
    posterior.save(tmp_path)
    assert replay(tmp_path).identical


@pytest.mark.stan
def test_the_best_kernels_are_averaged(found):
    stacked = found.stack(top=2, fit={"method": "map"})
    assert set(found.top(2)) <= {one.kernel.canonical for one in stacked.posteriors if hasattr(one.kernel, "canonical")}
    assert any(one.kernel.name == "matern" for one in stacked.posteriors)
    assert stacked.weights.sum() == pytest.approx(1)
    prediction = stacked.predict(pd.DataFrame({"x": [0.3, 1.7]}))
    assert np.all(np.isfinite(prediction.mean))


@pytest.mark.stan
def test_a_stack_has_the_priors_of_the_search(found):
    priors = {"sigma_n": sl.LogNormal(-1.0, 0.2)}
    stacked = replace(found, search=found.search.updated(priors=priors)).stack(top=1, fit={"method": "map"})
    assert [part.model.priors["sigma_n"] for part in stacked.parts] == [priors["sigma_n"]] * 2


def test_a_stack_of_many_observations_is_refused():
    x = np.linspace(0, 4, 1001)
    search = KernelSearch(LINE, ["LIN"], budget=1, restarts=1, inducing=5)
    result = search.run(pd.DataFrame({"x": x}), 3 * x, progress=False)
    with pytest.raises(DataError, match="1001 observations are more than the 1000"):
        result.stack()
