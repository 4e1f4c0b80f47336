"""Run record: readable JSON that describes a fit and suffices to repeat it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from slayr_py.errors import StorageError
from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.model import Model
from slayr_py.inference.records.environment import environment
from slayr_py.inference.records.summary import summarise
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.toolchain import CompiledProgram

FORMAT = 1
"""Format of records; it increases with every change of their meaning."""

_WARM = "the points of the start"
_COLD = "in the calls: from seed, priors and the periodogram of the observations"
_CHAINS = "draws of Pathfinder, in the calls"
_CMDSTAN = "drawn by CmdStan from (-2, 2), on the unconstrained scale, from seed and chain"


def make_record(
    model: Model,
    program: CompiledProgram,
    data: dict[str, Any],
    run: Run,
    diagnostics: Diagnostics,
    start: WarmStart | None,
    maximize: bool = False,
) -> dict[str, Any]:
    """Describe a run and its start; JSON-able. `Part.after` adds the attempts before it.

    With ``maximize`` the targets in ``data`` are the negated values.
    """
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        **environment(program),
        # A hash of sources, header, flags and compiler, and of the processor if the code is compiled for it.
        "executable": program.key,
        **model.asdict(),
        "data_sha256": array_digest(data),
        "maximize": maximize,
        "arguments": run.arguments,
        "calls": _shorten(run.calls),
        "inits": _WARM if start else _initial_values(run.calls),
        "start": start.asdict() if start else None,
        "abandoned": [],
        # All chains of a warm start share the metric in "start".
        "adaptation": [{"step_size": chain["step_size"]} for chain in run.adaptation] if start else run.adaptation,
        "draws_sha256": array_digest(run.variables),
        "summary": summarise(model, run),
        "diagnostics": diagnostics.asdict(),
    }


def _initial_values(calls: Sequence[Mapping[str, Any]]) -> str:
    """Describe the initial values of a cold start."""
    if not any(isinstance(call.get("init"), dict | list) for call in calls):
        return _CMDSTAN
    return _CHAINS if {"pathfinder", "sample"} <= {call["method"] for call in calls} else _COLD


def check_format(record: Mapping[str, Any]) -> None:
    """Check that this version can read a record.

    Raises
    ------
    StorageError
        If it has another format.
    """
    if record.get("format") != FORMAT:
        raise StorageError(
            f"its format is {record.get('format')!r:.80}, and this version of slayr_py reads {FORMAT}; use the version "
            f"that wrote it ({record.get('slayr_py')!r:.80}), or repeat the fit"
        )


def array_digest(arrays: Mapping[str, Any]) -> str:
    """Return the SHA-256 of names, shapes and the exact bits of numbers; writing to JSON and back does not change it.

    Raises
    ------
    TypeError, ValueError
        If an entry is neither a number nor a regular array of numbers.
    """
    total = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(np.asarray(arrays[name], dtype=np.float64))
        if not array.size:  # JSON keeps only the outer axes of an empty array
            array = np.asarray(array.tolist(), dtype=np.float64)
        total.update(f"{name}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def as_text(record: Mapping[str, Any]) -> str:
    """Return a record as readable JSON: one entry per line, and each list of numbers or strings on one line."""
    text = json.dumps(record, indent=2) + "\n"
    # Strings in JSON have no line breaks, so these brackets always belong to lists.
    return re.sub(r"\[\n\s*([^][{}]*?)\n\s*\]", lambda match: "[" + re.sub(r"\n\s*", " ", match[1]) + "]", text)


def _shorten(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls of CmdStan; a repeated method has only the entries that differ from the call before."""
    short = []
    for before, call in zip([{}, *calls], calls, strict=False):
        same = before.get("method") == call["method"]
        short.append({key: value for key, value in call.items() if not same or before.get(key, ...) != value})
    return short
