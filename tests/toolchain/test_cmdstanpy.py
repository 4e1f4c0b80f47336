"""cmdstanpy with the assembled CmdStan: every method, and every file that cmdstanpy reads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import cmdstanpy
import numpy as np
import pandas as pd
import pytest
from cmdstanpy.utils.stancsv import parse_comments_header_and_draws

from slayr_py.toolchain import processor_options
from slayr_py.toolchain.math_header import math_header

DATA = {"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}
QUIET = {"show_progress": False}
# cmdstanpy uses a deprecated argument of pandas.
pytestmark = pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated")
# The posterior of theta is Beta(3, 9).
MEAN = 0.25
SD = 0.12


@pytest.fixture(scope="module")
def model(program):
    return program.model()


@pytest.fixture(scope="module")
def fit(model):
    return model.sample(DATA, seed=1, chains=4, iter_sampling=500, sig_figs=14, save_profile=True, **QUIET)


def draws_of(fit):
    return fit.draws(concat_chains=False)


def test_posterior(fit):
    theta = fit.stan_variable("theta")
    assert theta.shape == (2000,)
    assert theta.mean() == pytest.approx(MEAN, abs=0.02)
    assert theta.std() == pytest.approx(SD, abs=0.02)
    assert fit.stan_variable("m").shape == (2000, 2, 3)
    assert fit.divergences.sum() == 0


def test_equal_seeds_give_equal_draws_and_chains_are_streams(model, fit):
    again = model.sample(DATA, seed=1, chains=4, iter_sampling=500, sig_figs=14, **QUIET)
    np.testing.assert_array_equal(draws_of(fit), draws_of(again))
    third = model.sample(DATA, seed=1, chains=1, chain_ids=3, iter_sampling=500, sig_figs=14, **QUIET)
    np.testing.assert_array_equal(draws_of(fit)[:, 2], draws_of(third)[:, 0])
    assert not np.array_equal(draws_of(fit)[:, 0], draws_of(fit)[:, 1])


def test_summary_and_diagnose(fit):
    summary = fit.summary(percentiles=(10, 50, 90), sig_figs=8)
    assert list(summary.columns) == ["Mean", "MCSE", "StdDev", "10%", "50%", "90%", "N_Eff", "N_Eff/s", "R_hat"]
    # Elements of a matrix are in row order.
    assert list(summary.index) == ["lp__", "theta", *(f"m[{i},{j}]" for i in (1, 2) for j in (1, 2, 3)), "y_new"]
    theta = fit.stan_variable("theta")
    row = summary.loc["theta"]
    assert row["Mean"] == pytest.approx(theta.mean(), rel=1e-6)
    assert row["StdDev"] == pytest.approx(theta.std(ddof=1), rel=1e-6)
    assert row["50%"] == pytest.approx(np.median(theta), abs=2e-3)
    assert row["N_Eff"] > 500 and 0.99 < row["R_hat"] < 1.02
    said = fit.diagnose()
    assert "No divergent transitions found." in said
    assert said.endswith("Processing complete, no problems detected.\n")


def test_split_r_hat_agrees_with_arviz(fit):
    arviz = pytest.importorskip("arviz")
    summary = fit.summary(sig_figs=9)
    for name, column in (("lp__", "lp__"), ("theta", "theta"), ("m[1,2]", "m[1,2]")):
        chains = fit.draws(concat_chains=False)[:, :, fit.column_names.index(column)].T

        assert summary.loc[name, "R_hat"] == pytest.approx(float(arviz.rhat(chains, method="split")), rel=1e-5)


def test_csv_files_can_be_read_again(program, fit):
    again = cmdstanpy.from_csv(fit.runset.csv_files)
    np.testing.assert_array_equal(draws_of(fit), draws_of(again))
    config = fit.metadata.cmdstan_config
    assert config["method"] == "sample" and config["algorithm"] == "hmc" and config["max_depth"] == 10
    version = program.cmdstan.version
    assert (
        config["stan_version_minor"] == int(version.split(".")[1]) and config["stanc_version"] == f"stanc3 v{version}"
    )
    assert config["save_warmup"] == 0 and config["delta"] == 0.8 and config["seed"] == 1
    assert all(time["total"] >= 0 for time in fit.time)
    assert fit.step_size.shape == (4,) and fit.inv_metric.shape == (4, 7) and fit.metric_type == "diag_e"


def test_profile(fit):
    profile = pd.read_csv(fit.runset.profile_files[0])
    assert profile["name"][0] == "likelihood"
    assert profile.shape[1] == 9 and profile["autodiff_calls"][0] > 1000


@pytest.mark.parametrize(("metric", "shape"), [("unit_e", None), ("diag_e", (1, 7)), ("dense_e", (1, 7, 7))])
def test_metrics(model, metric, shape):
    fit = model.sample(DATA, seed=2, chains=1, metric=metric, **QUIET)
    assert fit.metric_type == metric
    assert fit.stan_variable("theta").mean() == pytest.approx(MEAN, abs=0.03)
    if shape is not None:
        assert fit.inv_metric.shape == shape


@pytest.mark.parametrize("metric", ["unit_e", "diag_e", "dense_e"])
def test_without_adaptation(model, metric):
    fit = model.sample(DATA, seed=2, chains=1, metric=metric, adapt_engaged=False, step_size=0.3, **QUIET)
    assert fit.stan_variable("m").mean() == pytest.approx(1, abs=0.3)
    assert set(fit.method_variables()["stepsize__"].ravel()) == {0.3}


def test_given_metric_and_step_size_are_used(model):
    metric = np.diag([0.5, 4, 4, 4, 4, 4, 4.0])
    common = {"seed": 3, "chains": 2, "adapt_engaged": False, "step_size": 0.7, **QUIET}
    dense = model.sample(DATA, metric="dense_e", inv_metric=metric, **common)
    diagonal = model.sample(DATA, metric="diag_e", inv_metric=np.diag(metric), **common)
    assert dense.inv_metric[0] == pytest.approx(metric)
    np.testing.assert_allclose(diagonal.inv_metric, [np.diag(metric)] * 2)
    plain = model.sample(DATA, metric="diag_e", **common)
    assert diagonal.method_variables()["n_leapfrog__"].mean() < plain.method_variables()["n_leapfrog__"].mean()


def test_initial_values(model):
    inits = [{"theta": 0.9, "m": [[1, 2, 3], [4, 5, 6]]}, {"theta": 0.1, "m": [[0] * 3] * 2}]
    fit = model.sample(DATA, seed=4, chains=2, inits=inits, fixed_param=True, iter_sampling=5, **QUIET)
    theta = fit.stan_variable("theta").reshape(2, 5)
    assert (theta[0] == 0.9).all() and (theta[1] == 0.1).all()
    assert fit.stan_variable("m")[0].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert set(fit.stan_variable("y_new")) <= {0, 1}


def test_warmup_and_thinning(model):
    fit = model.sample(DATA, seed=5, chains=2, iter_warmup=100, iter_sampling=60, thin=3, save_warmup=True, **QUIET)
    assert fit.draws(inc_warmup=True).shape[0] == 34 + 20
    assert fit.draws().shape[0] == 20
    assert fit.summary().loc["theta", "Mean"] == pytest.approx(fit.stan_variable("theta").mean(), rel=1e-4)


def test_latent_dynamics(model):
    fit = model.sample(DATA, seed=5, chains=1, iter_sampling=10, save_latent_dynamics=True, **QUIET)
    diagnostics = pd.read_csv(fit.runset.diagnostic_files[0], comment="#")
    assert {"p_theta", "g_theta"} <= set(diagnostics.columns) and len(diagnostics) == 10


def test_threads_of_one_process(threaded, fit):
    model = threaded.model()
    assert model.exe_info()["STAN_THREADS"] == "true"
    one = model.sample(DATA, seed=1, chains=4, parallel_chains=2, iter_sampling=500, sig_figs=14, **QUIET)
    assert len({Path(file).name for file in one.runset.csv_files}) == 4 and one.runset.num_procs == 1
    np.testing.assert_array_equal(draws_of(one), draws_of(fit))
    for csv in one.runset.csv_files:
        assert parse_comments_header_and_draws(csv)


def test_several_chains_without_threads_run_in_turn(model, fit):
    one = model.sample(
        DATA,
        seed=1,
        chains=4,
        iter_sampling=500,
        sig_figs=14,
        force_one_process_per_chain=False,
        parallel_chains=1,
        **QUIET,
    )
    np.testing.assert_array_equal(draws_of(one), draws_of(fit))


@pytest.mark.parametrize("algorithm", ["lbfgs", "bfgs"])
def test_optimize(model, algorithm):
    fit = model.optimize(DATA, seed=1, algorithm=algorithm)
    assert fit.stan_variable("theta") == pytest.approx(0.2, abs=1e-3)
    assert fit.converged
    with_jacobian = model.optimize(DATA, seed=1, algorithm=algorithm, jacobian=True)
    assert with_jacobian.stan_variable("theta") == pytest.approx(0.25, abs=1e-3)


def test_newton(model):
    # Stan's Newton steps are far too long before they are halved (stan-dev/stan#3429), so start near the mode.
    start = {"theta": 0.2, "m": np.ones((2, 3)).tolist()}
    fit = model.optimize(DATA, seed=1, algorithm="newton", inits=start)
    assert fit.stan_variable("theta") == pytest.approx(0.2, abs=1e-3)


def test_iterations_of_optimize(model):
    fit = model.optimize(DATA, seed=1, algorithm="lbfgs", save_iterations=True)
    iterations = fit.optimized_iterations_np
    assert len(iterations) > 2 and iterations[-1, 0] > iterations[0, 0]


def test_laplace(model, tmp_path):
    mode = model.optimize(DATA, seed=1, jacobian=True, sig_figs=12)
    fit = model.laplace_sample(DATA, mode=mode, seed=1, draws=2000)
    assert fit.stan_variable("theta").mean() == pytest.approx(MEAN, abs=0.05)
    assert {"log_p__", "log_q__"} <= set(fit.method_variables())
    again = cmdstanpy.from_csv(fit._runset.csv_files)
    assert again.draws().shape == (2000, fit.draws().shape[1])


@pytest.mark.parametrize(
    ("options", "rows"),
    [({}, 1000), ({"num_paths": 1}, 1000), ({"psis_resample": False, "num_paths": 2}, 2000),
     ({"calculate_lp": False, "num_paths": 2}, 2000)],
)  # fmt: skip
def test_pathfinder(model, options, rows):
    fit = model.pathfinder(DATA, seed=1, **options)
    assert fit.draws().shape[0] == rows
    assert fit.stan_variable("theta").mean() == pytest.approx(MEAN, abs=0.06)
    assert fit.is_resampled == (options == {})
    again = cmdstanpy.from_csv(fit._runset.csv_files)
    np.testing.assert_array_equal(again.draws(), fit.draws())


def test_generate_quantities(model, fit):
    made = model.generate_quantities(DATA, previous_fit=fit, seed=9)
    assert made.draws().shape == (500, 4, 1)
    assert made.stan_variable("y_new").mean() == pytest.approx(MEAN, abs=0.05)


def test_log_prob_and_gradient(model):
    theta = 0.3
    m = np.arange(6.0).reshape(2, 3)
    found = model.log_prob({"theta": theta, "m": m.tolist()}, DATA, jacobian=False, sig_figs=15).iloc[0]
    wanted = 2 * np.log(theta) + 8 * np.log1p(-theta) - ((m - 1) ** 2).sum() / 8
    assert found["lp__"] == pytest.approx(wanted, rel=1e-12)
    assert found["g_theta"] == pytest.approx(2 - 10 * theta, rel=1e-12)
    assert found["g_m.2.1"] == pytest.approx(-(m[1, 0] - 1) / 4, rel=1e-12)


def test_gradient_test(model):
    table = model.diagnose({"theta": 0.3, "m": [[0.0] * 3] * 2}, DATA)
    assert list(table.columns) == ["param_idx", "value", "model", "finite_diff", "error"]
    assert table["error"].abs().max() < 1e-6


def test_only_the_densities_that_the_services_use_are_compiled(program):
    text = program.exe.read_bytes()
    # A stripped executable, or a compiler that inlines all calls, has fewer names.
    assert len(set(re.findall(rb"_ZNK\w+log_prob_impl\w+", text))) <= 4  # 16 with Stan's own base class
    assert len(set(re.findall(rb"_ZNK\w+write_array_impl\w+", text))) <= 1


def test_variational_raises(model):
    with pytest.raises(RuntimeError, match="variational inference .* is not built in"):
        model.variational(DATA, seed=1)


def test_cmdstanpy_compiles_a_program(program, tmp_path):
    cmdstanpy.set_cmdstan_path(str(program.cmdstan.path))
    folder = tmp_path / "a folder with blanks"
    folder.mkdir()
    source = folder / "own.stan"
    source.write_text("functions { real twice(real x); }\ngenerated quantities { real z = twice(2.5); }\n")
    header = tmp_path / "twice.hpp"
    header.write_text("template <typename T> inline T twice(const T& x, std::ostream*) { return 2 * x; }\n")
    # Without optimisation and most of Stan Math, and with the front end of the other programs.
    used = tmp_path / "used_math.hpp"
    translated = tmp_path / "own.hpp"
    stanc = program.cmdstan.path / "bin" / "stanc"
    subprocess.run([stanc, "--allow-undefined", f"--o={translated}", source], check=True)
    used.write_text(math_header(program.cmdstan.path / "include", [translated, header]))
    cpp_options = {"O": "0", "MATH_HEADER": used} | processor_options(program.cmdstan)
    options = {"stanc_options": {"O1": True}, "cpp_options": cpp_options}
    model = cmdstanpy.CmdStanModel(stan_file=source, user_header=header, **options)
    fit = model.sample(seed=1, chains=1, iter_sampling=3, **QUIET)
    assert fit.stan_variable("z").tolist() == [5, 5, 5]
    assert model.src_info()["generated quantities"] == {"z": {"type": "real", "dimensions": 0}}
