"""Figures of a study: convergence, the front of several objectives, and importance of the parameters.

Names are plain text, drawn with ``parse_math=False``: a dollar sign does not start a formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import combinations
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from slayr_py.display import shortened
from slayr_py.errors import DataError
from slayr_py.space import Dimension, FloatArray
from slayr_py.study.results.colours import BEST, DESIGN, FAILED, TRIAL, VIOLATING
from slayr_py.study.results.front import Reference, hypervolume_curve, reference_of
from slayr_py.study.results.report.figures import scale
from slayr_py.study.results.tables import (
    comparable_trials,
    feasible_trials,
    finite_trials,
    fixed_values_text,
    front_trials,
)
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.costs import cost_name, costs_of_trials, cumulative
from slayr_py.study.storage.objectives import (
    Goal,
    check_one_objective,
    check_several,
    given_reference,
    goal_of,
    goals_of,
    has_several,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BARS = 12  # most levels of which those that are never optimal are drawn too
_BINS = 30  # bars of a histogram; most of integers have fewer
_EXACT = 2**50  # up to it, the places halfway between integers are exact
_LINE = 60  # characters of a line of text below the axes
_LONGEST = 120  # characters of the fixed values
_LABELS = 24  # characters of level labels that fit side by side into a panel
# Column, label, colour, vertical shift in rows.
_SERIES = (("first", "first-order", TRIAL, 0.15), ("total", "total, with interactions", BEST, -0.15))


def shown_figure(height: float, panels: int = 0) -> tuple[Figure, Any]:
    """Return an empty figure that is drawn without pyplot, and its axes, or a list of several; the height in inches.

    A notebook shows it as the value of a cell, but a plain figure only after ``%matplotlib inline``.
    """
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            """Return the PNG picture; IPython calls this method unless it has its own formatter of figures."""
            picture = BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    if not panels:
        figure = ShownFigure(figsize=(7.0, height), layout="constrained")
        return figure, figure.add_subplot()
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure = ShownFigure(figsize=(max(7.0, 3.6 * columns), height * rows), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, place + 1) for place in range(panels)]


def convergence_figure(study: Study, errors: Mapping[int, float] | None = None) -> Figure:
    """Draw the convergence of a study: values, the best so far, the initial design and failed trials.

    Parameters
    ----------
    study : optuna.Study
        Of several objectives, the hypervolume is drawn: see `hypervolume_figure`.
    errors : mapping of int to float, optional
        Standard deviations of the noise of values, by the number of the trial, for error bars.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot, so it needs no display and pyplot does not keep it open. ``figure.savefig(path)`` saves
        it; a notebook shows it.
    """
    # Why not optuna.visualization.matplotlib.plot_optimization_history: it is experimental and warns, and it draws with
    # pyplot, which keeps every figure open. It shows neither the initial design, nor failed trials, nor a logarithmic
    # axis, without which one bad trial hides all others. The figures for the dashboard (`save_to_dashboard`) are
    # Optuna's, and `optuna.visualization.plot_*` accept every study of this package.
    from matplotlib.ticker import MaxNLocator

    if has_several(study):
        return hypervolume_figure(study)
    figure, axes = shown_figure(4.0)
    trials = study.get_trials(deepcopy=False)
    finished = finite_trials(study)

    initial = [trial.number for trial in trials if suggestion_record(trial).get("phase") == "initial"]
    if initial:
        axes.axvspan(min(initial) - 0.5, max(initial) + 0.5, color=DESIGN, zorder=0, label="initial design")
    if finished:
        _draw_values(axes, study, finished, errors)
    failed = [trial.number for trial in trials if trial.state == TrialState.FAIL]
    if failed:
        axes.plot(failed, [0.02] * len(failed), "x", color=FAILED, transform=axes.get_xaxis_transform(), label="failed")
    label = "trial"
    if fixed := fixed_values_text(study):
        # Below the axes: the layout takes room from them for a wide legend, but not for a wide label.
        label += f"\n{fill(shortened(f'best so far{fixed}', _LONGEST), _LINE)}"
    axes.set_xlabel(label, parse_math=False)
    axes.set_ylabel("objective")
    figure.suptitle(study.study_name, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if axes.get_legend_handles_labels()[0]:
        # Above the axes: values may be anywhere in them.
        legend = axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
        for text in legend.get_texts():
            text.set_parse_math(False)
    return figure


def _draw_values(axes: Any, study: Study, finished: Sequence[FrozenTrial], errors: Mapping[int, float] | None) -> None:
    """Draw the values of finished trials and the best so far."""
    number = np.array([trial.number for trial in finished])
    value = np.array([trial.value for trial in finished], dtype=np.float64)
    feasible = np.isin(number, [trial.number for trial in feasible_trials(study)])
    running = np.maximum if goal_of(study, None).maximize else np.minimum
    if errors:
        sd = np.array([errors.get(int(n), 0.0) for n in number])
        axes.errorbar(number, value, sd, fmt="none", ecolor=TRIAL, alpha=0.35, elinewidth=1.2, zorder=1)
    axes.plot(number[feasible], value[feasible], "o", color=TRIAL, markersize=4, alpha=0.7, label="trial")
    if not feasible.all():
        axes.plot(number[~feasible], value[~feasible], "+", color=VIOLATING, label="violates a constraint")
    comparable = np.isin(number, [trial.number for trial in comparable_trials(study)])
    if comparable.any():
        best = running.accumulate(value[comparable])
        label = f"best so far: {best[-1]:.6g}"
        axes.step(number[comparable], best, where="post", color=BEST, lw=1.8, label=label)
    # With a linear axis a few very bad trials would hide all differences between the others.
    if value.min() > 0 and value.max() > 1e3 * value.min():
        axes.set_yscale("log")


def cost_figure(study: Study) -> Figure:
    """Draw the best value against the cost that was spent until then.

    Parameters
    ----------
    study : optuna.Study
        With one objective and a cost.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot, as `convergence_figure`.

    Raises
    ------
    DataError
        If the study has no cost, no trial has returned it, or the study has several objectives.
    """
    check_one_objective(study, "the best value against the cost has one: use hypervolume_figure")
    name = cost_name(study)
    costs = {} if name is None else costs_of_trials(study, name)
    if np.isnan([*costs.values()]).all():
        if name is None:
            raise DataError(f"study {study.study_name!r} has no cost: use cost=")
        raise DataError(
            f"no trial of study {study.study_name!r} has returned the cost {name!r}: return it beside the value, as in "
            f"return value, {{{name!r}: cost}}"
        )
    figure, axes = shown_figure(4.0)
    comparable = comparable_trials(study)
    running = np.maximum if goal_of(study, None).maximize else np.minimum
    value = np.array([trial.value for trial in comparable], dtype=np.float64)
    best = running.accumulate(value)  # of past experiments too, which are not drawn: their costs were spent before
    drawn = np.array([trial.number in costs for trial in comparable], dtype=np.bool_)
    paid = cumulative(costs, [trial.number for trial in comparable if trial.number in costs])
    axes.plot(paid, value[drawn], "o", color=TRIAL, markersize=4, alpha=0.7)
    axes.step(paid, best[drawn], where="post", color=BEST, lw=1.8)
    axes.set_xlabel(f"sum of the cost ({name})", parse_math=False)
    axes.set_ylabel("objective, and the best so far")
    return figure


def front_figure(
    study: Study, band: pd.DataFrame | None = None, beliefs: tuple[FloatArray, FloatArray] | None = None
) -> Figure:
    """Draw the values of several objectives, each pair in a panel, and the trials that no other one dominates.

    Parameters
    ----------
    study : optuna.Study
        With several objectives.
    band : DataFrame, optional
        Credible band of the front of two objectives, from `Result.front_band`.
    beliefs : tuple of (n, p) float64, optional
        Posterior means and standard deviations of the objectives at configurations, drawn as ellipses of two standard
        deviations.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot, as `convergence_figure`.

    Raises
    ------
    DataError
        If the study has one objective.
    """
    check_several(study)
    goals = goals_of(study)
    pairs = list(combinations(goals, 2))
    figure, axes = shown_figure(3.6, len(pairs))
    front = np.array([trial.values for trial in front_trials(study)]).reshape(-1, len(goals))
    feasible = np.array([trial.values for trial in feasible_trials(study)]).reshape(-1, len(goals))
    inside = {trial.number for trial in feasible_trials(study)}
    outside = [trial.values for trial in finite_trials(study) if trial.number not in inside]
    violating = np.array(outside).reshape(-1, len(goals))
    for axis, (across, up) in zip(axes, pairs, strict=True):
        places = [across.number, up.number]
        if band is not None:
            axis.fill_between(*_between(band, goals), color=BEST, alpha=0.2, lw=0, label="credible band")
        if beliefs is not None:
            _draw_ellipses(axis, *(each[:, places] for each in beliefs))
        if outside:
            axis.plot(*violating[:, places].T, "+", color=VIOLATING, label="violates a constraint")
        axis.plot(*feasible[:, places].T, "o", color=TRIAL, markersize=4, alpha=0.7, label="trial")
        axis.plot(*front[:, places].T, "o", color=BEST, markersize=5, label=f"front of {len(front)}")
        axis.set_xlabel(_label(across), parse_math=False)
        axis.set_ylabel(_label(up), parse_math=False)
    axes[0].legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return figure


def _between(band: pd.DataFrame, goals: Sequence[Goal]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return places of the first objective and both ends of a band that also holds between its rows.

    The best second value at a place is at least as good as in the row before, and at most as good as in the next one.
    """
    worse, better = ("low", "high") if goals[1].maximize else ("high", "low")
    places = np.repeat(band[goals[0].name].to_numpy(), 2)[1:-1]
    return places, np.repeat(band[worse].to_numpy()[:-1], 2), np.repeat(band[better].to_numpy()[1:], 2)


