"""Run record: a small readable JSON that describes a fit and is enough to run it again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.model import Model
from slayr_py.inference.records.environment import environment
from slayr_py.inference.records.summary import summarise
from slayr_py.inference.sampling.guesses import BEST_MODE
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.toolchain import CompiledProgram

FORMAT = 4
"""Format of new records; it increases with every change of their meaning."""

FORMER_NAMES: dict[int, dict[str, str]] = {1: {"omit_jacobian": "of_scores"}, 2: {}, 3: {}, FORMAT: {}}
"""For every format that can be read, the data entries that had another name in it."""

_ADDED: dict[int, dict[str, Any]] = {
    3: {"want_pointwise": 1, "want_density": 0, "n_warp": 0, "warp_location": (), "warp_scale": ()},
    4: {"noise_floor": 0.0, "binary": 0},
}
"""Data entries that earlier formats did not have, by the first format that has them, with the values that mean the
same. Format 4 also added ``y_sd`` and the families of positive hyperparameters."""

_FAMILY = "_gamma"  # suffix of the entries of format 4 that select a prior's family

_COLD = "drawn by CmdStan from (-2, 2), on the unconstrained scale, from seed and chain"
_WARM = "the points of the start"
_AT_PERIODS = f"periods of the best mode found from the periodogram; the others {_COLD}"


def make_record(
    model: Model,
    program: CompiledProgram,
    data: dict[str, Any],
    run: Run,
    diagnostics: Diagnostics,
    start: WarmStart | None,
    abandoned: Sequence[Mapping[str, Any]],
    maximize: bool = False,
) -> dict[str, Any]:
    """Describe a run, its start and the attempts before it; JSON-able.

    ``maximize`` tells that the targets in ``data`` are those of the negated values. Earlier versions had no such entry
    and negated the values of a maximised study before the fit.
    """
    return {
        "format": FORMAT,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        **environment(program),
        # A hash of sources, header, flags and compiler, and of the processor if the code is compiled for it.
        "executable": program.key,
        **model.asdict(),
        "data_sha256": digest(data),
        "maximize": maximize,
        "arguments": run.arguments,
        "calls": _shortened(run.calls),
        "inits": _WARM if start else _AT_PERIODS if any(call.get("init") == BEST_MODE for call in run.calls) else _COLD,
        "start": start.asdict() if start else None,
        "abandoned": list(abandoned),
        # All chains of a warm start share the metric in "start".
        "adaptation": [{"step_size": chain["step_size"]} for chain in run.adaptation] if start else run.adaptation,
        "draws_sha256": digest(run.variables),
        "summary": summarise(model, run),
        "diagnostics": diagnostics.asdict(),
    }


def with_current_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the data entries of older formats, and add those that they did not have."""
    current = {former: name for names in FORMER_NAMES.values() for name, former in names.items()}
    named = {current.get(name, name): value for name, value in data.items()}
    complete = {name: value for added in _ADDED.values() for name, value in added.items()} | named
    if "noise_floor" in named:
        return complete  # of format 4 already
    complete.setdefault("y_sd", np.zeros(np.size(complete.get("y", ()))))
    if data.keys() >= _ADDED[4].keys():
        return complete
    # In formats before 4 the mean was the only hyperparameter with a location that was not positive.
    for name in [name for name in complete if name.endswith("_location") and name != "mu_location"]:
        family = name.removesuffix("_location") + _FAMILY
        complete.setdefault(family, np.zeros((*np.shape(complete[name]), 3)))
    return complete


def data_digest(data: Mapping[str, Any], record_format: int) -> str:
    """Return the :func:`digest` of a program's data under the names that a record's format used."""
    former = FORMER_NAMES[record_format]
    added = {name for first, names in _ADDED.items() if first > record_format for name in names}
    if record_format < 4:
        added |= {"y_sd", *(name for name in data if name.endswith(_FAMILY))}
    return digest({former.get(name, name): value for name, value in data.items() if name not in added})


def digest(arrays: Mapping[str, Any]) -> str:
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
    # Strings in JSON have no line breaks, so that these brackets always belong to lists.
    return re.sub(r"\[\n\s*([^][{}]*?)\n\s*\]", lambda found: "[" + re.sub(r"\n\s*", " ", found[1]) + "]", text)


def _shortened(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls of CmdStan; from the second call of a method on, only what differs from the call before."""
    short = []
    for before, call in zip([{}, *calls], calls, strict=False):
        same = before.get("method") == call["method"]
        short.append({key: value for key, value in call.items() if not same or before.get(key, ...) != value})
    return short
