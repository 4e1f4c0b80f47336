"""What a study remembers: the JSON-able attributes that the sampler and the loop leave in Optuna's storage.

Everything a person or a later process needs to go on is here, so nothing has to be pickled: the study carries the space
and the seed, each trial says where it came from and what the model thought of it.

What a suggestion leaves in its trial (``trial.user_attrs["slayr:suggestion"]``):

=============  =========================================================================================
phase          "initial" (the design), "model" (a fitted model), "random" (nothing to fit, or the fit failed),
               "enqueued" (the user fixed every parameter)
config         the suggested parameters, active ones only; other workers read a running trial's here
kernel         name of the kernel                                                            (model only)
method         "nuts", "pathfinder", "laplace" or "map"                                      (model only)
fit            {"start", "draws", "abandoned"}: whether the chains began "warm" or "cold" (None without chains),
               how many draws they made in all, and what was given up before, why, and what followed
acquisition    {"name", its options, "best", "value", "error"}: what was to be improved on, in the objective's
               units and sign, what the criterion reached, and its Monte Carlo error         (model only)
predicted      {"mean", "sd"}: the latent function there, in the objective's units and sign  (model only)
diagnostics    what `Posterior.check` says                                                   (model only)
observations   number of trials fitted                                                       (model only)
seconds        {"fit", "acquisition"}                                                        (model only)
error          why there is no model                                                         (random only)
=============  =========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.kernels import Kernel, auto_reason
from slayr_py.space import Encoder, encoder_to_json, jsonable, space_to_json

STUDY_KEY = "slayr:study"
"""Study attribute: {"space", "graphs", "seed", "kernel", "acquisition", "n_initial", "noisy"} as at the study's start.

The kernel is {"name", "options", "description", "chosen", "reason"}: chosen by "auto", for a reason, or by the "user".
Older studies have its name alone, and no graphs. A later version of slayr_py that changes this writes a higher
``"format"`` than `slayr_py.study.storage.integrity.FORMAT`, so that this one refuses the study; without one it is 1.
"""

SUGGESTION_KEY = "slayr:suggestion"
"""Trial attribute: {"phase", "config"} and, for phase "model", what is listed above."""

START_KEY = "slayr:start"
"""Trial attribute: where the chains of the next fit begin, a `WarmStart` as a dictionary."""

FIT_KEY = "slayr:fit"
"""Trial attribute: `Posterior.record` of the fit behind its suggestion. It has the ranges of ``trials`` that were
fitted, and not the space where that is the study's; ``{"trial": number}`` stands for the start that this trial left."""

FAILURE_KEY = "slayr:failure"
"""Trial attribute: why the trial failed, in one line."""

WORKER_KEY = "slayr:worker"
"""Trial attribute: the process of `minimize` that evaluates it, or has; empty where it was left to others."""

EVALUATIONS_KEY = "slayr:evaluations"
"""Trial attribute: how often its evaluation was begun."""

TURN_KEY = "slayr:turn"
"""Study system attribute: the process that searches for a configuration; empty while none does."""


def space_difference(stored: Mapping[str, Any], space: ConfigurationSpace) -> str | None:
    """Say how a stored space differs from another, or None when they are the same up to name and order."""
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


def kernel_record(kernel: Kernel, encoder: Encoder, automatic: bool) -> dict[str, Any]:
    """Describe a kernel, and why it is this one."""
    return {
        "name": kernel.name,
        "options": jsonable(kernel.options()),
        "description": kernel.description,
        "chosen": "auto" if automatic else "user",
        "reason": auto_reason(encoder) if automatic else None,
    }


def model_difference(stored: Mapping[str, Any], kernel: Mapping[str, Any], encoder: Encoder) -> str | None:
    """Say with what other kernel or graphs a study was started, or None when the model is still the same."""
    before = stored["kernel"]
    if isinstance(before, str):
        same = before == kernel["name"]
    else:
        same = all(_canonical(before[key]) == _canonical(kernel[key]) for key in ("name", "options"))
    if not same:
        return f"the study was started with another: {describe_kernel(before)}"
    if _canonical(stored.get("graphs", {})) != _canonical(encoder_to_json(encoder)["graphs"]):
        return "the study was started with other graphs"
    return None


def describe_kernel(kernel: str | Mapping[str, Any]) -> str:
    """Put a study's kernel into words, with the reason if it was chosen automatically."""
    if isinstance(kernel, str):
        return kernel
    reason = f", chosen because {kernel['reason']}" if kernel["chosen"] == "auto" else ""
    return f"{kernel['description']}{reason}"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def study_record(study: Study) -> dict[str, Any] | None:
    """Read what the study says of itself, or None for a study that was not made here."""
    record = study.user_attrs.get(STUDY_KEY)
    return record if isinstance(record, dict) else None


def suggestion_record(trial: FrozenTrial) -> dict[str, Any]:
    """Read how a trial was suggested; empty for a trial that another sampler made."""
    record = trial.user_attrs.get(SUGGESTION_KEY)
    return record if isinstance(record, dict) else {}


def leave_suggestion(study: Study, trial: FrozenTrial, record: dict[str, Any]) -> dict[str, Any]:
    """Store how a trial was suggested, and give it back."""
    study._storage.set_trial_user_attr(trial._trial_id, SUGGESTION_KEY, jsonable(record))
    return record
