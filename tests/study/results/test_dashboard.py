"""Figures for the Optuna dashboard are stored where it finds them."""

from __future__ import annotations

import json
import sys

import optuna
import pytest
from testing_studies import bowl

import slayr_py as sl
from slayr_py.study import create_study, save_to_dashboard
from slayr_py.study.storage.attributes import suggestion_record


def saved(study):
    """Return the figures that the dashboard would show."""
    reader = pytest.importorskip("optuna_dashboard._custom_plot_data")
    again = optuna.load_study(study_name=study.study_name, storage=study._storage)
    found = reader.get_plotly_graph_objects(study._storage.get_study_system_attrs(again._study_id))
    return {name: json.loads(text) for name, text in found.items()}


@pytest.mark.stan
def test_figures_have_the_predictions(plane, quick, tmp_path):
    pytest.importorskip("optuna_dashboard")
    pytest.importorskip("plotly")
    options = {"n_initial": 3, "seed": 1, "progress": False, "storage": f"sqlite:///{tmp_path / 'study.db'}"}
    study = sl.minimize(bowl, plane, budget=6, **options, **quick).study
    assert save_to_dashboard(study) == save_to_dashboard(study) == ["slayr:convergence", "slayr:predictions"]
    figures = saved(study)
    traces = {trace["name"]: trace for trace in figures["slayr:convergence"]["data"]}
    records = [suggestion_record(trial)["predicted"] for trial in study.trials[3:]]
    assert traces["Objective Value"]["y"] == [trial.value for trial in study.trials]
    assert traces["predicted, 1 sd"]["x"] == [3, 4, 5]
    assert traces["predicted, 1 sd"]["y"] == [record["mean"] for record in records]
    assert traces["predicted, 1 sd"]["error_y"]["array"] == [record["sd"] for record in records]
    points, line = figures["slayr:predictions"]["data"]
    assert points["y"] == [trial.value for trial in study.trials[3:]] and points["text"][0] == "trial 3"
    assert line["x"] == line["y"] and len(line["x"]) == 2


def test_a_study_without_suggestions_has_figures(small_study):
    pytest.importorskip("optuna_dashboard")
    pytest.importorskip("plotly")
    save_to_dashboard(small_study)
    assert saved(small_study).keys() == {"slayr:convergence", "slayr:predictions"}


@pytest.mark.parametrize("missing", ["optuna_dashboard", "plotly"])
def test_missing_packages_are_named(plane, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(sl.DataError, match=rf"need the package {missing}: pip install 'slayr-py\[dashboard\]'"):
        save_to_dashboard(create_study(plane))
