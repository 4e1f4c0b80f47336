"""Convergence of the study, and the table of its trials."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from slayr_py.errors import SlayrError
from slayr_py.study.results.figures import convergence_figure, cost_figure
from slayr_py.study.results.recommendation import has_recommendation
from slayr_py.study.results.report.blocks import Block, Cell, Notice, Table
from slayr_py.study.results.report.figures import drawing, scale
from slayr_py.study.results.report.reading import Absent, Reading
from slayr_py.study.results.tables import (
    comparable_trials,
    finite_trials,
    fixed_values_text,
    front_trials,
    trials_table,
)
from slayr_py.study.storage.attributes import ERROR_KEY, FAILURE_KEY, suggestion_record
from slayr_py.study.storage.columns import PARAMETER, Outcomes
from slayr_py.study.storage.costs import cost_name, cost_of, spent
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.trials import known_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def convergence(reading: Reading) -> Iterator[Block]:
    """Return the figure of values, their errors and the best so far."""
    finite = finite_trials(reading.study)
    if not finite:
        yield Notice("No trial has a finite value yet, so there is nothing to draw.")
        return
    errors, notes = _errors(reading)
    text = f"Values of {len(finite)} finished trials in order"
    if reading.best is not None:
        fixed = fixed_values_text(reading.study)
        text += f"; the best{fixed} is {reading.best.values[0]:.6g} at trial {reading.best.number}"
    text += ". The table of trials has all values, and the best so far after each."

    def draw() -> Figure:
        figure = convergence_figure(reading.study, errors)
        figure.set_size_inches(5.2, 3.2)
        figure.suptitle("")
        (axes,) = figure.axes
        if axes.get_yscale() == "log":
            scale(axes.yaxis, log=True)  # Matplotlib's labels are formulas
        return figure

    yield drawing("convergence-figure", "Convergence", text, draw)
    yield from notes
    if not reading.has_several and (name := cost_name(reading.study)) is not None:
        yield from _by_cost(reading, name)


def _by_cost(reading: Reading, name: str) -> Iterator[Block]:
    """Return the figure of the best value against the cost."""
    total = spent(reading.study, name)
    if not total.trials:
        yield Notice(f"No trial has a cost {name!r} yet.")
        return

    def draw() -> Figure:
        figure = cost_figure(reading.study)
        figure.set_size_inches(5.2, 3.2)
        return figure

    text = f"Values against the sum of the cost until then: {total.describe(name)}."
    yield drawing("cost-figure", "Best value by cost", text, draw)


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
    trials = reading.trials
    frame = trials_table(reading.study, reading.space).astype(object)
    parameters = [name for name in frame.columns if name.startswith(PARAMETER)]
    constraints = sorted({name for trial in trials for name in trial.constraints})
    names = Outcomes(tuple(goal.name for goal in goals_of(reading.study))).values
    cost = cost_name(reading.study)
    marks = dict.fromkeys((trial.number for trial in front_trials(reading.study)), "best")
    if not reading.has_several:
        marks = {} if reading.best is None else {reading.best.number: "best"}
    columns = [
        ("trial", [Cell.of(trial.number) for trial in trials]),
        *(
            (name, [_cell(x, marks.get(t.number, "")) for t, x in zip(trials, frame[name], strict=True)])
            for name in names
        ),
        *_optional("sd", [trial.user_attrs.get(ERROR_KEY) for trial in trials]),
        *([] if reading.has_several else [("best so far", [Cell.of(value) for value in _best_so_far(reading)])]),
        ("state", [Cell(state, mark=state) for state in (trial.state.name.lower() for trial in trials)]),
        ("phase", [Cell.of(suggestion_record(trial).get("phase")) for trial in trials]),
        *((name.removeprefix(PARAMETER), [_cell(value) for value in frame[name]]) for name in parameters),
        *((f"constraint {name}", [_excess(trial.constraints.get(name)) for trial in trials]) for name in constraints),
        *_optional(cost or "", [None if cost is None else cost_of(trial, cost) for trial in trials]),
        *_optional("failure", [trial.user_attrs.get(FAILURE_KEY) for trial in trials]),
    ]
    caption = "All trials." + " Those of the front are marked." * reading.has_several
    caption += " A constraint holds where its value is at most 0." * bool(constraints)
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    return Table("trials-table", caption, [title for title, _ in columns], rows, interactive=True)


def _optional(title: str, values: list[Any]) -> list[tuple[str, list[Cell]]]:
    """Return a column if any trial has a value."""
    return [(title, [Cell.of(value) for value in values])] if any(values) else []


def _cell(value: Any, mark: str = "") -> Cell:
    """Return the cell of a value of a data frame."""
    return Cell.of(value.item() if isinstance(value, np.generic) else value, mark=mark)


def _excess(value: float | None) -> Cell:
    return Cell.of(value, mark="violated" if value is not None and value > 0 else "")


def _best_so_far(reading: Reading) -> list[float | None]:
    feasible = {trial.number: trial.values[0] for trial in comparable_trials(reading.study)}
    choose = max if reading.maximize else min

    def better(best: float | None, value: float | None) -> float | None:
        return value if best is None else best if value is None else choose(best, value)

    return list(accumulate((feasible.get(trial.number) for trial in reading.trials), better))
