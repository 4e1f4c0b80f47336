"""Warm starts: the mode, or draws, states, step sizes and metric, of an earlier fit with a similar posterior."""

from __future__ import annotations

import zlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slayr_py.errors import DataError
from slayr_py.space import FloatArray

MOST_DRAWS = 256
"""Largest number of draws in a start: enough to fit a proposal in 15 dimensions, small enough for a study's storage."""

_DRAWS_FOR_DENSE = 10  # draws per parameter from which the metric is dense
_ACCEPTANCE_SLOPE = 0.7  # decrease of the acceptance statistic per unit of the log step size, near 0.8
_PRIOR_DRAWS = 5.0  # weight of `_PRIOR_VARIANCE`, as in Stan
_PRIOR_VARIANCE = 1e-3  # Stan's own shrinkage of an estimated metric


@dataclass(frozen=True)
class WarmStart:
    """Draws of an earlier fit; initial states, step sizes and metric of NUTS chains. A mode is a state without chains.

    Attributes
    ----------
    points : dict of str to (c, ...) float64
        Initial state of each chain: the program's parameters by name.
    step_size : (c,) float64
        Step size of the leapfrog integrator of each chain.
    inverse_metric : (P,) or (P, P) float64
        Variances, or covariances, of the program's P parameters in its order.
    draws : (s, P) float64
        Draws of these parameters, rounded to single precision, in which they are stored.
    searched : int
        Number of observations with which a mode was last sought from random starts; 0 after a fit with draws.
    """

    points: dict[str, FloatArray]
    step_size: FloatArray
    inverse_metric: FloatArray
    draws: FloatArray
    searched: int = 0

    def __post_init__(self) -> None:
        # Rounded here and not only where they are stored: a resumed study has the draws of an uninterrupted one.
        object.__setattr__(self, "draws", self.draws.astype(np.float32).astype(np.float64))

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.step_size)

    def point(self, chain: int) -> dict[str, Any]:
        """Return the initial state of a chain in the form that CmdStan reads."""
        return {name: values[chain].tolist() for name, values in self.points.items()}

    @classmethod
    def after(
        cls, draws: Mapping[str, FloatArray], step_size: FloatArray, acceptance: float, target: float
    ) -> WarmStart:
        """Return a start from a NUTS run: last states, draws, a metric from all draws, and a corrected step size.

        The draws of all chains together give better estimates of the posterior's covariance and of the step size than
        the warm-up of one chain.

        Parameters
        ----------
        draws : mapping of str to (c, s, ...) float64
            The program's parameters in its order.
        step_size : (c,) float64
            Step sizes of the run.
        acceptance, target : float
            Mean acceptance statistic of the draws, and its target.
        """
        points = {name: values[:, -1].copy() for name, values in draws.items()}
        flat = _flat(draws)
        corrected = np.exp(np.mean(np.log(step_size)) + (acceptance - target) / _ACCEPTANCE_SLOPE)
        return cls(points, np.full(len(step_size), corrected), estimated_metric(flat), _thin(flat))

    @classmethod
    def without_chains(cls, draws: Mapping[str, FloatArray], step_size: FloatArray) -> WarmStart:
        """Return a start from independent draws (1, s, ...) with the step sizes (c,) of earlier chains."""
        flat = _flat(draws)
        rows = np.linspace(0, len(flat) - 1, len(step_size)).round().astype(np.intp)
        points = {name: values[0, rows].copy() for name, values in draws.items()}
        return cls(points, step_size, estimated_metric(flat), _thin(flat))

    @classmethod
    def of_mode(cls, mode: Mapping[str, FloatArray], searched: int) -> WarmStart:
        """Return a start from a mode (1, 1, ...), which chains cannot use: it has no step sizes and no metric."""
        points = {name: values[:, -1].copy() for name, values in mode.items()}
        return cls(points, np.empty(0), np.empty(0), _flat(mode)[:0], searched)

    def centre(self) -> dict[str, Any]:
        """Return the mean of the initial states, or the mode, in the form that CmdStan reads."""
        return {name: values.mean(axis=0).tolist() for name, values in self.points.items()}

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able form without loss of precision."""
        return {
            "points": {name: _packed(values, "<f8") for name, values in self.points.items()},
            "step_size": self.step_size.tolist(),
            "inverse_metric": _packed(self.inverse_metric, "<f8"),
            "draws": _packed(self.draws, "<f4"),
            "searched": self.searched,
        }

    @classmethod
    def fromdict(cls, values: Mapping[str, Any]) -> WarmStart:
        """Read the form of :meth:`asdict`.

        Raises
        ------
        DataError
            If an entry is missing or not numeric.
        """
        try:
            points = {str(name): _unpacked(rows, "<f8") for name, rows in values["points"].items()}
            step_size = np.array(values["step_size"], dtype=np.float64)
            metric = _unpacked(values["inverse_metric"], "<f8")
            draws = _unpacked(values["draws"], "<f4")
            searched = int(values["searched"])
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, zlib.error) as error:
            raise DataError(f"this is not a warm start: {error!r}; use the result of WarmStart.asdict()") from error
        return cls(points, step_size, metric, draws, searched)


def _flat(draws: Mapping[str, FloatArray]) -> FloatArray:
    """Return draws (c, s, ...) of all parameters as one array (c s, P)."""
    return np.concatenate([v.reshape(v.shape[0] * v.shape[1], -1) for v in draws.values()], axis=1)


def _thin(draws: FloatArray) -> FloatArray:
    """Return at most MOST_DRAWS of the draws, evenly thinned."""
    rows = np.linspace(0, len(draws) - 1, min(len(draws), MOST_DRAWS)).round().astype(np.intp)
    return draws[rows]


def _packed(values: FloatArray, kind: str) -> dict[str, Any]:
    """Return an array as JSON. Bytes of the same significance stand together, since those of exponents compress."""
    numbers = values.astype(kind)
    by_significance = np.frombuffer(numbers.tobytes(), dtype=np.uint8).reshape(-1, numbers.itemsize).T
    packed = zlib.compress(by_significance.tobytes(), 9)
    return {"shape": list(values.shape), "base64": urlsafe_b64encode(packed).decode()}


def _unpacked(stored: Mapping[str, Any], kind: str) -> FloatArray:
    """Read the form of `_packed`."""
    binary = zlib.decompress(b64decode(stored["base64"], altchars=b"-_", validate=True))
    by_significance = np.frombuffer(binary, dtype=np.uint8).reshape(np.dtype(kind).itemsize, -1)
    return np.frombuffer(by_significance.T.tobytes(), dtype=kind).reshape(stored["shape"]).astype(np.float64)


def estimated_metric(draws: FloatArray) -> FloatArray:
    """Return the covariance (P, P) of draws (s, P), shrunk as in Stan; with s < 10 P only the variances (P,)."""
    s, p = draws.shape
    share = s / (s + _PRIOR_DRAWS)
    if s < _DRAWS_FOR_DENSE * p:
        return np.asarray(share * draws.var(axis=0, ddof=1) + (1 - share) * _PRIOR_VARIANCE)
    return np.asarray(share * np.cov(draws.T).reshape(p, p) + (1 - share) * _PRIOR_VARIANCE * np.eye(p))
