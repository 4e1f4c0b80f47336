"""Formulas of a textbook over the draws of a fit, for standardised values that are minimised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.stats import norm

import slayr_py as sl
from slayr_py.inference.model import NOISE_FLOOR
from slayr_py.kernels import Matern
from slayr_py.space import Encoded

NODES = np.linspace(-12, 12, 6001)[:, None]
WEIGHTS = norm.pdf(NODES) * (NODES[1] - NODES[0])


def close(actual: Any, wanted: Any, tolerance: float = 1e-7) -> None:
    """Compare arrays; the tolerance is relative to the largest number."""
    scale = np.max(np.abs(wanted), initial=1e-12)
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance * scale)


def transform(y, a, pivot=None):
    """Return T(y) and T'(y) of the warp with parameter a, and with a pivot or without."""
    if pivot is not None:
        scale = 4 / np.log(1 + 4 * a)
        above = np.log(1 + a * np.maximum(y - pivot, 0)) + a * np.minimum(y - pivot, 0)
        return scale * (above - np.log(1 - a * pivot)), scale * a / (1 + a * np.maximum(y - pivot, 0))
    upper = np.maximum(y, 0)
    with np.errstate(over="ignore"):
        growth = np.exp(-a * np.minimum(y, 0))
    return (np.log1p(a * upper) + 1 - growth) / a, growth / (1 + a * upper)


def inverse(t, a, pivot=None):
    """Return T^-1(t)."""
    if pivot is not None:
        x = t * np.log(1 + 4 * a) / 4 + np.log(1 - a * pivot)
        return pivot + (np.exp(np.maximum(x, 0)) - 1 + np.minimum(x, 0)) / a
    return (np.exp(a * np.maximum(t, 0)) - 1) / a - np.log1p(-a * np.minimum(t, 0)) / a


def covariance(kernel, a: Encoded, b: Encoded, theta) -> np.ndarray:
    """Return the covariance of a kernel; of the default kernel of real spaces without the package's code."""
    if not (isinstance(kernel, Matern) and kernel.p == 2):
        return kernel.gram(a, b, theta)
    d = np.sqrt(5 * np.sum(np.square((a.columns[:, None] - b.columns[None]) / theta["lengthscale"]), axis=-1))
    return theta["sigma_f"] ** 2 * (1 + d + d**2 / 3) * np.exp(-d)


