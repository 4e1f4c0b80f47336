from __future__ import annotations

import optuna
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure

from slayr_py.errors import DataError
from slayr_py.inference import GaussianProcess
from slayr_py.study import ask, convergence_figure, create_study, minimize, suggestion_table
from slayr_py.study.progress import ProgressBar, describe_diagnostics
from slayr_py.study.proposal import Phase
from slayr_py.study.results.result import trials_table
from slayr_py.study.storage.attributes import SUGGESTION_KEY


@pytest.fixture
def study(plane, quick):
    study = create_study(plane, n_initial=3, seed=1, study_name="net", **quick)
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
    numbers = {"rhat_max": 1.0123, "ess_bulk_min": 411.7, "divergences": 0}
    assert describe_diagnostics(numbers | {"ok": True}) == "rhat 1.01 ess 412 div 0"
    assert describe_diagnostics(numbers | {"ok": False}) == "rhat 1.01 ess 412 div 0, fit doubtful"
    assert describe_diagnostics({"pareto_k": 0.55, "ess_bulk_min": 60.0, "ok": True}) == "k-hat 0.55 ess 60"
    assert describe_diagnostics({"rhat_max": None, "ok": True}) == "fit ok"
    assert describe_diagnostics({"ok": False}) == "fit doubtful"


def test_the_bar_says_that_a_fit_failed(study, capsys):
    with ProgressBar(study, budget=5, enabled=True) as bar:
        bar.phase(Phase("maximising", 3, {"rhat_max": 1.31, "ess_bulk_min": 31.0, "divergences": 0, "ok": False}))
    assert "rhat 1.31 ess 31 div 0, fit doubtful" in capsys.readouterr().err


def test_the_table_says_which_suggestions_may_be_believed(plane):
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


def test_every_fit_of_a_loop_is_made_again_as_often_as_is_asked_for(plane, quick, monkeypatch):
    asked, fit = [], GaussianProcess.fit

    def spy(self, *arguments, **options):
        asked.append(options["options"].retries)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(GaussianProcess, "fit", spy)
    minimize(lambda config: config["x"] ** 2, plane, 4, n_initial=3, seed=1, progress=False, retries=2, **quick)
    assert asked == [2]
    with pytest.raises(DataError, match="retries must be an integer >= 0, got -1"):
        create_study(plane, retries=-1)


def test_a_notebook_shows_the_figure_by_itself(plane):
    figure = convergence_figure(create_study(plane, n_initial=1, seed=1))
    shown, _ = DisplayFormatter().format(figure)
    assert shown["image/png"].startswith(b"\x89PNG")
