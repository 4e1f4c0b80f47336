"""The progress bar of tqdm: a widget in a notebook that has ipywidgets, a line of text elsewhere.

CmdStanPy and Optuna import ``tqdm.auto`` too. This module is imported before them, so that tqdm's warning about missing
ipywidgets, which is shown at the first import, is suppressed.
"""

from __future__ import annotations

import warnings
from typing import Any

from tqdm.std import TqdmWarning

with warnings.catch_warnings():
    # A notebook without ipywidgets shows the line of text. tqdm would advise the user to install them.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm


class Bar(tqdm):  # type: ignore[misc]  # tqdm has no type hints
    """The bar of tqdm, which releases its lock if an error or an interrupt ends the drawing.

    tqdm would keep the lock, which all bars of a process share: the next bar of another thread would wait forever.
    """

    def refresh(self, nolock: bool = False, lock_args: tuple[Any, ...] | None = None) -> None:
        """Draw the bar again."""
        if nolock:
            super().refresh(nolock=True)
            return
        with self.get_lock():
            super().refresh(nolock=True)


IS_WIDGET = any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
"""Whether the bar is a widget."""

__all__ = ["IS_WIDGET", "Bar"]
