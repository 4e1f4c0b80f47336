"""Runs of compiled programs by CmdStanPy."""

from __future__ import annotations

from types import SimpleNamespace

from slayr_py.toolchain.model import ExecutableModel


def test_a_process_that_has_closed_its_output_is_awaited_without_work(tmp_path):
    lines = []
    codes = []
    run = SimpleNamespace(
        one_process_per_chain=False,
        cmd=lambda _: ["sh", "-c", "echo one; echo; echo two; exec >&- 2>&-; sleep 0.5; exit 3"],
        stdout_files=[tmp_path / "stdout"],
        _set_retcode=lambda _, code: codes.append(code),
    )
    model = object.__new__(ExecutableModel)
    model._run_cmdstan(run, 0, progress_hook=lambda line, _: lines.append(line))
    assert codes == [3] and (tmp_path / "stdout").read_text() == "one\n\ntwo\n"
    assert lines[:3] == ["one", "", "two"]
    assert 3 < len(lines) < 3 + 0.5 / 2e-4  # a hundred thousand without pauses
