"""The declared contracts agree with the Stan programs and with the tables of their README."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path

import pytest

from slayr_py.inference.sampling.programs import program_folder, program_names
from slayr_py.kernels import program_contracts
from slayr_py.kernels.contracts import QUANTITIES
from slayr_py.toolchain import ensure_cmdstan

CONTRACTS = program_contracts()
ROOT = Path(__file__).resolve().parents[2]


def test_every_program_has_a_contract():
    assert set(CONTRACTS) == set(program_names())


def test_no_function_has_a_suffix_that_stan_reserves():
    """Functions of such a name may be called by others of their kind only: by Stan 2.39, not by 2.35, for _jacobian."""
    files = sorted(program_folder().rglob("*.stan"))
    names = [name for path in files for name in re.findall(r"\b(\w+)\(", path.read_text(encoding="utf-8"))]
    assert "log_jacobian_of_warp" in names
    assert not [name for name in names if name.endswith(("_jacobian", "_lp"))]


@pytest.fixture(scope="module")
def declared():
    """Types and numbers of dimensions of a program's variables, as stanc reports them."""

    def info(name):
        stanc = ensure_cmdstan().path / "bin" / "stanc"
        folder = program_folder()
        command = [str(stanc), "--info", f"--include-paths={folder}", str(folder / f"{name}.stan")]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return {
            block: {name: (entry["type"], entry["dimensions"]) for name, entry in found[block].items()}
            for block in ("inputs", "parameters", "transformed parameters", "generated quantities")
        }

    return info


@pytest.mark.stan
@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_contracts_agree_with_the_programs(declared, name):
    contract = CONTRACTS[name]
    program = declared(name)
    inputs = {entry.name: (entry.type, len(entry.shape)) for entry in contract.entries}
    inputs |= {n: ("real", len(axes)) for p in contract.parameters for n, axes in p.prior_entries.items()}
    assert program["inputs"] == inputs
    # The order of the parameters is part of the contract: theta and warm starts follow it.
    coordinates = [(p.coordinate, ("real", len(p.shape))) for p in contract.parameters]
    assert list(program["parameters"].items()) == coordinates
    assert program["transformed parameters"] == {p.name: ("real", len(p.shape)) for p in contract.parameters}
    assert program["generated quantities"] == {q.name: (q.type, len(q.shape)) for q in QUANTITIES}


def test_the_readme_and_its_example_are_current():
    spec = importlib.util.spec_from_file_location("stan_contract", ROOT / ".ci" / "stan_contract.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = script.README.read_text(encoding="utf-8")
    assert script.updated(text) == text
    assert script.EXAMPLE.read_text(encoding="utf-8") == script.example_data()
    assert all(f"`{parameter.name}`" in text for contract in CONTRACTS.values() for parameter in contract.parameters)
