from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest
from testing_studies import branin

from slayr_py.study import ask, minimize, tell
from slayr_py.study.model.session import Phase
from slayr_py.study.run.progress import ProgressBar, describe_diagnostics


def test_describe_diagnostics():
    numbers = {"rhat_max": 1.0123, "ess_bulk_min": 411.7, "divergences": 0}
    assert describe_diagnostics(numbers | {"ok": True}) == "rhat 1.01 ess 412 div 0"
    assert describe_diagnostics(numbers | {"ok": False}) == "rhat 1.01 ess 412 div 0, fit doubtful"
    assert describe_diagnostics({"pareto_k": 0.55, "ess_bulk_min": 60.0, "ok": True}) == "k-hat 0.55 ess 60"
    assert describe_diagnostics({"rhat_max": None, "ok": True}) == "fit ok"
    assert describe_diagnostics({"ok": False}) == "fit doubtful"


FAILED = {"rhat_max": 1.31, "ess_bulk_min": 31.0, "divergences": 0, "ok": False}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bar_shows_failed_diagnostics(small_study):
    with redirect_stderr(Terminal()) as terminal, ProgressBar(small_study, budget=5, enabled=True) as bar:
        bar.phase(Phase("maximising", 3, FAILED))
    assert "rhat 1.31 ess 31 div 0, fit doubtful" in terminal.getvalue()


def test_the_bar_counts_the_finished_trials_of_all_processes(small_study):
    with redirect_stderr(Terminal()) as terminal, ProgressBar(small_study, budget=5, enabled=True) as bar:
        tell(small_study, ask(small_study), 1.0)  # by another process
        tell(small_study, 3, 1.0)
        bar.finished()
    drawn = terminal.getvalue()
    assert "| 3/5 [" in drawn and drawn.rstrip().split("done")[-1].count("| 5/5 [") == 1


def test_a_file_has_a_line_for_every_trial_and_the_last_state(small_study, capsys):
    with ProgressBar(small_study, budget=5, enabled=True) as bar:
        for phase in ("fitting", "maximising", "evaluating"):
            bar.phase(Phase(phase, 3, FAILED))
        bar.announce("a note")
        tell(small_study, ask(small_study), 1.0)
        for phase in ("fitting", "maximising", "evaluating"):
            bar.phase(Phase(phase, 4, FAILED))
    drawn = capsys.readouterr().err
    assert "\r" not in drawn and drawn.endswith("fit doubtful\n")
    empty, start, note, trial, last = drawn.splitlines()
    assert "0/5" in empty and note == "a note" and "fit doubtful" not in start
    assert "| 3/5 [" in start and trial.startswith("fitting ") and "| 4/5 [" in trial
    assert last.startswith("done ") and "| 4/5 [" in last


@pytest.mark.stan
def test_bar_shows_phases_and_diagnostics(plane):
    drawn = Terminal()
    with redirect_stderr(drawn):
        minimize(branin, plane, budget=5, n_initial=4, seed=1, method="nuts", chains=2, warmup=100, draws=100)
    text = drawn.getvalue()
    assert text.count("kernel: Matérn kernel (p = 2), chosen because all parameters are numbers\n") == 1
    for words in ("compiling", "evaluating", "fitting", "maximising", "5/5", "best ", "rhat ", "ess ", "div ", "done"):
        assert words in text
    drawn = io.StringIO()
    with redirect_stderr(drawn):
        minimize(branin, plane, budget=2, n_initial=2, progress=False)
    assert drawn.getvalue() == ""
