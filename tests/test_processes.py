"""Names of processes, and whether they still run."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from slayr_py.errors import StorageError
from slayr_py.processes import Process, _start_time, this_process


class TestProcess:
    def test_round_trip(self):
        assert Process.parse(str(this_process())) == this_process()

    def test_a_system_without_start_times_is_named(self, monkeypatch):
        monkeypatch.setattr("slayr_py.processes._start_time", lambda pid: None)
        with pytest.raises(StorageError, match="/proc is missing; mount it"):
            this_process()

    @pytest.mark.parametrize("text", ["", "a-b", "a-1-b", "a-1-2-3"])
    def test_other_texts_are_rejected(self, text):
        with pytest.raises(ValueError):
            Process.parse(text)

    def test_a_process_that_has_ended_is_gone(self):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        started = _start_time(child.pid)
        assert started is not None
        process = this_process()._replace(pid=child.pid, started=started)
        assert not process.is_gone and not this_process().is_gone
        child.communicate()
        assert process.is_gone
        assert not process._replace(host="elsewhere").is_gone  # its state is not visible from here

    def test_a_zombie_is_gone(self):
        child = subprocess.Popen([sys.executable, "-c", ""])
        started = _start_time(child.pid)
        end = time.monotonic() + 30
        while _start_time(child.pid) is not None and time.monotonic() < end:
            time.sleep(0.01)
        assert started is not None and _start_time(child.pid) is None
        child.wait()
