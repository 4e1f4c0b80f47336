r"""Sparse Gaussian processes: a variational bound from m inducing points (Titsias 2009), for thousands of observations.

With Q = K_nm K_mm^-1 K_mn, noise variance s^2 and r = y - mu, the bound of the log marginal likelihood is

    L = log Normal(r; 0, Q + s^2 I) - tr(K - Q) / (2 s^2).

With the Cholesky factor L_m of K_mm, it is computed from A = L_m^-1 K_mn / s and B = I + A A' = L_B L_B' in O(n m^2).
With beta = (K_mm + K_mn K_nm / s^2)^-1 K_mn r / s^2 and e = r - K_nm beta, its derivatives are

    by K_nm: A' (I - B^-1) L_m^-1 / s + e beta' / s^2
    by K_mm: L_m^-T (I - B^-1 - A A') L_m^-1 / 2 - beta beta' / 2
    by k_ii: -1 / (2 s^2)
    by mu:   1'e / s^2
    by s^2:  [tr(I - B^-1) - tr(A A') - n] / (2 s^2) + (|e|^2 + tr K) / (2 s^4).

Formulas with the inverses of K_mm and of K_mm + K_mn K_nm / s^2 lose all digits, because both matrices are nearly
singular and their inverses nearly cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dtrtrs
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.inference.model import Model
from slayr_py.inference.modes.marginal import LogDensity, Marginal, log_prior, with_prior
from slayr_py.kernels import Draws, Pairs
from slayr_py.space import Encoded, FloatArray

JITTER = 1e-8
"""Added to the diagonal of the covariance of the inducing points, relative to its mean."""

_UNINFORMED = 1e-10  # smallest share of the prior precision that observations add in a direction

_SAMPLE = 2000  # rows on which starts are compared
_SAMPLE_PER_POINT = 10  # the same for each inducing point

_PAIRS = 200_000  # pairs of points of a block, whose correlations fit into a processor's cache


class _Solved(NamedTuple):
    """Matrices of one setting of the hyperparameters; see the module.

    Attributes
    ----------
    prior_factor, inner_factor : (m, m) float64
        L_m and L_B.
    weights : (m,) float64
        beta.
    whitened_weights : (m,) float64
        L_m' beta.
    likelihood : float
        The bound L.
    A : (m, n) float64
    noise : float
        s^2.
    """

    prior_factor: FloatArray
    inner_factor: FloatArray
    weights: FloatArray
    whitened_weights: FloatArray
    likelihood: float
    A: FloatArray
    noise: float


class SparseMarginal(Marginal):
    """Variational bound of the marginal likelihood of n targets.

    Parameters
    ----------
    model, train, y
        As of `Marginal`.
    inducing : Encoded
        The m inducing points; `inducing_points` chooses them.
    """

    def __init__(self, model: Model, train: Encoded, y: FloatArray, inducing: Encoded) -> None:
        super().__init__(model, train, y)
        if self._plan.given:
            raise DataError("a sparse fit cannot use given leaves; use an exact fit, or leaves such as SE and RQ")
        self._floor = model.noise_floor**2
        self._model = model
        self.inducing = inducing
        X = train.columns
        Z = inducing.columns
        self._columns, self._rows = np.triu_indices(len(Z))
        self._diagonal = np.flatnonzero(self._columns == self._rows)
        self._among = Pairs(Z[self._rows], Z[self._columns], ())
        self._diagonal_pairs = Pairs(X, X, ())
        size = max(1, _PAIRS // len(Z))
        self._blocks = [slice(i, min(i + size, self.n)) for i in range(0, self.n, size)]
        self._between = [Pairs(X[block][:, None], Z, ()) for block in self._blocks]

    @override
    def __call__(self, z: FloatArray) -> LogDensity:
        theta = self.coordinates.theta(z[None])
        solved = self._solve(theta)
        if solved is None:
            return LogDensity(-np.inf, np.zeros(len(z)), -np.inf)
        m = len(self.inducing)
        noise = solved.noise
        beta = solved.weights
        signal = float(theta["sigma_f"][0]) ** 2
        root = dtrtrs(solved.inner_factor, np.eye(m), lower=1)[0]
        inner_inverse = root.T @ root
        excess = solved.inner_factor @ solved.inner_factor.T - np.eye(m)
        shrunk = np.eye(m) - inner_inverse
        error = self._y - theta["mu"][0] - np.sqrt(noise) * (solved.whitened_weights @ solved.A)
        variances, variance_pullback = self._plan.correlation_pullback(self._diagonal_pairs, theta)
        by_noise = np.trace(shrunk) - np.trace(excess) + (error @ error + signal * variances[0].sum()) / noise
        by_noise = 0.5 * (by_noise - self.n) / noise
        half = dtrtrs(solved.prior_factor, shrunk - excess, lower=1, trans=1)[0]
        by_among = 0.5 * (dtrtrs(solved.prior_factor, half.T, lower=1, trans=1)[0] - np.outer(beta, beta))
        # The jitter is a multiple of the mean diagonal, so it depends on the signal and on the points.
        by_pair = 2 * by_among[self._rows, self._columns]
        by_pair[self._diagonal] = np.diagonal(by_among) + JITTER * np.trace(by_among) / m
        among, among_pullback = self._plan.correlation_pullback(self._among, theta)
        slopes = among_pullback(signal * by_pair[None])
        by_signal = by_pair @ among[0] - 0.5 / noise * variances[0].sum()
        _add(slopes, variance_pullback(np.full((1, self.n), -0.5 * signal / noise)))
        middle = dtrtrs(solved.prior_factor, shrunk, lower=1, trans=1)[0].T / np.sqrt(noise)
        for block, pairs in zip(self._blocks, self._between, strict=True):
            by_cross = solved.A[:, block].T @ middle + np.outer(error[block] / noise, beta)
            # Computed again, since storing the values of every leaf and block in `_solve` would need too much memory.
            correlation, block_pullback = self._plan.correlation_pullback(pairs, theta)
            _add(slopes, block_pullback(signal * by_cross[None]))
            by_signal += np.sum(by_cross * correlation[0])
        slopes["sigma_f"] = np.array([2 * np.sqrt(signal) * by_signal])
        slopes["sigma_n"] = np.array([2 * theta["sigma_n"][0] * by_noise])
        slopes["mu"] = np.array([error.sum() / noise])
        return with_prior(self.coordinates, z, solved.likelihood, slopes)

    def log_density(self, z: FloatArray) -> float:
        """Return the value of the density at coordinates (P,) without its gradient, in a third of the time."""
        solved = self._solve(self.coordinates.theta(z[None]))
        return -np.inf if solved is None else log_prior(z) + solved.likelihood

    @override
    def leave_one_out(self, z: FloatArray) -> float:
        return np.nan  # the bound has no closed form

    @override
    def mean(self, z: FloatArray, new: Encoded) -> FloatArray:
        theta = self.coordinates.theta(z[None])
        solved = self._solve(theta)
        if solved is None:
            return np.full(len(new), np.nan)
        blocks = [slice(i, i + self._blocks[0].stop) for i in range(0, len(new), self._blocks[0].stop)]
        cross = np.vstack([self._kernel.cross(new[block], self.inducing, theta)[0] for block in blocks])
        return np.asarray(theta["mu"][0] + cross @ solved.weights)

    def pseudo_factor(self, theta: Draws) -> tuple[FloatArray, FloatArray]:
        r"""Return a lower factor F and beta at one setting of the hyperparameters.

        The posterior equals the posterior of an exact Gaussian process with m pseudo-observations at the inducing
        points, whose covariance with noise is F F'. The posterior covariance is K_** - K_*m (F F')^-1 K_m*, and the
        mean is mu + K_*m beta. With A A' = U diag(a) U' and c = a / (1 + a), (F F')^-1 = L_m^-T U diag(c) U' L_m^-1, so
        F is the transposed triangle of a QR decomposition of diag(c)^-1/2 U' L_m'.

        Raises
        ------
        LinAlgError
            If a covariance is not positive definite.
        """
        solved = self._solve(theta)
        if solved is None:
            raise np.linalg.LinAlgError(
                "the covariance of the inducing points is not positive definite; use fewer points"
            )
        inner = solved.inner_factor @ solved.inner_factor.T
        informative, vectors = np.linalg.eigh(inner - np.eye(len(inner)))
        # A direction without information has c = 0, and its pseudo-observation would have infinite noise.
        share = np.maximum(informative / (1 + informative), _UNINFORMED)
        triangle = np.linalg.qr(vectors.T @ solved.prior_factor.T / np.sqrt(share)[:, None], mode="r")
        return np.asarray((triangle * np.sign(np.diagonal(triangle))[:, None]).T), solved.weights

    @override
    def thinned(self) -> SparseMarginal | None:
        size = max(_SAMPLE, _SAMPLE_PER_POINT * len(self.inducing))
        if self.n < 2 * size:
            return None
        rows = np.sort(np.random.default_rng(self.n).permutation(self.n)[:size])
        return SparseMarginal(self._model, self._train[rows], self._y[rows], self.inducing)

    def _solve(self, theta: Draws) -> _Solved | None:
        m = len(self.inducing)
        signal = float(theta["sigma_f"][0]) ** 2
        noise = float(theta["sigma_n"][0]) ** 2 + self._floor
        among = np.zeros((m, m))
        among[self._rows, self._columns] = signal * self._plan.correlation(self._among, theta)[0]
        among[np.arange(m), np.arange(m)] += JITTER * np.trace(among) / m
        prior_factor, info = dpotrf(among, lower=1, clean=1)
        if info:
            return None
        cross = np.empty((self.n, m))
        for block, pairs in zip(self._blocks, self._between, strict=True):
            cross[block] = signal * self._plan.correlation(pairs, theta)[0]
        A = dtrtrs(prior_factor, cross.T, lower=1)[0] / np.sqrt(noise)
        inner = dsyrk(1.0, A, lower=1)
        explained = float(np.trace(inner))
        inner[np.arange(m), np.arange(m)] += 1
        inner_factor, info = dpotrf(inner, lower=1, clean=1)
        if info:
            return None
        residual = self._y - theta["mu"][0]
        c = dtrtrs(inner_factor, A @ residual / np.sqrt(noise), lower=1)[0]
        whitened = dtrtrs(inner_factor, c, lower=1, trans=1)[0]
        beta = dtrtrs(prior_factor, whitened, lower=1, trans=1)[0]
        variances = signal * float(self._plan.correlation(self._diagonal_pairs, theta)[0].sum())
        likelihood = -0.5 * self.n * np.log(2 * np.pi * noise) - float(np.sum(np.log(np.diagonal(inner_factor))))
        likelihood += -0.5 * float(residual @ residual) / noise + 0.5 * float(c @ c)
        likelihood += -0.5 * variances / noise + 0.5 * explained
        return _Solved(
            prior_factor, inner_factor, np.asarray(beta), np.asarray(whitened), likelihood, np.asarray(A), noise
        )


def inducing_points(train: Encoded, count: int, seed: int) -> Encoded:
    """Return at most ``count`` distinct configurations, drawn at random."""
    distinct = np.unique(train.columns, axis=0, return_index=True)[1]
    rng = np.random.default_rng(seed)
    return train[np.sort(rng.permutation(np.sort(distinct))[:count])]


def _add(totals: dict[str, FloatArray], slopes: dict[str, FloatArray]) -> None:
    for name, values in slopes.items():
        totals[name] = totals[name] + values
