"""Versions that belong to the results."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

from benchmarks.common import versions as module
from benchmarks.common.versions import OWN, PEERS, versions
from benchmarks.optimisation.peers import PEERS as PEER_SAMPLERS
from slayr_py.errors import ToolchainError


def test_versions_of_what_is_installed(monkeypatch):
    def version(package):
        if package == "smac":
            raise PackageNotFoundError(package)
        return "1.2"

    def unusable():
        raise ToolchainError("too old")

    monkeypatch.setattr(module, "version", version)
    monkeypatch.setattr(module, "find_cmdstan", unusable)
    found = versions()
    assert set(found) == {"processor", "python", "cmdstan", "slayr_py", *OWN, *PEERS} - {"smac"}
    assert found["botorch"] == "1.2" and found["cmdstan"] == "unusable"
    monkeypatch.setattr(module, "find_cmdstan", lambda: None)
    assert versions()["cmdstan"] == "none yet"


def test_the_packages_of_every_peer_are_recorded():
    assert {package for peer in PEER_SAMPLERS.values() for package in peer.kind.packages} <= {*OWN, *PEERS}
