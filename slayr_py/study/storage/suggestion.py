"""Types of the suggestion record of a trial, ``trial.user_attrs["slayr:suggestion"]``.

A study file may have any origin: `slayr_py.study.storage.integrity` checks that the entries with tables and lists have
them, readers have to expect any other entry to be missing or of another type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict, get_origin, get_type_hints

from slayr_py.inference import AbandonedAttempt

Origin = Literal["initial", "model", "random", "enqueued", "history"]
"""Origin of a configuration: "initial" (the design), "model" (a fitted model), "random" (nothing to fit, or the fit
failed), "enqueued" (the user fixed every parameter), "history" (a past experiment: it does not count against the
budget)."""


class FitEntry(TypedDict):
    """How the draws of a fit were made."""

    start: str | None
    """"carried", "warm" or "cold"; None for other methods, and of a stack or objectives whose fits differ."""

    draws: int
    """Total number of draws."""

    abandoned: list[AbandonedAttempt]
    """Discarded attempts: why, and what followed."""


class StackPart(TypedDict):
    """A kernel of a stack and its fit."""

    kernel: str
    weight: float
    method: str
    fit: FitEntry
    seed: int
    diagnostics: dict[str, Any]


class StackEntry(TypedDict):
    """A stack of kernels."""

    parts: list[StackPart]
    messages: list[str]


class KernelEntries(TypedDict):
    """The entries of a record that describe the fits of an objective, or of several together."""

    kernel: str
    """Name of the kernel, or "stack"."""

    method: str
    """"nuts", "carried", "pathfinder", "laplace" or "map"; "mixed" if the methods of parts or objectives differ."""

    fit: FitEntry
    stack: NotRequired[StackEntry]


class Predicted(TypedDict):
    """Prediction of the latent function given the finished trials, in the objective's units and sign.

    Under a warp the median and its distance to the 16% quantile on the better side.
    """

    mean: float
    sd: float


class ObjectiveEntry(KernelEntries):
    """One of several objectives."""

    name: str
    predicted: Predicted
    diagnostics: dict[str, Any]


class PriorEntry(TypedDict):
    """The belief about the optimum."""

    exponent: float
    log: float
    """Logarithm of its factor at the configuration."""


class AcquisitionEntry(TypedDict):
    """The criterion and its maximum; further entries are the options of the acquisition by name."""

    name: str
    best: NotRequired[float | None]
    """Value to improve on, in the objective's units and sign; absent with several objectives."""

    recommended: NotRequired[list[dict[str, Any]]]
    """Parameters of the configuration whose posterior mean it is, and of the runner-up, if posterior means improve."""

    reference: NotRequired[list[float]]
    """Reference point of several objectives."""

    front: NotRequired[int | None]
    """Number of points of the front of several objectives."""

    value: float
    """Largest value of the criterion."""

    error: float | None
    """Its Monte Carlo error."""

    beyond: NotRequired[float]
    """The value less the tolerance, if the expected improvement was below it."""

    prior: NotRequired[PriorEntry]
    interior: NotRequired[float]
    """Logarithm of the factor of the belief that the optimum is inside the ranges."""

    new: NotRequired[float]
    """Logarithm of the factor for a new value, if the objective has plateaus."""


class OutputEntry(TypedDict):
    """The fit of a further output: failures or a constraint."""

    method: str
    observations: int
    diagnostics: dict[str, Any]
    penalties: NotRequired[list[list[int]]]
    """Ranges of the numbers of complete trials that counted as failures, since their values are far worse."""
    linear: NotRequired[bool]
    """True if the values of the constraint were not compressed, since they predict each other better so."""


class CostEntry(OutputEntry):
    """The cost by which the improvement was divided, and the fit of its model."""

    name: str
    expected: float | None
    """Expected cost of the evaluation."""


class Seconds(TypedDict):
    """Duration of the steps of a suggestion."""

    fit: float
    acquisition: float


class SuggestionRecord(TypedDict, total=False):
    """The suggestion record of a trial; empty if another sampler made the suggestion.

    All entries after ``config`` are of suggestions by a model, unless stated otherwise. With several objectives they
    describe all fits.
    """

    phase: Origin
    config: dict[str, Any]
    """The suggested active parameters; other workers read them while the trial is running."""

    kernel: str
    """See `KernelEntries`."""

    method: str
    fit: FitEntry
    acquisition: AcquisitionEntry
    predicted: Predicted
    """Absent with several objectives."""

    diagnostics: dict[str, Any]
    """Result of `Posterior.check`."""

    conditions: dict[str, OutputEntry]
    """The model of failures and of each constraint, by name; if modelled."""

    cost: CostEntry
    """If costs are modelled."""

    stack: StackEntry
    """Of a stack only."""

    seconds: Seconds
    objectives: list[ObjectiveEntry]
    """Of several objectives only."""

    fixed: dict[str, Any]
    """Values by name that were not searched, of the run and of the trial; in any phase, absent if there are none."""

    note: str
    """Reason why the configuration is not the maximum of the acquisition; absent if it is."""

    feasible: float
    """Probability that the evaluation succeeds and no constraint is violated; if modelled."""

    observations: int
    """Number of trials fitted."""

    error: str
    """Reason for the absence of a model, of a random suggestion."""


def was_linear(record: SuggestionRecord, name: str) -> bool:
    """Return whether a model of feasibility was fitted to the values of a constraint without their compression."""
    entry: Any = record.get("conditions", {}).get(name)
    return isinstance(entry, Mapping) and entry.get("linear", False) is True


def _container(hint: Any) -> type | None:
    """Return the type of JSON that an entry with tables or a list has to have; None for numbers and texts."""
    if isinstance(hint, type) and issubclass(hint, dict):  # also of a TypedDict
        return dict
    return get_origin(hint) if get_origin(hint) in (dict, list) else None


CONTAINERS = {name: kind for name, hint in get_type_hints(SuggestionRecord).items() if (kind := _container(hint))}
"""The entries of a record that are a table or a list."""


def odd_entry(record: Mapping[str, Any]) -> str | None:
    """Return the name of the first entry of a stored record that has to be a table or a list and is not."""
    return next((name for name, kind in CONTAINERS.items() if not isinstance(record.get(name, kind()), kind)), None)
