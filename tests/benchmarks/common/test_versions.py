from __future__ import annotations

import ast
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from benchmarks.common import versions as module
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.versions import OWN, PEERS, versions
from benchmarks.optimisation.peers import PEERS as PEER_SAMPLERS
from slayr_py.errors import ToolchainError

BENCHMARKS = Path(module.__file__).resolve().parents[1]
COMMANDS = [path for path in sorted(BENCHMARKS.glob("*/*.py")) if "def main(" in path.read_text(encoding="utf-8")]
STANDARD = {"processor", "python", "cmdstan", "slayr_py"}


@pytest.fixture
def installed(monkeypatch):
    """Pretend that every package has the version 1.2, except those in the returned set, and that there is a CmdStan."""
    missing = set()

    def version(package):
        if package in missing:
            raise PackageNotFoundError(package)
        return "1.2"

    monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(module, "find_cmdstan", lambda: type("Found", (), {"version": "2.36.0"}))
    return missing


def test_versions_have_the_machine_the_toolchain_and_all_peers(installed):
    found = versions()
    assert set(found) == STANDARD | set(OWN) | set(PEERS) and found["cmdstan"] == "2.36.0" and found["botorch"] == "1.2"
    assert {"slayr_py", "numpy", "optuna", "scikit-learn", "torch", "gpytorch", "numpyro", "jax", "smac"} <= set(found)
    assert set(versions(["smac"])) == STANDARD | {*OWN, "smac"}


def test_peers_that_are_not_installed_are_omitted(installed):
    installed.update(PEERS)
    assert set(versions()) == STANDARD | set(OWN)


def test_a_missing_or_unusable_cmdstan_is_no_error(installed, monkeypatch):
    monkeypatch.setattr(module, "find_cmdstan", lambda: None)
    assert versions()["cmdstan"] == "none yet"

    def unusable():
        raise ToolchainError("too old")

    monkeypatch.setattr(module, "find_cmdstan", unusable)
    assert versions()["cmdstan"] == "unusable"


def test_a_command_prints_versions_unless_it_only_reports(installed, capsys):
    parser = command_parser("speed/search.py", None)
    parser.add_argument("--report", action="store_true")
    assert not begin(parser, []).report
    assert "botorch 1.2, " in capsys.readouterr().out
    assert begin(parser, ["--report"]).report and capsys.readouterr().out == ""


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_every_command_starts_with_the_versions(path):
    calls = [node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = [func.id if isinstance(func, ast.Name) else getattr(func, "attr", None) for func in calls]
    assert "begin" in names and "parse_args" not in names


def test_the_packages_of_every_peer_are_recorded():
    assert {package for peer in PEER_SAMPLERS.values() for package in peer.kind.packages} <= {*OWN, *PEERS}
