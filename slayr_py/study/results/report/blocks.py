"""The parts of a section: paragraphs, tables, figures and code. The template has a macro for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup

from slayr_py.display import cell


class Block:
    """A part of a section; the template has a macro with the name of its class."""

    @property
    def kind(self) -> str:
        """Name of its macro."""
        return type(self).__name__.lower()


@dataclass(frozen=True)
class Paragraph(Block):
    """Plain text."""

    text: str


@dataclass(frozen=True)
class Notice(Block):
    """A remark, a warning, or the reason for a part that is missing."""

    text: str
    level: Literal["note", "warning", "error"] = "note"


@dataclass(frozen=True)
class Heading(Block):
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Facts(Block):
    """Names and values."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Cards(Block):
    """Labels, values and remarks at the top of the page."""

    items: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Code(Block):
    """Commands or Python lines, with a label."""

    label: str
    text: str


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, its key for sorting, and the name of a mark."""

    text: str
    key: float | None = None
    mark: str = ""

    @classmethod
    def of(cls, value: Any, form: str = "", mark: str = "") -> Cell:
        """Return the cell of a value; numbers sort by value, everything else by its text."""
        missing = value is None or (isinstance(value, float) and math.isnan(value))
        number = isinstance(value, int | float) and not isinstance(value, bool) and not missing
        text = f"{value:{form}}" if form and number and math.isfinite(value) else " ".join(cell(value).split())
        return cls("–" if missing else text, _key(value) if number else None, mark)


def _key(value: float) -> float | None:
    try:
        return float(value)
    except OverflowError:  # JSON allows integers of any size
        return None


@dataclass(frozen=True)
class Table(Block):
    """A table in a region that scrolls.

    Attributes
    ----------
    key : str
        Identifier, unique in the page.
    caption : str
    columns : sequence of str
    rows : sequence of sequences of Cell
    interactive : bool
        Whether it can be sorted and searched.
    """

    key: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    interactive: bool = False

    @property
    def numeric(self) -> list[bool]:
        """Whether each column has numbers, which are aligned to the right."""
        return [any(row[j].key is not None for row in self.rows) for j in range(len(self.columns))]

    @classmethod
    def of(cls, key: str, caption: str, columns: Mapping[str, Iterable[Any]], form: str = ".4g") -> Table:
        """Return a plain table of columns of values."""
        cells = [[Cell.of(_plain(value), form) for value in values] for values in columns.values()]
        return cls(key, caption, list(columns), list(zip(*cells, strict=True)))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


@dataclass(frozen=True)
class Drawing(Block):
    """A figure as inline SVG, and its text alternative.

    Attributes
    ----------
    key : str
        Identifier, unique in the page.
    title, description : str
        What is drawn, and what it shows.
    svg : Markup
    table : Table, optional
        The numbers that are drawn.
    """

    key: str
    title: str
    description: str
    svg: Markup
    table: Table | None = None


@dataclass(frozen=True)
class Drawings(Block):
    """Figures side by side where the page is wide enough."""

    drawings: Sequence[Drawing]


def sentence(text: object) -> str:
    """Return a text with a capital at its start and a full stop at its end."""
    return f"{str(text)[:1].upper()}{str(text)[1:]}."


@dataclass(frozen=True)
class Section:
    """A section of the page: identifier, title and content."""

    key: str
    title: str
    blocks: Sequence[Block]
