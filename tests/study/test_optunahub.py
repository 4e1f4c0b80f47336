"""The package for OptunaHub loads from the repository, and its example runs."""

from __future__ import annotations

import ast
import re
import runpy
import socket
import sys
from pathlib import Path

import optuna
import pytest

from slayr_py.study import StanGPSampler

REGISTRY = Path(__file__).resolve().parents[2] / "optunahub" / "package"
PACKAGE = REGISTRY / "samplers" / "slayr"


@pytest.fixture
def optunahub(monkeypatch):
    """The loader, in a process without network."""

    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return pytest.importorskip("optunahub", exc_type=ImportError)  # also where its package git finds no program


@pytest.fixture
def module(optunahub):
    yield optunahub.load_local_module("samplers/slayr", registry_root=str(REGISTRY))
    sys.modules.pop("optunahub_registry.package.samplers.slayr", None)


def test_the_module_has_the_sampler(module):
    assert module.StanGPSampler is StanGPSampler and module.__all__ == ["StanGPSampler"]


@pytest.mark.stan
def test_the_example_runs(module, optunahub, monkeypatch, capsys):
    monkeypatch.setattr(optunahub, "load_module", lambda package: module)
    optimize = optuna.Study.optimize
    monkeypatch.setattr(optuna.Study, "optimize", lambda study, objective, n_trials: optimize(study, objective, 8))
    monkeypatch.setattr(module, "StanGPSampler", lambda seed: StanGPSampler(seed=seed, method="map"))
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert float(capsys.readouterr().out.split()[0]) >= 0


def test_the_page_is_complete():
    """The front matter that OptunaHub requires, its headings, and the example's own text."""
    _, front, page = (PACKAGE / "README.md").read_text().split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert list(fields) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert "sampler" in fields["tags"].strip("[]").split(", ")
    assert re.findall("^## (.*)$", page, re.MULTILINE) == [
        "Abstract",
        "Class or Function Names",
        "Installation",
        "Example",
    ]
    (shown,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    example = (PACKAGE / "example.py").read_text()
    for call in ("load_module", "optimize", "suggest_int", "StanGPSampler"):
        assert lines_with(call, shown) == lines_with(call, example)
    assert (PACKAGE / "LICENSE").read_text() == (REGISTRY.parents[1] / "LICENSE").read_text()
    assert ast.parse(shown)


def lines_with(word, text):
    return [line.strip() for line in text.splitlines() if word in line]
