"""WFG4 and WFG9 with two objectives (Huband, Hingston, Barone & While 2006, IEEE Trans. Evol. Comput. 10:477).

The names of the transformations are those of the paper, section VIII. Two parameters decide about the position on the
front and four about the distance from it; all are in [0, 1], where the paper has [0, 2 i] for parameter i. The front is
(f1 / 2)^2 + (f2 / 4)^2 = 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.common.problems import point

_POSITION = 2
_DIMENSION = 6


def wfg(config: Mapping[str, Any], number: int) -> tuple[float, float]:
    """Return the objectives of WFG4 or WFG9."""
    y = point(config, _DIMENSION)
    if number == 4:
        y = _s_multi(y, 30, 10, 0.35)
        along, away = y[:_POSITION].mean(), y[_POSITION:].mean()
    else:
        means = np.array([y[i + 1 :].mean() for i in range(_DIMENSION - 1)])
        y = np.append(_b_param(y[:-1], means, 0.98 / 49.98, 0.02, 50), y[-1])
        along = _r_nonsep(_s_decept(y[:_POSITION], 0.35, 0.001, 0.05))
        away = _r_nonsep(_s_multi(y[_POSITION:], 30, 95, 0.35))
    angle = along * np.pi / 2
    return float(away + 2 * np.sin(angle)), float(away + 4 * np.cos(angle))


def _s_multi(y: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    """Shift with several minima."""
    ratio = np.abs(y - c) / (2 * (np.floor(c - y) + c))
    return (1 + np.cos((4 * a + 2) * np.pi * (0.5 - ratio)) + 4 * b * ratio**2) / (b + 2)


def _s_decept(y: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    """Shift with a deceptive minimum."""
    below = np.floor(y - a + b) * (1 - c + (a - b) / b) / (a - b)
    above = np.floor(a + b - y) * (1 - c + (1 - a - b) / b) / (1 - a - b)
    return 1 + (np.abs(y - a) - b) * (below + above + 1 / b)


def _b_param(y: np.ndarray, u: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
    """Bias that depends on other parameters."""
    v = a - (1 - 2 * u) * np.abs(np.floor(0.5 - u) + a)
    return y ** (b + (c - b) * v)


def _r_nonsep(y: np.ndarray) -> float:
    """Reduction that is not separable, of degree len(y)."""
    n = len(y)
    others = sum(np.abs(y - np.roll(y, -k)).sum() for k in range(1, n))
    half = np.ceil(n / 2)
    return float((y.sum() + others) / (half * (1 + 2 * n - 2 * half)))
