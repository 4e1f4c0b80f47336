from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure
from matplotlib.text import Text

from slayr_py.space import Dimension
from slayr_py.study import ask, convergence_figure, create_study
from slayr_py.study.results.figures import cost_figure, front_figure, importance_figure, optimum_figure
from slayr_py.study.storage.costs import cumulative


def test_convergence_figure_shows_trials_incumbent_design_and_failures(small_study, tmp_path):
    figure = convergence_figure(small_study)
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["trial"].get_ydata().tolist() == [5.0, 2.0]
    assert lines["best so far: 2"].get_ydata().tolist() == [5.0, 2.0]
    assert list(lines["failed"].get_xdata()) == [2]
    assert axes.patches[0].get_x() == -0.5 and axes.patches[0].get_width() == 3
    figure.savefig(tmp_path / "convergence.png")
    assert (tmp_path / "convergence.png").read_bytes().startswith(b"\x89PNG")
    shown, _ = DisplayFormatter().format(figure)
    assert shown["image/png"].startswith(b"\x89PNG")  # a notebook shows it


def test_incumbent_rises_when_maximising(plane):
    study = create_study(plane, direction="maximize", n_initial=3, seed=1)
    for value in (1.0, 3.0, 2.0):
        study.tell(ask(study), value)
    lines = {line.get_label(): line for line in convergence_figure(study).axes[0].lines}
    assert lines["best so far: 3"].get_ydata().tolist() == [1.0, 3.0, 3.0]


def test_figure_of_an_empty_study_and_log_scale_of_a_wide_range(plane):
    study = create_study(plane, n_initial=3, seed=1)
    assert len(convergence_figure(study).axes[0].lines) == 0
    for value in (1e-3, 1e6):
        study.tell(ask(study), value)
    assert convergence_figure(study).axes[0].get_yscale() == "log"
    study.tell(ask(study), -1.0)
    assert convergence_figure(study).axes[0].get_yscale() == "linear"


def test_the_best_so_far_leaves_out_trials_with_other_fixed_values(plane):
    study = create_study(plane, n_initial=3, seed=1, fixed={"x": 1.0})
    for x, value in ((2.0, -5.0), (1.0, 4.0), (1.0, 3.0)):
        study.enqueue_trial({"x": x, "y": value + 6})
        study.tell(ask(study), value)
    (axes,) = convergence_figure(study).axes
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["best so far: 3"].get_ydata().tolist() == [4.0, 3.0]
    assert axes.get_xlabel() == "trial\nbest so far with the fixed values x=1.0"


@pytest.mark.parametrize("count", [2, 40])
def test_fixed_values_leave_room_for_the_axes(count):
    names = [f"optimizer_{number}" for number in range(count)]
    space = {name: ["adam_with_decay", "sgd"] for name in names} | {"x": (0.0, 1.0)}
    study = create_study(space, n_initial=2, seed=1, fixed=dict.fromkeys(names, "adam_with_decay"))
    study.tell(ask(study), 1.0)
    figure = convergence_figure(study)
    figure.draw_without_rendering()
    place = figure.axes[0].get_position()
    assert place.width > 0.7 and place.height > 0.5


def test_ellipses_have_two_standard_deviations_to_each_side(plane):
    study = create_study(plane, directions=["minimize", "maximize"])
    beliefs = np.array([[1.0, 2.0]]), np.array([[0.5, 0.25]])
    (ellipse,) = front_figure(study, beliefs=beliefs).axes[0].patches
    assert ellipse.get_center() == (1.0, 2.0) and (ellipse.width, ellipse.height) == (2.0, 1.0)


