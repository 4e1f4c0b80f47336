"""Stopping policies of the generator: probabilities, their distribution given coordinates, and its updates.

A policy is a network gamma of the inputs and two numbers a and o. With the correlation matrix K of the expression so
far and v = gamma at the points, a term or an expression stops with probability

    pi(K) = sigmoid(a (q - 1/2) + o),    q = v'K v / (v'v lambda_max(K)), in [0, 1].

The source prints sigmoid(v'K v), which is at least 1/2 and grows with the number of points. One policy decides after
each factor, one after each term. Their parameters are one vector gamma with p(gamma | z) = N(mu(z), diag sd(z)^2), mu
and log sd affine in the coordinates z of the generator's weights.

Symbols
-------
n : points; C : columns of the inputs; P : parameters of both policies; d : coordinates; m : trajectories.

References
----------
Hoang & Kingsford 2020, *Optimizing Dynamic Structures with Bayesian Generative Search*.
Nesterov & Spokoiny 2017, *Random gradient-free minimization of convex functions* (Gaussian smoothing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from slayr_py.search.strategies.generator import BOX, COORDINATES
from slayr_py.space import FloatArray

UNITS = 8
"""Hidden tanh units of the network of a policy."""

_SLOPE = 4.0  # prior standard deviation of a: q varies over a few tenths, so the policy depends on it
_OFFSET = -0.5  # prior mean of o
_SPREAD = 0.5  # share of the prior variance of gamma that comes from z
_SD_SLOPE = 0.3  # prior standard deviation of the coefficients of log sd
_LOG_SD_BOUNDS = (-4.0, 1.0)  # standard deviations from 0.02 to 2.7
_RATE = 0.05  # step of Adam
_DIRECTIONS = 8  # u of an estimated gradient
_SMOOTHING = 0.3  # nu; parameters of policies have prior standard deviations of 1
_DECAY = (0.9, 0.999)  # of the first and the second moment of a gradient in Adam


@dataclass(frozen=True)
class Policies:
    """Policies of m trajectories; the second axis is (after a factor, after a term).

    Attributes
    ----------
    values : (m, 2, n) float64
        The networks at the points.
    slope, offset : (m, 2) float64
        a and o.
    """

    values: FloatArray
    slope: FloatArray
    offset: FloatArray

    def probabilities(self, rows: NDArray[np.int64], matrix: FloatArray) -> FloatArray:
        """Return the probabilities of stopping (r, 2) of some trajectories that have generated the same expression.

        Parameters
        ----------
        rows : (r,) int64
        matrix : (n, n) float64
            Correlation matrix divided by its largest eigenvalue.
        """
        values = self.values[rows]
        square = np.einsum("rpn,rpn->rp", values @ matrix, values)
        norm = np.einsum("rpn,rpn->rp", values, values)
        q = np.clip(square / np.maximum(norm, np.finfo(np.float64).tiny), 0, 1)
        return np.asarray(expit(self.slope[rows] * (q - 0.5) + self.offset[rows]))


def n_policy_parameters(n_columns: int) -> int:
    """Return the number of parameters P of both policies for C columns of the inputs, 2 (8 C + 19)."""
    return 2 * (UNITS * (n_columns + 1) + UNITS + 1 + 2)


def policies(gamma: FloatArray, columns: FloatArray) -> Policies:
    """Return the policies with parameters (m, P) at the points (n, C) of the unit cube.

    The parameters of a policy are the weights of the hidden layer (8, C + 1) row by row, the weights of the output
    (9,), each with the bias last, a divided by 4, and o. All have prior variance 1: weights are divided by the root of
    the number of their inputs.
    """
    n, n_columns = columns.shape
    inputs = np.hstack([np.sqrt(12) * (columns - 0.5), np.ones((n, 1))]) / np.sqrt(n_columns + 1)
    parts = gamma.reshape(len(gamma), 2, -1)
    hidden, output, numbers = np.split(parts, [UNITS * (n_columns + 1), -2], axis=2)
    units = np.tanh(hidden.reshape(len(gamma), 2, UNITS, n_columns + 1) @ inputs.T)
    values = np.einsum("mpu,mpun->mpn", output[:, :, :-1], units) + output[:, :, -1:]
    return Policies(values / np.sqrt(UNITS + 1), _SLOPE * numbers[:, :, 0], numbers[:, :, 1])


@dataclass(frozen=True)
class PolicyMoments:
    """Means and logarithms of the standard deviations of m vectors of policy parameters, (m, P) each."""

    mean: FloatArray
    log_sd: FloatArray

    def draw(self, normals: FloatArray) -> FloatArray:
        """Return mean + sd times standard normal numbers (m, P)."""
        return self.mean + np.exp(self.log_sd) * normals


class PolicyDistribution:
    """The distribution p(gamma | z), and its update by Adam.

    Parameters
    ----------
    n_columns : int
        C.
    seed : sequence of int
        Of the initial coefficients. Over the box of z, parameters have variance 1 and mean 0, o mean -1/2.

    Attributes
    ----------
    coefficients : (2 P, 1 + d) float64
        Of 1 and z / BOX^2, for the means and the logarithms of the standard deviations.
    """

    def __init__(self, n_columns: int, seed: Sequence[int]) -> None:
        p = n_policy_parameters(n_columns)
        rng = np.random.default_rng([*seed])
        # z / BOX^2 has the variance 1 / (3 BOX^2) in each of BOX^2 coordinates.
        slopes = rng.standard_normal((2, p, COORDINATES)) * [[[np.sqrt(3 * _SPREAD)]], [[_SD_SLOPE]]]
        starts = np.stack([np.zeros(p), np.full(p, 0.5 * np.log(1 - _SPREAD))])
        starts[0, [p // 2 - 1, p - 1]] = _OFFSET
        self.coefficients: FloatArray = np.concatenate([starts[:, :, None], slopes], axis=2).reshape(2 * p, -1)
        self._adam = Adam(self.coefficients.shape, _RATE)

    def moments(self, z: FloatArray) -> PolicyMoments:
        """Return the moments of the policies at coordinates (m, d)."""
        mean, log_sd = np.split(self._features(z) @ self.coefficients.T, 2, axis=1)
        return PolicyMoments(mean, np.clip(log_sd, *_LOG_SD_BOUNDS))

    def update(self, z: FloatArray, gradient: FloatArray) -> None:
        """Make a step against the gradient (2 P,) of a loss by mean and log sd at coordinates (d,)."""
        self.coefficients = self.coefficients + self._adam.step(np.outer(gradient, self._features(z[None])[0]))

    @staticmethod
    def _features(z: FloatArray) -> FloatArray:
        return np.hstack([np.ones((len(z), 1)), z / BOX**2])


def policy_kernel(a: PolicyMoments, b: PolicyMoments) -> FloatArray:
    """Return exp(-sum((m - m')^2 + (log s - log s')^2) / (2 P)) for all pairs of policies, (m_a, m_b).

    It is a covariance function for every P. The source has the Kullback-Leibler divergence, which is 0 on the diagonal;
    even exp(-divergence), made symmetric, is indefinite.
    """
    left, right = (np.hstack([moments.mean, moments.log_sd]) for moments in (a, b))
    return np.asarray(np.exp(-squared_distances(left, right) / left.shape[1]))


def squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the squared distances of all pairs of rows, (m_a, m_b)."""
    squares = np.sum(a**2, axis=1)[:, None] + np.sum(b**2, axis=1) - 2 * a @ b.T
    return np.asarray(np.maximum(squares, 0))


