from __future__ import annotations

import pytest

from benchmarks.correctness import recording

pytestmark = pytest.mark.stan


def test_recording(capsys, monkeypatch):
    monkeypatch.setattr(recording, "one_core", lambda: None)  # it would pin the whole test process
    assert recording.main(["--sizes", "6", "--repeats", "1", "--methods", "map"]) == 0
    assert "ratio" in capsys.readouterr().out
