r"""Predictions of the latent function from hyperparameter draws, in NumPy.

Symbols, for one draw of s
--------------------------
K = k(X, X) + diag(noise) = L L' : covariance of the n observations and its Cholesky factor
w = L \ (y - mu), alpha = L' \ w : so that alpha = K^-1 (y - mu)
B = k(X, X~) (n, m), V = L \ B : m new points
mean = mu + V' w, var = k(x~, x~) - diag(V' V) : the notes' two triangular solves (slayR, "Posterior predictions")

The function f has the scale of the transformed targets T(y), which are the standardised targets unless the model has a
warp (`slayr_py.inference.warp`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, ndtri

from slayr_py.display import Summary
from slayr_py.errors import DataError, InferenceError
from slayr_py.inference.likelihood import Targets
from slayr_py.inference.model import Model
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate
from slayr_py.inference.triangular import solve_lower, solve_upper
from slayr_py.inference.warp import log_slope, unwarped, unwarped_moments, warped
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, FloatArray

BLOCK = 2**23
"""Doubles in the largest array of a block of draws: 64 MB."""
CACHED = 2**17
"""Doubles in the arrays of a block that should stay in a processor's cache: 1 MB."""
_JITTERS = (1e-14, 1e-12, 1e-10)
_BISECTIONS = 60


class Latent(NamedTuple):
    """Latent function at m configurations under s draws, and its relation to the user's units.

    The transformed function T((y - y_mean) / y_sd) is normal under each draw.

    Attributes
    ----------
    mean, sd : (s, m) float64
        Moments of the transformed function.
    warp : (s,) float64 or None
        Parameter of T; None if T is the identity.
    y_mean, y_sd : float
        Standardisation of the targets; ``y_sd`` is negative if larger values are better.
    sigma_n : (s,) float64
        Standard deviation of the noise, on the scale of the transformed function.
    """

    mean: FloatArray
    sd: FloatArray
    warp: FloatArray | None
    y_mean: float
    y_sd: float
    sigma_n: FloatArray

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of the function under each draw, (s, m), for standardised targets."""
        if self.warp is None:
            return self.mean, self.sd
        return unwarped_moments(self.mean, self.sd, self.warp[:, None])

    def of_observation(self) -> Latent:
        """Return the same for a new observation: the transformed function plus noise."""
        return self._replace(sd=np.hypot(self.sd, self.sigma_n[:, None]))

    def cumulative(self, y: FloatArray, noise: FloatArray | float = 0.0) -> FloatArray:
        """Return the probability of values below y (m,), in the user's units; noise sd (s, 1) is added to ``sd``."""
        z, _ = self._standard(y, noise)
        return np.asarray(ndtr(np.copysign(1.0, self.y_sd) * z).mean(axis=0))

    def log_density(self, y: FloatArray, noise: FloatArray | float = 0.0) -> FloatArray:
        """Return the log density at y (m,), in the user's units; noise as in :meth:`cumulative`."""
        z, log_scale = self._standard(y, noise)
        log_terms = -0.5 * np.square(z) - 0.5 * np.log(2 * np.pi) - log_scale
        return np.asarray(logsumexp(log_terms, axis=0) - np.log(len(self.mean)) - np.log(abs(self.y_sd)))

    def _standard(self, y: FloatArray, noise: FloatArray | float) -> tuple[FloatArray, FloatArray]:
        """Return standard normal scores of y (s, m) and the logarithm of d y / d score on the standardised scale."""
        scaled = np.broadcast_to((np.asarray(y) - self.y_mean) / self.y_sd, self.mean.shape)
        sd = np.hypot(self.sd, noise)
        if self.warp is None:
            return (scaled - self.mean) / sd, np.log(sd)
        a = self.warp[:, None]
        return (warped(scaled, a) - self.mean) / sd, np.log(sd) - log_slope(scaled, a)


class _Values(NamedTuple):
    mean: FloatArray
    sd: FloatArray
    draw_mean: FloatArray
    draw_sd: FloatArray


