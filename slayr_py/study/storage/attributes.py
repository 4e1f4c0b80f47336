"""JSON attributes that the sampler and the loop keep in Optuna's storage.

They hold everything that a reader or a later process needs to continue, so nothing is pickled: the study has the space
and the seed, each trial its origin and the model's prediction for it.

The record of a suggestion has its types in `slayr_py.study.storage.suggestion`, and its entries are described there.

Numbers of a suggestion by a model, each an attribute of its own (``trial.user_attrs["slayr:rhat_max"]``). The Optuna
dashboard shows them as columns and sorts by them; it cuts the record. They are written once and never read:

======================  ================================================================================
slayr:predicted_mean    "mean" and "sd" of "predicted"; of several objectives followed by "_" and a name
slayr:predicted_sd
slayr:acquisition       "value" of "acquisition"
slayr:feasible          "feasible"                                                         (if modelled)
slayr:rhat_max          the same of "diagnostics"                                                 (NUTS)
slayr:pareto_k          the same of "diagnostics"                                      (importance ratios)
slayr:ok                1 if all "diagnostics" are within their limits, else 0
slayr:seconds_fit       "fit" of "seconds"
======================  ================================================================================
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from ConfigSpace import ConfigurationSpace
from optuna import Study, Trial
from optuna.trial import FrozenTrial

from slayr_py.display import shortened
from slayr_py.kernels import Kernel, Stack, auto_reason
from slayr_py.space import Encoder, encoder_to_json, jsonable, space_to_json
from slayr_py.study.storage.optuna_private import (
    add_trial_attributes,
    enqueued_values,
    fails_silent_trials,
    partly_fixed,
    set_trial_attribute,
)
from slayr_py.study.storage.pieces import store_in_trial, stored
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.suggestion import SuggestionRecord

STUDY_KEY = "slayr:study"
"""Study attribute: {"space", "graphs", "within", "seed", "kernel", "acquisition", "n_initial", "noisy", "prior",
"cost"} at its start; "noisy" as declared last.

"within" has the texts of the constraints on inputs, ``{"function": name}`` for a function. "prior" has the belief about
each parameter of the optimum, or None.

The kernel is {"name", "options", "description", "chosen", "reason", "stan_files"}: chosen by "auto", with a reason, or
by the "user". A stack has the name "stack" and a kernel search the name "search"; the options of a search have the
"plain" kernel.
A version of slayr_py that changes this record writes a higher ``"format"`` than
`slayr_py.study.storage.integrity.FORMAT`, so that this version rejects the study; the default is 1.
"""

BOUNDS_KEY = "slayr:bounds"
"""Study attribute: texts of the bounds that the runs of `minimize` had in ``constraints=``, the first one of each name.
Empty if there were none, so that each number that the objective reported had to be at most 0."""

SUGGESTION_KEY = "slayr:suggestion"
"""Trial attribute: the `SuggestionRecord`."""

HISTORY: Final = "history"
"""Phase of a past experiment in its suggestion record: the trial does not count against the budget."""

CONTEXT_KEY = "slayr:context"
"""Trial attribute: values of parameters that the user gave for this trial, by name."""

ASKED_KEY = "slayr:asked"
"""Trial attribute: true if `ask`, `ask_batch` or a planned experiment of a history started it, so that a past
experiment may be its result; false once one is."""

START_KEY = "slayr:start"
"""Trial attribute: the `WarmStart` of the next fit as a dictionary."""

FIT_KEY = "slayr:fit"
"""Trial attribute: `Posterior.record` of the fit behind its suggestion, with the ranges of the fitted ``trials``. The
space is omitted if it is the study's; ``shared`` refers to the study attribute with the program, the machine and the
priors; the start ``{"trial": number}`` refers to the warm start stored in that trial, a kernel ``{"name", "sha256"}``
to the study attribute that has it.

A stack has ``{"stack": {"parts", "seed", "messages"}, "trials"}``. A part is ``{"fit", "kernel", "weight"}``; the
attributes with its own record and its warm start end in ":" and its "fit". Several objectives have
``{"objectives", "trials"}``, the names of their fits."""

SEARCH_KEY = "slayr:search"
"""Trial attribute: the kernel search before its suggestion. Later suggestions use its ``expressions``, the best first,
beside the plain kernel.

It is {"due", "expressions", "scores", "score", "fits", "seconds", "seed", "trials", "messages", "error"}: the number of
observations at which the search was due, the score of each expression and its name, the number of fits, the ranges of
the trials that it was run on, and what was approximated. After an ``error``, or if all values were equal, the
expressions of the search before are kept."""

SEARCHING_KEY = "slayr:searching"
"""Trial attribute: {"due", "process"}: the kernel search that the process of a running trial has started, see
`SEARCH_KEY`. Until it is stored, other processes go on with the kernels they have."""

REGRET_KEY = "slayr:regret"
"""Study attribute, followed by ":", the number of the last trial that was fitted, ":" and the number of observations:
the estimate of the stopping rule, a `RegretEstimate` as a dictionary. Its further entry "about" has what the regret
refers to: the "fixed" values and the "reference_point". An estimate from the same observations replaces it."""

KERNEL_KEY = "slayr:kernel"
"""Study attribute, followed by ":" and a SHA-256: a kernel whose options are long, as trials' fits refer to it."""

