"""Machines on a Gram matrix with their exact leave-one-out errors.

Symbols
-------
N : points; gram (N, N) : their kernel values; alpha (N,) : signed weights with sum 0; b : intercept.
places (N,) : points with the same label have the same configuration. They are left out together: the copies of a point
    would tell its value, noise included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from slayr_py.space import FloatArray
from slayr_py.threads import ignored_warnings

_MOST_ITERATIONS = 300_000  # about 0.15 s for 100 points
_TOLERANCE = 1e-3  # of the solver without a point, in standard deviations of the targets
_TIGHT = 1e-6  # of the solver with all points, whose weights alpha are used; the looser one if it does not converge


class MachineFit(NamedTuple):
    """A fitted machine, which predicts k(x, X) alpha + b.

    Attributes
    ----------
    alpha : (N,) float64
    intercept : float
    loo_mse : float
        Leave-one-out mean squared error; for labels the share of wrong ones.
    """

    alpha: FloatArray
    intercept: float
    loo_mse: float

    @property
    def n_support(self) -> int:
        """Number of points with a weight."""
        return int(np.count_nonzero(self.alpha))


Places = NDArray[np.intp]
Machine = Callable[[FloatArray, FloatArray, float, float, Places], MachineFit | None]


def svr(gram: FloatArray, y: FloatArray, C: float, epsilon: float, places: Places) -> MachineFit | None:
    """Fit support vector regression; None if a solver does not converge."""
    left_out = _leave_out(SVR(kernel="precomputed", C=C, epsilon=epsilon), gram, y, places)
    if left_out is None:
        return None
    return MachineFit(left_out.alpha, left_out.intercept, float(np.mean(np.square(left_out.residuals))))


def svc(gram: FloatArray, y: FloatArray, C: float, places: Places) -> MachineFit | None:
    """Fit support vector classification to y of -1 and 1; None if a solver does not converge.

    A point with the residual r is wrong if y (y - r) = 1 - y r <= 0.
    """
    left_out = _leave_out(SVC(kernel="precomputed", C=C), gram, y, places)
    if left_out is None:
        return None
    return MachineFit(left_out.alpha, left_out.intercept, float(np.mean(y * left_out.residuals >= 1)))


def ridge(gram: FloatArray, y: FloatArray, C: float, places: Places) -> MachineFit | None:
    """Fit the least-squares machine with penalty 1/C (Suykens & Vandewalle 1999).

    With M = [[gram + I/C, 1], [1', 0]], (alpha, b) = M^-1 (y, 0), and the residuals of points I that are left out are
    [M^-1]_II^-1 alpha_I. None if M is singular up to rounding.
    """
    n = len(y)
    bordered = np.ones((n + 1, n + 1))
    bordered[:n, :n] = gram + np.eye(n) / C
    bordered[n, n] = 0.0
    try:
        inverse = np.linalg.inv(bordered)
    except np.linalg.LinAlgError:
        return None
    alpha = inverse[:n, :n] @ y
    intercept = inverse[n, :n] @ y
    residuals = alpha / np.diag(inverse)[:n]
    for rows in _copies(places):
        residuals[rows] = np.linalg.lstsq(inverse[np.ix_(rows, rows)], alpha[rows])[0]
    loo_mse = float(np.mean(np.square(residuals)))
    return MachineFit(alpha, float(intercept), loo_mse) if np.isfinite(loo_mse) else None


MACHINES: dict[str, Machine] = {
    "svr": svr,
    "svc": lambda gram, y, C, epsilon, places: svc(gram, y, C, places),  # only the loss of regression has an epsilon
    "ridge": lambda gram, y, C, epsilon, places: ridge(gram, y, C, places),
}


def _copies(places: Places) -> list[NDArray[np.intp]]:
    """Return the rows of each configuration that more than one point has."""
    return [np.flatnonzero(places == place) for place in np.flatnonzero(np.bincount(places) > 1)]


class _LeftOut(NamedTuple):
    """A machine on all points, and the residual (N,) of each point for the machine without it."""

    alpha: FloatArray
    intercept: float
    residuals: FloatArray


def _leave_out(machine: Any, gram: FloatArray, y: FloatArray, places: Places) -> _LeftOut | None:
    """Fit a machine of scikit-learn with all points and without each configuration; None if it does not converge.

    Leaving out points without weights does not change their residuals, so only support vectors need another fit.
    """
    fitted = _solve(machine, gram, y, _TIGHT) or _solve(machine, gram, y, _TOLERANCE)
    if fitted is None:
        return None
    alpha, intercept = fitted
    residuals = y - gram @ alpha - intercept
    for place in dict.fromkeys(places[alpha != 0].tolist()):
        rest = places != place
        without = _solve(machine, gram[np.ix_(rest, rest)], y[rest], _TOLERANCE)
        if without is None:
            return None
        for i in np.flatnonzero(~rest):
            residuals[i] = y[i] - gram[i, rest] @ without[0] - without[1]
    return _LeftOut(alpha, intercept, residuals)


def _solve(machine: Any, gram: FloatArray, y: FloatArray, tolerance: float) -> tuple[FloatArray, float] | None:
    """Return alpha and b of a machine of scikit-learn; None if it does not converge or they are not finite."""
    if is_classifier(machine) and np.ptp(y) == 0:
        return np.zeros(len(y)), float(y[0])  # points of one class: every other point is predicted to be in it
    machine.set_params(max_iter=_MOST_ITERATIONS, tol=tolerance)
    try:
        with ignored_warnings(ConvergenceWarning):
            machine.fit(gram, y)
    except ValueError:  # alpha or b is not finite: kernel values are too large
        return None
    if machine.fit_status_:
        return None
    alpha = np.zeros(len(y))
    alpha[machine.support_] = machine.dual_coef_[0]
    return alpha, float(np.ravel(machine.intercept_)[0])
