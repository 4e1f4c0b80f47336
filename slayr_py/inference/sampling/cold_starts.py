"""Points from which modes, approximations and chains start without an earlier fit.

CmdStan's own initial values are within 2 of the origin of the coordinates. These are not standard normal, see
`CoordinatePriors`: no length-scale would be below 0.4, and values that repeat more often would be explained as noise.
The posterior of a period has modes near many multiples and fractions of the true one, too. So the points here are
spread over the prior, and take length-scales and periods from the periodogram of the observations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from slayr_py.inference.sampling.coordinate_priors import CoordinatePriors
from slayr_py.inference.sampling.numpy_density import is_plain
from slayr_py.kernels import Plan, explained_share, highest_peaks, program_contracts
from slayr_py.space import FloatArray

ColdStart = dict[str, float | list[float]]
"""Coordinates of a program by name."""

SHORT = -2.0
"""Score of a short length-scale where the periodogram has no peak."""

LITTLE_NOISE = -2.0
"""Score of little noise, since much noise explains everything."""

_Peaks: TypeAlias = Callable[[int], FloatArray]  # periods at the highest peaks of a column of the inputs

_SPREAD = 2.0  # largest absolute score of a random start
_SHORTEST = -4.0  # score of a length-scale
_MOST_ALONE = 4  # most starts with short length-scales in a single column
_MARKED = 1 / 3  # share of the largest explained share from which a column has short length-scales together with others


def cold_starts(
    program: str, data: Mapping[str, Any], rng: np.random.Generator, count: int | None = None
) -> list[ColdStart]:
    """Return the coordinates of a program from which a fit starts.

    The scores of the first start, which are standard normal under the prior, are 0, but for little noise and
    length-scales that are a quarter of the period at the highest peak of the periodogram of their column. If there are
    several columns, a start has such length-scales only in the columns whose peaks explain much, another one only in
    the column whose peak explains most. The next ones have short length-scales in one of the other columns: a product
    of two waves, for example, has no peak. Scores of the other starts are uniform on (-2, 2). In all of them ``mu`` is
    near the mean of the observations, periods are at peaks of their columns, in every other start at the highest one,
    and coordinates of weights are uniform.

    Parameters
    ----------
    program : str
    data : mapping
        Data of the program.
    count : int, optional
        Number of starts. By default all with short length-scales, at least two others, and four in all.
    """
    shapes = program_contracts()[program].coordinate_shapes_in(data)
    priors = CoordinatePriors({name: np.asarray(value, dtype=np.float64) for name, value in data.items()}, shapes)
    size = sum(int(np.prod(shape)) for shape in shapes.values())
    peaks = cache(lambda column: highest_peaks(*_series(data, column)))
    short = _short_lengthscales(data, peaks)
    count = max(4, len(short) + 2) if count is None else count
    scores = rng.uniform(-_SPREAD, _SPREAD, (count, size))
    by_name = priors.split(scores)
    for k, lengthscales in enumerate(short[:count]):
        scores[k] = 0.0
        by_name["z_sigma_n"][k] = LITTLE_NOISE
        if len(lengthscales):
            by_name["z_lengthscale"][k] = lengthscales
    if data["N"]:
        by_name["z_mu"][:] = _score_of_mean(data)
    if "z_period" in shapes:
        _put_at_peaks(data, peaks, by_name["z_period"])
    return as_starts(priors.split(priors.at_scores(scores)), shapes)


def as_starts(points: Mapping[str, FloatArray], shapes: Mapping[str, tuple[int, ...]]) -> list[ColdStart]:
    """Return points by coordinate (s, size) one by one, with six decimals, so that records have few digits."""
    rounded = {name: np.round(points[name], 6).reshape(-1, *shape) for name, shape in shapes.items()}
    return [
        {name: values[k].tolist() for name, values in rounded.items()} for k in range(len(next(iter(rounded.values()))))
    ]


def _score_of_mean(data: Mapping[str, Any]) -> float:
    scale = float(data["mu_scale"])
    return float(np.clip((np.mean(data["y"]) - data["mu_location"]) / scale, -_SPREAD, _SPREAD)) if scale > 0 else 0.0


def quarter_of_period(periods: FloatArray, location: float, scale: float) -> float:
    """Return the score of a length-scale that is a quarter of the first period, the highest peak, at most the median.

    From longer length-scales, a fit to dozens of waves explains them as noise.
    """
    if not len(periods) or not scale > 0:
        return SHORT
    return float(np.clip((np.log(periods[0] / 4) - location) / scale, _SHORTEST, 0.0))


def _short_lengthscales(data: Mapping[str, Any], peaks: _Peaks) -> list[FloatArray]:
    """Return scores of all length-scales: short in all columns, in those with marked peaks, and in one at a time."""
    if "lengthscale_location" not in data:  # a kernel of the user
        return [np.empty(0)]
    location, scale = (np.asarray(data[f"lengthscale_{name}"], dtype=np.float64) for name in ("location", "scale"))
    columns = _columns_of_lengthscales(data)
    periods = {column: peaks(column) for column in columns.values()}
    everywhere = np.zeros(len(location))
    for i, column in columns.items():
        everywhere[i] = quarter_of_period(periods[column], location[i], scale[i])
    explained = {
        column: explained_share(*_series(data, column), found[0]) if len(found) else 0.0
        for column, found in periods.items()
    }
    if len(explained) < 2:
        return [everywhere]
    ranked = sorted(explained, key=lambda column: -explained[column])
    marked = [column for column in ranked if explained[column] >= _MARKED * explained[ranked[0]]]
    together = [marked] if 1 < len(marked) < len(ranked) else []
    scores = [everywhere]
    for chosen in [*together, *([column] for column in ranked[:_MOST_ALONE])]:
        short = everywhere if chosen[0] == ranked[0] else np.full(len(location), SHORT)
        scores.append(np.where([columns.get(i) in chosen for i in range(len(location))], short, 0.0))
    return scores


def _columns_of_lengthscales(data: Mapping[str, Any]) -> dict[int, int]:
    """Return the column of the inputs of each length-scale; of periodic and linear leaves they are no distances."""
    if "first_lengthscale" not in data:  # one for each column
        return {i: i for i in range(len(data["lengthscale_location"]))}
    leaves = (leaf for leaf in Plan.from_stan_data(data).leaves if leaf.stationary)
    return {leaf.places["lengthscale"].start + i: column for leaf in leaves for i, column in enumerate(leaf.columns)}


def _put_at_peaks(data: Mapping[str, Any], peaks: _Peaks, scores: FloatArray) -> None:
    """Replace scores (starts, periods) by those of peaks, where the column of a period has any."""
    location, scale = (np.asarray(data[f"period_{name}"], dtype=np.float64) for name in ("location", "scale"))
    leaves = (leaf for leaf in Plan.from_stan_data(data).leaves if "period" in leaf.places)
    for i, leaf in enumerate(leaves):
        logs = np.log(peaks(leaf.columns[0]))
        if len(logs) and scale[i] > 0:
            # The periods of several leaves differ; that of a single leaf is at the highest peak in every other start.
            ranks = [k * i if len(location) > 1 else (k + 1) // 2 * (k % 2) for k in range(len(scores))]
            scores[:, i] = [(logs[rank % len(logs)] - location[i]) / scale[i] for rank in ranks]


def _series(data: Mapping[str, Any], column: int) -> tuple[FloatArray, FloatArray]:
    """Return a column of the inputs and the observations where it is active; nothing if only the prior is asked for."""
    if not is_plain(data) or column >= np.shape(data["X"])[1]:
        return np.empty(0), np.empty(0)
    rows = np.asarray(data["active"])[:, column] > 0 if "active" in data else slice(None)
    return np.asarray(data["X"], dtype=np.float64)[rows, column], np.asarray(data["y"], dtype=np.float64)[rows]
