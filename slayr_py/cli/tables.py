"""Plain text tables for terminals, pipes and log files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd


def config_lines(config: Mapping[str, Any]) -> str:
    """Format a configuration: one parameter per line, aligned, floats with six digits."""
    width = max((len(name) for name in config), default=0)
    return "\n".join(f"  {name:<{width}}  {cell(value)}" for name, value in config.items())


def cell(value: Any) -> str:
    """Format a value: floats with six digits, a missing value as a dash."""
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def printable(text: str) -> str:
    """Escape the characters of an untrusted text that control a terminal or cannot be printed."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def table_text(table: pd.DataFrame) -> str:
    """Format a table with aligned columns and no index."""
    if table.empty:
        return "  (none)"
    cells = [[cell(value) for value in row] for row in table.astype(object).itertuples(index=False)]
    widths = [max(len(str(name)), *(len(row[i]) for row in cells)) for i, name in enumerate(table.columns)]
    lines = [[str(name) for name in table.columns], *cells]
    return "\n".join(
        "  " + "  ".join(f"{text:>{width}}" for text, width in zip(line, widths, strict=True)) for line in lines
    )
