"""Versions that belong to the results."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from benchmarks.common import versions as module
from benchmarks.common.versions import OWN, PEERS, versions
from benchmarks.optimisation.peers import PEERS as PEER_SAMPLERS


@pytest.fixture(autouse=True)
def installed(monkeypatch):
    """Pretend that all packages but SMAC have the version 1.2, and that there is a CmdStan."""


def test_versions_of_what_is_installed(monkeypatch):
    def version(package):
        if package == "smac":
            raise PackageNotFoundError(package)
        return "1.2"

    monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(module, "find_cmdstan", lambda: type("Found", (), {"version": "2.36.0"}))


def test_versions_have_the_machine_the_toolchain_and_installed_peers():
    standard = {"processor", "python", "cmdstan", "slayr_py", *OWN}
    assert set(versions()) == standard | set(PEERS) - {"smac"} and versions()["cmdstan"] == "2.36.0"
    assert set(versions(["smac", "torch"])) == standard | {"torch"}
    assert {package for peer in PEER_SAMPLERS.values() for package in peer.kind.packages} <= {*OWN, *PEERS}


def test_a_command_prints_versions_unless_it_only_reports(capsys):
    parser = command_parser("speed/search.py", None)
    parser.add_argument("--report", action="store_true")
    assert not begin(parser, []).report
    assert "botorch 1.2, " in capsys.readouterr().out
    assert begin(parser, ["--report"]).report and capsys.readouterr().out == ""
