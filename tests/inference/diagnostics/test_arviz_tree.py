"""Data trees as arguments of the installed ArviZ."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import xarray as xr
from testing_arviz import HAS_TREES, axes, elpd_loo, pointwise
from testing_processes import exit_code
from testing_spaces import mixed_space, plain_space

import slayr_py as sl
from slayr_py.space import Encoder

SPACES = {"matern": plain_space, "fm": mixed_space}
LABELS = {
    "matern": ["lengthscale[x]", "lengthscale[z]"],
    "fm": ["lengthscale[lr]", "alpha[act]", "beta[size]"],
}


def fitted(kernel, **options):
    encoder = Encoder(SPACES[kernel]())
    y = np.random.default_rng(0).normal(size=10)
    options = {"chains": 2, "warmup": 150, "draws": 100} | options
    return sl.GaussianProcess(encoder, kernel).fit(encoder.sobol(10, 3), y, seed=2, **options)


@pytest.fixture(scope="module", params=sorted(SPACES))
def posterior(request):
    return fitted(request.param).with_prior(draws=100, chains=2, warmup=150)


@pytest.fixture(scope="module")
def other(posterior):
    return fitted(posterior.kernel.name, method="laplace")


@pytest.mark.stan
@pytest.mark.parametrize("name", ["plot_pair", "plot_trace"])
def test_plots_of_arviz_accept_the_tree(posterior, az, name):
    names = {"var_names": ["mu", "sigma_f", "sigma_n"]} if name == "plot_pair" else {}
    assert axes(getattr(az, name)(posterior.idata, **names))


@pytest.mark.stan
def test_the_summary_has_the_names_of_the_space(posterior, az):
    before = posterior.idata.copy(deep=True)
    summary = az.summary(posterior.idata)
    assert posterior.idata.identical(before)
    assert {"mu", "sigma_f", "sigma_n", *LABELS[posterior.kernel.name]} <= set(summary.index)
    assert np.all(summary["ess_bulk"].astype(float) > 0)


@pytest.mark.stan
def test_leave_one_out_and_comparison_of_models(posterior, other, az):
    loo = az.loo(posterior.idata, pointwise=True)
    ours = posterior.loo()
    np.testing.assert_allclose(ours.values, pointwise(loo) - np.log(posterior.y_sd))
    assert ours.attrs["elpd"] == pytest.approx(elpd_loo(loo) - len(ours) * np.log(posterior.y_sd))
    assert ours.attrs["elpd_standardised"] == pytest.approx(elpd_loo(loo))
    assert "subtract log(abs(constant_data.y_sd))" in posterior.idata["log_likelihood"]["y"].attrs["note"]
    table = az.compare({"one": posterior.idata, "other": other.idata})
    assert set(table.index) == {"one", "other"} and table["weight"].sum() == pytest.approx(1)


@pytest.mark.stan
@pytest.mark.parametrize("method", ["laplace", "map"])
def test_arviz_functions_of_fits_without_chains(az, method):
    tree = fitted("matern", method=method).idata
    assert list(az.summary(tree).index)[:3] == ["mu", "sigma_f", "sigma_n"]
    assert axes(az.plot_forest(tree))
    if method == "map":
        with pytest.raises(IndexError):  # one draw has no tail
            az.loo(tree)
    else:
        assert np.isfinite(elpd_loo(az.loo(tree)))
        sensitivity = az.psense(tree) if HAS_TREES else az.psens(tree)
        assert np.isfinite(sensitivity["mu"])


@pytest.mark.stan
def test_groups_are_nodes_and_datasets(mixed_posterior):
    tree = mixed_posterior.idata
    assert isinstance(tree, xr.DataTree) and all(isinstance(node, xr.DataTree) for node in tree.children.values())
    for group in (tree["posterior"], tree.posterior):
        assert group["lengthscale"].dims == ("chain", "draw", "real") and not group.children
        assert type(group.to_dataset()) is xr.Dataset and group.to_dataset().identical(group.dataset.copy())
        assert group.to_dataset().identical(tree.children["posterior"].to_dataset())
    assert tree["posterior/mu"].identical(tree["posterior"]["mu"])
    for name, group in tree.children.items():
        for dimension in {"chain", "draw"} & set(group.dims):
            np.testing.assert_array_equal(group[dimension], np.arange(group.sizes[dimension]), name)


@pytest.mark.stan
def test_parts_and_copies_of_a_tree_are_accepted(mixed_posterior, az):
    tree = mixed_posterior.idata
    for same in (tree.copy(), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert same.identical(tree) and len(az.summary(same))
    assert az.ess(tree.isel(draw=slice(50)))["mu"] != az.ess(tree)["mu"]
    group = tree["posterior"]
    assert pickle.loads(pickle.dumps(group)).to_dataset().identical(group.copy().to_dataset())


@pytest.mark.stan
def test_to_arviz_returns_a_copy_in_the_format_of_the_version(mixed_posterior, az):
    converted = mixed_posterior.to_arviz()
    assert type(converted) is (xr.DataTree if HAS_TREES else az.InferenceData)
    converted["posterior"]["twice"] = 2 * converted["posterior"]["mu"]
    assert "twice" not in mixed_posterior.idata["posterior"].data_vars
    assert az.loo(converted, pointwise=True).elpd_loo if not HAS_TREES else az.loo(converted).elpd


@pytest.mark.stan
def test_arviz_and_matplotlib_are_imported_when_they_are_used(mixed_posterior, tmp_path):
    """They take a second. A tree is accepted whether ArviZ is imported before or after it."""
    code = (
        "import sys, warnings, slayr_py as sl; warnings.simplefilter('ignore');"
        "posterior = sl.Posterior.load(sys.argv[1]);"
        "posterior.predict(posterior.train[:1]);"
        "sl.study.minimize;"
        "assert not {'arviz', 'matplotlib'} & set(sys.modules);"
        "data = posterior.idata;"
        "import arviz;"
        "assert 'lengthscale' in arviz.ess(data).data_vars"
    )
    assert exit_code(code, str(mixed_posterior.save(tmp_path))) == 0
