"""CmdStanPy, imported so that its temporary folder is found by others if this process is killed.

It makes one when it is imported, and removes it at the interpreter's end, which a killed process does not see.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile

from slayr_py.inference.sampling.run_folder import RUNS
from slayr_py.processes import this_process


def _import_cmdstanpy() -> None:
    if "cmdstanpy" in sys.modules:
        return
    usual, folder = tempfile.tempdir, tempfile.mkdtemp(prefix=f"{RUNS}{this_process()}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tempfile.tempdir = folder
    try:
        import cmdstanpy  # noqa: F401
    finally:
        tempfile.tempdir = usual


_import_cmdstanpy()
