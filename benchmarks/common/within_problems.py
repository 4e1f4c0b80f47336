"""Problems with constraints on inputs: two mixtures and two with linear inequalities, all with closed formulas.

Flare: McLean & Anderson (1966), *Extreme Vertices Design of Mixture Experiments*, Technometrics 8:447: the luminance of
a flare, their quadratic of Scheffé fitted to 15 mixtures, which is the objective here with the other sign.

HS 44 and HS 62: Hock & Schittkowski (1981), *Test Examples for Nonlinear Programming Codes*, problems 44 and 62.

Hartmann6 with a limit on the sum: the unconstrained minimum, whose sum is 2.07, violates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace

from benchmarks.common.problems import Problem, hartmann6, point

_LINEAR = np.array([-1558.0, -2351.0, -2426.0, 14372.0])
_QUADRATIC = np.array(
    [
        [0.0, 8300.0, 8076.0, -6625.0],
        [0.0, 0.0, 3213.0, -16998.0],
        [0.0, 0.0, 0.0, -17127.0],
        [0.0, 0.0, 0.0, 0.0],
    ]
)


def flare(config: Mapping[str, Any]) -> float:
    """Return minus the luminance, in 1000 candles, of magnesium, sodium nitrate, strontium nitrate and binder."""
    x = np.array([config[name] for name in ("magnesium", "sodium", "strontium", "binder")])
    return float(-(_LINEAR @ x + x @ _QUADRATIC @ x))


def hs44(config: Mapping[str, Any]) -> float:
    x1, x2, x3, x4 = point(config, 4)
    return float(x1 - x2 - x3 - x1 * x3 + x1 * x4 + x2 * x3 - x2 * x4)


def hs62(config: Mapping[str, Any]) -> float:
    x1, x2, x3 = point(config, 3)
    first = np.log((x1 + x2 + x3 + 0.03) / (0.09 * x1 + x2 + x3 + 0.03))
    second = np.log((x2 + x3 + 0.03) / (0.07 * x2 + x3 + 0.03))
    third = np.log((x3 + 0.03) / (0.13 * x3 + 0.03))
    return float(-32.174 * (255 * first + 280 * second + 290 * third))


_FLARE = ConfigurationSpace(
    {"magnesium": (0.4, 0.6), "sodium": (0.1, 0.5), "strontium": (0.1, 0.5), "binder": (0.03, 0.08)}
)
_HS44 = ConfigurationSpace({"x1": (0.0, 3.0), "x2": (0.0, 3.0), "x3": (0.0, 4.0), "x4": (0.0, 4.0)})
_SHARES = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, 4)})
_CUBE = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(1, 7)})

WITHIN = {
    "flare": Problem(_FLARE, flare, -397.4686495, within=("magnesium + sodium + strontium + binder == 1",)),
    "hs62": Problem(_SHARES, hs62, -26272.5144873, within=("x1 + x2 + x3 == 1",)),
    "hs44": Problem(
        _HS44,
        hs44,
        -15.0,
        within=(
            *("x1 + 2*x2 <= 8", "4*x1 + x2 <= 12", "3*x1 + 4*x2 <= 12"),
            *("2*x3 + x4 <= 8", "x3 + 2*x4 <= 8", "x3 + x4 <= 5"),
        ),
    ),
    "hartmann6, sum": Problem(_CUBE, hartmann6, -2.5951083, within=("x1 + x2 + x3 + x4 + x5 + x6 <= 1.5",)),
}
