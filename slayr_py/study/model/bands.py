"""Constraints that are the two sides of one quantity, such as 6.9 <= y and y <= 7.1, with one model of both.

With a model each, the sides would count as independent: where y is uncertain, the product of their probabilities is far
above the probability that y lies between the limits.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from slayr_py.study.model.compression import off_the_border
from slayr_py.study.storage.trials import Results

_FEWEST = 3  # different values: two sums can be equal by chance
_EQUAL = 1e-9  # relative to the largest value


def with_bands(constraints: Mapping[str, Results]) -> dict[str, Results]:
    """Return constraints by name, two sides of one quantity as one, "<name> and <name>".

    They are recognised by the sum of their values, which is the same negative number -w in all trials: these are y - b
    and a - y for a band of the width w = b - a. Its values are the distances from the middle of the band.
    """
    left = dict(constraints)
    found = {}
    while left:
        name = next(iter(left))
        results = left.pop(name)
        for other in left:
            band = _band(results, left[other])
            if band is not None and f"{name} and {other}" not in constraints:
                del left[other]
                name, results = f"{name} and {other}", band
                break
        found[name] = results
    return found


def _band(one: Results, other: Results) -> Results | None:
    """Return the quantity of which two constraints are the sides, or None if they are not."""
    if one.numbers != other.numbers or len(np.unique(one.values)) < _FEWEST:
        return None
    widths = -0.5 * one.values - 0.5 * other.values
    rounding = _EQUAL * max(np.abs(one.values).max(), np.abs(other.values).max())
    half_width = float(np.median(widths))
    if not half_width > rounding or np.abs(widths - half_width).max() > rounding:
        return None
    distances = 0.5 * off_the_border(one.values) - 0.5 * off_the_border(other.values)
    return one._replace(values=distances, half_width=half_width)