SHARED_KEY = "slayr:shared"
"""Study attribute, followed by ":" and a SHA-256: the entries of records of fits that hardly change in a study."""

ERROR_KEY = "y_sd"
"""Trial attribute that a user may set: standard deviation of the error of the trial's value."""

OUTSIDE_KEY = "slayr:outside"
"""Trial attribute: the constraint on inputs that a past experiment, or values that were enqueued in Optuna, violate.
The trial is fitted, but never the best one."""

FAILURE_KEY = "slayr:failure"
"""Trial attribute: reason for the failure of the trial, without the middle of a very long one."""

IGNORES_FAILURES_KEY = "slayr:ignores_failures"
"""Study attribute: true if the sampler that the study had last has no model of failures."""

LONGEST_REASON = 4000
"""Most characters of the text of an exception that are stored: all reads of a study would read it."""

HEARTBEATS_KEY = "slayr:heartbeats"
"""Trial attribute: true if Optuna fails the trial once its process, which may have been killed, sends no heartbeats."""

TOLD_KEY = "slayr:told"
"""Trial attribute: true if a trial with `HEARTBEATS_KEY` failed because the objective raised an error, or was told so.
Optuna fails the trials of killed processes without it."""

WORKER_KEY = "slayr:worker"
"""Trial attribute: name of the last process of `minimize` that evaluated it; empty once it is abandoned."""

EVALUATIONS_KEY = "slayr:evaluations"
"""Trial attribute: number of times its evaluation was started."""

POSTPONED_KEY = "slayr:postponed"
"""Trial attribute: number of runs that an error ended before they evaluated it."""

VALUE_KEY = "slayr:value"
"""Trial attribute: value of the objective, written before anything else happens with it. If the process dies before
the trial is finished, the run that resumes the trial takes this value instead of evaluating again. Of several
objectives it is a list."""

LOCK_KEY = "slayr:turn"
"""Study system attribute: queue of the search lock, a list of names of processes; the first holds the lock if its name
ends in "holds"."""


def space_difference(stored: Mapping[str, Any], space: ConfigurationSpace) -> str | None:
    """Describe how a stored space differs from another; None if they are the same up to name and order."""
    here = space_to_json(space)
    old = {parameter["name"]: parameter for parameter in stored["hyperparameters"]}
    new = {parameter["name"]: parameter for parameter in here["hyperparameters"]}
    if missing := sorted(old.keys() - new.keys()):
        return f"the study's space also has {', '.join(missing)}"
    if added := sorted(new.keys() - old.keys()):
        return f"the study's space has no {', '.join(added)}"
    for name, parameter in old.items():
        if _canonical(parameter) != _canonical(new[name]):
            changed = [key for key in parameter if parameter[key] != new[name].get(key)]
            return f"parameter {name!r} differs in {', '.join(changed) or 'its fields'}"
    for kind in ("conditions", "forbiddens"):
        if sorted(map(_canonical, stored[kind])) != sorted(map(_canonical, here[kind])):
            return f"the {kind} differ"
    return None


def kernel_record(kernel: Kernel | Stack, encoder: Encoder, automatic: bool) -> dict[str, Any]:
    """Return the record of a kernel or of a stack, and the reason for choosing it."""
    return {
        "name": kernel.name,
        "options": jsonable(kernel.options()),
        "description": kernel.description,
        "chosen": "auto" if automatic else "user",
        "reason": auto_reason(encoder) if automatic else None,
        "stan_files": _stan_files(kernel),
    }


def _stan_files(kernel: Kernel | Stack) -> dict[str, str]:
    """Return the SHA-256 of the programs of the user's kernels by name."""
    kernels = kernel.kernels if isinstance(kernel, Stack) else (kernel,)
    programs = {each.name: each.own_program() for each in kernels if isinstance(each, Kernel)}
    return {name: own.sha256 for name, own in programs.items() if own is not None}


def model_difference(stored: Mapping[str, Any], kernel: Mapping[str, Any], encoder: Encoder) -> str | None:
    """Describe how the kernel or the graphs differ from those at a study's start; None if they are the same."""
    before = stored["kernel"]
    if any(_canonical(before[key]) != _canonical(kernel[key]) for key in ("name", "options")):
        return f"the study was started with another kernel: {describe_kernel(before)}"
    if before.get("given") != kernel.get("given"):  # of a search
        return "the study was started with other given kernels"
    if before.get("stan_files") != kernel.get("stan_files"):
        return "the Stan file of the kernel has changed since the study was started"
    if _canonical(stored["graphs"]) != _canonical(encoder_to_json(encoder)["graphs"]):
        return "the study was started with other graphs"
    return None


def is_ours(key: str) -> bool:
    """Return whether an attribute is one of this package, and not one of the user."""
    return key.startswith("slayr:")


