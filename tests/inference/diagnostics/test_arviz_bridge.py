"""Functions of the installed ArviZ on draws with known results, and leave-one-out of a fit."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from slayr_py.inference.diagnostics.arviz_bridge import arviz, convergence, leave_one_out, pareto_smooth, standard_error


def test_tail_shapes_of_observations_equal_those_of_arviz(branin_posterior, branin_data):
    check = branin_posterior.check()
    loo = branin_posterior.loo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = arviz().loo(branin_posterior.idata, pointwise=True)
    np.testing.assert_array_equal(loo.coords["pareto_k"], other.pareto_k)
    assert check.loo_pareto_k_max == float(other.pareto_k.max())
    assert check.limits["loo_pareto_k_max"] == loo.attrs["pareto_k_limit"] == other.good_k
    assert check.loo_influential == int((other.pareto_k > other.good_k).sum())


@pytest.mark.parametrize("variables", [{"HOME": "/proc"}, {}], ids=["home cannot be written", "no home"])
def test_arviz_needs_no_home_folder(tmp_path, variables):
    """ArviZ 0.23 writes a file to the user's cache when it is imported."""
    program = tmp_path / "program.py"
    program.write_text(
        "import pwd\n"
        "pwd.getpwuid = {}.__getitem__  # this user is in no table of users, as in a container\n"
        "from slayr_py.inference.diagnostics.arviz_bridge import arviz\n"
        "print(arviz().__name__)\n"
    )
    kept = {k: v for k, v in os.environ.items() if k != "HOME" and not k.startswith("XDG_")}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=kept | variables, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "arviz\n"), done.stderr


@pytest.mark.parametrize(("chains", "n"), [(1, 4), (2, 2), (4, 1)])
def test_leave_one_out_needs_five_draws(chains, n, branin_posterior):
    few = branin_posterior.idata.isel(chain=[0] * chains, draw=slice(n))
    assert leave_one_out(few) is None


def test_leave_one_out_accepts_three_draws_per_chain_without_output(branin_posterior, capfd):
    assert leave_one_out(branin_posterior.idata.isel(draw=slice(3))).elpd.shape == (20,)
    assert capfd.readouterr() == ("", "")


def test_an_observation_without_a_tail_does_not_change_the_others(branin_posterior):
    tree = branin_posterior.idata.copy(deep=True)
    tree["log_likelihood"]["y"][..., 3] = -2.5
    changed = leave_one_out(tree)
    whole = leave_one_out(branin_posterior.idata)
    assert changed.pareto_k[3] == np.inf and changed.elpd[3] == pytest.approx(-2.5)
    others = np.arange(20) != 3
    np.testing.assert_array_equal(changed.elpd[others], whole.elpd[others])
    np.testing.assert_array_equal(changed.pareto_k[others], whole.pareto_k[others])


@pytest.mark.parametrize(("chains", "n"), [(1, 1), (1, 7), (2, 3)])
def test_convergence_is_undefined_with_few_draws(chains, n):
    draws = np.random.default_rng(0).normal(size=(chains, n + 1, 2))
    assert np.isnan(list(convergence({"mu": draws[:, :n]}).values())).all()
    assert n == 1 or np.isfinite(list(convergence({"mu": draws}).values())).all()


@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_the_tail_shape_of_pareto_ratios_is_estimated(k):
    # Ratios u^-k have the shape k; that of 190 of 4000 has a standard error of (1 + k) / sqrt(190), less for the prior.
    log_ratio = k * np.random.default_rng(0).exponential(size=4000)
    weights, shape = pareto_smooth(log_ratio)
    assert shape == pytest.approx(k, abs=3 * (1 + k) / np.sqrt(190))
    assert weights.sum() == pytest.approx(1) and weights[log_ratio.argmax()] == weights.max()


def test_ratios_that_cannot_be_smoothed_keep_their_weights():
    """Importance resampling repeats draws: 106 of 109 in the tail are equal.

    ArviZ 0.23 returns NaN and k = 0.04, ArviZ 1.3 makes 60 values of four and k = -4.5.
    """
    log_ratio = np.repeat([0.343, 0.401, 0.408, 0.4437], [1891, 1, 2, 106])
    weights, shape = pareto_smooth(log_ratio)
    np.testing.assert_allclose(weights, np.exp(log_ratio) / np.exp(log_ratio).sum(), rtol=1e-12)
    assert shape == np.inf
    weights, _ = pareto_smooth(np.append(np.random.default_rng(0).normal(size=200), -np.inf))
    assert weights[-1] == 0 and weights.sum() == pytest.approx(1)


def test_tails_are_those_of_the_5_and_95_percent_quantiles():
    x = np.random.default_rng(0).normal(size=(4, 200))
    quantiles = [float(arviz().ess(x, method="quantile", prob=p)) for p in (0.05, 0.95)]
    assert convergence({"x": x})["ess_tail_min"] == pytest.approx(min(quantiles), rel=1e-12)


def test_standard_error_of_independent_constant_and_few_draws():
    x = np.random.default_rng(0).normal(size=(4, 1000))
    assert standard_error(x) == pytest.approx(1 / np.sqrt(4000), rel=0.15)
    assert standard_error(np.repeat(x, 25, axis=1)) == pytest.approx(1 / np.sqrt(4000), rel=0.5)
    assert standard_error(np.ones((2, 10))) == 0 and np.isnan(standard_error(x[:, :3]))