class Prediction(_Values):
    """Latent function at m configurations, in the user's units: a tuple of four arrays.

    Attributes
    ----------
    mean, sd : (m,) float64
        Moments of the mixture over all draws. Under a warp values far above all observations can dominate them:
        :meth:`quantile` and :meth:`interval` describe the distribution better.
    draw_mean, draw_sd : (s, m) float64
        Moments under each draw of the hyperparameters.
    latent : Latent
        The normal distributions of the transformed function.
    """

    latent: Latent

    @classmethod
    def from_latent(cls, latent: Latent) -> Prediction:
        """Return the mixture over all draws."""
        draw_mean, draw_sd = latent.moments()
        mean, sd = mixture_moments(draw_mean, draw_sd)
        centre = latent.y_mean
        scale = latent.y_sd
        prediction = cls(centre + scale * mean, abs(scale) * sd, centre + scale * draw_mean, abs(scale) * draw_sd)
        prediction.latent = latent
        return prediction

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        draws, points = self.draw_mean.shape
        table = pd.DataFrame({"configuration": range(points), "mean": self.mean, "sd": self.sd})
        heading = f"Prediction of the latent function at {points} configurations by {draws} draws"
        return Summary(heading, table, rows=5)

    @cached_property
    def observation_sd(self) -> FloatArray:
        """Standard deviation (m,) of a new observation, noise included."""
        _, sd = mixture_moments(*self.latent.of_observation().moments())
        return np.asarray(abs(self.latent.y_sd) * sd)

    def quantile(self, q: ArrayLike, observation: bool = False) -> FloatArray:
        """Return quantiles of the mixture, by bisection of its distribution function.

        Parameters
        ----------
        q : float or (k,) array_like
            Probabilities in (0, 1).
        observation : bool
            Describe a new observation, noise included, instead of the latent function.

        Returns
        -------
        (m,) or (k, m) float64

        Raises
        ------
        DataError
            If a probability is not in (0, 1).
        """
        probabilities = np.asarray(q, dtype=np.float64)
        if not np.all((probabilities > 0) & (probabilities < 1)):
            raise DataError(f"probabilities of quantiles must lie in (0, 1), got {q!r}")
        latent = self.latent.of_observation() if observation else self.latent
        rows = [_quantile(latent, float(p)) for p in probabilities.ravel()]
        return np.reshape(rows, (*probabilities.shape, self.mean.size))

    def interval(self, level: float = 0.9, observation: bool = False) -> tuple[FloatArray, FloatArray]:
        """Return the bounds (m,) of the central interval of the latent function with probability ``level``.

        Parameters
        ----------
        level : float
            Probability in (0, 1).
        observation : bool
            Describe a new observation, noise included, instead of the latent function.

        Raises
        ------
        DataError
            If the level is not in (0, 1).
        """
        if not 0 < level < 1:
            raise DataError(f"level must be a probability between 0 and 1, got {level!r}")
        return self.quantile((1 - level) / 2, observation), self.quantile((1 + level) / 2, observation)

    def centre_and_spread(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation (m,) or, under a warp, the median and half the central 68% interval.

        Under a warp the tail of values that are far above all observations dominates the moments.
        """
        if self.latent.warp is None:
            return self.mean, self.sd
        low, median, high = self.quantile(ndtr([-1.0, 0.0, 1.0]))
        return median, (high - low) / 2


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


def _quantile(latent: Latent, p: float) -> FloatArray:
    """Return the quantile (m,) of the mixture over all draws, by bisection."""
    if latent.y_sd < 0 and p >= 0.5:  # 1 - p is exact: the same bits as for the negated values
        return -_quantile(latent._replace(y_mean=-latent.y_mean, y_sd=-latent.y_sd), 1 - p)
    # The quantile of a mixture lies between the smallest and the largest quantile of its components.
    scores = latent.mean + np.copysign(1.0, latent.y_sd) * ndtri(p) * latent.sd
    if latent.warp is not None:
        scores = unwarped(scores, latent.warp[:, None])
    bounds = latent.y_mean + latent.y_sd * scores
    lower = bounds.min(axis=0)
    upper = bounds.max(axis=0)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (lower + upper)
        below = latent.cumulative(middle) < p
        lower = np.where(below, middle, lower)
        upper = np.where(below, upper, middle)
    return np.asarray(0.5 * (lower + upper))


def mixture_moments(mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of an equally weighted mixture of normals along the first axis."""
    centre = mean.mean(axis=0)
    return centre, np.sqrt(np.mean(np.square(sd) + np.square(mean - centre), axis=0))


def thinned(n_draws: int, n_chains: int, wanted: int) -> NDArray[np.intp]:
    """Return the rows of at most ``wanted`` of ``n_draws`` draws, the same number from every chain, evenly spaced."""
    rows = np.arange(n_draws).reshape(n_chains, -1)
    if wanted < n_draws:
        rows = rows[:, np.linspace(0, rows.shape[1] - 1, max(1, wanted // n_chains)).round().astype(np.intp)]
    return rows.ravel()


class Chains(NamedTuple):
    """Rows of draws that came from the same chains, for Monte Carlo errors of means over draws.

    Attributes
    ----------
    share : float
        Their share of all draws.
    rows : (c, s) int
        Rows of c chains.
    """

    share: float
    rows: NDArray[np.intp]


class Predictor:
    """Cholesky factors of s draws, computed once, and predictions from them.

    Parameters
    ----------
    kernel : Kernel
    train : Encoded
        The n observed configurations.
    targets : Targets or (n,) or (s, n) float64
        Observations; an array has standardised targets, for all draws or for each, without known errors.
    draws : mapping of str to (s, ...) float64
        ``mu``, ``sigma_f``, ``sigma_n``, the kernel's hyperparameters and, if the model has it, ``warp``.

    Notes
    -----
    Moments are those of the transformed function, after :meth:`linearised` of the function itself near a value.
    """

    def __init__(
        self, kernel: Kernel, train: Encoded, targets: Targets | FloatArray, draws: Mapping[str, FloatArray]
    ) -> None:
        self.kernel = kernel
        self.train = train
        self.draws = draws
        self.targets = targets if isinstance(targets, Targets) else Targets(targets, np.zeros(len(train)))
        s = len(draws["mu"])
        n = len(train)
        covariance = np.empty((s, n, n))
        # Blocks that fit into a processor's cache take half the time.
        block = max(1, CACHED // (n * n))
        for i in range(0, s, block):
            rows = slice(i, i + block)
            covariance[rows] = kernel.cross(train, train, {name: values[rows] for name, values in draws.items()})
        values, noise = self.targets.gaussian(covariance, draws)
        diagonal = np.arange(n)
        covariance[:, diagonal, diagonal] += noise
        self.factor = cholesky(covariance)
        self._offset = np.zeros((s, 1))
        self._slope = np.ones((s, 1))
        residual = values - draws["mu"][:, None]
        self.whitened = np.stack([solve_lower(f, r[None])[0] for f, r in zip(self.factor, residual, strict=True)])
        self._solve_weights()

    @classmethod
    def from_factors(
        cls,
        kernel: Kernel,
        train: Encoded,
        targets: Targets,
        draws: Mapping[str, FloatArray],
        factor: FloatArray,
        weights: FloatArray,
    ) -> Predictor:
        """Return a predictor from factors (s, n, n) and weights (s, n) of the covariances in the mean."""
        made = cls.__new__(cls)
        made.kernel = kernel
        made.train = train
        made.draws = draws
        made.targets = targets
        made.factor = factor
        made.weights = weights
        made.whitened = np.einsum("snm,sn->sm", factor, weights)
        made._offset = np.zeros((len(factor), 1))
        made._slope = np.ones((len(factor), 1))
        return made

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.factor)

    def _solve_weights(self) -> None:
        """Compute the weights alpha of the covariances in the mean."""
        pairs = zip(self.factor, self.whitened, strict=True)
        self.weights = np.stack([solve_upper(f, w[None])[0] for f, w in pairs])

    def linearised(self, best: float) -> Predictor:
        """Return a predictor of the function itself, on the standardised scale, near the value ``best``.

        The inverse of each draw's warp is replaced by its tangent at T(best). Moments of draws with different warps
        are then comparable. The improvement on ``best`` is exact for small improvements, and too large by the
        curvature of the warp otherwise.
        """
        if "warp" not in self.draws:
            return self
        a = self.draws["warp"][:, None]
        tangent = copy(self)
        tangent._slope = np.exp(-log_slope(np.array(best), a))
        tangent._offset = best - tangent._slope * warped(np.array(best), a)
        return tangent

    def subset(self, n_chains: int, n_draws: int) -> Predictor:
        """Return the predictor of at most ``n_draws`` of these draws, all of whose chains are thinned evenly."""
        if n_draws >= len(self.factor):
            return self
        return self.at(thinned(len(self.factor), n_chains, n_draws))

    def at(self, rows: NDArray[np.intp]) -> Predictor:
        """Return the predictor of some of these draws."""
        some = copy(self)
        some.draws = {name: values[rows] for name, values in self.draws.items()}
        some._offset = self._offset[rows]
        some._slope = self._slope[rows]
        some.factor = self.factor[rows]
        some.whitened = self.whitened[rows]
        some.weights = self.weights[rows]
        return some

    def moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance at m new configurations, both (s, m)."""
        cross = self.kernel.cross(new, self.train, self.draws)
        return self._tangent(*self._moments(new, cross, self._solve(cross)))

    def predict(self, new: Encoded, y_mean: float, y_sd: float) -> Prediction:
        """Return the prediction in units of the user, for targets standardised with ``y_mean`` and ``y_sd``."""
        cross = self.kernel.cross(new, self.train, self.draws)
        mean, variance = self._moments(new, cross, self._solve(cross))
        warp = self.draws.get("warp")
        noise = np.sqrt(self.targets.common_noise(self.draws))
        return Prediction.from_latent(Latent(mean, np.sqrt(variance), warp, y_mean, y_sd, noise))

    def joint_moments(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return mean (s, m) and covariance (s, m, m) of the transformed function at m new configurations."""
        solved, covariance = self.solved_and_covariance(new)
        return self.draws["mu"][:, None] + np.einsum("smn,sn->sm", solved, self.whitened), covariance

    def solved_and_covariance(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        r"""Return V' = (L \ k(X, X~))' (s, m, n) and the posterior covariance (s, m, m) at m new configurations."""
        solved = self._solve(self.kernel.cross(new, self.train, self.draws))
        return solved, self.kernel.cross(new, new, self.draws) - solved @ solved.transpose(0, 2, 1)

    def moments_with_gradient(self, new: Encoded) -> Moments:
        """Return mean and variance (s, m), and their derivatives by the real inputs, (s, m, D_real)."""
        cross, slope = self.kernel.cross_gradient(new, self.train, self.draws)
        solved = self._solve(cross)
        mean, variance = self._tangent(*self._moments(new, cross, solved))
        precision_cross = [solve_upper(f, v) for f, v in zip(self.factor, solved, strict=True)]
        both = np.stack([np.broadcast_to(self.weights[:, None], cross.shape), precision_cross], axis=2) @ slope
        mean_gradient = both[:, :, 0]
        variance_gradient = self.kernel.diagonal_gradient(new, self.draws) - 2 * both[:, :, 1]
        if "warp" in self.draws:
            mean_gradient *= self._slope[..., None]
            variance_gradient *= np.square(self._slope)[..., None]
        return Moments(mean, variance, mean_gradient, variance_gradient)

    def with_pending(self, pending: Encoded) -> Predictor:
        r"""Condition every draw on its own mean at q configurations that are still being evaluated.

        The mean does not change; the variance decreases near the pending points (the "kriging believer"). Only the last
        q rows of each factor are computed, [L 0; V' chol(K_qq + noise - V' V)] with V = L \ B.
        """
        if not len(pending):
            return self
        n = len(self.train)
        q = len(pending)
        solved = self._solve(self.kernel.cross(pending, self.train, self.draws))
        rest = self.kernel.cross(pending, pending, self.draws) - solved @ solved.transpose(0, 2, 1)
        diagonal = np.arange(q)
        rest[:, diagonal, diagonal] += self.targets.common_noise(self.draws)[:, None]
        factor = np.zeros((len(solved), n + q, n + q))
        factor[:, :n, :n] = self.factor
        factor[:, n:, :n] = solved
        factor[:, n:, n:] = cholesky(rest)
        extended = copy(self)
        extended.train = self.train.concatenate(pending)
        extended.factor = factor
        # The assumed values are the mean given the observations, so that their whitened residuals are 0.
        extended.whitened = np.hstack([self.whitened, np.zeros((len(solved), q))])
        extended._solve_weights()
        return extended

    def _solve(self, cross: FloatArray) -> FloatArray:
        r"""Return V' = (L \ B)', (s, m, n)."""
        return np.stack([solve_lower(f, c) for f, c in zip(self.factor, cross, strict=True)])

    def _moments(self, new: Encoded, cross: FloatArray, solved: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = self.draws["mu"][:, None] + np.einsum("smn,sn->sm", solved, self.whitened)
        variance = self.kernel.diagonal(new, self.draws) - np.einsum("smn,smn->sm", solved, solved)
        return mean, np.maximum(variance, 0.0)

    def _tangent(self, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return moments of the transformed function as moments of its linearisation."""
        if "warp" not in self.draws:
            return mean, variance
        return self._offset + self._slope * mean, np.square(self._slope) * variance


PredictorOf = Callable[[NDArray[np.intp]], Predictor]
"""Returns the predictor of some rows of the draws of a posterior."""


def predict_all(predictor_of: PredictorOf, n_draws: int, n_points: int, new: Encoded) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of s draws at m configurations, (s, m), in blocks of limited memory.

    Parameters
    ----------
    predictor_of : callable
        Returns the predictor of some rows of the draws.
    n_draws, n_points : int
        Numbers s of draws and n of points in a predictor's factors.
    new : Encoded
    """
    s = n_draws
    n = n_points
    m = len(new)
    mean = np.empty((s, m))
    sd = np.empty((s, m))
    columns = max(1, min(m, BLOCK // max(n, 1) // 8))
    rows = max(1, BLOCK // (max(n, 1) * max(n, columns, 1)))
    for i in range(0, s, rows):
        predictor = predictor_of(np.arange(i, min(i + rows, s)))
        for j in range(0, m, columns):
            block_mean, variance = predictor.moments(new[j : j + columns])
            mean[i : i + rows, j : j + columns] = block_mean
            sd[i : i + rows, j : j + columns] = np.sqrt(variance)
    return mean, sd


def sample_all(
    predictor_of: PredictorOf, n_points: int, new: Encoded, rows: NDArray[np.intp], rng: np.random.Generator
) -> FloatArray:
    """Draw the transformed function jointly at m configurations, once for each of the k ``rows`` of draws: (k, m).

    Blocks of draws limit the memory; arguments as in :func:`predict_all`.
    """
    normals = rng.standard_normal((len(rows), len(new)))
    values = np.empty(normals.shape)
    distinct = np.unique(rows)
    block = max(1, BLOCK // max(n_points, len(new), 1) ** 2)
    for i in range(0, len(distinct), block):
        some = distinct[i : i + block]
        predictor = predictor_of(some)
        mean, covariance = predictor.joint_moments(new)
        # Rounding errors are relative to the prior variance, which can exceed the posterior one by orders of magnitude.
        scale = predictor.kernel.diagonal(new, predictor.draws).max(axis=1, initial=0.0)
        factors = cholesky(covariance, scale)
        for row, centre, factor in zip(some, mean, factors, strict=True):
            mine = rows == row
            values[mine] = centre + normals[mine] @ factor.T
    return values


def predict_in_stan(
    model: Model, train: Encoded, targets: Targets, stored: xr.Dataset, new: Encoded, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation (s, m) of the latent function from the program's generated quantities.

    Parameters
    ----------
    stored : Dataset
        Draws of the program's parameters, (chain, draw, ...).
    """
    data = model.stan_data(train, targets.y, new, pointwise=False, y_sd=targets.y_sd)
    data["noise_floor"] = targets.noise_floor
    output = generate(compiled(model.kernel.program), data, coordinate_table(model, stored), seed)
    mean = output[[f"f_mean.{i + 1}" for i in range(len(new))]].to_numpy()
    sd = output[[f"f_sd.{i + 1}" for i in range(len(new))]].to_numpy()
    return mean, sd


def coordinate_table(model: Model, stored: xr.Dataset) -> pd.DataFrame:
    """Return draws of the program's parameters, (chain, draw, ...), as one row per draw, with CmdStan's names."""
    table: dict[str, FloatArray] = {}
    for name, shape in model.parameter_shapes.items():
        values = stored[name].values.reshape(stored.sizes["chain"] * stored.sizes["draw"], -1)
        table |= {f"{name}.{i + 1}" if shape else name: np.asarray(v) for i, v in enumerate(values.T)}
    return pd.DataFrame(table)


def cholesky(covariance: FloatArray, scale: FloatArray | None = None) -> FloatArray:
    """Return the lower factors of (s, n, n), with the smallest jitter that makes each matrix positive definite.

    The jitter is relative to ``scale`` (s,), by default the mean of each diagonal.
    """
    try:
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError:
        scales = np.mean(np.diagonal(covariance, axis1=1, axis2=2), axis=1) if scale is None else scale
        return np.stack([_jittered_cholesky(*pair) for pair in zip(covariance, scales, strict=True)])


def _jittered_cholesky(matrix: FloatArray, scale: float) -> FloatArray:
    for jitter in (0.0, *_JITTERS):
        try:
            factor = np.linalg.cholesky(matrix + jitter * scale * np.eye(len(matrix)))
            return np.asarray(factor, dtype=np.float64)
        except np.linalg.LinAlgError:
            continue
    raise InferenceError(
        f"the covariance of {len(matrix)} configurations is not positive definite even with relative jitter "
        f"{_JITTERS[-1]}; use a prior with larger sigma_n"
    )
