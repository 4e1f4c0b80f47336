r"""Expected shortfall psi(e) = E[(e - Y)^+] below the edges e of boxes, under each posterior draw.

Symbols
-------
s, m, k : draws, points, edges.
Y = T^-1(t), t normal with ``mean`` and ``sd``, and T the transformation of the draw.
z = (T(e) - mean) / sd, and v = (T(e) - t) / sd, which is normal with mean z.
M = Phi / phi, and h as in `slayr_py.acquisition.functions`.

Without a warp psi(e) = sd h(z). Under the warp, T^-1 is a logarithm below 0 and an exponential above:

    psi(e) = sd exp(a e) G(z, b),  G(z, b) = integral of log(1 + b v) / b  phi(v - z) over v > 0,  b = a sd exp(a e),

for e <= 0, by a Gauss rule, and with z_0 = -mean / sd and b = a sd

    psi(e) = sd [(1 + a e) F(z, b) + G(z_0, b) - F(z_0, b)],                                          for e > 0,
    F(z, b) = integral of (1 - exp(-b v)) / b  phi(v - z) over v > 0 = phi(z) [M(z) - M(z - b)] / b.

Under the warp with a pivot, in its normal form, G(z_0, b) is h(z_0): below the pivot T^-1 is linear.

The relative error of psi is below 1e-6. All integrals are multiples of a scale, phi(min(z, 0)), and do not underflow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from typing_extensions import override

from slayr_py.acquisition.truncated_rule import truncated_rule
from slayr_py.inference import SQRT_2PI, TAIL, bracket_series, mills, normal_form, warp_range, warped
from slayr_py.space import FloatArray

_NODES = 8  # of the Gauss rule; the relative error of psi is below 1e-6
_ROUGH = 2  # nodes where many candidates are compared first
_FARTHEST = -1e8  # a smaller z is rounded to it: differences of M would be rounding errors
_LEAST_RATE = 1e-7  # a smaller b changes F by a smaller share; the differences in F would lose their digits


class Shortfall(NamedTuple):
    """Logarithm of psi, and the derivatives of this logarithm by the mean and the standard deviation of t.

    Attributes
    ----------
    log, by_mean, by_sd : (s, m, k) float64
    """

    log: FloatArray
    by_mean: FloatArray
    by_sd: FloatArray


class Transformation(ABC):
    """The transformation of an objective, as far as the shortfall depends on it."""

    @abstractmethod
    def shortfall(self, mean: FloatArray, sd: FloatArray, edges: FloatArray) -> Shortfall:
        """Return log psi at edges.

        Parameters
        ----------
        mean, sd : (s, m, 1) or (s, m, k) float64
            Moments of the transformed function, or for each edge; sd is positive.
        edges : (k,) float64
            On the standardised scale of Y, in increasing order.
        """

    def rough(self) -> Transformation:
        """Return the same transformation with a cheaper psi, for a comparison of many points."""
        return self

    @staticmethod
    def of(warp: FloatArray | None, pivot: float | None = None) -> Transformation:
        """Return the transformation with the parameter ``warp`` (s, 1) and a pivot, if it has one."""
        if warp is None:
            return Identity()
        return LogWarp(warp) if pivot is None else PivotWarp(warp, pivot)


class Identity(Transformation):
    """No transformation."""

    @override
    def shortfall(self, mean: FloatArray, sd: FloatArray, edges: FloatArray) -> Shortfall:
        tail = _Tail.of((edges - mean) / sd)
        psi = sd * tail.h
        # dpsi/dmean = -Phi(z) and dpsi/dsd = phi(z).
        return Shortfall(np.log(psi) + tail.log_scale, -tail.cdf / psi, tail.density / psi)


@dataclass(frozen=True)
class LogWarp(Transformation):
    """The warp of `slayr_py.inference.warp`.

    Attributes
    ----------
    a : (s, 1) float64
    nodes : int
        Nodes of the quadrature below 0: with two, the relative error of psi is below 1%.
    """

    a: FloatArray
    nodes: int = _NODES

    @override
    def rough(self) -> LogWarp:
        return replace(self, nodes=_ROUGH)

    @override
    def shortfall(self, mean: FloatArray, sd: FloatArray, edges: FloatArray) -> Shortfall:
        a = self.a[..., None]
        n_low = int(np.searchsorted(edges, 0.0, side="right"))
        parts = []
        if n_low:
            parts.append(self._below(*_at(slice(n_low), mean, sd), edges[:n_low], a))
        if n_low < len(edges):
            parts.append(self._above(*_at(slice(n_low, None), mean, sd), edges[n_low:], a))
        return Shortfall(*(np.concatenate(arrays, axis=2) for arrays in zip(*parts, strict=True)))

    def _below(self, mean: FloatArray, sd: FloatArray, edges: FloatArray, a: FloatArray) -> Shortfall:
        """Return log psi at edges that are not positive."""
        slope = np.exp(a * edges)  # of T^-1 at T(e)
        tail = _Tail.of((warped(edges, a) - mean) / sd)
        value, by_z, by_spread = tail.logarithmic(a * sd * slope, self.nodes)
        log = np.log(sd * slope * value) + tail.log_scale
        return Shortfall(log, -by_z / (sd * value), by_spread / (sd * value))

    def _above(self, mean: FloatArray, sd: FloatArray, edges: FloatArray, a: FloatArray) -> Shortfall:
        """Return log psi at positive edges."""
        rate = np.maximum(a * sd, _LEAST_RATE)
        low = _Tail.of(-mean / sd)
        return _above_joint(
            (warped(edges, a) - mean) / sd, sd, 1 + a * edges, rate, low, low.logarithmic(rate, self.nodes)
        )


@dataclass(frozen=True)
class PivotWarp(Transformation):
    """The warp of `slayr_py.inference.warp` with a pivot, which is linear below it.

    Attributes
    ----------
    a : (s, 1) float64
    pivot : float
    """

    a: FloatArray
    pivot: float

    @override
    def shortfall(self, mean: FloatArray, sd: FloatArray, edges: FloatArray) -> Shortfall:
        # In the normal form, Y - pivot = g^-1(x) / a.
        a = self.a[..., None]
        scale = warp_range(a)
        mean = normal_form(mean, a, self.pivot)
        sd = sd / scale
        distances = a * (edges - self.pivot)
        n_low = int(np.searchsorted(edges, self.pivot, side="right"))
        below = Identity().shortfall(*_at(slice(n_low), mean, sd), distances[..., :n_low])
        above = self._above(*_at(slice(n_low, None), mean, sd), distances[..., n_low:])
        log, by_mean, by_sd = (np.concatenate(arrays, axis=2) for arrays in zip(below, above, strict=True))
        return Shortfall(log - np.log(a), by_mean / scale, by_sd / scale)

    def _above(self, mean: FloatArray, sd: FloatArray, distances: FloatArray) -> Shortfall:
        """Return log psi of g^-1(x) at positive distances from the pivot."""
        low = _Tail.of(-mean / sd)
        z = (np.log1p(distances) - mean) / sd
        return _above_joint(z, sd, 1 + distances, np.maximum(sd, _LEAST_RATE), low, low.linear())


def _at(edges: slice, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return moments (s, m, 1) or (s, m, k) at some of the edges."""
    return (mean, sd) if mean.shape[2] == 1 else (mean[..., edges], sd[..., edges])


