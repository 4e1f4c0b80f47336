from __future__ import annotations

import signal
import subprocess
import time

import pytest
from testing_processes import alive, ends, started

from slayr_py.cli.objective import command_objective
from slayr_py.errors import ObjectiveError

PRINT = "import sys; print('noise'); print(sys.argv[1:]); print(len(sys.argv) - 1)"


def python(code: str, *arguments: str) -> list[str]:
    return ["{python}", "-c", code, *arguments]


def test_arguments_of_inactive_parameters_are_left_out(tmp_path):
    objective = command_objective(python(PRINT, "--a={a}", "--b={b}"), ["a", "b"], tmp_path)
    assert objective({"a": 1, "b": 2}) == 2.0
    assert objective({"a": 1}) == 1.0


def test_the_last_line_that_says_something_is_the_value(tmp_path):
    code = "print('7'); print('1e-3'); print(); print('  ')"
    assert command_objective(python(code), ["x"], tmp_path)({"x": 1}) == 1e-3


def test_the_time_limit_ends_the_command_and_its_children(tmp_path):
    command = ["sh", "-c", "sleep 60 & echo $! > pid; wait"]
    with pytest.raises(ObjectiveError, match="longer than max_seconds = 1 and"):
        command_objective(command, ["x"], tmp_path, max_seconds=1)({"x": 1})
    assert ends(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("limit", [None, 20])
@pytest.mark.parametrize("child", ["sleep 60", "while sleep .05; do echo 0.5; done"], ids=["silent", "writing"])
def test_a_child_that_a_finished_command_leaves_behind_is_killed(tmp_path, monkeypatch, limit, child):
    monkeypatch.setattr("slayr_py.cli.objective._LEFT_BEHIND", 0.5)
    command = ["sh", "-c", f"({child}) & echo $! > pid; echo 0.5"]
    begin = time.monotonic()
    assert command_objective(command, ["x"], tmp_path, max_seconds=limit)({"x": 1}) == 0.5
    assert time.monotonic() - begin < 10
    assert ends(int((tmp_path / "pid").read_text()))


def test_a_filter_that_outlives_the_command_passes_its_last_line_on(tmp_path):
    command = ["sh", "-c", "(echo 9; sleep 0.8; echo 0.5) & exit"]
    assert command_objective(command, ["x"], tmp_path)({"x": 1}) == 0.5


WITH_A_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open("new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.replace("new", "pids")
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda n: n.name)
def test_the_command_and_its_children_end_with_slayr(tmp_path, number):
    (tmp_path / "train.py").write_text(WITH_A_CHILD)
    code = (
        "from pathlib import Path; from slayr_py.cli.objective import command_objective; "
        "command_objective(['{python}', 'train.py'], ['x'], Path('.'))({'x': 1})"
    )
    with started(f"import os; os.chdir({str(tmp_path)!r}); {code}") as slayr:
        deadline = time.monotonic() + 60
        while not (tmp_path / "pids").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert all(map(alive, pids))
        slayr.send_signal(number)
        assert slayr.wait(timeout=20) != 0
        assert all(map(ends, pids))


def test_a_command_without_a_shell_for_the_watcher_still_runs(tmp_path, monkeypatch):
    start = subprocess.Popen

    def popen(command, **options):
        if command[0] == "/bin/sh":
            raise FileNotFoundError(2, "No such file or directory")
        return start(command, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert command_objective(python("print(2)"), ["x"], tmp_path)({"x": 1}) == 2.0


def test_the_last_line_has_the_values_of_several_objectives(tmp_path):
    def answer(text):
        code = f"print(bytes.fromhex('{text.encode().hex()}').decode())"  # without braces, which are placeholders
        return command_objective(python(code), ["x"], tmp_path, n_values=2)({"x": 1})

    assert answer("0.5 -1e3") == [0.5, -1000.0] and answer("[1, 2.5]") == [1, 2.5]
    assert answer('{"loss": 1.5, "gain": 2}') == {"loss": 1.5, "gain": 2}
    for wrong in ("0.5", "1 2 3", "[1]", '{"loss": 1}', "a b", "{1, 2"):
        with pytest.raises(ObjectiveError, match="must have the 2 values, separated by spaces or as JSON"):
            answer(wrong)