class Draw(NamedTuple):
    """One draw of the hyperparameters of a kernel, and the observations under it.

    Attributes
    ----------
    targets, slopes : (n,) float64
        T(y) and T'(y).
    noise : (n,) float64
        Variances of the noise of the targets.
    """

    kernel: Any
    theta: dict[str, Any]
    train: Encoded
    targets: np.ndarray
    slopes: np.ndarray
    noise: np.ndarray
    pivot: float | None = None
    further: float = 0.0
    """Known error of a further observation."""

    @property
    def warp(self) -> float | None:
        return self.theta.get("warp")

    @property
    def common_noise(self) -> float:
        return self.theta["sigma_n"] ** 2 + NOISE_FLOOR**2

    def predict(self, new: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the transformed function: Rasmussen & Williams (2006), eqs. 2.23 and 2.24."""
        K = covariance(self.kernel, self.train, self.train, self.theta) + np.diag(self.noise)
        cross = covariance(self.kernel, self.train, new, self.theta)
        factor = cho_factor(K)
        mean = self.theta["mu"] + cross.T @ cho_solve(factor, self.targets - self.theta["mu"])
        prior = np.diag(covariance(self.kernel, new, new, self.theta))
        return mean, prior - np.sum(cross * cho_solve(factor, cross), axis=0)

    def moments(self, new: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of the function, by quadrature under a warp."""
        mean, variance = self.predict(new)
        if self.warp is None:
            return mean, np.sqrt(variance)
        values = self.untransformed(mean + np.sqrt(variance) * NODES)
        first = np.sum(WEIGHTS * values, axis=0)
        return first, np.sqrt(np.sum(WEIGHTS * np.square(values - first), axis=0))

    def cumulative(self, new: Encoded, y: np.ndarray) -> np.ndarray:
        """Return the probability of values of the function below y (m,)."""
        mean, variance = self.predict(new)
        t = y if self.warp is None else transform(y, self.warp, self.pivot)[0]
        return norm.cdf((t - mean) / np.sqrt(variance))

    def expected_improvement(self, new: Encoded, best: float, noise: float = 0.0) -> np.ndarray:
        """Return the mean of max(best - f, 0), by quadrature; f is the posterior mean after a noisy observation."""
        mean, variance = self.predict(new)
        values = self.untransformed(mean + variance / np.sqrt(variance + noise) * NODES)
        return np.sum(WEIGHTS * np.maximum(best - values, 0), axis=0)

    def told(self, new: Encoded) -> Draw:
        """Return the draw with a value at one configuration, one standard deviation above its mean."""
        mean, variance = self.predict(new)
        return self._replace(
            train=self.train.concatenate(new),
            targets=np.append(self.targets, mean + np.sqrt(variance + self.further_noise)),
            noise=np.append(self.noise, self.further_noise),
        )

    def improvement_beside(self, new: Encoded, owner: Encoded, value: float, edge: float) -> np.ndarray:
        """Return the mean of max(edge - m, 0) over values that may be observed at one configuration.

        m is the posterior mean there, relative to that at another configuration, whose value is known.
        """
        both = new.concatenate(owner)
        before = self.predict(both)[0]
        change = self.told(new).predict(both)[0] - before
        known = value if self.warp is None else transform(value, self.warp, self.pivot)[0]
        t = known + before[0] - before[1] + (change[0] - change[1]) * NODES
        return np.sum(WEIGHTS * np.maximum(edge - self.untransformed(t), 0), axis=0)

    def improvement_of_means(self, new: Encoded, compared: Encoded, best: float) -> float:
        """Return the mean of max(best - m, 0) over values that may be observed at one configuration.

        m is the posterior mean there or, if this improves the transformed function more, that of the second compared
        configuration, less the change of that at the first one. The changes are those by one standard deviation of the
        value, found by adding an observation. Where the second one is better already, by d, only the improvement beyond
        d counts, which is that from -d.
        """
        mean = self.predict(new)[0]
        told = self.told(new)
        before = self.predict(compared)[0]
        changes = told.predict(compared)[0] - before
        improvements = []
        second = before[0] + np.abs(before[1:] - before[0])
        for now, change in [(mean, told.predict(new)[0] - mean), *zip(second, changes[1:], strict=True)]:
            t = now + (change - changes[0]) * NODES[:, 0]
            improved = np.sum(WEIGHTS[:, 0] * np.maximum(best - self.untransformed(t), 0))
            improvements.append((np.sum(WEIGHTS[:, 0] * np.maximum(before[0] - t, 0)), float(improved)))
        return max(improvements)[1]

    def untransformed(self, t: np.ndarray) -> np.ndarray:
        """Return values of the function from values of the transformed function."""
        return t if self.warp is None else inverse(t, self.warp, self.pivot)

    def without(self, i: int) -> Draw:
        rest = np.delete(np.arange(len(self.targets)), i)
        return self._replace(train=self.train[rest], targets=self.targets[rest], noise=self.noise[rest])

    def leave_one_out(self) -> np.ndarray:
        """Return the log density of each value given the others."""
        densities = []
        for i, (target, slope, noise) in enumerate(zip(self.targets, self.slopes, self.noise, strict=True)):
            mean, variance = self.without(i).predict(self.train[[i]])
            densities.append(norm.logpdf(target, mean[0], np.sqrt(variance[0] + noise)) + np.log(slope))
        return np.array(densities)

    def log_marginal(self) -> float:
        """Return the log density of all values."""
        K = covariance(self.kernel, self.train, self.train, self.theta) + np.diag(self.noise)
        residual = self.targets - self.theta["mu"]
        quadratic = residual @ np.linalg.solve(K, residual)
        determinant = np.linalg.slogdet(2 * np.pi * K)[1]
        return float(-0.5 * quadratic - 0.5 * determinant + np.sum(np.log(self.slopes)))

    @property
    def further_noise(self) -> float:
        """Variance of the noise of a further observation."""
        return self.common_noise + self.further**2

    def believing(self, pending: Encoded, exact: bool) -> Draw:
        """Return the draw with its own means as further observations, without noise if they are exact."""
        draw = self
        noise = NOISE_FLOOR**2 if exact else self.further_noise
        for i in range(len(pending)):
            point = pending[[i]]
            draw = draw._replace(
                train=draw.train.concatenate(point),
                targets=np.append(draw.targets, draw.predict(point)[0]),
                noise=np.append(draw.noise, noise),
            )
        return draw


class Mixture(NamedTuple):
    """Draws with equal weights, and the units of the user: ``scale`` is negative if larger values are better."""

    draws: Sequence[Draw]
    counts: np.ndarray
    """How often each draw occurs: the mixture of a stack repeats them in proportion to its weights."""

    centre: float
    scale: float

    @classmethod
    def of(cls, posterior: sl.Posterior, y, y_sd, maximize: bool, further: float = 0.0) -> Mixture:
        """Return the draws of a posterior, of all parts in their order; ``further`` is the error of a further value."""
        y = np.asarray(y, dtype=float)
        centre = float(y.mean())
        sd = float(y.std(ddof=1))
        scale = -sd if maximize else sd
        values = (y - centre) / scale
        errors = np.zeros(len(y)) if y_sd is None else np.asarray(y_sd) / sd
        draws = []
        counts = []
        for part, rows in posterior.rows_of(posterior.n_draws):
            pivot = values.min() if part.model.warp == "best" else None
            for row in np.unique(rows):
                theta = {name: drawn[row] for name, drawn in part.draws.items()}
                targets = values
                slopes = np.ones(len(y))
                if "warp" in theta:
                    targets, slopes = transform(values, theta["warp"], pivot)
                noise = theta["sigma_n"] ** 2 + NOISE_FLOOR**2 + np.square(errors)
                draws.append(Draw(part.model.kernel, theta, part.train, targets, slopes, noise, pivot, further / sd))
                counts.append(np.sum(rows == row))
        return cls(draws, np.array(counts), centre, scale)

    def believing(self, pending: Encoded, exact: bool) -> Mixture:
        return self._replace(draws=[draw.believing(pending, exact) for draw in self.draws])

    def average(self, values) -> np.ndarray:
        return np.average(values, axis=0, weights=self.counts)

    def moments(self, new: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation (m,), in the user's units."""
        each = [draw.moments(new) for draw in self.draws]
        means = np.array([mean for mean, _ in each])
        sds = np.array([sd for _, sd in each])
        mean = self.average(means)
        sd = np.sqrt(self.average(np.square(sds) + np.square(means - mean)))
        return self.centre + self.scale * mean, abs(self.scale) * sd

    def cumulative(self, new: Encoded, y) -> np.ndarray:
        """Return the probability of values of the function below y (m,), in the user's units."""
        below = self.average([draw.cumulative(new, (np.asarray(y) - self.centre) / self.scale) for draw in self.draws])
        return below if self.scale > 0 else 1 - below

    def quantile(self, point: Encoded, p: float) -> float:
        reach = 1e3 * abs(self.scale)
        return brentq(
            lambda y: self.cumulative(point, y)[0] - p, self.centre - reach, self.centre + reach, xtol=1e-11 * reach
        )

    def centre_and_spread(self, new: Encoded) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation, or under a warp the median and its distance to the better quantile."""
        if self.draws[0].warp is None:
            return self.moments(new)
        points = [new[[i]] for i in range(len(new))]
        tail = norm.cdf(-1) if self.scale > 0 else norm.cdf(1)
        better, median = (np.array([self.quantile(point, p) for point in points]) for p in (tail, 0.5))
        return median, np.abs(better - median)


def front(values: np.ndarray) -> np.ndarray:
    """Return the values (k, 2) that no other one (n, 2) dominates, sorted by the first objective."""
    kept: list[np.ndarray] = []
    for value in values[np.lexsort(values.T[::-1])]:
        if not kept or value[1] < kept[-1][1]:
            kept.append(value)
    return np.array(kept)


def compressed(
    y: np.ndarray, errors: np.ndarray, penalised: np.ndarray, maximize: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values and errors (n,) that a model sees: penalties are at most twice as far as the others."""
    best = y.max() if maximize else y.min()
    largest = np.abs(y[~penalised] - best).max()
    values, smaller = y.copy(), errors.copy()
    for i in np.flatnonzero(penalised):
        ratio = abs(y[i] - best) / largest
        values[i] = best + np.sign(y[i] - best) * largest * (2 - 1 / ratio)
        smaller[i] /= ratio**2
    return values, smaller
