"""Mixtures of stationary kernels, the baseline of Shilton et al. (arXiv 1802.05370, equation 13)."""

from __future__ import annotations

from collections.abc import Iterable

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.composite import Composite

_LEAVES = {"se": "SE", "rq": "RQ", "matern0": "MAT12", "matern1": "MAT32", "matern2": "MAT52"}


def Mixture(parts: Iterable[str] = ("se", "matern0", "matern1")) -> Composite:  # noqa: N802  (makes a kernel)
    """Return a weighted sum of kernels with length-scales of their own.

    All weights and length-scales are sampled. The document tunes one length-scale for each part, and the weights, on
    related data, and fixes them.

    Parameters
    ----------
    parts : iterable of str
        "se" (squared exponential), "rq" (rational quadratic), "matern0", "matern1" or "matern2" (Matérn of order 0 to
        2).

    Raises
    ------
    DataError
        For an unknown part, or none.

    Examples
    --------
    >>> Mixture().expression
    'SE + MAT12 + MAT32'
    """
    names = [parts] if isinstance(parts, str) else list(parts)
    for name in names:
        if not isinstance(name, str) or name not in _LEAVES:
            raise DataError(f"unknown part {name!r} of a mixture{did_you_mean(name, _LEAVES)}")
    if not names:
        raise DataError(f"a mixture needs parts; known: {', '.join(_LEAVES)}")
    return Composite(" + ".join(_LEAVES[name] for name in names))
