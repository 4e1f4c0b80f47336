"""Wrap text to the width of the terminal."""

from __future__ import annotations

import shutil
import textwrap

from slayr_py.display import printable


def wrap(text: str, indent: str = "  ") -> str:
    """Wrap a text to the width of the terminal, without control characters and with a hanging indent."""
    return textwrap.fill(
        printable(" ".join(text.split())),
        width=max(40, shutil.get_terminal_size().columns),
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