def smoothed_gradient(
    loss: Callable[[FloatArray], FloatArray],
    at: FloatArray,
    rng: np.random.Generator,
    nu: float = _SMOOTHING,
) -> FloatArray:
    """Estimate the gradient of a smoothed loss, E[(l(x + nu u) - l(x - nu u)) u / (2 nu)] with u ~ N(0, I).

    Parameters
    ----------
    loss : callable
        From k points (k, p) to k losses.
    at : (p,) float64
    rng : numpy.random.Generator
    nu : float
        Standard deviation of the smoothing.

    Returns
    -------
    (p,) float64
    """
    u = rng.standard_normal((_DIRECTIONS, len(at)))
    above, below = np.split(loss(np.vstack([at + nu * u, at - nu * u])), 2)
    return np.asarray((above - below) @ u / (2 * nu * _DIRECTIONS))


class Adam:
    """Steps of Kingma & Ba 2015 for an array of some shape."""

    def __init__(self, shape: tuple[int, ...], rate: float) -> None:
        self.rate = rate
        self._first = np.zeros(shape)
        self._second = np.zeros(shape)
        self._t = 0

    def step(self, gradient: FloatArray) -> FloatArray:
        """Return the change of the parameters for a gradient."""
        self._t += 1
        self._first = _DECAY[0] * self._first + (1 - _DECAY[0]) * gradient
        self._second = _DECAY[1] * self._second + (1 - _DECAY[1]) * gradient**2
        first, second = (m / (1 - b**self._t) for m, b in zip((self._first, self._second), _DECAY, strict=True))
        return np.asarray(-self.rate * first / (np.sqrt(second) + 1e-8))
