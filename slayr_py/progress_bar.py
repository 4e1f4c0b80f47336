"""The progress bar of tqdm: a widget in a notebook that has ipywidgets, a line of text in a terminal, lines in a file.

CmdStanPy and Optuna import ``tqdm.auto`` too. This module is imported before them, so that tqdm's warning about missing
ipywidgets, which is shown at the first import, is suppressed.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

from tqdm.std import TqdmWarning

with warnings.catch_warnings():
    # A notebook without ipywidgets shows the line of text. tqdm would advise the user to install them.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm


IS_WIDGET = any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
"""Whether the bar is a widget."""


_SECONDS = 10.0  # between lines of the same count


class Bar(tqdm):  # type: ignore[misc]  # tqdm has no type hints
    """The bar of tqdm, which releases its lock if an error or an interrupt ends the drawing.

    tqdm would keep the lock, which all bars of a process share: the next bar of another thread would wait forever.

    In a file, where a bar cannot be drawn over, there is a line for every count, others at most every ten seconds, and
    the last state.
    """

    _last_count: int | None = None
    _last_line: float = 0.0

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Draw the bar, or write it as a line."""
        if not self._writes_lines():
            return bool(super().display(msg, pos))
        is_last = self.disable  # tqdm disables a bar before it draws it for the last time, and ends that line itself
        now = time.monotonic()
        if msg != "" and (is_last or self.n != self._last_count or now > self._last_line + _SECONDS):
            self.fp.write(f"{self if msg is None else msg}" + ("" if is_last else "\n"))
            self._last_count = self.n
            self._last_line = now
        return msg != ""

    def clear(self, nolock: bool = False) -> None:
        """Make room for a line of text above the bar."""
        if not self._writes_lines():
            super().clear(nolock)

    def _writes_lines(self) -> bool:
        is_terminal = getattr(self.fp, "isatty", lambda: False)
        return not (IS_WIDGET or "ipykernel" in sys.modules or is_terminal())

    def refresh(self, nolock: bool = False, lock_args: tuple[Any, ...] | None = None) -> None:
        """Draw the bar again."""
        if nolock:
            super().refresh(nolock=True)
            return
        with self.get_lock():
            super().refresh(nolock=True)


__all__ = ["IS_WIDGET", "Bar"]
