"""Constraints on what an objective returns: parse them, and check the values that it reports."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

from optuna import Study

from slayr_py.arguments import plain_scalar, to_float
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, did_you_mean
from slayr_py.study.storage.attributes import BOUNDS_KEY, ERROR_KEY
from slayr_py.study.storage.bounds import Constraint
from slayr_py.study.storage.columns import CONSTRAINT
from slayr_py.study.storage.pieces import store_in_study, stored
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.workers import is_evaluating

_FORM = re.compile(r"\s*(?P<name>[^<>=]*[^<>=\s])\s*(?P<relation><=|>=|<|>)\s*(?P<limit>[^<>=]+?)\s*")
_BAND = "a range is one bound on a distance: report abs(y - 7) as a number of its own, and bound it: 'distance <= 0.1'"


def _at_most_zero(name: str) -> Constraint:
    """Return the bound on a number that ``constraints`` does not bound."""
    return Constraint(name, 1.0, 0.0)


def parse_constraints(texts: Iterable[str]) -> tuple[Constraint, ...]:
    """Parse constraints such as ``"memory <= 8"`` and ``"accuracy >= 0.9"``.

    Raises
    ------
    DataError
        For another form, a limit that is not a finite number, or a name that occurs twice.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise DataError(f'constraints are a list of texts such as ["memory <= 8"], not {texts!r}')
    parsed: dict[str, Constraint] = {}
    for text in texts:
        match = _FORM.fullmatch(text) if isinstance(text, str) else None
        try:
            limit = float(match["limit"]) if match else math.nan
        except ValueError:
            limit = math.nan
        if match is None or not math.isfinite(limit):
            is_band = isinstance(text, str) and len(re.findall("[<>]", text)) == 2
            band = f"; {_BAND}" if is_band else ""
            raise DataError(f'{text!r} is not a constraint; write a name, <= or >=, and a number: "memory <= 8"{band}')
        if match["name"] in parsed:
            raise DataError(f"two constraints on {match['name']!r}; {_BAND}")
        parsed[match["name"]] = Constraint(match["name"], 1.0 if match["relation"][0] == "<" else -1.0, limit)
    return tuple(parsed.values())


def check_not_inputs(constraints: Iterable[Constraint], names: Container[str]) -> None:
    """Check that constraints on what the objective returns do not read parameters.

    Raises
    ------
    DataError
        If all names in a constraint are parameters.
    """
    for constraint in constraints:
        words = re.findall(r"[^\W\d]\w*", constraint.name)
        if constraint.name in names or (words and all(word in names for word in words)):
            raise DataError(
                f"constraints= bounds numbers that the objective returns, but {constraint.name!r} has only parameters"
                "; give a constraint on inputs by within=[...], or return the number under another name"
            )


def bind_constraints(study: Study, bounds: tuple[Constraint, ...] | None) -> None:
    """Record the bounds of a run in its study, or compare them with the recorded ones.

    Trials store by how much they exceed the bound of their own run, which another bound would not change. New names are
    added, and bounds that a run leaves out are kept. A bound on a number that no trial has reported, and that none may
    be about to report, is forgotten. A study of an earlier version, or of ask and tell, has no record of the bounds on
    the numbers of its trials.

    Parameters
    ----------
    study : optuna.Study
    bounds : tuple of Constraint or None
        As in `constraint_values`.

    Raises
    ------
    DataError
        If a run of the study had another bound on the same name.
    """
    with search_lock(study):  # of processes that start the same study, one records its bounds first
        texts = stored(study.user_attrs, BOUNDS_KEY)
        reported = {name for trial in study.get_trials(deepcopy=False) for name in trial.constraints}
        recorded = {bound.name: bound for bound in parse_constraints(texts or ())}
        if not is_evaluating(study):
            recorded = {name: bound for name, bound in recorded.items() if name in reported}
        started = recorded if texts is None else {name: _at_most_zero(name) for name in reported} | recorded
        for now in map(_at_most_zero, started) if bounds is None else bounds:
            if (before := started.get(now.name, now)) != now:
                raise DataError(_changed(study, before, now, bounds is None))
        new = [bound for bound in bounds or () if bound.name not in recorded]
        record = [str(bound) for bound in (*recorded.values(), *new)]
        # The numbers of an earlier version or of ask and tell are not known to be at most 0.
        if record != texts and not (texts is None and bounds is None and reported):
            store_in_study(study, BOUNDS_KEY, record)


def _changed(study: Study, before: Constraint, now: Constraint, by_default: bool) -> str:
    """Return the message of the error that a bound is not that of the study."""
    default, drop = "", ""
    if by_default:
        default = ", the bound without constraints="
        drop = f", with constraints=[] if the objective returns no {before.name!r} any more"
    return (
        f"study {study.study_name!r} was started with the constraint {str(before)!r}, not {str(now)!r}{default}; its "
        f"trials store by how much they violate the first one. Resume it with {str(before)!r} in constraints={drop}, "
        "or choose another study name, with history= of its trials: a column of their values of "
        f"{before.name!r} instead of {CONSTRAINT + before.name!r} is compared with the new bound"
    )


def constraint_values(reported: Mapping[Any, Any], constraints: tuple[Constraint, ...] | None) -> dict[str, float]:
    """Return by how much the reported values violate the constraints, by name.

    Parameters
    ----------
    reported : mapping of str to number
        What the objective returned beside its value.
    constraints : tuple of Constraint, optional
        Without constraints every reported value has to be at most 0.

    Raises
    ------
    ObjectiveError
        If a name is not text, or that of known errors without a constraint of this name, a value is not a number, or
        the names differ from the names of the constraints.
    NotFiniteError
        If a value is NaN or infinite.
    """
    for name in reported:
        if not isinstance(name, str):
            wanted = {str(name): reported[name]}
            raise ObjectiveError(f"the name {name!r:.80} of a constraint is not text; return {wanted!r:.200}")
        if name == ERROR_KEY and constraints is None:
            raise ObjectiveError(
                f"{ERROR_KEY!r} beside the value would be a constraint; for a known error of the value define "
                f"objective(config, trial) and call trial.set_user_attr({ERROR_KEY!r}, {reported[name]!r:.80})"
            )
    known = {name: _at_most_zero(name) for name in reported}
    if constraints is not None:
        known = {constraint.name: constraint for constraint in constraints}
        for name in reported:
            if name not in known:
                raise ObjectiveError(
                    f"the objective reported {name!r}, which is not a constraint{did_you_mean(name, known)}"
                )
        if missing := known.keys() - reported.keys():
            raise ObjectiveError(f"the objective reported no value of the constraint {sorted(missing)[0]!r}")
    values = {}
    for name, constraint in known.items():
        given = reported[name]
        try:
            plain = plain_scalar(given)
            if isinstance(plain, str | bool):
                remedy = "; return a number that is at most 0 where the constraint holds" * isinstance(plain, bool)
                raise ObjectiveError(f"the constraint {name!r} is {given!r:.200}, not a number{remedy}")
            value = to_float(given)
        except (TypeError, ValueError, OverflowError) as error:
            raise ObjectiveError(f"the constraint {name!r} is {given!r:.200}, not a number") from error
        if not math.isfinite(value):
            raise NotFiniteError(f"the constraint {name!r} is {value}, not a finite number")
        values[name] = constraint.excess(value)
    return values
