"""`slayr stan --export`: the exported functions in programs of the user agree with Stan's own and with the package."""

from __future__ import annotations

import functools
import logging
import runpy
import subprocess
import tempfile
from pathlib import Path

import cmdstanpy
import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import multivariate_normal
from testing_programs import shared_program

import slayr_py as sl
from slayr_py.inference.sampling.run import generate
from slayr_py.space import Encoder

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["slayr.stan", "slayr.hpp", "README.md"]
# Value and gradient are sums of rounded terms, which two algorithms add up in different orders.
TOLERANCE = 1e-8
RNG = np.random.default_rng(7)
N = 9
X = RNG.random((N, 2))
X[1] = X[0]  # coinciding points
DATA = {
    "N": N,
    "D": 2,
    "X": X,
    "y": RNG.normal(size=N),
    "weight": RNG.uniform(0.5, 2, N),
    "p": 0,
    "builtin": 0,
    "check": 1,
}
SE_PER_MAT32 = {"steps": [1, 2, 3, 0, -1], "kind": [1, 3, 6], "reads": [[1, 1], [0, 1], [0, 1]]}
LIN_RQ_C = {"steps": [1, 2, 0, 3, -1], "kind": [4, 2, 8], "reads": [[0, 1], [0, 1], [0, 0]]}
DATA |= SE_PER_MAT32 | {"builtin": 0, "check": 1}
KERNELS = {
    "matern-1/2": {"kernel": 1, "p": 0},
    "matern-3/2": {"kernel": 1, "p": 1},
    "matern-5/2": {"kernel": 1, "p": 2},
    "squared-exponential": {"kernel": 2},
    "SE + PER * MAT32": {"kernel": 3},
    "LIN * RQ + C": {"kernel": 4} | LIN_RQ_C,
}


def point(seed, kernel):
    rng = np.random.default_rng(seed)
    values = {"alpha": rng.normal(), "beta": rng.normal(size=2).tolist()}
    positive = {"sigma_f": 2, "lengthscale": 2, "further": 2, "shape": (), "centre": (), "sigma_n": ()}
    values |= {name: rng.lognormal(-0.5, 0.5, size).tolist() for name, size in positive.items()}
    if kernel == "matern-3/2":  # see the program
        values["lengthscale"] = [values["lengthscale"][0]] * 2
    return values


def value_and_gradient(model, parameters, data):
    plain = {name: np.asarray(value).tolist() for name, value in data.items()}
    row = model.log_prob(parameters, plain, jacobian=False, sig_figs=17).iloc[0]
    gradient = row.drop("lp__")
    return row["lp__"], gradient


@pytest.fixture(scope="module")
def program():
    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    return shared_program("exported")


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated")
@pytest.mark.parametrize("name", KERNELS)
def test_exported_log_densities_and_gradients_equal_those_of_stan(program, name):
    data = DATA | KERNELS[name]
    for seed in range(2):
        parameters = point(seed, name)
        value, gradient = value_and_gradient(program.model(), parameters, data)
        wanted, wanted_gradient = value_and_gradient(program.model(), parameters, data | {"builtin": 1})
        assert value == pytest.approx(wanted, rel=TOLERANCE)
        if name == "matern-3/2":
            # Stan's function has one length-scale: the derivative by it is the sum of those by ours.
            of_scales = ["g_lengthscale.1", "g_lengthscale.2"]
            assert gradient[of_scales].sum() == pytest.approx(wanted_gradient[of_scales].sum(), rel=TOLERANCE)
            gradient, wanted_gradient = gradient.drop(of_scales), wanted_gradient.drop(of_scales)
        np.testing.assert_allclose(gradient, wanted_gradient, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.stan
@pytest.mark.parametrize("name", KERNELS)
def test_exported_covariances_and_values_without_gradients_equal_numpy(program, name):
    data = DATA | KERNELS[name]
    parameters = point(3, name)
    columns = {}
    for key, value in parameters.items():
        columns |= {f"{key}.{i + 1}": one for i, one in enumerate(value)} if isinstance(value, list) else {key: value}
    output = generate(program, data, pd.DataFrame([columns]), seed=1).iloc[0]
    K = output[[f"K.{i + 1}.{j + 1}" for i in range(N) for j in range(N)]].to_numpy().reshape(N, N)
    np.testing.assert_allclose(K, covariance(name, parameters), rtol=1e-12, atol=1e-14)
    noise = parameters["sigma_n"] * DATA["weight"]
    mean = parameters["alpha"] + X @ parameters["beta"]
    wanted = multivariate_normal(mean, K + np.diag(noise**2)).logpdf(DATA["y"])
    assert output["log_density.1"] == pytest.approx(wanted, rel=1e-10)


def covariance(name, parameters):
    """Return the covariance of the package's kernel."""
    encoder = Encoder(ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0)}))
    train = encoder.encode(X)
    first, second = np.square(parameters["sigma_f"])
    scales, further = parameters["lengthscale"], parameters["further"]

    def gram(expression, **theta):
        theta = {key: np.atleast_1d(value).astype(float) for key, value in theta.items()}
        return sl.GaussianProcess(encoder, sl.kernels.Composite(expression)).kernel.gram(train, train, theta)

    if name.startswith("matern"):
        kernel = sl.kernels.Matern(KERNELS[name]["p"])
        return first * kernel.gram(train, train, {"lengthscale": np.array(scales)})
    if name == "squared-exponential":
        return first * gram("SE", lengthscale=scales)
    if name == "SE + PER * MAT32":
        product = gram("PER[b] * MAT32[b]", lengthscale=further, period=parameters["shape"])
        return first * gram("SE", lengthscale=scales) + second * product
    product = gram("LIN[b] * RQ[b]", lengthscale=further, rq_alpha=parameters["shape"], centre=parameters["centre"])
    return first * product + second


