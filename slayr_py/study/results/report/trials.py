"""Convergence of the study, and the table of its trials."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from slayr_py.errors import SlayrError
from slayr_py.study.results.figures import convergence_figure
from slayr_py.study.results.recommendation import has_recommendation
from slayr_py.study.results.report.blocks import Block, Cell, Notice, Table
from slayr_py.study.results.report.figures import drawing
from slayr_py.study.results.report.reading import Absent, Reading
from slayr_py.study.results.tables import feasible_trials, finite_trials, trials_table
from slayr_py.study.storage.attributes import FAILURE_KEY, suggestion_record
from slayr_py.study.storage.trials import known_error


def convergence(reading: Reading) -> Iterator[Block]:
    """Return the figure of values, their errors and the best so far."""
    finite = finite_trials(reading.study)
    if not finite:
        yield Notice("No trial has a finite value yet, so there is nothing to draw.")
        return
    errors, notes = _errors(reading)
    text = f"Values of {len(finite)} finished trials in order"
    if reading.best is not None:
        text += f"; the best is {reading.best.value:.6g} at trial {reading.best.number}"
    text += ". The table of trials has all values, and the best so far after each."

    def draw() -> Figure:
        figure = convergence_figure(reading.study, errors)
        figure.set_size_inches(7.0, 3.5)
        figure.axes[0].set_title("")
        return figure

    yield drawing("convergence-figure", "Convergence", text, draw, wide=True)
    yield from notes


def _errors(reading: Reading) -> tuple[dict[int, float], list[Block]]:
    """Return the standard deviation of the noise of trials by number, and what is known about it."""
    known: dict[int, float] = {}
    broken = []
    for trial in finite_trials(reading.study):
        try:
            if error := known_error(trial):
                known[trial.number] = error
        except SlayrError as error:
            broken.append(Notice(str(error), "warning"))
    if known:
        text = f"Error bars: one known standard deviation (y_sd) of {len(known)} trials."
        return known, [Notice(text), *broken]
    if not has_recommendation(reading.study):
        return {}, [*broken, *([Notice("No error bars: the model has no fit yet.")] if reading.noisy else [])]
    try:
        noise = reading.noise
        numbers = reading.observed.numbers
    except Absent as absent:
        return {}, [Notice(f"No error bars. {absent}"), *broken]
    except Exception as error:  # the reason is shown, and the figure without error bars
        return {}, [Notice(f"No error bars: {type(error).__name__}: {error}", "error"), *broken]
    text = f"Error bars: one standard deviation of the noise as the model estimates it, median {np.median(noise):.3g}."
    return dict(zip(numbers, noise.tolist(), strict=True)), [Notice(text), *broken]


def trials(reading: Reading) -> Iterator[Block]:
    """Return the table of all trials."""
    if not reading.trials:
        yield Notice("The study has no trial yet.")
        return
    yield _table(reading)


def _table(reading: Reading) -> Table:
    frame = trials_table(reading.study, reading.space).astype(object)
    names = [name.removeprefix("params_") for name in frame.columns[3:]]
    constraints = sorted({name for trial in reading.trials for name in trial.constraints})
    reasons = [trial.user_attrs.get(FAILURE_KEY) for trial in reading.trials]
    errors = [trial.user_attrs.get("y_sd") for trial in reading.trials]
    columns = ["trial", "value", *(["sd"] if any(errors) else []), "best so far", "state", "phase"]
    columns += [name for name in names] + [f"constraint {name}" for name in constraints]
    columns += ["failure"] if any(reasons) else []
    rows = []
    for trial, values, best in zip(reading.trials, frame.itertuples(index=False), _best_so_far(reading), strict=True):
        is_best = reading.best is not None and trial.number == reading.best.number
        row = [Cell.of(trial.number), Cell.of(_number(values[1]), mark="best" if is_best else "")]
        row += [Cell.of(trial.user_attrs.get("y_sd"))] if any(errors) else []
        row += [Cell.of(best), Cell.of(trial.state.name.lower(), mark=trial.state.name.lower())]
        row += [Cell.of(suggestion_record(trial).get("phase"))]
        row += [Cell.of(_number(value)) for value in values[3:]]
        row += [_excess(trial.constraints.get(name)) for name in constraints]
        row += [Cell.of(trial.user_attrs.get(FAILURE_KEY))] if any(reasons) else []
        rows.append(row)
    caption = "All trials. A constraint holds where its value is at most 0." if constraints else "All trials."
    return Table("trials-table", caption, columns, rows, interactive=True)


def _number(value: Any) -> Any:
    """Return a value of a data frame as a plain Python object."""
    return value.item() if isinstance(value, np.generic) else value


def _excess(value: float | None) -> Cell:
    return Cell.of(value, mark="violated" if value is not None and value > 0 else "")


def _best_so_far(reading: Reading) -> list[float | None]:
    feasible = {trial.number: trial.value for trial in feasible_trials(reading.study)}
    choose = max if reading.maximize else min

    def better(best: float | None, value: float | None) -> float | None:
        return value if best is None else best if value is None else choose(best, value)

    return list(accumulate((feasible.get(trial.number) for trial in reading.trials), better))
