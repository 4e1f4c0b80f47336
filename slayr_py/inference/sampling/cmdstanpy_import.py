"""Import CmdStanPy so that later processes can remove its temporary folder if this process is killed.

CmdStanPy creates that folder on import and removes it at interpreter exit, which a killed process does not reach. This
module creates it inside a folder with the name of a run folder, which `run_folder` of a later process removes.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile

import slayr_py.progress_bar  # noqa: F401  # before CmdStanPy, see there
from slayr_py.inference.sampling.run_folder import RUNS
from slayr_py.processes import this_process


def _import_cmdstanpy() -> None:
    if "cmdstanpy" in sys.modules:
        return
    default = tempfile.tempdir
    folder = tempfile.mkdtemp(prefix=f"{RUNS}{this_process()}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tempfile.tempdir = folder
    try:
        import cmdstanpy  # noqa: F401
    finally:
        tempfile.tempdir = default


_import_cmdstanpy()
