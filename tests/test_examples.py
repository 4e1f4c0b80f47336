"""Examples run from top to bottom, with few evaluations and point estimates."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

import slayr_py as sl

pytestmark = pytest.mark.stan

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
QUICK = ["--budget", "12", "--method", "map"]


def run(name, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def test_branin(monkeypatch, capsys):
    minimize = sl.minimize
    quick = {"budget": 6, "n_initial": 4, "method": "map"}
    monkeypatch.setattr(sl, "minimize", lambda objective, space, **_: minimize(objective, space, seed=1, **quick))
    run("branin.py", monkeypatch)
    assert float(capsys.readouterr().out.split()[0]) > 0.397887


def test_branin_currin(monkeypatch, capsys):
    minimize = sl.minimize
    quick = {"budget": 8, "n_initial": 6, "method": "map", "progress": False}
    monkeypatch.setattr(sl, "minimize", lambda objective, space, **given: minimize(objective, space, **given | quick))
    run("branin_currin.py", monkeypatch)
    assert "values_branin" in (printed := capsys.readouterr().out) and "of at most 59.36" in printed


def test_tune_svm_conditional(monkeypatch, capsys):
    run("tune_svm_conditional.py", monkeypatch, *QUICK)
    printed = capsys.readouterr().out
    assert 'kernel "auto": hierarchical' in printed and "smallest error: " in printed and "rbf" in printed


def test_tune_kernel_svm(monkeypatch, capsys):
    run("tune_kernel_svm.py", monkeypatch, *QUICK)
    printed = capsys.readouterr().out
    assert "smallest error: " in printed and "KernelSVC(C=" in printed and "matern" in printed


def test_karate_club(monkeypatch, capsys, tmp_path):
    run("karate_club.py", monkeypatch, "--figure", str(tmp_path / "figure.png"))
    printed = capsys.readouterr().out
    assert "33 of 34 right; wrong: [8]" in printed and "R2 = 0.93 on 22 members" in printed
    assert 20_000 < (tmp_path / "figure.png").stat().st_size < 100_000


@pytest.mark.filterwarnings("ignore:.*`booster=dart` is deprecated")  # by XGBoost 3.4; 3.0 has no other name for it
@pytest.mark.parametrize("installed", sorted({False, importlib.util.find_spec("xgboost") is not None}))
def test_tune_xgboost_runs_or_says_what_it_needs(installed, monkeypatch, capsys):
    if installed:
        import xgboost

        train = xgboost.train
        monkeypatch.setattr(xgboost, "train", lambda config, data, _, **options: train(config, data, 5, **options))
        run("tune_xgboost.py", monkeypatch, *QUICK)
        assert "smallest test error: " in capsys.readouterr().out
    else:
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(SystemExit, match="pip install xgboost-cpu") as stopped:
            run("tune_xgboost.py", monkeypatch, *QUICK)
        assert isinstance(stopped.value.code, str)  # printed to standard error, with exit status 1
