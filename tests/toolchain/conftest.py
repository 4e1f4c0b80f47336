"""A compiled program, and a CmdStan made of shell scripts for tests that only look at our own bookkeeping."""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from slayr_py.toolchain import CompiledProgram, cache_dir, compile_program, ensure_cmdstan, processor_options

PROGRAM = """
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0, upper=1> theta;
  matrix[2, 3] m;
}
model {
  profile("likelihood") {
    y ~ bernoulli(theta);
  }
  to_vector(m) ~ normal(1, 2);
}
generated quantities {
  int y_new = bernoulli_rng(theta);
}
"""
DATA = {"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory):
    """Change the working directory, to which a program with a profile writes profile.csv, as CmdStan's do."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    yield
    os.chdir(before)


@pytest.fixture(autouse=True)
def quiet_cmdstanpy():
    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)


@pytest.fixture(autouse=True)
def environment_as_it_was():
    """Restore the environment, to which cmdstanpy adds CMDSTAN and STAN_NUM_THREADS."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> CompiledProgram:
    source = tmp_path_factory.mktemp("source") / "coin.stan"
    source.write_text(PROGRAM)
    # With other options for this processor than those of the package's programs the front end would be compiled again.
    return compile_program(source, cpp_options={"O": "0"} | processor_options(ensure_cmdstan()))


@pytest.fixture(scope="session")
def threaded(tmp_path_factory) -> CompiledProgram:
    if "SLAYR_TEST_THREADS" not in os.environ:
        pytest.skip(
            "compiling the front end with threads, which the package does not use, takes two minutes: set "
            "SLAYR_TEST_THREADS to test it"
        )
    source = tmp_path_factory.mktemp("source") / "coin.stan"
    source.write_text(PROGRAM)
    return compile_program(source, cpp_options={"O": "0", "STAN_THREADS": True} | processor_options(ensure_cmdstan()))


@pytest.fixture
def data_file(tmp_path) -> Path:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(DATA))
    return path


@pytest.fixture
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SLAYR_CACHE_DIR", str(tmp_path / "cache"))
    return cache_dir()


@pytest.fixture
def no_cmdstan(tmp_path, monkeypatch) -> None:
    """Hide every CmdStan of the user."""
    monkeypatch.delenv("CMDSTAN", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def source(tmp_path) -> Path:
    """A program for the `scripted` CmdStan."""
    path = tmp_path / "p.stan"
    path.write_text("parameters { real z; }\nmodel { z ~ std_normal(); }\n")
    return path


@pytest.fixture(scope="session")
def write_script() -> Callable[[Path, str], None]:
    return _write_script


def _write_script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def scripted(tmp_path, monkeypatch, own_cache) -> Path:
    """A CmdStan: stanc copies its input; make writes a line to `log` for each compilation, and copies the header."""
    cmdstan = tmp_path / "scripted"
    _write_script(
        cmdstan / "bin" / "stanc",
        'for word; do case $word in --o=*) out=${word#--o=};; esac; last=$word; done\ncp "$last" "$out"\n',
    )
    (cmdstan / "makefile").write_text(
        "CMDSTAN_VERSION := 2.36.0\n"
        "%: %.hpp\n"
        "\t@echo compiled >> log; sleep 0.3; printf '#!/bin/sh\\n' > $@; chmod +x $@\n"
        "\t@[ -z '$(USER_HEADER)' ] || cp '$(USER_HEADER)' header.hpp\n"
    )
    monkeypatch.setenv("CMDSTAN", str(cmdstan))
    return cmdstan


@pytest.fixture
def compilations(scripted) -> Callable[[], int]:
    log = scripted / "log"
    return lambda: len(log.read_text().split()) if log.exists() else 0
