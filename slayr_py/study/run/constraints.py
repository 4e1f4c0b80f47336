"""Constraints on what an objective returns: parse them, and check the values that it reports."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple

from slayr_py.arguments import to_float
from slayr_py.errors import DataError, NotFiniteError, ObjectiveError, did_you_mean
from slayr_py.study.storage.attributes import ERROR_KEY

_FORM = re.compile(r"\s*(?P<name>[^<>=]*[^<>=\s])\s*(?P<relation><=|>=|<|>)\s*(?P<limit>[^<>=]+?)\s*")


class Constraint(NamedTuple):
    """A bound on a value that the objective reports by name."""

    name: str
    sign: float
    """1 for an upper bound, -1 for a lower one."""

    limit: float

    def excess(self, value: float) -> float:
        """Return by how much the value violates the bound; it holds where this is not positive."""
        return self.sign * (value - self.limit)


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
            raise DataError(f'{text!r} is not a constraint; write a name, <= or >=, and a number: "memory <= 8"')
        if match["name"] in parsed:
            raise DataError(f"two constraints on {match['name']!r}; report a second value under another name")
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
    known = {name: Constraint(name, 1.0, 0.0) for name in reported}
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
        try:
            value = to_float(reported[name])
        except (TypeError, ValueError, OverflowError) as error:
            raise ObjectiveError(f"the constraint {name!r} is {reported[name]!r:.200}, not a number") from error
        if not math.isfinite(value):
            raise NotFiniteError(f"the constraint {name!r} is {value}, not a finite number")
        values[name] = constraint.excess(value)
    return values
