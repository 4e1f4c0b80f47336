"""Peaks of the periodogram of unevenly spaced values: starting values for the periods of kernels."""

from __future__ import annotations

import numpy as np
from scipy.signal import lombscargle

from slayr_py.arguments import check_integer
from slayr_py.space import FloatArray

OVERSAMPLING = 5
"""Frequencies for each 1 / span, the distance at which two frequencies are independent."""

MOST_FREQUENCIES = 5000
"""Enough for 2001 values; with more values, periods below a thousandth of the span are omitted."""

LOBE = 2.0
"""Least distance of two peaks, in 1 / span: the width of a main lobe. Its first side lobes are at 1.43."""

BLOCK = 2**16
"""Values times frequencies of a block. SciPy keeps several such arrays and is fastest if they fit into a cache."""

ROUNDING = 1e-10
"""Differences that are smaller than this share of their terms are taken as rounding errors."""

MOST_POINTS = 2000  # of which a periodogram takes a second
MOST_PEAKS = 8  # chosen by hand


def peaks(x: FloatArray, y: FloatArray, count: int) -> FloatArray:
    """Return the periods of the highest peaks of the Lomb-Scargle periodogram.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Finite coordinates in any order; they may repeat.
    y : ndarray of shape (n,)
        Finite values. A quadratic trend is subtracted.
    count : int
        Number of peaks.

    Returns
    -------
    ndarray of shape (k,)
        Periods in units of `x`, the highest peak first; k <= `count`. Empty for fewer than 5 distinct
        coordinates, and if `y` is a quadratic function of `x`, such as a constant.

    Notes
    -----
    Frequencies are from 1 / span to the Nyquist frequency of as many evenly spaced distinct coordinates. The two
    ends do not count as peaks. Noise has peaks too: no peak is tested for significance.
    """
    check_integer("count", count)
    distinct = len(np.unique(x))
    span = np.ptp(x) if distinct else 0.0
    residuals = _residuals(x, y) if distinct >= 5 else None
    if residuals is None:
        return np.empty(0)
    n_frequencies = int(OVERSAMPLING * ((distinct - 1) / 2 - 1)) + 1
    # In units of 1 / span.
    frequencies = 1 + np.arange(min(n_frequencies, MOST_FREQUENCIES)) / OVERSAMPLING
    power = _power((x - np.min(x)) / span, residuals, frequencies)
    maxima, heights = _local_maxima(frequencies, power)
    chosen: list[float] = []
    for frequency in maxima[np.argsort(-heights, kind="stable")]:
        if len(chosen) < count and all(abs(frequency - other) > LOBE for other in chosen):
            chosen.append(frequency)
    return span / np.array(chosen)


def highest_peaks(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the periods of the eight highest peaks, the highest first, from at most 2000 of the n points in order.

    The periodogram of 2000 points takes a second.
    """
    rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST_POINTS)).astype(np.intp))
    return peaks(x[rows], y[rows], MOST_PEAKS)


def explained_share(x: FloatArray, y: FloatArray, period: float) -> float:
    """Return the share of the sum of squares of y, without its quadratic trend, that a sine of a period explains."""
    residuals = _residuals(x, y)
    return 0.0 if residuals is None else float(_power(x, residuals, np.array([1 / period]))[0])


def _residuals(x: FloatArray, y: FloatArray) -> FloatArray | None:
    """Return the values without their quadratic trend, scaled; None if nothing is left.

    Subtracting a line is not enough. The carbon dioxide of Mauna Loa (521 monthly means) rises at a growing rate. After
    a line, the peak at one year explains 51% of the variance, and the next ones, at 20, 13 and 10 years, are side lobes
    of the remaining curve. After a quadratic, the peak at one year explains 82%, and half a year is among the next
    peaks. A line would hide a weaker season. A cubic adds little (86%) and removes more of the slow periods.
    """
    centred = y - np.mean(y)
    size = np.max(np.abs(centred))
    if size <= ROUNDING * np.max(np.abs(y)):
        return None
    coordinate = 2 * (x - np.min(x)) / np.ptp(x) - 1
    trends = np.vander(coordinate, 3)
    scaled = centred / size
    residuals: FloatArray = scaled - trends @ np.linalg.lstsq(trends, scaled, rcond=None)[0]
    return residuals if np.max(np.abs(residuals)) > ROUNDING else None


def _power(x: FloatArray, y: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Return the share of the sum of squares that a sine of each frequency explains."""
    blocks = np.array_split(2 * np.pi * frequencies, -(-len(frequencies) * len(x) // BLOCK))
    return np.concatenate([np.atleast_1d(lombscargle(x, y, block, normalize=True)) for block in blocks if len(block)])


def _local_maxima(at: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return places and values of the maxima of parabolas through each local maximum and its two neighbours."""
    left = values[:-2]
    middle = values[1:-1]
    right = values[2:]
    maxima = np.flatnonzero((middle > left) & (middle >= right))
    left = left[maxima]
    middle = middle[maxima]
    right = right[maxima]
    shift = (left - right) / (left - 2 * middle + right) / 2
    return at[maxima + 1] + shift * (at[1] - at[0]), middle - (left - right) * shift / 4
