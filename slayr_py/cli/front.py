"""The front of a study with several objectives, as ``slayr optimize`` and ``slayr inspect`` print it."""

from __future__ import annotations

import pandas as pd
from optuna import Study

from slayr_py.display import table_text
from slayr_py.errors import DataError
from slayr_py.study import front_table, goals_of, hypervolume_of, reference_of, with_probabilities


def directions_text(study: Study) -> str:
    """Return the directions of the objectives, with the names of several."""
    goals = goals_of(study)
    directions = ["maximize" if goal.maximize else "minimize" for goal in goals]
    if len(goals) == 1:
        return directions[0]
    return ", ".join(f"{direction} {goal.name}" for direction, goal in zip(directions, goals, strict=True))


def front_text(study: Study, probabilities: pd.DataFrame | None = None) -> str:
    """Return the hypervolume and the table of the front.

    Parameters
    ----------
    study : optuna.Study
    probabilities : pandas.DataFrame, optional
        Of each trial of being on the front of the objectives without noise, from `Result.front_probability`.

    Raises
    ------
    DataError
        If no trial is feasible.
    """
    reference = reference_of(study)
    if reference is None:
        raise DataError(f"study {study.study_name!r} has no feasible trial with finite values, and so no front")
    table = front_table(study)
    others = ""
    if probabilities is not None:
        table, others = with_probabilities(table, probabilities)
    table.columns = table.columns.str.removeprefix("params_").str.removeprefix("values_")
    within = ", ".join(f"{value:.6g}" for value in reference)
    return (
        f"front of {len(table)} trials, hypervolume {hypervolume_of(study, reference.tolist()):.6g} within ({within})\n"
        f"{table_text(table)}" + (f"\nother trials that are probably on the front: {others}" if others else "")
    )
