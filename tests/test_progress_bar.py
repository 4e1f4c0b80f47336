"""The progress bar warns of nothing, in notebooks and elsewhere, and an interrupt does not block other bars."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest

from slayr_py.progress_bar import Bar

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


class Terminal(io.StringIO):
    """Ctrl-C arrives while something is written, once it is armed."""

    armed = False

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.armed:
            raise KeyboardInterrupt
        return super().write(text)


def test_after_an_interrupt_of_the_drawing_other_threads_still_draw_their_bars():
    terminal = Terminal()
    bar = Bar(total=3, file=terminal)
    terminal.armed = True
    with pytest.raises(KeyboardInterrupt):
        bar.refresh()
    terminal.armed = False
    other = threading.Thread(target=lambda: Bar(total=1, file=io.StringIO()).close(), daemon=True)
    other.start()
    other.join(10)
    assert not other.is_alive()
    bar.close()
