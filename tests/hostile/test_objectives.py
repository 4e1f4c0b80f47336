"""Objectives that misbehave: their trial fails with a reason, and what was evaluated before and after is kept."""

from __future__ import annotations

import decimal
import math
import re

import optuna
import pytest
from testing_hostility import stored_values

from slayr_py.cli.objective import command_objective
from slayr_py.errors import NotFiniteError, ObjectiveError
from slayr_py.study.run.objective import evaluate
from slayr_py.study.storage.attributes import FAILURE_KEY


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Poser:
    """Has what a NumPy scalar has, and no value."""

    shape = 3

    def item(self):
        raise RuntimeError("nothing inside")


class Mute:
    def __repr__(self):
        raise RuntimeError("no face")


ANSWERS = [
    ("recurses for ever", RecursionError("too deep"), ObjectiveError, "raised RecursionError: too deep"),
    ("raises StopIteration", StopIteration(), ObjectiveError, "raised StopIteration"),
    ("raises what cannot be printed", Unprintable(), ObjectiveError, "raised Unprintable: .*cannot be printed"),
    ("raises three megabytes", ValueError("x" * 3_000_000), ObjectiveError, r"x{1000} \[.* 2998000 .*\] x{1000}$"),
    ("raises bytes that are no text", ValueError("\udcff\0"), ObjectiveError, "raised ValueError: \udcff\0"),
    ("leaves Python", SystemExit(3), ObjectiveError, r"called sys\.exit\(3\); it must return a number or raise"),
    ("returns a long text", "x" * 10_000, ObjectiveError, r"returned str 'x{199}\.\.\.$"),
    ("returns a decimal that is none", decimal.Decimal("NaN"), NotFiniteError, "returned nan, which is not a finite"),
    ("returns a poser", Poser(), ObjectiveError, "returned Poser, whose value cannot be read: nothing inside"),
    ("returns what cannot be printed", Mute(), ObjectiveError, "returned Mute .*cannot be printed: RuntimeError"),
    ("returns NaN", math.nan, NotFiniteError, "returned nan, which is not a finite number"),
    ("returns 400 digits", 10**400, NotFiniteError, r"returned 10{199}\.\.\., which is too large for a float"),
    ("returns 5000 digits", 10**5000, NotFiniteError, "returned .*int that cannot be printed.*, which is too large"),
]


def give(answer):
    if isinstance(answer, BaseException):
        raise answer
    return answer


@pytest.mark.parametrize(("answer", "error", "words"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_a_wrong_answer_is_named(answer, error, words):
    with pytest.raises(error, match=words) as caught:
        evaluate(lambda config: give(answer), {})
    assert type(caught.value) is error


def test_wrong_answers_fail_their_trials_and_nothing_else_is_lost(tmp_path, go_on):
    given = [1.0, *(answer for _, answer, _, _ in ANSWERS), 2.0]
    answers = iter(given)
    path = tmp_path / "study.db"
    options = {"n_initial": len(given), "max_consecutive_failures": len(given)}
    go_on(path, len(given), lambda config: give(next(answers)), **options)
    first, *trials, last = optuna.load_study(study_name="s", storage=f"sqlite:///{path}").trials
    assert (first.value, last.value) == (1.0, 2.0)
    for (_, _, _, words), trial in zip(ANSWERS, trials, strict=True):
        assert trial.state.name == "FAIL" and trial.value is None
        assert re.search(words, trial.user_attrs[FAILURE_KEY])


@pytest.mark.parametrize("end", [KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_is_no_error_ends_the_study_and_keeps_it(tmp_path, go_on, end):
    answers = iter([1.0, 2.0, end])
    with pytest.raises(type(end)):
        go_on(tmp_path / "study.db", 4, lambda config: give(next(answers)))
    assert stored_values(tmp_path / "study.db")[:2] == [1.0, 2.0]


def shell(script: str) -> list[str]:
    return ["sh", "-c", script.replace("{", "{{").replace("}", "}}")]


COMMANDS = [
    ("hangs, outputs closed", shell("exec >&- 2>&-; sleep 60"), ObjectiveError, "longer than max_seconds = 0.3"),
    ("never stops writing", ["yes"], ObjectiveError, "took longer than max_seconds = 0.3 and was killed"),
    ("kills itself", shell("echo 0.5; kill -9 $$"), ObjectiveError, "was killed by SIGKILL: 0.5"),
    ("says nothing", ["true"], ObjectiveError, "wrote nothing"),
    ("writes a text", ["echo", "loss: 3"], ObjectiveError, "'loss: 3'"),
    ("writes NaN", ["echo", "nan"], NotFiniteError, "returned nan"),
    ("has a status", shell("echo out of memory >&2; exit 1"), ObjectiveError, "status 1: out of memory"),
    ("is not there", ["no-such-program"], ObjectiveError, "'no-such-program' does not start"),
    ("has another format", ["true", "{k:d}"], ObjectiveError, "format of {k:d}"),
    ("is a folder", ["/"], ObjectiveError, "command '/' does not start: Permission denied"),
    ("gets a null character", ["echo", "{k}"], ObjectiveError, "command 'echo' does not start: embedded null"),
    ("writes ten megabytes in a line", shell("head -c 10000000 /dev/zero"), ObjectiveError, "must be the value, but"),
    ("writes 1e999", ["echo", "1e999"], NotFiniteError, "returned inf, which is not a finite number"),
]


@pytest.mark.parametrize(("command", "error", "words"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_commands_that_misbehave_fail_their_trial(tmp_path, command, error, words):
    objective = command_objective(command, ["k"], tmp_path, max_seconds=0.3 if "longer" in words else 30)
    with pytest.raises(error, match=words) as caught:
        evaluate(objective, {"k": "a\0b"})
    assert type(caught.value) is error and len(str(caught.value)) < 1000


COMMANDS_THAT_WORK = [
    ("bytes that are no text before the value", shell(r"printf '\377\376\n0.25\n'"), 0.25),
    ("much before the value on both", shell("head -c 300000 /dev/zero | tee /dev/stderr; echo; echo 0.5"), 0.5),
    ("waits for input that nobody gives", shell("cat; echo 1e-3"), 1e-3),
]


@pytest.mark.parametrize(
    ("command", "value"), [row[1:] for row in COMMANDS_THAT_WORK], ids=[row[0] for row in COMMANDS_THAT_WORK]
)
def test_awkward_commands_are_read(tmp_path, command, value):
    assert command_objective(command, ["k"], tmp_path, max_seconds=30)({"k": "a"}) == value