@pytest.mark.parametrize("first", ["minimize", "maximize"])
@pytest.mark.parametrize("second", ["minimize", "maximize"])
def test_between_its_rows_the_band_reaches_from_the_worse_row_to_the_better_one(plane, first, second):
    study = create_study(plane, directions={"a": first, "b": second})
    signs = [1.0 if first == "minimize" else -1.0, -1.0 if second == "minimize" else 1.0]
    places, values = np.array([0.0, 1.0, 3.0]), np.array([2.0, 5.0, 6.0])  # a worse first value, a better second one
    ends = np.sort(np.outer(signs[1] * values, [0.9, 1.1]), axis=1)
    band = pd.DataFrame({"a": signs[0] * places, "low": ends[:, 0], "median": signs[1] * values, "high": ends[:, 1]})
    (drawn,) = front_figure(study, band).axes[0].collections
    for place, low, high in ((0.5, 1.8, 5.5), (2.0, 4.5, 6.6)):
        for value, inside in ((low - 0.01, False), (low + 0.01, True), (high - 0.01, True), (high + 0.01, False)):
            assert drawn.get_paths()[0].contains_point((signs[0] * place, signs[1] * value)) == inside


def test_the_first_row_of_the_importance_is_at_the_top():
    table = pd.DataFrame({"first": [0.6, 0.1], "total": [0.8, 0.2]}, index=["x", "y"])
    table = table.assign(**{f"{name}_{end}": table[name] for name in table for end in ("low", "high")})
    (axes,) = importance_figure(table).axes
    heights = {label.get_text(): label.get_position()[1] for label in axes.get_yticklabels()}
    assert heights["x"] > heights["y"]
    total = next(line for line in axes.lines if line.get_label().startswith("total"))
    assert dict(zip(total.get_xdata(), np.round(total.get_ydata()), strict=True)) == {
        0.8: heights["x"],
        0.2: heights["y"],
    }


def test_convergence_figure_draws_known_errors(small_study):
    (axes,) = convergence_figure(small_study, {1: 0.5}).axes
    (bars,) = axes.collections
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[5.0, 5.0], [1.5, 2.5]]


def test_the_cost_figure_starts_from_the_best_past_experiment():
    history = [({"x": 0.3}, -5.0), ({"x": 0.8}, 2.0)]
    study = create_study({"x": (0.0, 1.0)}, n_initial=9, seed=1, cost="euros", history=history)
    for value in (1.0, -6.0):
        trial = ask(study)
        trial.set_user_attr("euros", 10.0)
        study.tell(trial, value)
    points, best = cost_figure(study).axes[0].lines
    assert points.get_ydata().tolist() == [1.0, -6.0]
    assert best.get_xdata().tolist() == [10.0, 20.0] and best.get_ydata().tolist() == [-5.0, -6.0]


def test_the_best_so_far_against_the_cost_rises_when_maximising():
    study = create_study({"x": (0.0, 1.0)}, n_initial=9, seed=1, cost="euros", direction="maximize")
    for value in (1.0, 3.0, 2.0):
        trial = ask(study)
        trial.set_user_attr("euros", 10.0)
        study.tell(trial, value)
    assert cost_figure(study).axes[0].lines[1].get_ydata().tolist() == [1.0, 3.0, 3.0]


def test_an_unknown_cost_adds_nothing_to_the_sum():
    assert cumulative({0: 1.0, 1: math.nan, 3: 2.0}, [0, 1, 3]).tolist() == [1.0, 1.0, 3.0]


NAME = r"$\frac{$ \$"


def test_names_are_not_read_as_formulas():
    study = create_study({"x": (0.0, 1.0)}, study_name=NAME, n_initial=2, seed=1, cost=NAME)
    goals = {NAME: "minimize", "other": "maximize"}
    several = create_study({"x": (0.0, 1.0)}, directions=goals, study_name=NAME, n_initial=2, seed=1)
    for value in (1.0, 2.0):
        trial = ask(study)
        trial.set_user_attr(NAME, value)
        study.tell(trial, value)
        several.tell(ask(several), [value, value])
    table = pd.DataFrame({"parameter": [NAME] * 2, "level": [NAME, None], "probability": 0.5})
    figures = [
        convergence_figure(study),
        convergence_figure(several),
        cost_figure(study),
        front_figure(several),
        optimum_figure(table, pd.DataFrame({NAME: [NAME, None]})),
    ]
    for figure in figures:
        figure.draw_without_rendering()
        texts = [text for text in figure.findobj(Text) if NAME in text.get_text()]
        assert texts and not any(text.get_parse_math() for text in texts)