@pytest.mark.stan
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": 1, "y": np.full(N, np.nan)}, "slayr_matern_lpdf: y"),
        ({"kernel": 2, "X": np.full((N, 2), np.inf)}, "slayr_exp_quad_lpdf: "),
        ({"kind": [1, 3, 9]}, "leaf 3 has kind 9; use 1 to 8"),
        ({"kind": [1, 3, 8]}, "leaf 3 reads 1 columns; a constant reads none"),
        ({"reads": [[1, 1], [0, 1], [0, 0]]}, "leaf 3 reads 0 columns"),
        ({"reads": [[1, 1], [0, 2], [0, 1]]}, "leaf 2 has 2 in reads; use 0 or 1"),
        ({"steps": [1, 2, 3, 0, -2]}, "step -2 is not a leaf, 0 for a product or -1 for a sum"),
        ({"steps": [1, 0, 2, 3, -1]}, "a sum or product in steps has fewer than two operands"),
        ({"steps": [1, 2, 3, 1, -1]}, "steps leave 3 values instead of one"),
        ({"kind": [1, 1, 6]}, "periodic leaves (0) and period (1) must match in size"),
    ],
)
def test_wrong_arguments_are_errors(program, change, message):
    plain = {name: np.asarray(value).tolist() for name, value in (DATA | {"kernel": 3} | change).items()}
    with tempfile.TemporaryDirectory() as folder:
        for name, values in (("data", plain), ("point", point(0, ""))):
            cmdstanpy.write_stan_json(f"{folder}/{name}.json", values)
        command = [
            program.exe,
            "log_prob",
            f"constrained_params={folder}/point.json",
            "data",
            f"file={folder}/data.json",
        ]
        done = subprocess.run([*command, "output", f"file={folder}/out.csv"], capture_output=True, text=True)
    assert message in done.stdout + done.stderr


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated")
def test_the_example_samples_its_own_program_and_agrees_with_stan(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(ROOT / "examples" / "growth_curves.py"), run_name="example")
    asked = []
    model = shared_program("growth_curves").model()

    def prepared(stan_file, stanc_options, user_header):
        asked.append((stan_file, stanc_options, user_header))
        return model

    monkeypatch.setattr(cmdstanpy, "CmdStanModel", prepared)
    monkeypatch.setattr(model, "sample", functools.partial(model.sample, iter_warmup=20, iter_sampling=5))
    monkeypatch.setitem(names["main"].__globals__, "simulate", functools.partial(names["simulate"], n=8))
    names["main"]()
    options = {"allow-undefined": True, "include-paths": ["slayr_stan"]}
    assert asked == [(ROOT / "examples" / "growth_curves.stan", options, "slayr_stan/slayr.hpp")]
    assert "slayr_matern" in capsys.readouterr().out

    data = names["simulate"](n=8)
    parameters = {"intercept": [1, 2], "slope": [0.5, 0.3], "sigma_f": 0.7, "lengthscale": 1.8, "sigma_n": 0.3}
    value, gradient = value_and_gradient(model, parameters, data | {"builtin": 0})
    wanted, wanted_gradient = value_and_gradient(model, parameters, data | {"builtin": 1})
    assert value == pytest.approx(wanted, rel=TOLERANCE)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=TOLERANCE)


def test_export_writes_files_that_stand_alone(slayr, tmp_path):
    folder = tmp_path / "new" / "slayr_stan"
    code, out, _ = slayr("stan", "--export", folder)
    assert code == 0 and [Path(line.split()[1]).name for line in out.splitlines()] == NAMES
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    assert '#include "' not in (folder / "slayr.hpp").read_text()
    assert "#include" not in (folder / "slayr.stan").read_text()
    times = [path.stat().st_mtime_ns for path in folder.iterdir()]
    assert slayr("stan", "--export", folder)[0] == 0
    assert [path.stat().st_mtime_ns for path in folder.iterdir()] == times


def test_export_overwrites_nothing(slayr, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    code, _, err = slayr("stan", "--export", tmp_path)
    assert code == 2 and "README.md exists with another content and is not overwritten" in err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"] and (
        tmp_path / "README.md"
    ).read_text() == "mine"
    code, _, err = slayr("stan", "--export", tmp_path / "README.md")
    assert code == 4 and "cannot write" in err and "use another folder" in err


def test_without_a_folder_the_programs_are_named(slayr):
    code, out, _ = slayr("stan")
    assert code == 0 and (Path(out.split()[1]) / "matern_gp.stan").is_file()
