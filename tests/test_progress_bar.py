"""The progress bar warns of nothing, in notebooks and elsewhere."""

from __future__ import annotations

import subprocess
import sys

NOTEBOOK = """
import sys, types
sys.modules["ipykernel.zmqshell"] = types.ModuleType("ipykernel.zmqshell")  # as in a notebook
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: None)
sys.modules["ipywidgets"] = None
"""
SLAYR = """
import slayr_py.inference, slayr_py.study
from slayr_py.progress_bar import IS_WIDGET
assert not IS_WIDGET
"""


def test_a_notebook_without_widgets_shows_no_warning():
    done = subprocess.run([sys.executable, "-c", NOTEBOOK + SLAYR], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_tqdm_itself_would_warn():
    script = f"{NOTEBOOK}\nimport tqdm.auto"
    assert (
        "IProgress not found" in subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stderr
    )
