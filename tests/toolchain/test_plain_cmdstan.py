"""The recipes of ``stan/README.md`` for plain CmdStan and cmdstanpy, run as a user would."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import cmdstanpy
import numpy as np
import pytest

from slayr_py.inference.sampling.programs import compiled, program_folder

pytestmark = [
    pytest.mark.stan,
    # cmdstanpy uses a deprecated argument of pandas.
    pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated"),
]

DEFINITION = re.compile(r"\bmatern_log_marginal\(const ")


def blocks(language):
    """Return the code blocks of the recipes."""
    section = (program_folder() / "README.md").read_text().split("## Compiling and running")[1].split("\n<!--")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def program():
    return compiled("matern_gp")


@pytest.fixture
def checkout(program, tmp_path, monkeypatch):
    """A copy of the programs with the package's executable beside its source, so that cmdstanpy compiles nothing.

    `test_cmdstanpy_compiles_a_program` compiles a program with cmdstanpy.
    """
    shutil.copytree(program_folder(), tmp_path / "slayr_py" / "stan", copy_function=shutil.copyfile)
    shutil.copy(program.exe, tmp_path / "slayr_py" / "stan" / "matern_gp")
    cmdstanpy.set_cmdstan_path(str(program.cmdstan.path))
    monkeypatch.chdir(tmp_path / "slayr_py")
    return tmp_path / "slayr_py"


def run(block, program, checkout):
    """Run the commands of a block; make prints its commands and compiles nothing."""
    places = {"path/to/slayr_py": checkout, "path/to/cmdstan": program.cmdstan.path, "make -C": "make --dry-run -C"}
    for name, text in places.items():
        block = block.replace(name, str(text))
    script = ["bash", "-euo", "pipefail", "-c", block]
    return subprocess.run(script, check=True, capture_output=True, text=True, cwd=checkout).stdout


def translation(commands, program, checkout):
    """Run stanc as make would; return the C++ code."""
    (stanc,) = re.findall(r"^bin/stanc .*$", commands, re.MULTILINE)
    subprocess.run(stanc.split(), check=True, cwd=program.cmdstan.path)
    header = checkout / "stan" / "matern_gp.hpp"
    text = header.read_text()
    header.unlink()
    return text


def test_recipe_of_cmdstan(program, checkout):
    plain, accelerated = blocks("console")
    output = run(plain, program, checkout)
    rows = dict(re.findall(r"^(f_mean\[\d\]|sigma_f) +(\S+)", output, re.MULTILINE))
    assert len(rows) == 4 and len(list((checkout / "stan").glob("draws_*.csv"))) == 4
    # The values beside the second and the third new point.
    assert float(rows["f_mean[2]"]) == pytest.approx(0.34, abs=0.4)
    assert float(rows["f_mean[3]"]) == pytest.approx(-1.13, abs=0.4)
    assert DEFINITION.search(translation(output, program, checkout))

    commands = run(accelerated, program, checkout)
    assert re.search(r"^sh frontend/build.sh program .*/stan/matern_gp$", commands, re.MULTILINE)
    assert "/accelerated/matern.hpp" in re.search(r"USER_HEADER=(\S+)", accelerated)[1]
    assert not DEFINITION.search(translation(commands, program, checkout))


def test_recipe_of_cmdstanpy(checkout):
    before = os.stat(checkout / "stan" / "matern_gp")
    (block,) = blocks("python")
    (checkout / "recipe.py").write_text(block)
    names = runpy.run_path(str(checkout / "recipe.py"))
    assert Path(names["model"].exe_file) == checkout / "stan" / "matern_gp"
    assert os.stat(checkout / "stan" / "matern_gp").st_mtime_ns == before.st_mtime_ns
    draws = names["fit"].stan_variable("f_mean")
    assert draws.shape == (4000, 3) and names["fit"].divergences.sum() < 40
    np.testing.assert_allclose(names["again"].stan_variable("f_mean"), draws, rtol=1e-4, atol=1e-5)
    summary = names["summary"]
    assert summary.loc["f_mean[1]", "Mean"] == pytest.approx(draws[:, 0].mean(), rel=1e-3)
    assert summary.loc[["mu", "sigma_f", "sigma_n"], "R_hat"].between(0.99, 1.05).all()
