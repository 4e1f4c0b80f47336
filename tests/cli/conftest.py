"""Running ``slayr`` as a person does, in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from slayr_py.cli.app import app

MODULE = """
def bowl(config):
    return (config["x"] - 0.3) ** 2 + (0.5 if config["k"] == "b" else 0.0)

def broken(config):
    raise RuntimeError("no data")

def nothing(config):
    return float("nan")
"""

CONFIG = """
[study]
budget = 4
n_initial = 4
seed = 1

[objective]
function = "bowls:bowl"

[space]
x = { type = "float", lower = 0.0, upper = 1.0 }
k = { type = "categorical", choices = ["a", "b"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a module and a configuration that takes no fit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.delitem(__import__("sys").modules, "bowls", raising=False)
    (tmp_path / "bowls.py").write_text(MODULE)
    (tmp_path / "bowl.toml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def slayr() -> Callable[..., tuple[int, str, str]]:
    """Call the command line; exit code, standard output and standard error come back."""

    def call(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call
