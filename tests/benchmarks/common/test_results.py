"""Files of results that a command completes."""

from __future__ import annotations

from benchmarks.common.results import ResultFile


def test_a_command_that_is_run_again_makes_the_missing_rows(tmp_path):
    def file():
        return ResultFile(tmp_path / "folder" / "rows.csv", ["name", "seed"], ["name", "seed", "value"])

    runs = [("a", 0), ("a", 1), ("b", 0)]
    assert file().missing(runs) == runs
    file().append([{"value": 0.1 + 0.2, "name": "a", "seed": 1}])
    assert file().missing(runs) == [("a", 0), ("b", 0)]
    assert file().rows()["value"].tolist() == [0.1 + 0.2]
