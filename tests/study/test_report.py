from __future__ import annotations

import optuna
import pytest
from matplotlib.figure import Figure

from slayr_py.study import ask, convergence_figure, create_study, suggestion_table
from slayr_py.study.progress import describe_diagnostics
from slayr_py.study.result import trials_table


@pytest.fixture
def study(plane):
    study = create_study(plane, n_initial=3, seed=1, study_name="net")
    for value in (5.0, 2.0, None):
        trial = ask(study)
        study.tell(trial, value, optuna.trial.TrialState.FAIL if value is None else None)
    ask(study)
    return study


def test_the_figure_shows_trials_incumbent_design_and_failures(study, tmp_path):
    figure = convergence_figure(study)
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["trial"].get_ydata().tolist() == [5.0, 2.0]
    assert lines["best so far: 2"].get_ydata().tolist() == [5.0, 2.0]
    assert list(lines["failed"].get_xdata()) == [2]
    assert axes.patches[0].get_x() == -0.5 and axes.patches[0].get_width() == 3
    figure.savefig(tmp_path / "convergence.png")
    assert (tmp_path / "convergence.png").read_bytes().startswith(b"\x89PNG")


def test_the_incumbent_rises_where_the_study_maximises(plane):
    study = create_study(plane, direction="maximize", n_initial=3, seed=1)
    for value in (1.0, 3.0, 2.0):
        study.tell(ask(study), value)
    lines = {line.get_label(): line for line in convergence_figure(study).axes[0].lines}
    assert lines["best so far: 3"].get_ydata().tolist() == [1.0, 3.0, 3.0]


def test_a_wide_range_of_values_gets_a_log_scale_and_an_empty_study_a_figure(plane):
    study = create_study(plane, n_initial=2, seed=1)
    assert convergence_figure(study).axes[0].lines == [] or len(convergence_figure(study).axes[0].lines) == 0
    for value in (1e-3, 1e6):
        study.tell(ask(study), value)
    assert convergence_figure(study).axes[0].get_yscale() == "log"


def test_tables_have_a_row_for_every_trial(study):
    table = suggestion_table(study)
    assert table["number"].tolist() == [0, 1, 2, 3]
    assert table["phase"].tolist() == ["initial", "initial", "initial", "random"] or table["phase"][3] == "model"
    assert trials_table(study)["state"].tolist() == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING"]


def test_tables_of_studies_made_elsewhere():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=2)
    assert trials_table(study).columns.tolist() == ["number", "value", "state", "params_z"]
    assert suggestion_table(study)["phase"].isna().all()


def test_diagnostics_in_a_few_words():
    assert (
        describe_diagnostics({"rhat_max": 1.0123, "ess_bulk_min": 411.7, "divergences": 0}) == "rhat 1.01 ess 412 div 0"
    )
    assert describe_diagnostics({"rhat_max": None, "ok": True}) == "fit ok"
    assert describe_diagnostics({"ok": False}) == "fit doubtful"
