"""Tables as plain text, for terminals and log files, and as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

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


def shortened(text: str, longest: int) -> str:
    """Replace the middle of a text with more than ``longest`` characters by the number of those left out."""
    half = longest // 2
    if len(text) <= longest:
        return text
    return f"{text[:half]} [... {len(text) - 2 * half} characters are left out ...] {text[-half:]}"


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


class Summary(NamedTuple):
    """A short description of an object, for ``__repr__`` and ``_repr_html_``.

    Attributes
    ----------
    heading : str
        One or more lines.
    table : DataFrame
        Only its first rows are shown.
    rows : int
        Number of rows shown.
    """

    heading: str
    table: pd.DataFrame
    rows: int = 12

    def text(self) -> str:
        """Return the summary as plain text."""
        return printable("\n".join([self.heading, table_text(self.table.head(self.rows)), *self._omitted("  ")]))

    def html(self) -> str:
        """Return the summary as HTML; every string is escaped."""
        lines = [f"<div>{_escape(line)}</div>" for line in self.heading.splitlines()]
        header = "".join(f"<th>{_escape(str(name))}</th>" for name in self.table.columns)
        body = [
            "<tr>" + "".join(f"<td>{_escape(cell(value))}</td>" for value in row) + "</tr>"
            for row in self.table.head(self.rows).astype(object).itertuples(index=False)
        ]
        lines += ["<table>", f"<thead><tr>{header}</tr></thead>", "<tbody>", *body, "</tbody>", "</table>"]
        return "\n".join([*lines, *(f"<div>{line}</div>" for line in self._omitted())])

    def _omitted(self, indent: str = "") -> list[str]:
        more = len(self.table) - self.rows
        return [f"{indent}... {more} more row{'s' * (more > 1)}"] if more > 0 else []


def _escape(text: str) -> str:
    return escape(printable(text))