def _above_joint(
    z: FloatArray,
    sd: FloatArray,
    slope: FloatArray,
    rate: FloatArray,
    low: _Tail,
    below: tuple[FloatArray, FloatArray, FloatArray],
) -> Shortfall:
    """Return log psi above the joint of an exponential and another piece ``below``, given ``low`` at the joint.

    ``slope`` is that of T^-1 at the edge, divided by that at the joint.
    """
    tail = _Tail.of(z)
    ratio = np.exp(low.log_scale - tail.log_scale)
    triples = zip(tail.exponential(rate), below, low.exponential(rate), strict=True)
    value, by_z, by_spread = (slope * here + ratio * (there - less) for here, there, less in triples)
    return Shortfall(np.log(sd * value) + tail.log_scale, -by_z / (sd * value), by_spread / (sd * value))


@dataclass(frozen=True)
class _Tail:
    """Integrals over v > 0, in units of ``exp(log_scale)``.

    Attributes
    ----------
    z, density, cdf, h : (s, m, k) float64
        ``density`` is phi(z) and ``cdf`` is Phi(z).
    """

    z: FloatArray
    density: FloatArray
    cdf: FloatArray
    h: FloatArray

    @classmethod
    def of(cls, z: FloatArray) -> _Tail:
        """Compute the values at z."""
        z = np.maximum(z, _FARTHEST)
        density = np.exp(-0.5 * np.square(np.maximum(z, 0.0)))
        cdf = np.where(z > 0, SQRT_2PI * ndtr(z), mills(z))
        return cls(z, density, cdf, np.where(z < TAIL, bracket_series(z), density + z * cdf))

    @property
    def log_scale(self) -> FloatArray:
        """Logarithm of phi(min(z, 0))."""
        return np.asarray(-0.5 * np.square(np.minimum(self.z, 0.0)) - np.log(SQRT_2PI))

    def linear(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the integral of v, and of its derivative 1 times 1 and times v - z."""
        return self.h, self.cdf, self.density

    def logarithmic(self, b: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the integral of log(1 + b v) / b, and of its derivative 1 / (1 + b v) times 1 and times v - z."""
        rate = np.broadcast_to(b, self.z.shape).ravel()
        value = np.empty(rate.shape)
        slope = np.empty(rate.shape)
        for part, v, weight in truncated_rule(nodes).points(self.z.ravel(), (self.h / self.cdf).ravel()):
            size = rate[part, None] * v
            value[part] = np.einsum("ij,ij->i", weight, np.log1p(size) / size)
            slope[part] = np.einsum("ij,ij->i", weight, 1 / (1 + size))
        scaled = self.h * slope.reshape(self.z.shape)
        by_z = self.cdf - b * scaled
        return self.h * value.reshape(self.z.shape), by_z, scaled - self.z * by_z

    def exponential(self, b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the integral of (1 - exp(-b v)) / b, and of its derivative exp(-b v) times 1 and times v - z."""
        shifted = self.z - b
        near = self.density * mills(shifted)
        far = np.exp(np.minimum(b * (0.5 * b - self.z), 0.0)) * SQRT_2PI * ndtr(shifted)
        by_z = np.where(shifted > 0, far, near)
        return (self.cdf - by_z) / b, by_z, self.density - b * by_z
