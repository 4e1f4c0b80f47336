"""A working directory for ``slayr``."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    """Change to a directory with a module and a configuration whose budget needs no fit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    monkeypatch.delitem(__import__("sys").modules, "bowls", raising=False)
    (tmp_path / "bowls.py").write_text(MODULE)
    (tmp_path / "bowl.toml").write_text(CONFIG)
    return tmp_path
