from __future__ import annotations

import optuna
from matplotlib.figure import Figure

from slayr_py.study import ask, convergence_figure, create_study, suggestion_table
from slayr_py.study.results.tables import trials_table
from slayr_py.study.storage.attributes import SUGGESTION_KEY


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


def test_incumbent_rises_when_maximising(plane):
    study = create_study(plane, direction="maximize", n_initial=3, seed=1)
    for value in (1.0, 3.0, 2.0):
        study.tell(ask(study), value)
    lines = {line.get_label(): line for line in convergence_figure(study).axes[0].lines}
    assert lines["best so far: 3"].get_ydata().tolist() == [1.0, 3.0, 3.0]


def test_figure_of_an_empty_study_and_log_scale_of_a_wide_range(plane):
    study = create_study(plane, n_initial=2, seed=1)
    assert convergence_figure(study).axes[0].lines == [] or len(convergence_figure(study).axes[0].lines) == 0
    for value in (1e-3, 1e6):
        study.tell(ask(study), value)
    assert convergence_figure(study).axes[0].get_yscale() == "log"


def test_convergence_figure_draws_known_errors(small_study):
    (axes,) = convergence_figure(small_study, {1: 0.5}).axes
    (bars,) = axes.collections
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[5.0, 5.0], [1.5, 2.5]]


def test_suggestion_table_has_a_row_for_every_trial(small_study):
    table = suggestion_table(small_study)
    assert table["number"].tolist() == [0, 1, 2, 3]
    assert table["phase"].tolist() == ["initial", "initial", "initial", "random"] or table["phase"][3] == "model"


def test_suggestion_table_of_a_study_of_another_sampler():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=2)
    assert suggestion_table(study)["phase"].isna().all()


def test_suggestion_table_marks_trusted_fits(plane):
    study = create_study(plane, n_initial=1, seed=1)
    warm = {"start": "warm", "abandoned": []}
    cold = {"start": "cold", "abandoned": [{"start": "warm", "why": ["bulk ESS 31 < 50"]}]}
    for record in (
        {"phase": "initial"},
        {"phase": "model", "fit": warm, "diagnostics": {"ok": True, "loo_pareto_k_max": 0.4, "pareto_k": None}},
        {"phase": "model", "fit": cold, "diagnostics": {"ok": False}},
        {"phase": "model", "fit": {"abandoned": "?"}, "diagnostics": {"ok": "yes"}},
        {"phase": "random", "error": "Stan died"},
        {"phase": "enqueued"},
    ):
        study.add_trial(optuna.trial.create_trial(value=1.0, user_attrs={SUGGESTION_KEY: {"config": {}, **record}}))
    table = suggestion_table(study)
    assert table["trusted"].tolist() == [None, True, False, False, False, None]
    assert table["attempts"].tolist()[1:4] == [1, 2, 1] and table["attempts"].isna().tolist()[4:] == [True, True]
    assert table["start"].tolist()[1:3] == ["warm", "cold"] and table["loo_pareto_k_max"][1] == 0.4


def test_trials_table_has_a_row_for_every_trial(small_study):
    assert trials_table(small_study)["state"].tolist() == ["COMPLETE", "COMPLETE", "FAIL", "RUNNING"]


def test_trials_table_of_a_study_of_another_sampler():
    study = optuna.create_study()
    study.optimize(lambda trial: trial.suggest_float("z", 0, 1), n_trials=2)
    assert trials_table(study).columns.tolist() == ["number", "value", "state", "params_z"]
