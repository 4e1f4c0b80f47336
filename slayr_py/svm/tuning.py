"""Tune the machine of a pre-training: C, length-scale and epsilon with the smallest leave-one-out error.

Symbols
-------
N : related observations; C : encoded columns in shapes, regularisation elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from slayr_py.errors import DataError
from slayr_py.kernels import FreeKernel
from slayr_py.space import FloatArray
from slayr_py.svm.leave_one_out import MACHINES, MachineFit

_MOST_SUPPORT = 60  # points of a kernel that is a sum over their pairs
_WIDER = 1.3  # factor of epsilon

Lengthscale = float | tuple[float, ...] | None
"""One for all columns, one for each, or None for families without length-scales."""


@dataclass(frozen=True)
class Setting:
    """Hyperparameters of a machine; epsilon is in standard deviations of y."""

    lengthscale: Lengthscale
    C: float
    epsilon: float


class Tuning:
    """Machines at several settings, and the best of them.

    Parameters
    ----------
    u : (N, C) float64
        Encoded columns of the points, relative to the origin.
    y : (N,) float64
        Standardised values, or labels as -1 and 1.
    kernel : callable
        From a length-scale to a free kernel.
    machine : {"svr", "svc", "ridge"}

    Attributes
    ----------
    fits : dict of Setting to MachineFit
    failed : list of Setting
        Settings at which a solver did not converge, or kernel values or the error were too large.
    """

    def __init__(self, u: FloatArray, y: FloatArray, kernel: Callable[[Lengthscale], FreeKernel], machine: str) -> None:
        self.u = u
        self.places = np.unique(u, axis=0, return_inverse=True)[1].reshape(-1)  # NumPy 2.0 returns two dimensions
        self.y = y
        self.kernel = kernel
        self.machine = machine
        self.fits: dict[Setting, MachineFit] = {}
        self.failed: list[Setting] = []

    def best(self, lengthscales: Sequence[Lengthscale], costs: Sequence[float], epsilon: float) -> Setting:
        """Return the setting with the smallest error on the grid and its refinement."""
        self._fit(product(lengthscales, costs), epsilon)
        first = self._smallest()
        self._fit(product(_midpoints(lengthscales, first.lengthscale), _midpoints(costs, first.C)), epsilon)
        return self._smallest()

    def is_dense(self, setting: Setting) -> bool:
        """Return whether many points have a weight, so that a sum over their pairs is slow."""
        return self.fits[setting].n_support > _MOST_SUPPORT

    def thin(self, setting: Setting) -> tuple[Setting, str]:
        """Raise epsilon until few points have a weight, as long as the error does not double; return a message too."""
        before = self.fits[setting]
        reason = f"{before.n_support} of {len(self.y)} points have a weight, and the kernel is a sum over their pairs"
        if self.machine != "svr":
            return setting, f"{reason}; it will be slow: use machine='svr' or a longer lengthscale"
        thin = setting
        for _ in range(20):
            wider = Setting(thin.lengthscale, thin.C, max(_WIDER * thin.epsilon, 0.01))
            self._fit([(wider.lengthscale, wider.C)], wider.epsilon)
            fit = self.fits.get(wider)
            if fit is None or fit.loo_mse > 2 * before.loo_mse or not fit.n_support:
                break
            thin = wider
            if not self.is_dense(thin):
                break
        return thin, (
            f"{reason}; epsilon was raised from {setting.epsilon:g} to {thin.epsilon:g}, which leaves "
            f"{self.fits[thin].n_support} points and changes loo_mse from {before.loo_mse:.3g} to "
            f"{self.fits[thin].loo_mse:.3g}"
        )

    def messages(self, lengthscales: Sequence[Lengthscale], costs: Sequence[float], chosen: Setting) -> Iterator[str]:
        """Describe a best setting at the edge of the grid, and fits that failed."""
        for name, values, value in (("C", costs, chosen.C), ("lengthscale", lengthscales, chosen.lengthscale)):
            if len(values) > 1 and value in (values[0], values[-1]):
                which = "smallest" if value == values[0] else "largest"
                yield f"the best {name}, {value:g}, is the {which} that was tried; give {name} to try others"
        if self.failed:
            yield f"{len(self.failed)} of {len(self.failed) + len(self.fits)} settings did not converge; see table"

    def table(self) -> pd.DataFrame:
        """Return every setting that was tried."""
        rows = [(s.lengthscale, s.C, s.epsilon, f.loo_mse, f.n_support) for s, f in self.fits.items()]
        rows += [(s.lengthscale, s.C, s.epsilon, np.nan, 0) for s in self.failed]
        return pd.DataFrame(rows, columns=["lengthscale", "C", "epsilon", "loo_mse", "n_support"])

    def _fit(self, settings: Iterable[tuple[Lengthscale, float]], epsilon: float) -> None:
        for lengthscale, cost in settings:
            setting = Setting(lengthscale, cost, epsilon)
            if setting in self.fits or setting in self.failed:
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                gram = self.kernel(lengthscale).evaluate(self.u, self.u)
                fit = None
                if np.isfinite(gram).all():
                    fit = MACHINES[self.machine](gram, self.y, cost, epsilon, self.places)
            if fit is None or not np.isfinite(fit.loo_mse):
                self.failed.append(setting)
            else:
                self.fits[setting] = fit

    def _smallest(self) -> Setting:
        if not self.fits:
            others = "" if self.machine == "ridge" else ", a larger epsilon, or machine='ridge'"
            raise DataError(
                f"no fit converged at any of {len(self.failed)} settings; use a longer lengthscale or origin='centre', "
                f"for smaller kernel values, or a smaller C{others}"
            )
        return min(self.fits, key=lambda setting: self.fits[setting].loo_mse)


def _midpoints(values: Sequence[Any], best: Any) -> list[Any]:
    """Return a value with the geometric means of it and its neighbours."""
    i = values.index(best)
    return [float(np.sqrt(best * v)) for v in values[max(i - 1, 0) : i]] + [
        best,
        *(float(np.sqrt(best * v)) for v in values[i + 1 : i + 2]),
    ]
