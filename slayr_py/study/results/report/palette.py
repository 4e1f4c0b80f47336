"""Colours of the page and of its figures, each for a light and a dark background."""

from __future__ import annotations

from slayr_py.study.results.colours import BEST, DESIGN, FAILED, RUNNING, TRIAL, VIOLATING

PALETTE: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#11151b"),
    "panel": ("#f5f7fa", "#1a2029"),
    "shade": ("#e8ecf1", "#242c37"),
    "line": ("#d3d9e1", "#38414d"),
    "ink": ("#1b2129", "#e7ebf0"),
    "muted": ("#56606d", "#a2adba"),
    "model": ("#2a6db0", "#72b2f2"),
    "best": ("#bc4a1c", "#f39a6d"),
    "good": ("#26764a", "#6cc793"),
    "other": ("#7a4b9f", "#c7a0ea"),
    "prior": ("#78818d", "#8b96a4"),
    "warning": ("#855d00", "#e2b650"),
    "error": ("#b3261e", "#ff928a"),
}
"""Name of a CSS variable: colour on a light and on a dark background."""

_ALIASES = {
    "#000000": "ink",
    TRIAL: "model",
    BEST: "best",
    RUNNING: "good",
    DESIGN: "shade",
    VIOLATING: "muted",
    FAILED: "muted",
}
"""Colours of figures that are drawn for a white background, and the variables that replace them."""

VARIABLES = {light: name for name, (light, _) in PALETTE.items()} | _ALIASES
"""Name of the CSS variable for each colour that a figure may be drawn with."""


def light(name: str) -> str:
    """Return the colour to draw a figure with, which becomes the CSS variable of that name."""
    return PALETTE[name][0]
