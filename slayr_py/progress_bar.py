"""The progress bar of tqdm: a widget in a notebook that has ipywidgets, a line of text elsewhere.

CmdStanPy and Optuna import ``tqdm.auto`` too. This module is imported before them, so that tqdm's warning about missing
ipywidgets, which is shown at the first import, is suppressed.
"""

from __future__ import annotations

import warnings

from tqdm.std import TqdmWarning

with warnings.catch_warnings():
    # A notebook without ipywidgets shows the line of text. tqdm would advise the user to install them.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

IS_WIDGET = any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
"""Whether the bar is a widget."""

__all__ = ["IS_WIDGET", "tqdm"]
