"""Expectation propagation for binary observations, for many draws at once.

The NumPy twin of ``probit_targets`` and ``probit_log_evidence`` of ``stan/functions/probit.stan``.

Every factor Phi(y_i f_i) is replaced by a site Z_i exp(h_i g_i - p_i g_i^2 / 2), g = f - mu. The posterior with the
factor i and the sites of all other observations has then the same mean and variance of g_i as that with all sites
(Rasmussen & Williams 2006, section 3.6). All sites change at once, with damping.

The log evidence is stationary at the fixed point of the sites, so that its error is of second order in theirs.

Symbols
-------
s : draws; n : observations; p, h : precisions and shifts of the sites; B = I + p^(1/2) K p^(1/2); m, v : moments of g_i
under all sites; c, u : its mean and variance under all other sites, the cavity.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import log_ndtr

from slayr_py.errors import level_outside
from slayr_py.inference.normal import log_phi
from slayr_py.space import FloatArray
from slayr_py.threads import one_thread


class Tolerance(NamedTuple):
    """When the sites of a draw have converged: both last changes are smaller.

    Attributes
    ----------
    precision : float
        Of the largest change of a precision, relative to the precision plus a thousandth of min(1, 1 / K_ii).
    log_evidence : float
        Of the change of the log evidence.
    """

    precision: float
    log_evidence: float


CONVERGED = Tolerance(1e-5, np.inf)
"""For predictions."""

CONVERGED_EVIDENCE = Tolerance(0.1, 1e-3)
"""For the log evidence, whose error was then at most 0.002 in loops, and 0.012 for 100 to 150 observations at up to
four places."""

_STEPS = 500  # only ends iterations that do not converge; 150 observations at 4 places needed 256
_SHARE = 0.7  # of a change that is made, after the first step; the sites of close observations otherwise oscillate
_SMALLER_SHARE = 0.7  # factor of the share if the largest change does not decrease
_LARGER_SHARE = 1.05  # its factor if it does
_DECREASE = 0.9  # of the largest change from one step to the next
_LEAST_SHARE = 0.2
_SMALLEST_PRECISION = 1e-10  # of a site; keeps precisions positive for division
_CANCELLED = 1e-8  # a smaller p v is a difference of numbers near 1 without half of its digits


class Propagated(NamedTuple):
    """Gaussian likelihoods whose posteriors have the moments of the probit ones.

    Attributes
    ----------
    targets, variance : (s, n) float64
        The sites as observations of f with noise: mu + h / p and 1 / p.
    log_evidence : (s,) float64
        Log probability of the observations (Rasmussen & Williams 2006, eq. 3.65). NaN, like the sites, where B has no
        Cholesky factor.
    """

    targets: FloatArray
    variance: FloatArray
    log_evidence: FloatArray


def propagate(y: FloatArray, covariance: FloatArray, mu: FloatArray, tolerance: Tolerance = CONVERGED) -> Propagated:
    """Return the sites and the log evidence for every draw.

    Parameters
    ----------
    y : (n,) float64
        1 or -1.
    covariance : (s, n, n) float64
        Covariance of the latent function.
    mu : (s,) float64
        Means of the latent function.
    tolerance : Tolerance

    Warns
    -----
    UserWarning
        If draws have not converged after 500 steps.
    """
    with one_thread():
        return _propagate(y, covariance, mu, tolerance)


class _Matched(NamedTuple):
    """Sites p, h (s, n) that match the moments under given sites, and the log evidence (s,) of the given ones."""

    p: FloatArray
    h: FloatArray
    log_evidence: FloatArray


def _propagate(y: FloatArray, covariance: FloatArray, mu: FloatArray, tolerance: Tolerance) -> Propagated:
    s, n = covariance.shape[:2]
    precision = np.zeros((s, n))
    shift = np.zeros((s, n))
    log_evidence = np.full(s, -np.inf)
    small = 1e-3 * np.minimum(1.0, 1 / np.diagonal(covariance, axis1=1, axis2=2))
    share = np.full(s, _SHARE)
    last = np.full(s, np.inf)
    rows = np.arange(s)  # of draws that have not converged
    for step in range(_STEPS):
        p, h = precision[rows], shift[rows]
        k = covariance if len(rows) == s else covariance[rows]
        matched = _matched(y, k, mu[rows, None], p, h)
        change = matched.p - p
        largest = np.max(np.abs(change) / (small[rows] + p), axis=1, initial=0.0)
        if step > 1:
            slow = largest > _DECREASE * last[rows]
            factor = np.where(slow, _SMALLER_SHARE, _LARGER_SHARE)
            share[rows] = np.clip(factor * share[rows], _LEAST_SHARE, 1.0)
        last[rows] = largest
        part = share[rows, None] if step else 1.0
        precision[rows] = p + part * change
        shift[rows] = h + part * (matched.h - h)
        gained = np.abs(matched.log_evidence - log_evidence[rows])
        log_evidence[rows] = matched.log_evidence
        rows = rows[(largest >= tolerance.precision) | (gained >= tolerance.log_evidence)]
        if not len(rows):
            break
    else:
        warnings.warn(
            f"expectation propagation has not converged after {_STEPS} steps for {len(rows)} of {s} draws, whose "
            "probabilities of success are inaccurate",
            UserWarning,
            stacklevel=level_outside(),
        )
    return Propagated(mu[:, None] + shift / precision, 1 / precision, log_evidence)


def _matched(y: FloatArray, covariance: FloatArray, mu: FloatArray, p: FloatArray, h: FloatArray) -> _Matched:
    """Match the moments at sites p, h (s, n), where ``mu`` is (s, 1)."""
    m, v, log_total = _moments(covariance, p, h)
    u = 1 / (1 / v - p)
    c = u * (m / v - h)
    scale = np.sqrt(1 + u)
    z = y * (mu + c) / scale
    log_success = log_ndtr(z)
    ratio = np.exp(log_phi(z) - log_success)
    m_next = c + u * y * ratio / scale
    v_next = u - np.square(u / scale) * ratio * (ratio + z)
    # Z_i: the factor's mean under the cavity, divided by that of its site
    log_site = -0.5 * np.log1p(u * p) + 0.5 * (c * (2 * h - p * c) + u * np.square(h)) / (1 + u * p)
    return _Matched(
        np.maximum(1 / v_next - 1 / u, _SMALLEST_PRECISION),
        m_next / v_next - c / u,
        log_total + np.sum(log_success - log_site, axis=1),
    )


def _moments(covariance: FloatArray, p: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return m, v (s, n) and the log integral (s,) of the prior times the sites without their factors Z_i."""
    if not p.any():
        return np.zeros(p.shape), np.diagonal(covariance, axis1=1, axis2=2), np.zeros(len(p))
    root = np.sqrt(p)
    inverse, half_log_det = _inverse_factors(root[:, :, None] * covariance * root[:, None, :])
    right = (covariance @ h[..., None])[..., 0]
    solved = inverse.transpose(0, 2, 1) @ (inverse @ (root * right)[..., None])
    m = right - (covariance @ (root[..., None] * solved))[..., 0]
    scaled_variance = 1 - np.einsum("sij,sij->sj", inverse, inverse)
    v = scaled_variance / p
    lost = np.any(scaled_variance < _CANCELLED, axis=1)
    if lost.any():
        explained = np.square(inverse[lost] @ (root[lost, :, None] * covariance[lost])).sum(axis=1)
        here = np.diagonal(covariance[lost], axis1=1, axis2=2) - explained
        v[lost] = np.where(scaled_variance[lost] < _CANCELLED, here, v[lost])
    return m, v, 0.5 * np.einsum("si,si->s", h, m) - half_log_det


def _inverse_factors(scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return L^-1 (s, n, n) and log det L (s,) of the Cholesky factors of I + A; A (s, n, n) is overwritten."""
    n = scaled.shape[1]
    scaled[:, np.arange(n), np.arange(n)] += 1
    half_log_det = np.empty(len(scaled))
    for i, matrix in enumerate(scaled):
        factor, failed = dpotrf(matrix.T, lower=1, overwrite_a=1)  # a view in LAPACK's order: A is symmetric
        if failed:
            scaled[i] = np.nan
            half_log_det[i] = np.nan
            continue
        half_log_det[i] = np.log(np.diagonal(factor)).sum()
        scaled[i] = dtrtri(factor, lower=1, overwrite_c=1)[0]
    return scaled, half_log_det
