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


def test_architecture_search(monkeypatch, capsys):
    example = runpy.run_path(str(EXAMPLES / "architecture_search.py"))
    main = example["main"]
    error = {"(2, 3)": 0.1}  # by the inputs of state 4
    monkeypatch.setitem(main.__globals__, "make_error", lambda *_: lambda config: error.get(config["inputs4"], 0.5))
    main(QUICK)
    printed = capsys.readouterr().out
    assert "f = 0." in printed and "  state 4 = " in printed and "  outputs: states " in printed


@pytest.mark.parametrize("installed", sorted({False, importlib.util.find_spec("torch") is not None}))
def test_architecture_search_trains_or_says_what_it_needs(installed, monkeypatch):
    example = runpy.run_path(str(EXAMPLES / "architecture_search.py"))
    if installed:
        operations = (f"op{state}{side}" for state in (1, 2, 3, 4) for side in "ab")
        block = {"inputs2": "(0, 1)", "inputs3": "(1, 2)", "inputs4": "(2, 3)", "output": 3}
        block |= dict(zip(operations, example["OPERATIONS"], strict=True))
        training = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 1e-4}
        training |= {"reduction": 0.3, "first_point": 0.6, "second_point": 0.5}
        error = example["make_error"]()
        first = error(block | training)
        assert first == error(block | training) and first < 0.3
        assert error(block | training | {"momentum": 1.0}) > first
    else:
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(SystemExit, match=r'needs PyTorch: pip install "slayr-py\[torch\]"'):
            example["main"](QUICK)


def test_architecture_search_reads_only_images(tmp_path):
    read_images = runpy.run_path(str(EXAMPLES / "architecture_search.py"))["read_images"]
    with pytest.raises(SystemExit, match="absent.csv cannot be read"):
        read_images(tmp_path / "absent.csv")
    (tmp_path / "two.csv").write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(SystemExit, match="has rows of 2 numbers; give 64 pixels and a digit in each row"):
        read_images(tmp_path / "two.csv")


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
