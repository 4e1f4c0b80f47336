"""CmdStanPy's temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from slayr_py.inference.sampling.run_folder import RUNS
from slayr_py.processes import Process


def test_the_temporary_folder_of_cmdstanpy_is_in_a_run_folder_and_removed_at_exit(tmp_path):
    code = (
        "import tempfile, slayr_py.inference.sampling, cmdstanpy;print(cmdstanpy._TMPDIR); print(tempfile.gettempdir())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    folder, default = map(Path, done.stdout.splitlines())
    assert folder.parent.name.startswith(RUNS) and folder.parent.parent == default == tmp_path
    assert Process.parse(folder.parent.name.removeprefix(RUNS).rpartition("-")[0]).is_gone
    assert not list(tmp_path.iterdir())
