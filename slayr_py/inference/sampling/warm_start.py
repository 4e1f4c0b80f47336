"""Warm starts: what one fit leaves to the next, whose posterior is nearly the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slayr_py.errors import DataError
from slayr_py.space.dimension import FloatArray

_DRAWS_FOR_DENSE = 10  # draws for each entry of a row of the metric, from which on correlations are taken over too
_ACCEPTANCE_SLOPE = 0.7  # fall of the acceptance statistic with the logarithm of the step size, near 0.8
_PRIOR_DRAWS, _PRIOR_VARIANCE = 5.0, 1e-3  # Stan's own shrinkage of an estimated metric


@dataclass(frozen=True)
class WarmStart:
    """Where chains begin, and how they move.

    Attributes
    ----------
    points : dict of str to (c, ...) float64
        A state of every chain: the program's parameters by name.
    step_size : (c,) float64
        Of the leapfrog integrator, for each chain.
    inverse_metric : (P,) or (P, P) float64
        Variances, or covariances, of the program's P parameters in its own order.
    """

    points: dict[str, FloatArray]
    step_size: FloatArray
    inverse_metric: FloatArray

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(self.step_size)

    def point(self, chain: int) -> dict[str, Any]:
        """A chain's state as CmdStan reads it."""
        return {name: values[chain].tolist() for name, values in self.points.items()}

    @classmethod
    def after(
        cls, draws: Mapping[str, FloatArray], step_size: FloatArray, acceptance: float, target: float
    ) -> WarmStart:
        """What a run leaves to the next: its last states, a metric from all its draws, and a better step size.

        The draws of all chains together say more of the posterior's covariance, and of how far a step may go, than the
        warm-up of one did.

        Parameters
        ----------
        draws : mapping of str to (c, s, ...) float64
            The program's parameters in its own order.
        step_size : (c,) float64
        acceptance, target : float
            Mean acceptance statistic of the draws, and what it should have been.
        """
        points = {name: values[:, -1].copy() for name, values in draws.items()}
        flat = [values.reshape(values.shape[0] * values.shape[1], -1) for values in draws.values()]
        better = np.exp(np.mean(np.log(step_size)) + (acceptance - target) / _ACCEPTANCE_SLOPE)
        return cls(points, np.full(len(step_size), better), estimated_metric(np.concatenate(flat, axis=1)))

    def asdict(self) -> dict[str, Any]:
        """JSON-able form; no bit is lost."""
        return {
            "points": {name: values.tolist() for name, values in self.points.items()},
            "step_size": self.step_size.tolist(),
            "inverse_metric": self.inverse_metric.tolist(),
        }

    @classmethod
    def fromdict(cls, values: Mapping[str, Any]) -> WarmStart:
        """Read what :meth:`asdict` wrote.

        Raises
        ------
        DataError
            If something is missing, or not numbers.
        """
        try:
            points = {str(name): np.array(rows, dtype=np.float64) for name, rows in values["points"].items()}
            step_size, metric = (np.array(values[key], dtype=np.float64) for key in ("step_size", "inverse_metric"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"not a warm start: {error!r}") from error
        return cls(points, step_size, metric)


def estimated_metric(draws: FloatArray) -> FloatArray:
    """Covariance (P, P) of draws (s, P), shrunk as Stan does; only the variances (P,) where draws are few."""
    s, p = draws.shape
    share = s / (s + _PRIOR_DRAWS)
    if s < _DRAWS_FOR_DENSE * p:
        return np.asarray(share * draws.var(axis=0, ddof=1) + (1 - share) * _PRIOR_VARIANCE)
    return np.asarray(share * np.cov(draws.T).reshape(p, p) + (1 - share) * _PRIOR_VARIANCE * np.eye(p))
