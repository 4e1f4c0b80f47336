from __future__ import annotations

import pytest

from benchmarks.optimisation import conditional

pytestmark = pytest.mark.stan


def test_conditional(data, quick, tmp_path, capsys):
    arguments = [*quick, "--data", str(data), "--output", str(tmp_path), "--baselines", "random"]
    conditional.main([*arguments, "--datasets", "made-up", "--problems", "jenatton", "svm made-up"])
    printed = capsys.readouterr().out
    for sampler in ("matern, map", "hierarchical, map", "fm-hierarchical, map", "random"):
        assert printed.count(f"| jenatton | {sampler} |") == (1 if sampler == "matern, map" else 2)
    assert "| svm made-up | random |" in printed
