from __future__ import annotations

import pytest

from benchmarks.optimisation import standard

pytestmark = pytest.mark.stan


def test_standard(tmp_path, capsys):
    standard.main(["--seeds", "1", "--budget", "3", "--samplers", "random", "--output", str(tmp_path)])
    assert "| hartmann6 | random |" in capsys.readouterr().out
