"""Predictions from the draws of one kernel, see `slayr_py.inference.prediction.predictor` for the symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.inference.log_sum_exp import log_sum_exp
from slayr_py.inference.modes.likelihood import Targets, recent_error
from slayr_py.inference.modes.triangular import inverses, solve_lower, solve_upper
from slayr_py.inference.prediction.cholesky import cholesky
from slayr_py.inference.prediction.comparison import (
    Change,
    Compared,
    FrontGradient,
    FrontMoments,
    Recommended,
    log_improvement,
)
from slayr_py.inference.prediction.distribution import Latent
from slayr_py.inference.prediction.draws import thinned
from slayr_py.inference.prediction.predictor import Moments, Predictor
from slayr_py.inference.prediction.success import Skewness
from slayr_py.inference.warp import log_slope, unwarped, warped
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, FloatArray

CACHED = 2**17
"""Doubles in the arrays of a block that should stay in a processor's cache: 1 MB."""

_INVERTED = 2**22
"""Most doubles in the inverse factors of a search: 32 MB."""

_DEEPEST = 20.0
"""Largest -a y at which a tangent touches a warp without a pivot, whose slope exp(-a y) overflows further down. Values
there are improbable."""


class Tangent(NamedTuple):
    """Tangent of the inverse warp of each draw, ``offset + slope * t``, both (s, 1)."""

    offset: FloatArray
    slope: FloatArray


