"""Draw figures with Matplotlib and turn them into inline SVG.

Text stays text, so that it is searchable and selectable. Colours become variables of the style sheet, so that the same
figure suits a light and a dark page. Identifiers get the key of the figure: figures in one page may have the same ones.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup

from slayr_py.display import cell, printable
from slayr_py.study.results.report.blocks import Drawing, Table
from slayr_py.study.results.report.palette import VARIABLES, light

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE: Any = {
    "svg.fonttype": "none",
    # Names of parameters and levels are plain text: a dollar sign does not start a formula.
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.labelsize": 10.0,
    "axes.titlesize": 10.5,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.0,
    "legend.frameon": False,
    "text.color": light("ink"),
    "axes.labelcolor": light("ink"),
    "axes.titlecolor": light("ink"),
    "axes.edgecolor": light("muted"),
    "xtick.color": light("muted"),
    "ytick.color": light("muted"),
    "xtick.labelcolor": light("ink"),
    "ytick.labelcolor": light("ink"),
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": light("line"),
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "lines.solid_capstyle": "round",
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Probabilities of the quantiles that are drawn: the median, and intervals of 50% and 90%."""

_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_COLOUR = re.compile("#[0-9a-f]{6}")
_REFERENCE = re.compile(r"^#(.+)$|url\(#([^)]+)\)")
_DIGITS = re.compile(r"(-?\d+\.\d\d)\d+")
_FONT = re.compile(r"\s*font-family:[^;]*;?")
_LONGEST = 28  # characters of a label


def drawing(
    key: str,
    title: str,
    description: str,
    draw: Callable[[], Figure],
    table: Table | None = None,
) -> Drawing:
    """Return a figure as a block of the page.

    Parameters
    ----------
    key : str
        Letters, digits and hyphens; unique in the page.
    title, description : str
        Text alternative.
    draw : callable
        Returns the figure; called with the style of the page.
    table : Table, optional
        The numbers that are drawn.
    """
    with _style(key):
        figure = draw()
        picture = BytesIO()
        figure.savefig(picture, format="svg", transparent=True, metadata=_METADATA)
    svg = Markup(_inline(picture.getvalue(), key, printable(title), printable(description)))
    return Drawing(key, title, description, svg, table)


@contextmanager
def _style(key: str) -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_STYLE | {"svg.hashsalt": key}), warnings.catch_warnings():
        # Browsers have fonts for scripts that Matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        yield


def page_figure(width: float = 4.0, height: float = 2.8) -> tuple[Figure, Any]:
    """Return an empty figure with one pair of axes; sizes in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def short(text: object, longest: int = _LONGEST) -> str:
    """Return a name on one line, shortened in the middle, for labels in figures."""
    line = printable(" ".join(str(text).split()))
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[:half]}…{line[-half:]}"


def scale(axis: Any, log: bool, integer: bool = False, shift: float = 0.0) -> None:
    """Set the scale of an axis and its ticks, whose labels are plain text.

    With a shift, the scale is nearly that of log(x + shift): linear up to the shift, and logarithmic beyond.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    if shift:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("symlog", linthresh=shift)
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))
        return
    if not log:
        axis.set_major_locator(MaxNLocator(5, integer=integer))
        return
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    low, high = sorted(axis.get_view_interval())
    few = np.log10(high / low) < 2 if low > 0 and np.isfinite(high) else False
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=6))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda x, _: number(x)))


def number(x: float) -> str:
    """Format the number of a tick; powers of ten have superscripts."""
    text = f"{x:.4g}"
    mantissa, e, exponent = text.partition("e")
    if not e:
        return text
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa}·{power}"


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def levels(axis: Any, names: list[Any]) -> None:
    """Label an axis with the levels of a parameter, at 0, 1, 2 and so on."""
    labels = [short(cell(name), 14) for name in names]
    tilt = axis.axis_name == "x" and sum(map(len, labels)) > 34
    axis.set_ticks(np.arange(len(names)), labels, **({"rotation": 35, "ha": "right"} if tilt else {}))
    axis.grid(False)


def _inline(svg: bytes, key: str, title: str, description: str) -> str:
    """Return SVG of Matplotlib for the body of an HTML page."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    used = {name for element in root.iter() for value in element.attrib.values() for name in _references(value)}
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name, value in list(element.attrib.items()):
            del element.attrib[name]
            name = name.rpartition("}")[2]
            if name == "id" and value not in used:
                continue
            element.set(name, _attribute(name, value, key))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-labelledby": f"{key}-title {key}-desc"}
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(tag, {"id": f"{key}-{tag}"})
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _references(value: str) -> list[str]:
    return [anchor or url for anchor, url in _REFERENCE.findall(value)]


def _attribute(name: str, value: str, key: str) -> str:
    """Return an attribute with the key of the figure in identifiers, variables for colours and two decimals."""
    if name == "id":
        return f"{key}-{value}"
    if name == "href" and value.startswith("#"):
        return f"#{key}-{value[1:]}"
    if name == "style":
        value = _COLOUR.sub(lambda match: _variable(match[0]), _FONT.sub("", value))
    if name in ("d", "x", "y", "transform", "points"):
        value = _DIGITS.sub(r"\1", value.replace("\n", ""))
    return value.replace("url(#", f"url(#{key}-")


def _variable(colour: str) -> str:
    return f"var(--{VARIABLES[colour]})" if colour in VARIABLES else colour
