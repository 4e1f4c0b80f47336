"""Run the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import slayr_py

PACKAGE = Path(slayr_py.__file__).parent
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("[!_]*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