def _draw_ellipses(axis: Any, centres: FloatArray, sds: FloatArray) -> None:
    """Draw ellipses of two standard deviations around centres, each (n, 2)."""
    from matplotlib.patches import Ellipse

    for centre, sd in zip(centres, sds, strict=True):
        axis.add_patch(Ellipse(tuple(centre), *(4 * sd), fill=False, ec=BEST, lw=0.8, alpha=0.6))


def hypervolume_figure(study: Study, reference: Reference | None = None) -> Figure:
    """Draw the hypervolume of several objectives after each feasible trial with the fixed values of the run.

    Parameters
    ----------
    study : optuna.Study
        With several objectives.
    reference : sequence or mapping of str to float, optional
        Reference point; by default that of the sampler or else of the present front, see `StanGPSampler`.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot, as `convergence_figure`.
    """
    figure, (axes,) = shown_figure(4.0, 1)
    if reference is None and (default := reference_of(study)) is not None:
        reference = default.tolist()
    if reference is not None:
        numbers = [trial.number for trial in comparable_trials(study)]
        axes.step(numbers, hypervolume_curve(study, reference), where="post")
        shown = ", ".join(f"{value:.4g}" for value in given_reference(reference, goals_of(study)))
        axes.set_title(f"within ({shown})", loc="left", fontsize=9)
    axes.set_xlabel("trial")
    axes.set_ylabel("hypervolume")
    figure.suptitle(study.study_name, parse_math=False)
    return figure


