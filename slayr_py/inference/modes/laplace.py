"""Modes of densities of coordinates, and Laplace's approximation of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from slayr_py.errors import InferenceError
from slayr_py.inference.modes.marginal import LogDensity, Marginal
from slayr_py.space import FloatArray

SCREENING = 15
"""Iterations after which only the best of several starts continues."""

MOST_ITERATIONS = 200
"""Iterations from the best start."""

TOLERANCE = 1e-8
"""Relative change of the density at which a search ends."""

_STEP = 1e-4  # of the differences of gradients
_FAILED = 1e10  # replaces an infinite value of the minimised function, so that a line search can back off
_FLAT = 1e-2  # smaller eigenvalues, also negative ones, are replaced by that of the prior, 1


class FoundMode(NamedTuple):
    """The best mode found.

    Attributes
    ----------
    z : (P,) float64
        Coordinates of the hyperparameters.
    density : LogDensity
    evaluations : int
        Gradients over all starts.
    """

    z: FloatArray
    density: LogDensity
    evaluations: int


def find_mode(marginal: Marginal, starts: Sequence[FloatArray], tolerance: float = TOLERANCE) -> FoundMode:
    """Return the best mode from several starts by L-BFGS.

    All starts run for `SCREENING` iterations. The best start then runs until it converges, for at most
    `MOST_ITERATIONS`. The limit is a number of iterations, not a time, so that results do not depend on the machine.

    If the density can be thinned, all this is done with the sample, and only its mode is improved with all
    observations, in coordinates in which the curvature that the sample predicts is the identity.

    Raises
    ------
    InferenceError
        If the density is finite at none of the starts.
    """
    sample = marginal.thinned()
    if sample is None:
        search = _Search(marginal)
        value, z = search.from_starts(starts, tolerance)
    else:
        found = find_mode(sample, starts, tolerance)
        search = _Search(marginal, found.evaluations)
        root = _inverse_root(hessian(sample, found.z, found.density.gradient), marginal.n / sample.n)
        value, z = search.along(root, found.z, tolerance)
    if value >= _FAILED:
        raise InferenceError(
            f"the covariance of {marginal.n} observations is not positive definite at any of {len(starts)} starts; "
            "use a prior of sigma_n with larger values"
        )
    return search.mode(z)


@dataclass
class _Search:
    """The searches for one mode: they share the number of evaluated gradients and the best density so far."""

    marginal: Marginal
    evaluations: int = 0
    best: tuple[FloatArray, LogDensity] | None = None

    def negative(self, z: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the density and its gradient; a large value without slope where it is not finite."""
        self.evaluations += 1
        density = self.marginal(z)
        if self.best is None or density.value > self.best[1].value:
            self.best = z.copy(), density
        if not np.isfinite(density.value):
            return _FAILED, np.zeros_like(z)
        return -density.value, -density.gradient

    def from_starts(self, starts: Sequence[FloatArray], tolerance: float) -> tuple[float, FloatArray]:
        """Return the smallest value and its place: all starts are screened, and the best continues."""
        start = starts[0]
        if len(starts) > 1:
            ends = [_minimum(self.negative, each, SCREENING, tolerance) for each in starts]
            start = min(ends, key=lambda end: end[0])[1]
        return _minimum(self.negative, start, MOST_ITERATIONS, tolerance)

    def along(self, root: FloatArray, origin: FloatArray, tolerance: float) -> tuple[float, FloatArray]:
        """Return the smallest value and its place z = origin + root u, by a search over u from 0."""

        def negative(u: FloatArray) -> tuple[float, FloatArray]:
            value, slope = self.negative(origin + root @ u)
            return value, slope @ root

        value, u = _minimum(negative, np.zeros_like(origin), MOST_ITERATIONS, tolerance)
        return value, origin + root @ u

    def mode(self, z: FloatArray) -> FoundMode:
        """Return the mode at the place where a search has ended."""
        if self.best is None or not np.array_equal(self.best[0], z):
            self.best = z, self.marginal(z)
        return FoundMode(*self.best, self.evaluations)


def _minimum(
    function: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, iterations: int, tolerance: float
) -> tuple[float, FloatArray]:
    """Return the smallest value of a function with a gradient, and its place, by L-BFGS."""
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": tolerance, "gtol": 1e-4, "maxcor": 20}
    result = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    return float(result.fun), np.asarray(result.x)


def _inverse_root(curvature: FloatArray, ratio: float) -> FloatArray:
    """Return H^-1/2 of the curvature H with ``ratio`` times as many observations; that of the prior, I, stays."""
    prior = np.eye(len(curvature))
    eigenvalues, vectors = np.linalg.eigh(prior + ratio * (curvature - prior))
    return np.asarray(vectors / np.sqrt(_proper(eigenvalues)))


def hessian(marginal: Marginal, z: FloatArray, gradient: FloatArray | None = None) -> FloatArray:
    """Return the negative second derivatives (P, P) of the density, by forward differences of its gradient.

    ``gradient`` is the gradient (P,) at z, if it is known.

    Central differences would be exact to another four digits, which the logarithm of a determinant does not need.
    """
    here = marginal(z).gradient if gradient is None else gradient
    matrix = np.array([(here - marginal(z + step).gradient) / _STEP for step in _STEP * np.eye(len(z))])
    return np.asarray(0.5 * (matrix + matrix.T))


def laplace_draws(
    marginal: Marginal, z: FloatArray, count: int, rng: np.random.Generator, gradient: FloatArray | None = None
) -> FloatArray:
    """Return draws (s, P) of the normal approximation at a mode, where the ``gradient`` (P,) may be known."""
    eigenvalues, vectors = np.linalg.eigh(hessian(marginal, z, gradient))
    scaled = rng.standard_normal((count, len(z))) / np.sqrt(_proper(eigenvalues))
    return np.asarray(z + scaled @ vectors.T)


def laplace_evidence(density: LogDensity, curvature: FloatArray) -> float:
    """Return Laplace's approximation of the log evidence, log p(y).

    An eigenvalue of the curvature (P, P) below 0.01 is replaced by 1, the eigenvalue under the prior. A direction
    without effect then does not change the evidence.
    """
    eigenvalues = _proper(np.asarray(np.linalg.eigvalsh(curvature)))
    return float(density.value + 0.5 * len(eigenvalues) * np.log(2 * np.pi) - 0.5 * np.sum(np.log(eigenvalues)))


def _proper(eigenvalues: FloatArray) -> FloatArray:
    return np.where(eigenvalues < _FLAT, 1.0, eigenvalues)
