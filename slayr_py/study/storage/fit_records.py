"""Store the fit of a trial in the study: the record to run it again, and the warm start of the next fit.

A process that reads the warm start continues exactly where the previous one stopped, bit for bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError
from slayr_py.inference import METHODS, FitOptions, GaussianProcess, Posterior, WarmStart
from slayr_py.kernels import Kernel
from slayr_py.space import LOGARITHMIC, WITHIN, jsonable
from slayr_py.study.storage.attributes import (
    FIT_KEY,
    KERNEL_KEY,
    SHARED_KEY,
    START_KEY,
    study_record,
    suggestion_record,
)
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.pieces import store_in_study, store_in_trial, stored
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.suggestion import was_linear
from slayr_py.study.storage.trials import to_ranges

_SHARED = ("program", "machine", "priors")  # entries of a record
_LONG = 1000  # characters of a kernel that is stored once for all fits of a study


class LastStart(NamedTuple):
    """A stored warm start, and the number of observations of the fit that it comes from."""

    start: WarmStart
    observations: int


def store_fit(
    study: Study,
    trial: FrozenTrial,
    posterior: Posterior,
    observed: Sequence[int],
    warm_starts: bool,
    name: str,
) -> None:
    """Store the record of a fit and the warm start of the next one, without what the study already contains.

    ``name`` is the name of a model of feasibility, of one of several objectives or of a part of a stack, see `keys`.
    The parts of a stack are stored one by one; the record of the stack has their names and weights.
    """
    if posterior.is_stack:
        parts = []
        for (label, weight), part in zip(posterior.weights.items(), posterior.posteriors, strict=True):
            fit = part_name(part.kernel, name)
            parts.append({"fit": fit, "kernel": label, "weight": weight})
            store_fit(study, trial, part, observed, warm_starts, fit)
        stack = {"parts": parts, "seed": posterior.seed, "messages": list(posterior.messages)}
        store_in_trial(study, trial, keys(name)[0], jsonable({"stack": stack, "trials": to_ranges(observed)}))
        return
    fit_key, start_key = keys(name)
    record: dict[str, Any] = {**posterior.record, "trials": to_ranges(observed)}
    kernel = jsonable(record["kernel"])
    if len(json.dumps(kernel)) > _LONG:
        record["kernel"] = {"name": kernel["name"], **_stored_once(study, KERNEL_KEY, kernel)}
    shared = jsonable({entry: record.pop(entry) for entry in _SHARED})
    record["shared"] = _stored_once(study, SHARED_KEY, shared)
    about = study_record(study) or {}
    record["space"] = {k: v for k, v in record["space"].items() if k == LOGARITHMIC or v != about.get(k)}
    if not record["space"]:
        del record["space"]
    for earlier in trials_of(study):
        if record["start"] is not None and stored(earlier.user_attrs, start_key) == record["start"]:
            record["start"] = {"trial": earlier.number}
            break
    # Several suggestions from the same trials share a fit and its start.
    repeated = any(
        start_key in earlier.user_attrs and _fitted(earlier, fit_key) == record["trials"]
        for earlier in trials_of(study)
    )
    store_in_trial(study, trial, fit_key, jsonable(record))
    if warm_starts and not repeated and METHODS[record["arguments"]["method"]].warm_starts:
        store_in_trial(study, trial, start_key, posterior.warm_start().asdict())


def store_fits_of_objectives(study: Study, trial: FrozenTrial, observed: Sequence[int]) -> None:
    """Store the names of the fits of several objectives, which are stored one by one."""
    names = [goal.fit_name for goal in goals_of(study)]
    store_in_trial(study, trial, FIT_KEY, jsonable({"objectives": names, "trials": to_ranges(observed)}))


def with_stored_once(study: Study, reduced: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored record with its kernel and the entries that the study stores only once.

    Raises
    ------
    ValueError
        If the study does not have them, or has changed them.
    """
    record = {**_read(study, SHARED_KEY, reduced["shared"]), **reduced}
    del record["shared"]
    if "sha256" in record["kernel"]:
        record["kernel"] = _read(study, KERNEL_KEY, record["kernel"])
    return record


def space_of_fit(study: Study, reduced: Mapping[str, Any]) -> dict[str, Any]:
    """Return the space of a stored record, whose space or graphs it lacks where the study has the same."""
    about = study_record(study) or {}
    return {**{key: about[key] for key in ("space", "graphs", WITHIN) if key in about}, **reduced.get("space", {})}


def _stored_once(study: Study, key: str, value: Mapping[str, Any]) -> dict[str, str]:
    """Store a value as an attribute of the study unless it is there; return a reference to it."""
    digest = _sha256(value)
    if f"{key}:{digest}" not in study.user_attrs:
        store_in_study(study, f"{key}:{digest}", value)
    return {"sha256": digest}


def _read(study: Study, key: str, reference: Mapping[str, Any]) -> Mapping[str, Any]:
    value = stored(study.user_attrs, f"{key}:{reference['sha256']}")
    if not isinstance(value, Mapping) or _sha256(value) != reference["sha256"]:
        raise ValueError(f"the study has no attribute {key}:{reference['sha256']!r:.80}")
    return value


def _sha256(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _fitted(trial: FrozenTrial, fit_key: str) -> Any:
    """Return the ranges of the trials of a stored fit; None if the trial has none."""
    return (stored(trial.user_attrs, fit_key) or {}).get("trials")


def part_name(kernel: Kernel, of: str) -> str:
    """Return the name of the fit of a kernel in a stack, for `keys`; ``of`` is the name of the objective's fit."""
    return f"{of} kernel {kernel.digest}".lstrip()


def keys(name: str = "") -> tuple[str, str]:
    """Return the trial attributes of the fit and of the warm start of a model; the objective has no name."""
    return (f"{FIT_KEY}:{name}", f"{START_KEY}:{name}") if name else (FIT_KEY, START_KEY)


def last_warm_start(
    study: Study,
    number: int,
    gp: GaussianProcess,
    options: FitOptions,
    observed: Sequence[int],
    name: str = "",
    linear: bool = False,
) -> LastStart | None:
    """Return the warm start stored by the latest fit before trial ``number``, or None if this model cannot use it.

    Fits to the same trials ``observed`` are skipped, so that a process that repeats such a fit after an interruption
    has the same start. ``linear`` says whether the values of a constraint are not compressed: the fit to the others is
    that of another function.
    """
    fit_key, start_key = keys(name)
    ranges = to_ranges(observed)
    for earlier in sorted(trials_of(study), key=lambda trial: -trial.number):
        fit = stored(earlier.user_attrs, fit_key) or {}
        fitted: Any = fit.get("trials")
        if fitted == ranges:
            continue
        if earlier.number < number and start_key in earlier.user_attrs:
            if fit.get("auto_warp") != gp.model.auto_warp or was_linear(suggestion_record(earlier), name) is not linear:
                return None
            try:
                if space_of_fit(study, fit).get(LOGARITHMIC, []) != list(gp.encoder.logarithmic):
                    return None
                start = WarmStart.fromdict(stored(earlier.user_attrs, start_key))
                gp.model.check_start(start, METHODS[options.method].chains_of_start(options))
                return LastStart(start, sum(last - first + 1 for first, last in fitted))
            except (DataError, AttributeError, TypeError, ValueError):
                return None
    return None
