"""Program, machine and packages in a record."""

from __future__ import annotations

import hashlib

import pytest
from testing_programs import readable

from slayr_py.inference.records import environment
from slayr_py.inference.sampling.programs import program_folder
from slayr_py.toolchain.source import cpp_code, expand_stan, stan_code

pytestmark = pytest.mark.stan


def test_sources_are_hashed_with_what_they_include(rounds):
    program = rounds.record["program"]
    folder = program_folder()
    text = expand_stan(folder / "matern_gp.stan", (folder / "accelerated", folder))
    assert "\n#include" not in text and all(
        path.read_text() in text for path in (folder / "accelerated" / "functions").glob("matern_*.stan")
    )
    code = stan_code(folder / "matern_gp.stan", (folder / "accelerated", folder))
    assert program["source_sha256"] == hashlib.sha256(code.encode()).hexdigest()
    header = cpp_code(folder / "accelerated" / "matern.hpp")
    assert program["header_sha256"] == hashlib.sha256(header.encode()).hexdigest()
    other = environment.environment(readable("matern_gp"))["program"]
    assert other["header_sha256"] is None and other["source_sha256"] != program["source_sha256"]


def test_a_record_has_packages_blas_and_compiler(rounds):
    record = rounds.record
    assert record["packages"].keys() >= {"cmdstanpy", "numpy", "scipy", "pandas", "networkx", "scikit-learn", "optuna"}
    assert record["machine"]["blas"] and record["cmdstan"]["compiler"]
