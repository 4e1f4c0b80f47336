"""Environment of a run: program, toolchain, machine and packages, which affect the bits of its results."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from slayr_py.toolchain import CompiledProgram, cpp_code, processor_features, processor_name
from slayr_py.version import __version__

_PACKAGES = (
    *("ConfigSpace", "arviz", "arviz-base", "arviz-stats", "cmdstanpy", "httpstan", "networkx", "numba", "numpy"),
    *("optuna", "pandas", "scikit-learn", "scipy", "xarray", "xarray-einstats"),
)


def environment(program: CompiledProgram) -> dict[str, Any]:
    """Return program, toolchain, machine and packages of a run; JSON-able, without paths of this machine."""
    return {
        "slayr_py": __version__,
        "program": {
            "name": program.name,
            "source_sha256": program.source_hash,
            "likelihood": "accelerated" if program.header else "readable",
            "header_sha256": _header_hash(program.header, program.key) if program.header else None,
            "together": program.together,
            "stanc_options": list(program.stanc_options),
            "flags": [f"USER_HEADER={Path(f).name}" if f.startswith("USER_HEADER=") else f for f in program.flags],
        },
        "cmdstan": {
            "version": program.cmdstan.version,
            "origin": program.cmdstan.origin,
            "compiler": program.cmdstan.compiler.version,
            "command": _without_folder(program.cmdstan.compiler.name),
        },
        "machine": _machine(),
        "packages": _packages(),
    }


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the differences between two nested mappings, such as "cmdstan.version: was 2.35, is 2.36"."""
    before = dict(_leaves(was))
    after = dict(_leaves(now))
    return tuple(
        f"{name}: {_change(before.get(name), after.get(name))}"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    )


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _change(was: Any, now: Any) -> str:
    if isinstance(was, list) and isinstance(now, list):
        # Only the entries that differ: a processor has two dozen features.
        was, now = [value for value in was if value not in now], [value for value in now if value not in was]
    return f"was {_spell(was)}, is {_spell(now)}"


def _spell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "without"
    return "absent" if value is None else str(value)


def _without_folder(command: str) -> str:
    """Return a compiler's command without its folder: "g++ -O1" for "/opt/bin/g++ -O1"."""
    first, *options = shlex.split(command)
    return " ".join([Path(first).name, *options])


@cache
def _header_hash(header: Path, key: str) -> str:
    """Return the SHA-256 of the code of the accelerated likelihood; `key` changes whenever the header does."""
    return hashlib.sha256(cpp_code(header).encode()).hexdigest()


@cache
def _machine() -> dict[str, Any]:
    # Each copy of BLAS selects its own loops for the processor.
    blas = {
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}".strip()
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    return {
        "system": platform.platform(),
        "processor": processor_name(),
        "features": list(processor_features()),
        "python": platform.python_version(),
        "blas": sorted(blas),
    }


@cache
def _packages() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # an optional package, or a part of another version of ArviZ
            continue
    return versions
