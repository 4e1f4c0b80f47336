"""Objectives of a study: their names, directions and values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from optuna import Study
from optuna.exceptions import ExperimentalWarning
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from slayr_py.acquisition import MOST_OBJECTIVES
from slayr_py.errors import DataError
from slayr_py.space import FloatArray
from slayr_py.threads import ignored_warnings

DIRECTIONS = ("minimize", "maximize")


class Goal(NamedTuple):
    """One objective of a study."""

    number: int
    """Its place among the values of a trial."""

    name: str
    """Name that the user has given, or its number."""

    maximize: bool
    """Whether larger values are better."""

    is_only: bool
    """Whether the study has no other."""

    @property
    def fit_name(self) -> str:
        """Return the name of its fits in the attributes of trials; empty for the only objective."""
        return "" if self.is_only else f"objective {self.number}"

    @property
    def sign(self) -> float:
        """Return 1 if smaller values are better, else -1."""
        return -1.0 if self.maximize else 1.0


def goals_of(study: Study) -> tuple[Goal, ...]:
    """Return the objectives of a study."""
    directions = study.directions
    names = study.metric_names or [str(number) for number in range(len(directions))]
    is_only = len(directions) == 1
    return tuple(
        Goal(number, name, direction == StudyDirection.MAXIMIZE, is_only)
        for number, (name, direction) in enumerate(zip(names, directions, strict=True))
    )


def signs_of(goals: Sequence[Goal]) -> FloatArray:
    """Return the factors (p,) that make smaller values of the objectives better."""
    return np.array([goal.sign for goal in goals])


def has_several(study: Study) -> bool:
    """Return whether a study has several objectives."""
    return len(study.directions) > 1


def check_one_objective(study: Study, remedy: str) -> None:
    """Raise `DataError` with the remedy if a study has several objectives."""
    if has_several(study):
        raise DataError(f"study {study.study_name!r} has {len(study.directions)} objectives; {remedy}")


def check_several(study: Study) -> None:
    """Raise `DataError` if a study has one objective."""
    if not has_several(study):
        raise DataError(f"study {study.study_name!r} has one objective and no front; use best_config and best_value")


def goal_of(study: Study, objective: int | str | None) -> Goal:
    """Return an objective of a study by its number or name; the only one by default.

    Raises
    ------
    DataError
        If the study has several objectives and none is given, or no such objective.
    """
    goals = goals_of(study)
    names = ", ".join(f"{goal.number} ({goal.name!r})" for goal in goals)
    if objective is None:
        check_one_objective(study, f"give objective=, one of {names}")
        return goals[0]
    for goal in goals:
        if objective == goal.name or (objective == goal.number and not isinstance(objective, bool)):
            return goal
    raise DataError(f"study {study.study_name!r} has no objective {objective!r}; it has {names}")


def set_names(study: Study, names: Sequence[str]) -> None:
    """Store the names of the objectives in a study that has none, or compare them with its names.

    Raises
    ------
    DataError
        If the study has other names.
    """
    if study.metric_names is None:
        with ignored_warnings(ExperimentalWarning):
            study.set_metric_names(list(names))
    if study.metric_names != list(names):
        raise DataError(
            f"study {study.study_name!r} was started with the objectives {study.metric_names}, not {list(names)}; "
            "choose another study name"
        )


def parse_directions(directions: Sequence[str] | Mapping[str, str]) -> tuple[list[str], list[str] | None]:
    """Return the directions of several objectives, and their names if a mapping gives them.

    Raises
    ------
    DataError
        If there are not 2 to 4 of them, or one is neither "minimize" nor "maximize".
    """
    if isinstance(directions, str) or not isinstance(directions, Sequence | Mapping):
        raise DataError(f'directions is {directions!r}; give one for each objective: ["minimize", "maximize"]')
    wanted = list(directions.values()) if isinstance(directions, Mapping) else list(directions)
    names = list(directions) if isinstance(directions, Mapping) else None
    for direction in wanted:
        if direction not in DIRECTIONS:
            raise DataError(f'a direction must be "minimize" or "maximize", not {direction!r}')
    if len(wanted) < 2:
        raise DataError(f"directions has {len(wanted)} of them; use direction= for a single objective")
    if len(wanted) > MOST_OBJECTIVES:
        raise DataError(
            f"{len(wanted)} objectives are more than {MOST_OBJECTIVES}, for which the hypervolume is too expensive: "
            "combine some of them, or bound them with constraints="
        )
    for name in names or ():
        if not isinstance(name, str) or not name:
            raise DataError(f"the name {name!r} of an objective is not text")
    return wanted, names


def finite_values(trial: FrozenTrial) -> list[float] | None:
    """Return the values of a complete trial, or None if it has none or one is not finite."""
    if trial.state != TrialState.COMPLETE or not trial.values or not all(map(math.isfinite, trial.values)):
        return None
    return list(trial.values)


def given_reference(reference: Mapping[str, float] | Sequence[float], goals: Sequence[Goal]) -> FloatArray:
    """Return a reference point (p,) from a sequence in the order of the objectives, or from a mapping of their names.

    Raises
    ------
    DataError
        If an objective has no finite number, or a name is unknown.
    """
    names = [goal.name for goal in goals]
    if isinstance(reference, Mapping):
        if set(reference) != set(names):
            raise DataError(f"the reference point has the names {sorted(map(str, reference))}; they must be {names}")
        reference = [reference[name] for name in names]
    try:
        point = np.asarray(reference, dtype=np.float64)
    except (TypeError, ValueError):
        point = np.array(np.nan)
    if point.shape != (len(goals),) or not np.all(np.isfinite(point)):
        raise DataError(
            f"the reference point is {reference!r:.200}; give one finite number for each of the {len(goals)} objectives"
        )
    return point


def default_reference(values: FloatArray, front: FloatArray) -> FloatArray:
    """Return the reference point (p,) of values (n, p) of minimised objectives, of which ``front`` is non-dominated.

    In each objective it is worse than the worst value of the front by the front's range or, if that is larger, by half
    the distance between the 10% and the 90% quantile of all values. It does not depend on where the unit has its zero.
    A point so far from the front finds its ends, and a front of a small range can grow. Without any such distance it
    is the absolute value or 1.
    """
    worst = front.max(axis=0)
    spread = np.quantile(values, 0.9, axis=0) - np.quantile(values, 0.1, axis=0)
    extent = np.maximum(np.ptp(front, axis=0), 0.5 * spread)
    extent = np.where(extent > 0, extent, np.where(worst != 0, np.abs(worst), 1.0))
    return np.asarray(worst + extent)