@dataclass(frozen=True, eq=False)
class KernelPredictor(Predictor):
    """Cholesky factors of s draws of one kernel, computed once, and predictions from them.

    Attributes
    ----------
    kernel : Kernel
    train : Encoded
        The n points of the factors: the observed configurations, or the inducing points of a sparse fit.
    targets : Targets
        The observations.
    draws : mapping of str to (s, ...) float64
        ``mu``, ``sigma_f``, ``sigma_n``, the kernel's hyperparameters and, if the model has it, ``warp``.
    factor : (s, n, n) float64
        L.
    whitened, weights : (s, n) float64
        w and alpha.
    jitter : (s,) float64
        Relative jitter that was added to K.
    tangent : Tangent, optional
        Replaces the inverse of the warp, see :meth:`linearised`.
    incumbent : (s, 1) float64, optional
    inverse : (s, n, n) float64, optional
        L^-1, see :meth:`for_search`.
    error : float, optional
        See :meth:`with_error`.
    rivals : Recommended, optional
        See :meth:`compared`.
    front : Compared, optional
        See :meth:`beside`; k = q.
    last : tuple, optional
        The last configurations, and mean and variance of the transformed function there. With `rivals` the change that
        they describe, too.
    """

    kernel: Kernel
    train: Encoded
    targets: Targets
    draws: Mapping[str, FloatArray]
    factor: FloatArray
    whitened: FloatArray
    weights: FloatArray
    jitter: FloatArray
    tangent: Tangent | None = None
    incumbent: FloatArray | None = None
    inverse: FloatArray | None = None
    error: float | None = None
    rivals: Recommended | None = None
    front: Compared | None = None
    last: tuple[Encoded, FloatArray, FloatArray, Change | None] | None = field(default=None, init=False, repr=False)

    @classmethod
    def factorise(
        cls, kernel: Kernel, train: Encoded, targets: Targets | FloatArray, draws: Mapping[str, FloatArray]
    ) -> Self:
        """Factorise the covariance of n observed configurations under s draws.

        ``targets`` may be an array (n,) or (s, n) of standardised targets without known errors.
        """
        if not isinstance(targets, Targets):
            targets = Targets(targets, np.zeros(len(train)))
        s = len(draws["mu"])
        n = len(train)
        # Blocks that fit into a processor's cache take half the time.
        size = max(1, CACHED // (n * n))
        blocks = [slice(i, i + size) for i in range(0, s, size)]
        covariance = np.empty((s, n, n))
        for rows in blocks:
            covariance[rows] = kernel.cross(train, train, {name: values[rows] for name, values in draws.items()})
        values, noise = targets.gaussian(covariance, draws)
        diagonal = np.arange(n)
        covariance[:, diagonal, diagonal] += noise
        residual = values - draws["mu"][:, None]
        factor = covariance  # one block after the other is replaced
        jitter = np.empty(s)
        whitened, weights = np.empty((2, s, n))
        for rows in blocks:
            factor[rows], jitter[rows] = cholesky(covariance[rows])
            whitened[rows] = [solve_lower(f, r[None])[0] for f, r in zip(factor[rows], residual[rows], strict=True)]
            weights[rows] = _solve_weights(factor[rows], whitened[rows])
        return cls(kernel, train, targets, draws, factor, whitened, weights, jitter)

    @classmethod
    def from_factors(
        cls,
        kernel: Kernel,
        train: Encoded,
        targets: Targets,
        draws: Mapping[str, FloatArray],
        factor: FloatArray,
        weights: FloatArray,
    ) -> Self:
        """Return a predictor from factors (s, n, n) and weights (s, n) of the covariances in the mean."""
        whitened = np.einsum("snm,sn->sm", factor, weights)
        return cls(kernel, train, targets, draws, factor, whitened, weights, np.zeros(len(factor)))

    @property
    @override
    def n_draws(self) -> int:
        return len(self.factor)

    @property
    @override
    def warp(self) -> FloatArray | None:
        return self.draws["warp"][:, None] if "warp" in self.draws else None

    @property
    @override
    def pivot(self) -> float | None:
        return self.targets.pivot

    @property
    @override
    def noise(self) -> FloatArray:
        error = recent_error(self.targets.errors) if self.error is None else self.error
        return (self.targets.common_noise(self.draws) + error**2)[:, None]

    @override
    def with_error(self, error: float | None) -> Self:
        return replace(self, error=error)

    @override
    def compared(self, recommended: Encoded | None, believed: Encoded | None = None) -> Self:
        if recommended is None:
            return self if self.rivals is None else replace(self, rivals=None)
        q = len(recommended)
        choice = np.tile(np.arange(q), (self.n_draws, 1))
        if believed is None or not len(believed):
            known = self._known(recommended)
        else:
            known = self._known(recommended.concatenate(believed))
            means = known.means[:, q:]
            better = means.min(axis=1) < known.means[:, 0]  # the recommended one becomes the runner-up
            choice = np.column_stack([choice[:, 0], choice[:, -1]])
            choice[better, 0] = q + means[better].argmin(axis=1)
            choice[better, 1] = 0
        prior = self.kernel.diagonal(known.configs, self.draws)
        return replace(self, rivals=Recommended.of(known, prior, choice))

    @override
    def beside(self, front: Encoded, values: FloatArray) -> Self:
        known = self._known(front)
        goal = np.broadcast_to(values, known.means.shape)
        goal = goal if self.warp is None else warped(goal, self.warp, self.pivot)
        return replace(self, front=replace(known, goal=goal))

    @override
    def front_moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        solved = self._solve(self.kernel.cross(new, self.train, self.draws))
        found = self._front_moments(new, *self._moments(new, solved), solved)
        return found.mean, found.sd

    @override
    def front_moments_with_gradient(self, new: Encoded) -> tuple[FloatArray, FloatArray, FrontGradient]:
        moments, solved, slope = self._moments_and_slopes(new)
        found = self._front_moments(new, moments.mean, moments.variance, solved)

        def gradient(by_mean: FloatArray, by_sd: FloatArray) -> FloatArray:
            by_variance = np.einsum("smq,smq->sm", by_sd, found.by_variance)
            total = np.einsum("sm,smd->md", by_mean.sum(axis=2), moments.mean_gradient)
            total += np.einsum("sm,smd->md", by_variance, moments.variance_gradient)
            if self.front is not None:
                by_covariance = (by_sd * found.by_covariance)[..., :-1]
                prior_slope = self.kernel.cross_gradient(new, self.front.configs, self.draws)[1]
                total += np.einsum("smq,smqd->md", by_covariance, prior_slope)
                total -= np.einsum("smn,smnd->md", by_covariance @ self.front.weights, slope)
            return np.asarray(total)

        return found.mean, found.sd, gradient

    def _front_moments(self, new: Encoded, mean: FloatArray, variance: FloatArray, solved: FloatArray) -> FrontMoments:
        front = self.front
        if front is None:
            covariances = np.empty((*mean.shape, 0))
            shift = np.empty((len(mean), 0))
        else:
            covariances = front.covariances(self.kernel.cross(new, front.configs, self.draws), solved)
            shift = front.goal - front.means
        return FrontMoments.of(mean, variance, covariances, shift, self.noise)

    def _known(self, new: Encoded) -> Compared:
        """Return what others are compared with at q configurations, with their means to improve on."""
        solved = self._solve(self.kernel.cross(new, self.train, self.draws))
        means = self._moments(new, solved)[0]
        return Compared(new, means, means, solved, self._precision(solved))

    @property
    @override
    def is_compared(self) -> bool:
        return self.rivals is not None

    @override
    def log_doubts(self, recommended: Encoded, others: Encoded) -> FloatArray:
        at_recommended, at_others = (
            self._solve(self.kernel.cross(each, self.train, self.draws)) for each in (recommended, others)
        )
        best, variance_of_best = self._moments(recommended, at_recommended)
        mean, variance = self._moments(others, at_others)
        covariance = self.kernel.cross(others, recommended, self.draws) - at_others @ at_recommended.transpose(0, 2, 1)
        sd = np.sqrt(np.maximum(variance + variance_of_best - 2 * covariance[:, :, 0], 0.0))
        return np.asarray(log_sum_exp(log_improvement(best - mean, sd)) - np.log(self.n_draws))

    @override
    def linearised(self, best: float, believed: Encoded | None = None) -> Self:
        a = self.warp
        smallest = np.full((self.n_draws, 1), best)
        if self.rivals is not None:
            smallest += self._untransformed(self.rivals.goal)
        if believed is not None:
            values = self._untransformed(self._transformed(believed)[0])
            smallest = np.minimum(smallest, values.min(axis=1, keepdims=True))
        if a is None:
            return replace(self, incumbent=smallest, rivals=self._rivals_at(smallest))
        touched = smallest if self.pivot is not None else np.maximum(smallest, -_DEEPEST / a)
        slope = np.exp(-log_slope(touched, a, self.pivot))
        goal = warped(touched, a, self.pivot)
        tangent = Tangent(touched - slope * goal, slope)
        return replace(self, incumbent=smallest, tangent=tangent, rivals=self._rivals_at(goal))

    @override
    def subset(self, n_chains: int, n_draws: int) -> Self:
        if n_draws >= len(self.factor):
            return self
        return self.at(thinned(len(self.factor), n_chains, n_draws))

    def at(self, rows: NDArray[np.intp]) -> Self:
        """Return the predictor of some of these draws."""
        return replace(
            self,
            draws={name: values[rows] for name, values in self.draws.items()},
            factor=self.factor[rows],
            whitened=self.whitened[rows],
            weights=self.weights[rows],
            jitter=self.jitter[rows],
            incumbent=None if self.incumbent is None else self.incumbent[rows],
            tangent=None if self.tangent is None else Tangent(self.tangent.offset[rows], self.tangent.slope[rows]),
            inverse=None if self.inverse is None else self.inverse[rows],
            rivals=None if self.rivals is None else self.rivals.at(rows),
            front=None if self.front is None else self.front.at(rows),
        )

    @override
    def for_search(self) -> Self:
        if self.inverse is not None or self.factor.size > _INVERTED:
            return self
        return replace(self, inverse=inverses(self.factor))

    @override
    def moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        mean, variance, change = self._transformed(new)
        if change is not None:
            mean = change.mean
            variance = np.square(change.sd)
        return self._linearise(mean, variance)

    @override
    def latent(self, new: Encoded, y_mean: float, y_sd: float) -> Latent:
        mean, variance, _ = self._transformed(new)
        warp = self.draws.get("warp")
        noise = np.sqrt(self.targets.common_noise(self.draws))
        return Latent(mean, np.sqrt(variance), warp, y_mean, y_sd, noise, self.jitter, self.pivot)

    def joint_moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return mean (s, m) and covariance (s, m, m) of the transformed function at m new configurations."""
        solved, covariance = self.solved_and_covariance(new)
        return self.draws["mu"][:, None] + np.einsum("smn,sn->sm", solved, self.whitened), covariance

    def solved_and_covariance(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        r"""Return V' = (L \ k(X, X~))' (s, m, n) and the posterior covariance (s, m, m) at m new configurations."""
        solved = self._solve(self.kernel.cross(new, self.train, self.draws))
        return solved, self.kernel.cross(new, new, self.draws) - solved @ solved.transpose(0, 2, 1)

    def _moments_and_slopes(self, new: Encoded) -> tuple[Moments, FloatArray, FloatArray]:
        """Return moments of the transformed function, V' (s, m, n), and the slope of k(X~, X), (s, m, n, D_real)."""
        cross, slope = self.kernel.cross_gradient(new, self.train, self.draws)
        solved = self._solve(cross)
        weights = np.broadcast_to(self.weights[:, None], cross.shape)
        both = np.stack([weights, self._precision(solved)], axis=2) @ slope
        variance_gradient = self.kernel.diagonal_gradient(new, self.draws) - 2 * both[:, :, 1]
        return Moments(*self._moments(new, solved), both[:, :, 0], variance_gradient), solved, slope

    @override
    def moments_with_gradient(self, new: Encoded) -> Moments:
        (mean, variance, mean_gradient, variance_gradient), solved, slope = self._moments_and_slopes(new)
        if self.rivals is not None:
            prior, slope_of_prior = map(
                self.rivals.chosen, self.kernel.cross_gradient(new, self.rivals.configs, self.draws)
            )
            change = self.rivals.change(mean, variance, self.rivals.covariances(prior, solved), self.noise)
            covariance_gradient = slope_of_prior - self.rivals.weights[:, None] @ slope
            sd_gradient = change.by_variance[..., None] * variance_gradient
            sd_gradient += (change.by_covariances[:, :, None] @ covariance_gradient)[:, :, 0]
            mean = change.mean
            mean_gradient = mean_gradient * change.is_new[..., None]
            variance = np.square(change.sd)
            variance_gradient = 2 * change.sd[..., None] * sd_gradient
        mean, variance = self._linearise(mean, variance)
        if self.tangent is not None:
            mean_gradient *= self.tangent.slope[..., None]
            variance_gradient *= np.square(self.tangent.slope)[..., None]
        return Moments(mean, variance, mean_gradient, variance_gradient)

    @override
    def log_success(self, new: Encoded) -> FloatArray:
        cross = self.kernel.cross(new, self.train, self.draws)
        return self._skewness.log_success(*self._moments_of_binary(new, cross))

    @override
    def log_success_with_gradient(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        cross, slope = self.kernel.cross_gradient(new, self.train, self.draws)
        mean, variance, solved = self._moments_of_binary(new, cross)
        value, by_mean, by_variance, by_cross = self._skewness.log_success_with_slopes(mean, variance, solved)
        by_cross += by_mean[..., None] * self.weights[:, None] - 2 * by_variance[..., None] * solved
        gradient = (by_cross[:, :, None] @ slope)[:, :, 0]
        return value, gradient + by_variance[..., None] * self.kernel.diagonal_gradient(new, self.draws)

    def _moments_of_binary(self, new: Encoded, cross: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean, variance (s, m) and K^-1 k(X, X~) (s, m, n).

        The inverse is accurate: the noise of targets of expectation propagation has a variance of about 1 or more.
        """
        solved = cross @ self._skewness.inverse
        mean = self.draws["mu"][:, None] + (cross @ self.weights[..., None])[..., 0]
        variance = self.kernel.diagonal(new, self.draws) - np.einsum("smn,smn->sm", cross, solved)
        return mean, np.maximum(variance, 0.0), solved

    @cached_property
    def _skewness(self) -> Skewness:
        targets = self.draws["mu"][:, None] + np.einsum("sij,sj->si", self.factor, self.whitened)
        prior = self.kernel.diagonal(self.train, self.draws)
        return Skewness.of(self.factor, self.weights, targets, prior, self.targets.y)

    @override
    def with_pending(self, pending: Encoded, *, exact: bool = False) -> Self:
        # The first n rows of each factor do not change: [L 0; V' chol(K_qq + noise - V' V)] with V = L \ B.
        if not len(pending):
            return self
        n = len(self.train)
        q = len(pending)
        solved = self._solve(self.kernel.cross(pending, self.train, self.draws))
        rest = self.kernel.cross(pending, pending, self.draws) - solved @ solved.transpose(0, 2, 1)
        diagonal = np.arange(q)
        rest[:, diagonal, diagonal] += self.targets.noise_floor**2 if exact else self.noise
        factor = np.zeros((len(solved), n + q, n + q))
        factor[:, :n, :n] = self.factor
        factor[:, n:, :n] = solved
        factor[:, n:, n:], jitter = cholesky(rest, self.kernel.diagonal(pending, self.draws).mean(axis=1))
        # The assumed values equal the mean given the observations, so that their whitened residuals are 0.
        whitened = np.hstack([self.whitened, np.zeros((len(solved), q))])
        return replace(
            self,
            train=self.train.concatenate(pending),
            factor=factor,
            whitened=whitened,
            weights=_solve_weights(factor, whitened),
            jitter=np.maximum(self.jitter, jitter),
            inverse=None,
            rivals=None,
            front=None,
        )

    def _solve(self, cross: FloatArray) -> FloatArray:
        r"""Return V' = (L \ B)', (s, m, n)."""
        if self.inverse is not None:
            return cross @ self.inverse.transpose(0, 2, 1)
        return np.stack([solve_lower(f, c) for f, c in zip(self.factor, cross, strict=True)])

    def _precision(self, solved: FloatArray) -> FloatArray:
        """Return (K^-1 B)' from V', (s, m, n)."""
        if self.inverse is not None:
            return solved @ self.inverse
        return np.stack([solve_upper(f, v) for f, v in zip(self.factor, solved, strict=True)])

    def _transformed(self, new: Encoded) -> tuple[FloatArray, FloatArray, Change | None]:
        """Return moments of the transformed function, see `last`; a repeated call with the same object is free."""
        last = self.last  # read once: another thread may replace it
        if last is None or last[0] is not new:
            solved = self._solve(self.kernel.cross(new, self.train, self.draws))
            mean, variance = self._moments(new, solved)
            change = None
            if self.rivals is not None:
                prior = self.rivals.chosen(self.kernel.cross(new, self.rivals.configs, self.draws))
                change = self.rivals.change(mean, variance, self.rivals.covariances(prior, solved), self.noise)
            last = (new, mean, variance, change)
            object.__setattr__(self, "last", last)
        return last[1:]

    def _moments(self, new: Encoded, solved: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = self.draws["mu"][:, None] + np.einsum("smn,sn->sm", solved, self.whitened)
        variance = self.kernel.diagonal(new, self.draws) - np.einsum("smn,smn->sm", solved, solved)
        return mean, np.maximum(variance, 0.0)

    def _untransformed(self, t: FloatArray) -> FloatArray:
        """Return T^-1(t) of each draw, (s, m), without the tangent."""
        return t if self.warp is None else unwarped(t, self.warp, self.pivot)

    def _rivals_at(self, goal: FloatArray) -> Recommended | None:
        """Return the compared configurations, with this value of the transformed function (s, 1) to improve on."""
        return None if self.rivals is None else replace(self.rivals, goal=goal)

    def _linearise(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return moments of the linearised function from moments of the transformed function."""
        if self.tangent is None:
            return mean, variance
        return self.tangent.offset + self.tangent.slope * mean, np.square(self.tangent.slope) * variance


def _solve_weights(factor: FloatArray, whitened: FloatArray) -> FloatArray:
    """Return the weights alpha (s, n) of the covariances in the mean."""
    return np.stack([solve_upper(f, w[None])[0] for f, w in zip(factor, whitened, strict=True)])
