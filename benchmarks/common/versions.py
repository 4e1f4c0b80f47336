"""Versions of the packages, toolchain and processor behind a result."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from slayr_py.errors import ToolchainError
from slayr_py.toolchain import find_cmdstan, processor_name
from slayr_py.version import __version__

OWN = ("numpy", "scipy", "optuna", "scikit-learn", "ConfigSpace")
PEERS = (
    *("torch", "gpytorch", "botorch", "pyro-ppl", "jax", "jaxlib", "numpyro", "pymc", "nutpie"),
    *("ax-platform", "baybe", "smac", "HEBO", "GPy", "pymoo", "xgboost", "xgboost-cpu", "coco-experiment"),
)
"""Optional packages that some benchmark compares with or needs."""


def versions(packages: Iterable[str] = PEERS) -> dict[str, str]:
    """Return the processor, the versions of Python, CmdStan and slayr_py, and those of the installed packages."""
    found = {"processor": processor_name(), "python": platform.python_version()}
    found |= {"cmdstan": _cmdstan(), "slayr_py": __version__}
    for package in dict.fromkeys((*OWN, *packages)):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # not part of this comparison
            continue
    return found


def write_versions(path: Path, packages: Iterable[str] = PEERS) -> None:
    """Write the versions beside a file of results."""
    path.with_suffix(".json").write_text(json.dumps(versions(packages), indent=1) + "\n", encoding="utf-8")


def _cmdstan() -> str:
    try:
        installation = find_cmdstan()
    except ToolchainError:
        return "unusable"
    return installation.version if installation is not None else "none yet"