def _label(goal: Goal) -> str:
    """Return the name of an objective, and which values are better."""
    return f"{goal.name} ({'larger' if goal.maximize else 'smaller'} is better)"


def optimum_figure(table: pd.DataFrame, draws: pd.DataFrame, dimensions: Sequence[Dimension] = ()) -> Figure:
    """Draw the location of the optimum: a histogram of each number, and the probability of each level.

    Bars of integers have the same number of them, except for the last bar. Bars and axis of logarithmic parameters are
    logarithmic. Of parameters with more than twelve levels, those with probability 0 are left out.

    Parameters
    ----------
    table : DataFrame
        From `Optimum`: the probability of each level.
    draws : DataFrame
        A column for each parameter, in the order of the table; a row for each function drawn from the posterior.
    dimensions : sequence of Dimension
        The parameters, which say what is an integer and what is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot, as `convergence_figure`.
    """
    figure, every = shown_figure(2.2, len(draws.columns))
    parameters = table.groupby("parameter", sort=False)
    by_name = {d.name: d for d in dimensions}
    for axes, (name, rows), (_, values) in zip(every, parameters, draws.items(), strict=True):
        if pd.api.types.is_numeric_dtype(values):
            known = values.dropna().to_numpy(dtype=np.float64)
            dimension = by_name.get(str(name), Dimension(str(name), "float", 0.0, 1.0))
            counts, edges = _histogram(known, dimension)
            axes.bar(edges[:-1], counts / len(values), np.diff(edges), align="edge")
            if dimension.kind == "integer" or not dimension.is_linear:
                scale(axes.xaxis, dimension.log, dimension.kind == "integer", dimension.shift)
        else:
            if len(rows) > _BARS:
                rows = rows[rows["probability"] > 0]
            labels = [str(level) for level in rows["level"]]
            tilt = {"rotation": 35, "ha": "right"} if sum(map(len, labels)) > _LABELS else {}
            axes.bar(range(len(labels)), rows["probability"])
            axes.set_xticks(range(len(labels)), labels, parse_math=False, **tilt)
        axes.set_xlabel(name, parse_math=False)
        axes.set_ylabel("probability")
    return figure


