"""Modes of densities of coordinates, and Laplace's approximation of the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from slayr_py.errors import InferenceError
from slayr_py.inference.modes.marginal import Density, Marginal
from slayr_py.space import FloatArray

SCREENING = 15
"""Iterations after which only the best of several starts continues."""

MOST_ITERATIONS = 200
"""Iterations from the best start."""

_TOLERANCE = 1e-8  # relative change of the density at which the search ends
_STEP = 1e-4  # of the differences of gradients
_FAILED = 1e10  # replaces an infinite value of the minimised function, so that a line search can back off
_FLAT = 1e-2


class Mode(NamedTuple):
    """The best mode found.

    Attributes
    ----------
    z : (P,) float64
        Coordinates of the hyperparameters.
    density : Density
    evaluations : int
        Gradients over all starts.
    """

    z: FloatArray
    density: Density
    evaluations: int


def find_mode(marginal: Marginal, starts: Sequence[FloatArray]) -> Mode:
    """Return the best mode from several starts by L-BFGS.

    All starts run for `SCREENING` iterations. The best start then runs until it converges, for at most
    `MOST_ITERATIONS`. The limit is a number of iterations, not a time, so that results do not depend on the machine.

    Raises
    ------
    InferenceError
        If the density is finite at none of the starts.
    """
    evaluations = 0

    def negative(z: FloatArray) -> tuple[float, FloatArray]:
        nonlocal evaluations
        evaluations += 1
        density = marginal(z)
        if not np.isfinite(density.value):
            return _FAILED, np.zeros_like(z)
        return -density.value, -density.gradient

    def search(start: FloatArray, iterations: int) -> tuple[float, FloatArray]:
        options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": _TOLERANCE, "gtol": 1e-4, "maxcor": 20}
        result = minimize(negative, start, jac=True, method="L-BFGS-B", options=options)
        return float(result.fun), np.asarray(result.x)

    if len(starts) == 1:
        ends = [(0.0, starts[0])]
    else:
        ends = [search(start, SCREENING) for start in starts]
    value, z = search(min(ends, key=lambda end: end[0])[1], MOST_ITERATIONS)
    if value >= _FAILED:
        raise InferenceError(
            f"the covariance of {marginal.n} observations is not positive definite at any of {len(starts)} starts; "
            "use a prior of sigma_n with larger values"
        )
    return Mode(z, marginal(z), evaluations)


def hessian(marginal: Marginal, z: FloatArray) -> FloatArray:
    """Return the negative second derivatives (P, P) of the density, by forward differences of its gradient.

    Central differences would be exact to another four digits, which the logarithm of a determinant does not need.
    """
    here = marginal(z).gradient
    matrix = np.array([(here - marginal(z + step).gradient) / _STEP for step in _STEP * np.eye(len(z))])
    return np.asarray(0.5 * (matrix + matrix.T))


def laplace_draws(marginal: Marginal, z: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Return draws (s, P) of the normal approximation at a mode."""
    eigenvalues, vectors = np.linalg.eigh(hessian(marginal, z))
    scaled = rng.standard_normal((count, len(z))) / np.sqrt(_proper(eigenvalues))
    return np.asarray(z + scaled @ vectors.T)


def laplace_evidence(density: Density, curvature: FloatArray) -> float:
    """Return Laplace's approximation of the log evidence, log p(y).

    An eigenvalue of the curvature (P, P) below 0.01 is replaced by 1, the eigenvalue under the prior. A direction
    without effect then does not change the evidence.
    """
    eigenvalues = _proper(np.asarray(np.linalg.eigvalsh(curvature)))
    return float(density.value + 0.5 * len(eigenvalues) * np.log(2 * np.pi) - 0.5 * np.sum(np.log(eigenvalues)))


def _proper(eigenvalues: FloatArray) -> FloatArray:
    return np.where(eigenvalues < _FLAT, 1.0, eigenvalues)
