r"""Predictions of the latent function from hyperparameter draws, in NumPy.

Symbols, for one draw of s
--------------------------
K = k(X, X) + diag(noise) = L L' : covariance of the n observations and its Cholesky factor
w = L \ (y - mu), alpha = L' \ w : so that alpha = K^-1 (y - mu)
B = k(X, X~) (n, m), V = L \ B : m new points
mean = mu + V' w, var = k(x~, x~) - diag(V' V) : two triangular solves, as in the notes (slayR, "Posterior predictions")

The function f has the scale of the transformed targets T(y), which are the standardised targets unless the model has a
warp (`slayr_py.inference.warp`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Self

import numpy as np

from slayr_py.inference.prediction.comparison import FrontGradient
from slayr_py.inference.prediction.distribution import Latent, Prediction
from slayr_py.inference.warp import log_slope
from slayr_py.space import Encoded, FloatArray


class Moments(NamedTuple):
    """Moments of the latent function under s draws at m points, and their derivatives.

    Attributes
    ----------
    mean, variance : (s, m) float64
    mean_gradient, variance_gradient : (s, m, D_real) float64
        Derivatives by the real inputs.
    """

    mean: FloatArray
    variance: FloatArray
    mean_gradient: FloatArray
    variance_gradient: FloatArray


class Predictor(ABC):
    """Predictions of the latent function from s draws of one or more kernels.

    Moments describe the transformed function. After :meth:`linearised` they describe the function itself near a value.

    Attributes
    ----------
    train : Encoded
        The n observed configurations, and the pending ones.
    """

    train: Encoded

    @property
    @abstractmethod
    def n_draws(self) -> int:
        """Number of draws."""

    @abstractmethod
    def compared(self, recommended: Encoded | None, believed: Encoded | None = None) -> Self:
        r"""Return a predictor for improvements of the posterior mean on that at one configuration, by an evaluation.

        A noisy evaluation at x~ changes the posterior means there and at the recommended x* together. Their difference
        is then normal, with the present difference as mean and the standard deviation

            |var(f(x~)) - cov(f(x~), f(x*))| / sqrt(var(f(x~)) + noise),

        the knowledge gradient with two alternatives (Frazier, Powell & Dayanik 2009). Its square replaces the variance
        in `moments`, and each draw has its own mean at x* as `incumbent`. The variance of f(x~) itself would make an
        improvement of what is known of x* only roughly: a configuration beside it would seem worth an evaluation.

        An evaluation may also show that x* is worse than another one. With a second row x2, the runner-up, moments are
        those of the difference between x2 and x*, with the standard deviation

            |cov(f(x~), f(x2)) - cov(f(x~), f(x*))| / sqrt(var(f(x~)) + noise),

        under the draws and at the configurations where it promises the larger improvement of the transformed function.
        Under a draw that believes x2 to be better already, by a difference d, an evaluation is worth what it may
        change: E[max(d + sd z, 0)] - d, which is the improvement from -d.

        Under a draw that believes a running configuration to be better than x*, it takes the place of x*, and x* that
        of the runner-up. Without this, another evaluation beside it would be compared with x*, from which it differs,
        and a batch would repeat one configuration.

        Parameters
        ----------
        recommended : (1,) or (2,) Encoded or None
            None: moments of the function again. The order is `with_pending`, this and `linearised`.
        believed : Encoded, optional
            Running configurations other than x*.
        """

    @abstractmethod
    def beside(self, front: Encoded, values: FloatArray) -> Self:
        """Return a predictor with the configurations of a front (q,) and their standardised values (q,).

        See :meth:`front_moments`. The order is `with_pending` and this.
        """

    @abstractmethod
    def front_moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        r"""Return moments (s, m, q + 1) of the posterior means after a noisy evaluation at each of m configurations.

        An evaluation at x~ changes what is known of a configuration p of a front too: see :meth:`compared`. Mean and
        standard deviation of the posterior mean of the transformed function at x~, relative to that at p, whose value
        counts as equal under all draws, are

            value of p + mean(f(x~)) - mean(f(p)) and |var(f(x~)) - cov(f(x~), f(p))| / sqrt(var(f(x~)) + noise).

        The last ones are not relative: mean(f(x~)) and var(f(x~)) / sqrt(var(f(x~)) + noise) (Picheny et al. 2013,
        Technometrics 55:2, with the quantile 1/2). Without :meth:`beside` there are no others.
        """

    @abstractmethod
    def front_moments_with_gradient(self, new: Encoded) -> tuple[FloatArray, FloatArray, FrontGradient]:
        """Return :meth:`front_moments`, and a function for gradients by the real inputs."""

    @property
    @abstractmethod
    def is_compared(self) -> bool:
        """Whether moments are those of :meth:`compared`."""

    @abstractmethod
    def log_doubts(self, recommended: Encoded, others: Encoded) -> FloatArray:
        """Return how much better each of m configurations is expected to be than the recommended one, as logarithms.

        The mean over draws of E[max(f(x*) - f(x), 0)], of the transformed function, (m,).
        """

    @abstractmethod
    def linearised(self, best: float, believed: Encoded | None = None) -> Self:
        """Return a predictor of the function itself, on the standardised scale, near the value ``best``.

        The value to improve on, :attr:`incumbent`, is ``best`` or, if it is smaller, the smallest of the values
        T^-1(mean) that a draw believes at pending configurations. If it is `compared`, ``best`` is what is added to the
        value that a draw has for the best configuration. The variance alone falls near a pending
        configuration: without this, a configuration beside it would keep the whole improvement of a mean that is
        smaller than ``best``, and a batch would collapse.

        The tangent at T(incumbent) replaces the inverse of each draw's warp, so that moments of draws with different
        warps are comparable. The probability of a smaller value is exact. The tangent is below the function, so that
        an improvement is too large; expected improvement needs :attr:`warp` to correct it.
        """

    @property
    @abstractmethod
    def incumbent(self) -> FloatArray | None:
        """Value to improve on under each draw, (s, 1); None before :meth:`linearised`."""

    @property
    @abstractmethod
    def warp(self) -> FloatArray | None:
        """Parameter of the warp of each draw, (s, 1); None without a warp."""

    @property
    @abstractmethod
    def pivot(self) -> float | None:
        """Pivot of the warp, if it has one."""

    @property
    def improvement_scale(self) -> float:
        """Improvement on the best value that is 1 on the scale of the transformed function: the unit of thresholds.

        Under a warp with a pivot, improvements may be orders of magnitude smaller than the targets. It is then the mean
        slope over draws of T^-1 at :attr:`incumbent`, or before :meth:`linearised` at the pivot; otherwise it is 1. It
        is not below the rounding errors of the targets.
        """
        if self.warp is None or self.pivot is None:
            return 1.0
        best = np.asarray(self.pivot) if self.incumbent is None else self.incumbent
        slope = np.exp(-log_slope(best, self.warp, self.pivot))
        return max(float(np.mean(slope)), float(np.finfo(np.float64).eps))

    @property
    @abstractmethod
    def noise(self) -> FloatArray:
        """Variance (s, 1) of the noise of a further observation, on the scale of the transformed function."""

    @abstractmethod
    def with_error(self, error: float | None) -> Self:
        """Return the predictor that expects this known error of further observations, for standardised targets.

        By default, and for None, it is the median of the known errors of the last five observations.
        """

    @abstractmethod
    def subset(self, n_chains: int, n_draws: int) -> Self:
        """Return the predictor of at most ``n_draws`` of these draws, thinned evenly over the chains of each fit."""

    @abstractmethod
    def for_search(self) -> Self:
        """Return this predictor, prepared for many evaluations at a few configurations each.

        The inverses of the Cholesky factors are computed once, if they are small. A product with all of them is one
        call, whereas triangular solves are a call for each draw, which takes three to nine times as long for up to 100
        observations. Both agree up to rounding; the noise floor bounds the condition number of the factors.
        """

    @abstractmethod
    def with_pending(self, pending: Encoded, *, exact: bool = False) -> Self:
        """Condition every draw on its own mean at q configurations that are still being evaluated.

        The mean does not change; the variance decreases near the pending points (the "kriging believer"). Their values
        have the :attr:`noise` of a further observation or, if they are ``exact``, none: of an exact objective, the
        noise is what the kernel cannot explain, and evaluating a configuration again would return the same value.
        """

    @abstractmethod
    def moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance at m new configurations, both (s, m)."""

    @abstractmethod
    def moments_with_gradient(self, new: Encoded) -> Moments:
        """Return mean and variance (s, m), and their derivatives by the real inputs, (s, m, D_real)."""

    @abstractmethod
    def log_success(self, new: Encoded) -> FloatArray:
        """Return the log probability of success of a binary model at m new configurations, (s, m)."""

    @abstractmethod
    def log_success_with_gradient(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the log probability of success (s, m) and its derivatives by the real inputs, (s, m, D_real)."""

    @abstractmethod
    def latent(self, new: Encoded, y_mean: float, y_sd: float) -> Latent:
        """Return the transformed function at m configurations, for targets standardised with these moments."""

    def predict(self, new: Encoded, y_mean: float, y_sd: float) -> Prediction:
        """Return the prediction in the user's units, for targets standardised with ``y_mean`` and ``y_sd``."""
        return Prediction.from_latent(self.latent(new, y_mean, y_sd))