def test_fixed_values_are_not_read_as_formulas():
    study = create_study({"op": [NAME, "b"], "x": (0.0, 1.0)}, n_initial=2, seed=1, fixed={"op": NAME})
    study.tell(ask(study), 1.0)
    figure = convergence_figure(study)
    figure.draw_without_rendering()
    assert "frac" in figure.axes[0].get_xlabel()


def test_labels_of_levels_do_not_overlap():
    levels = ["maxpool5", "separable3", "identity", "conv3", "(-1, 0)", "conv5"]
    few = ["(-1, 0)", "(0, 1)"]
    names = ["op"] * 6 + ["few"] * 2 + ["x"]
    table = pd.DataFrame({"parameter": names, "level": [*levels, *few, ""], "probability": 0.1})
    figure = optimum_figure(table, pd.DataFrame({"op": levels, "few": few * 3, "x": range(6)}))
    figure.draw_without_rendering()
    many, short = (axes.get_xticklabels() for axes in figure.axes[:2])
    assert {label.get_rotation() for label in many} == {35.0} and {label.get_rotation() for label in short} == {0.0}
    assert [label.get_text() for label in many] == levels


def histogram(dimension, values):
    """Return the axes of a parameter, and the edges of the bars and their heights."""
    table = pd.DataFrame({"parameter": [dimension.name], "level": [""], "probability": [1.0]})
    (axes,) = optimum_figure(table, pd.DataFrame({dimension.name: values}), [dimension]).axes
    edges = [bar.get_x() for bar in axes.patches] + [axes.patches[-1].get_x() + axes.patches[-1].get_width()]
    return axes, np.array(edges), np.array([bar.get_height() for bar in axes.patches])


@pytest.mark.parametrize("kind", ["float", "integer"])
def test_bars_of_a_chosen_scale_are_as_wide_as_on_the_axis(kind):
    dimension = Dimension("n", kind, 0, 1000).rescaled()
    units = np.linspace(0, 1, 500)
    axes, edges, heights = histogram(dimension, dimension.numbers(units))
    assert axes.get_xscale() == "symlog" and heights.sum() == pytest.approx(1)
    widths = np.diff(np.log(edges + 1))
    assert edges[0] >= -0.5 and widths[edges[:-1] > 20].max() < 2 * np.median(widths)


@pytest.mark.parametrize(("count", "width"), [(4, 1), (30, 1), (45, 2), (90, 3), (1, 1)])
def test_equally_probable_integers_have_bars_of_equal_height(count, width):
    values = np.repeat(np.arange(1, count + 1), 3)
    _, edges, heights = histogram(Dimension("n", "integer", 1, 100), values)
    np.testing.assert_allclose(heights[: count // width], width / count)
    assert heights.sum() == pytest.approx(1) and (edges[0], edges[-1]) == (0.5, count + 0.5)
    assert set(np.diff(edges)[: count // width]) == {width}


@pytest.mark.parametrize("kind", ["float", "integer"])
def test_bars_and_axis_of_a_logarithmic_parameter_are_logarithmic(kind):
    values = np.geomspace(1, 1000, 601)
    values = np.array([*values[:300], np.nan, *values[300:]]) if kind == "float" else np.rint(values).astype(int)
    axes, edges, heights = histogram(Dimension("n", kind, 1, 1000, log=True), values)
    assert axes.get_xscale() == "log"
    if kind == "float":
        np.testing.assert_allclose(edges, np.geomspace(1, 1000, 31))
        np.testing.assert_allclose(heights, 20 / 602, atol=1.5 / 602)
    else:
        np.testing.assert_array_equal(edges[:6], np.arange(0.5, 6))  # each of the small integers has a bar
        assert edges[-1] == 1000.5 and np.all(np.diff(edges)[1:-1] >= np.diff(edges)[:-2])
        assert heights.sum() == pytest.approx(1) and len(heights) <= 30


def test_levels_of_a_large_category_that_are_never_optimal_are_left_out():
    levels = [str(number) for number in range(13)]
    table = pd.DataFrame({"parameter": "op", "level": levels, "probability": [0.5, 0.5] + [0.0] * 11})
    (axes,) = optimum_figure(table, pd.DataFrame({"op": ["0", "1"]})).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "1"]