def _histogram(values: FloatArray, dimension: Dimension) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the counts of values and the edges of the bars; those of integers are halfway between them."""
    log, shift = not dimension.is_linear, dimension.shift
    if dimension.kind != "integer" or not len(values) or np.abs(values).max() > _EXACT:
        counts, edges = np.histogram(np.log(values + shift) if log else values, _BINS)
        return counts, np.exp(edges) - shift if log else edges
    low, end = values.min() - 0.5, values.max() + 0.5
    width = np.ceil((end - low) / _BINS)
    growth = 0.0
    if log and width > 1:
        width, growth = 1.0, ((end + shift) / (low + shift)) ** (1 / _BINS) - 1
    inner = [low]
    while inner[-1] < end:
        inner.append(inner[-1] + max(width, np.rint(growth * (inner[-1] + shift))))
    return np.histogram(values, [*inner[:-1], end])


def importance_figure(table: pd.DataFrame) -> Figure:
    """Draw Sobol indices: a point at each posterior mean, and a line over its 90% interval.

    Parameters
    ----------
    table : DataFrame
        From `Result.importance` or `slayr_py.inference.importance`; its first row is drawn at the top.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without pyplot; a notebook shows it.
    """
    figure, axes = shown_figure(1.2 + 0.4 * len(table))
    rows = np.arange(len(table))[::-1]
    for name, label, colour, shift in _SERIES:
        means, low, high = (table[column].to_numpy() for column in (name, f"{name}_low", f"{name}_high"))
        axes.hlines(rows + shift, low, high, color=colour, lw=2.5, alpha=0.6)
        axes.plot(means, rows + shift, "o", color=colour, markersize=5, label=label)
    axes.set_yticks(rows, [str(name) for name in table.index], parse_math=False)
    axes.set_xlim(min(0.0, axes.get_xlim()[0]), max(1.0, axes.get_xlim()[1]))
    axes.set_xlabel("Sobol index: share of the variance of the function, with 90% intervals")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return figure
