"""Run the examples in docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import slayr_py

MODULES = [
    info.name
    for info in pkgutil.walk_packages(slayr_py.__path__, "slayr_py.")
    if info.name.rpartition(".")[2] not in ("__main__",)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_hand_worked_kernels_are_among_them():
    for name in ("hierarchical", "mixed.frequency_modulated", "matern"):
        assert doctest.testmod(importlib.import_module(f"slayr_py.kernels.{name}")).attempted > 0
