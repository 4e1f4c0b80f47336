"""The run record: one small readable JSON that says how a fit came about."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

import slayr_py
from slayr_py.inference.diagnostics import Diagnostics
from slayr_py.inference.model import Model
from slayr_py.inference.output import Run
from slayr_py.inference.start import WarmStart
from slayr_py.toolchain import CompiledProgram, processor_name

_PACKAGES = ("cmdstanpy", "numpy", "scipy", "arviz", "xarray", "ConfigSpace")


def make_record(
    model: Model,
    program: CompiledProgram,
    data: dict[str, Any],
    run: Run,
    diagnostics: Diagnostics,
    start: WarmStart | None,
    abandoned: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Describe a run, where it started, and what was tried before it; JSON-able."""
    return {
        "slayr_py": slayr_py.__version__,
        "program": {
            "name": program.name,
            "source_sha256": program.source_hash,
            "likelihood": "accelerated" if program.header else "readable",
            "flags": list(program.flags),
            # A hash of sources, header, flags and compiler, and of the processor where the code is for this one only.
            "executable": program.key,
        },
        "cmdstan": {
            "version": program.cmdstan.version,
            "origin": program.cmdstan.origin,
            "compiler": program.cmdstan.compiler.version,
        },
        "machine": {
            "system": platform.platform(),
            "processor": processor_name(),
            "python": platform.python_version(),
        },
        "packages": {name: version(name) for name in _PACKAGES},
        **model.asdict(),
        "data_sha256": digest(data),
        "arguments": run.arguments,
        "start": start.asdict() if start else None,
        "abandoned": list(abandoned),
        "adaptation": run.adaptation,
        "draws_sha256": digest(run.variables),
        "diagnostics": diagnostics.asdict(),
        "seconds": round(run.seconds, 3),
    }


def digest(arrays: dict[str, Any]) -> str:
    """SHA-256 over names, shapes and the exact bits of numbers."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(np.asarray(arrays[name], dtype=np.float64))
        total.update(f"{name}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()