def describe_kernel(kernel: Mapping[str, Any]) -> str:
    """Describe a study's kernel, with the reason if it was chosen automatically."""
    reason = f", chosen because {kernel['reason']}" if kernel["chosen"] == "auto" else ""
    return f"{kernel['description']}{reason}"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def study_record(study: Study) -> dict[str, Any] | None:
    """Return the record of a study, or None if it was not created by this package."""
    record = stored(study.user_attrs, STUDY_KEY)
    return record if isinstance(record, dict) else None


def ignores_failures(study: Study) -> bool:
    """Return whether the sampler that the study had last has no model of failures."""
    return stored(study.user_attrs, IGNORES_FAILURES_KEY) is True


def store_treatment_of_failures(study: Study, ignores: bool) -> None:
    """Record whether the sampler has no model of failures, unless the study says so already."""
    if ignores != ignores_failures(study):
        study.set_user_attr(IGNORES_FAILURES_KEY, ignores)


def regret_records(study: Study) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the estimates of stopping rules in their order, each with the number of the last fitted trial."""
    records: dict[tuple[int, int], Mapping[str, Any]] = {}
    for key, record in study.user_attrs.items():
        numbers = re.fullmatch(rf"{REGRET_KEY}:(\d+):(\d+)", key)
        if numbers is not None and isinstance(record, Mapping):
            records[int(numbers[1]), int(numbers[2])] = record
    return [(last, records[last, n]) for last, n in sorted(records)]


def stopping_record(records: Iterable[Mapping[str, Any]], rule: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first of some estimates by which a rule, or a stricter one about the same, stopped the study.

    ``rule`` has epsilon, target and about, as an estimate has them.
    """
    for record in records:
        if record.get("stop") is True and record.get("about") == rule.get("about"):
            epsilon, target = (record.get(name) for name in ("epsilon", "target"))
            if _at_most(epsilon, rule.get("epsilon")) and _at_most(rule.get("target"), target):
                return record
    return None


def _at_most(a: Any, b: Any) -> bool:
    return isinstance(a, int | float) and isinstance(b, int | float) and a <= b


def suggestion_record(trial: FrozenTrial) -> SuggestionRecord:
    """Return the record of the suggestion of a trial: what was fitted, searched and predicted, and how.

    Parameters
    ----------
    trial : optuna.trial.FrozenTrial
        One of ``study.trials``.

    Returns
    -------
    SuggestionRecord
        A dictionary; empty if another sampler made the suggestion.
    """
    record = stored(trial.user_attrs, SUGGESTION_KEY)
    return cast(SuggestionRecord, record) if isinstance(record, dict) else {}


def given_values(study: Study, trial: FrozenTrial) -> dict[str, Any]:
    """Return the values with which Optuna answers a trial without asking the sampler, by name."""
    return {**partly_fixed(study), **enqueued_values(trial)}


def is_history(trial: FrozenTrial) -> bool:
    """Return whether a trial is a past experiment that the user added."""
    return suggestion_record(trial).get("phase") == HISTORY


def has_history(study: Study) -> bool:
    """Return whether a study has past experiments."""
    return any(map(is_history, trials_of(study)))


def store_suggestion(study: Study, trial: FrozenTrial, record: SuggestionRecord) -> SuggestionRecord:
    """Store the suggestion record of a trial and return it."""
    store_in_trial(study, trial, SUGGESTION_KEY, jsonable(record))
    return record


def mark_start(study: Study, trial: FrozenTrial) -> None:
    """Mark a trial that Optuna fails if its process is killed."""
    if fails_silent_trials(study):
        set_trial_attribute(study, trial, HEARTBEATS_KEY, True)


def mark_failure(study: Study, trial: FrozenTrial) -> None:
    """Mark a trial as failed by its evaluation, if Optuna might also have failed it because of a killed process."""
    if HEARTBEATS_KEY in trial.user_attrs:
        set_trial_attribute(study, trial, TOLD_KEY, True)


def set_failure(trial: Trial, why: str) -> None:
    """Store the reason for the failure of a trial; of a very long one its beginning and its end."""
    trial.set_user_attr(FAILURE_KEY, shortened(why, LONGEST_REASON))


def store_numbers(study: Study, trial: FrozenTrial, record: SuggestionRecord) -> None:
    """Store the numbers of a suggestion by a model for the Optuna dashboard, see above."""
    diagnostics = record["diagnostics"]
    numbers: dict[str, Any] = {}
    predicted = {f"_{each['name']}": each["predicted"] for each in record.get("objectives", [])}
    for suffix, each in (predicted or {"": record["predicted"]}).items():
        numbers[f"predicted_mean{suffix}"] = each["mean"]
        numbers[f"predicted_sd{suffix}"] = each["sd"]
    numbers |= {
        "acquisition": record["acquisition"]["value"],
        "feasible": record.get("feasible"),
        "rhat_max": diagnostics.get("rhat_max"),
        "pareto_k": diagnostics.get("pareto_k"),
        "ok": int(diagnostics["ok"]),
        "seconds_fit": record["seconds"]["fit"],
    }
    known = {f"slayr:{name}": x for name, x in numbers.items() if x is not None and math.isfinite(x)}
    add_trial_attributes(study, trial, known)
