"""Constraints on what an objective returns: parse them, and check the values that it reports."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from optuna import Study

from slayr_py.arguments import plain_scalar, to_float
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, did_you_mean, listed
from slayr_py.study.storage.attributes import BOUNDS_KEY, ERROR_KEY
from slayr_py.study.storage.bounds import Constraint
from slayr_py.study.storage.columns import CONSTRAINT
from slayr_py.study.storage.pieces import store_in_study, stored
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.workers import is_evaluating

_RELATION = re.compile("(<=|>=|<|>)")
_OPPOSITE = {"<": ">", ">": "<"}


def _at_most_zero(name: str) -> Constraint:
    """Return the bound on a number that ``constraints`` does not bound."""
    return Constraint(name, 1.0, 0.0)


def parse_constraints(texts: Iterable[str]) -> tuple[Constraint, ...]:
    """Parse constraints such as ``"memory <= 8"``, ``"accuracy >= 0.9"`` and ``"6.5 <= ph <= 7.5"``.

    A range is two bounds, which may also be two texts.

    Raises
    ------
    DataError
        For another form, a limit that is not a finite number, two bounds on the same side of a value, or a lower bound
        that is not below the upper one.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise DataError(f'constraints are a list of texts such as ["memory <= 8"], not {texts!r}')
    parsed: dict[str, list[Constraint]] = {}
    for text in texts:
        for bound in _bounds_in(text):
            parsed.setdefault(bound.name, []).append(bound)
    return tuple(bound for bounds in parsed.values() for bound in _sides(bounds))


def _bounds_in(text: object) -> list[Constraint]:
    """Return the bound in a text, or the two bounds of a range."""
    name, given = "", []
    match [part.strip() for part in _RELATION.split(text)] if isinstance(text, str) else []:
        case [name, relation, limit]:
            given = [(relation[0], limit)]
        case [low, relation, name, other, high] if relation[0] == other[0]:
            given = [(_OPPOSITE[relation[0]], low), (other[0], high)]
    with suppress(ValueError):
        bounds = [Constraint(name, 1.0 if relation == "<" else -1.0, float(limit)) for relation, limit in given]
        if name and "=" not in name and bounds and all(math.isfinite(bound.limit) for bound in bounds):
            return bounds
    raise DataError(
        f'{text!r} is not a constraint; write a name, <= or >=, and a number, "memory <= 8", or a range: "6 <= ph <= 8"'
    )


def _sides(bounds: Sequence[Constraint]) -> list[Constraint]:
    """Return the bounds on one value; of two bounds, each is a side."""
    if len(bounds) == 1:
        return [*bounds]
    name = bounds[0].name
    if len(bounds) > 2 or bounds[0].sign == bounds[1].sign:
        raise DataError(f"several bounds on the same side of {name!r} in constraints; keep the tightest")
    low, high = sorted(bounds, key=lambda bound: bound.sign)
    if not low.limit < high.limit:
        raise DataError(f"{name!r} cannot be both {str(low)!r} and {str(high)!r}; the lower bound has to be smaller")
    return [low._replace(is_side=True), high._replace(is_side=True)]


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
        recorded = _by_name(parse_constraints(texts or ()))
        if not is_evaluating(study):
            recorded = {name: each for name, each in recorded.items() if any(b.key in reported for b in each)}
        known = {bound.key for each in recorded.values() for bound in each}
        unbounded = {name: [_at_most_zero(name)] for name in reported - known}
        started = recorded if texts is None else unbounded | recorded
        by_default = {name: [_at_most_zero(name)] for name in started}
        for name, now in (by_default if bounds is None else _by_name(bounds)).items():
            if (before := started.get(name, now)) != now:
                raise DataError(_changed(study, before, now, bounds is None))
        new = [bound for bound in bounds or () if bound.name not in recorded]
        record = [str(bound) for bound in (*(bound for each in recorded.values() for bound in each), *new)]
        # The numbers of an earlier version or of ask and tell are not known to be at most 0.
        if record != texts and not (texts is None and bounds is None and reported):
            store_in_study(study, BOUNDS_KEY, record)


def _by_name(bounds: Iterable[Constraint]) -> dict[str, list[Constraint]]:
    """Return the bounds on each value, one or two, by its name."""
    named: dict[str, list[Constraint]] = {}
    for bound in bounds:
        named.setdefault(bound.name, []).append(bound)
    return named


def _changed(study: Study, before: Sequence[Constraint], now: Sequence[Constraint], by_default: bool) -> str:
    """Return the message of the error that the bounds on a value are not those of the study."""
    name = before[0].name
    default, drop = "", ""
    if by_default:
        default = ", the bound without constraints="
        drop = f", with constraints=[] if the objective returns no {name!r} any more"
    first = _text(before)
    columns = listed([repr(CONSTRAINT + bound.key) for bound in before])
    return (
        f"study {study.study_name!r} was started with the constraint {first!r}, not {_text(now)!r}{default}; its "
        f"trials store by how much they violate the first one. Resume it with {first!r} in constraints={drop}, "
        f"or choose another study name, with history= of its trials: a column of their values of {name!r} instead of "
        f"{columns} is compared with the new bound"
    )


def _text(bounds: Sequence[Constraint]) -> str:
    """Return the constraint that is read as these bounds on one value."""
    if len(bounds) == 1:
        return str(bounds[0])
    low, high = bounds
    return f"{low.limit_text} <= {high}"


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
    known = {name: [_at_most_zero(name)] for name in reported}
    if constraints is not None:
        known = _by_name(constraints)
        for name in reported:
            if name not in known:
                raise ObjectiveError(
                    f"the objective reported {name!r}, which is not a constraint{did_you_mean(name, known)}"
                )
        if missing := known.keys() - reported.keys():
            raise ObjectiveError(f"the objective reported no value of the constraint {sorted(missing)[0]!r}")
    values: dict[str, float] = {}
    for name, bounds in known.items():
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
        values |= {bound.key: bound.excess(value) for bound in bounds}
    return values
