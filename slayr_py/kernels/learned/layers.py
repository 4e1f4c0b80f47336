"""Uses of a machine as a correlation, or as a squared distance, of configurations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from scipy.stats import qmc
from typing_extensions import override

from slayr_py.kernels.expressions.pairs import Given
from slayr_py.kernels.learned.machine import Machine
from slayr_py.kernels.learned.reweighting import Reweighted
from slayr_py.space import Encoded, Encoder, FloatArray, Layout

VANISHING = 1e-280
"""Variances below it are treated as 0."""

_LOG_MEDIAN_POINTS = 8  # binary logarithm


class MachineFeatures:
    """A machine and its re-weighted kernel on configurations of a space.

    Parameters
    ----------
    machine : Machine
    reweighted : callable
        Returns the machine's re-weighted kernel; called when it is needed, since its features may take seconds.
    origin : (C,) float64
        Of the coordinates of both.
    distance_scale : float, optional
        Squared distance of the features that counts as 1.

    Attributes
    ----------
    machine : Machine
    vanishing : int
        Largest number of configurations in one set at which K^E(u, u) is 0.
    """

    def __init__(
        self,
        machine: Machine,
        reweighted: Callable[[], Reweighted],
        origin: FloatArray,
        distance_scale: float | None,
    ) -> None:
        self.machine = machine
        self._make_reweighted = reweighted
        self._origin = origin
        self._distance_scale = distance_scale
        self._medians: list[tuple[Layout, float]] = []
        self._last: tuple[Encoded, Encoded, FloatArray, FloatArray, FloatArray] | None = None
        self.vanishing = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle without the spaces it has seen, whose constraints may be lambdas."""
        return {**self.__dict__, "_medians": [], "_last": None}

    @cached_property
    def _reweighted(self) -> Reweighted:
        return self._make_reweighted()

    @property
    def engine(self) -> str:
        """Engine of the re-weighted kernel: "features" or "pairs"."""
        return self._reweighted.engine

    def distance_scale(self, encoder: Layout) -> float:
        """Return the squared distance that counts as 1: the given one, or the median over the space."""
        if self._distance_scale is not None:
            return self._distance_scale
        for known, median in self._medians:
            if known.matches(encoder):
                return median
        median = self.median_squared_distance(cast(Encoder, encoder), seed=1)
        self._medians.append((encoder, median))
        return median

    def median_squared_distance(self, encoder: Encoder, seed: int) -> float:
        """Return the median squared distance of the features between 256 points of the space; 1 if it is 0.

        Forbidden points and those outside constraints on inputs count too, so that all encoders that match have one
        median: configurations of one may be compared with those of another.
        """
        whole = encoder.unconstrained
        sobol = qmc.Sobol(len(whole.dimensions), scramble=True, rng=np.random.default_rng(seed))
        points, _ = whole.resolve(whole.from_uniform(sobol.random_base2(_LOG_MEDIAN_POINTS)))
        distance = _squared_distance(*self.values(points, points))
        return float(np.median(distance[np.triu_indices(len(points), 1)])) or 1.0

    def values(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return K^E(a, b), K^E(a, a) and K^E(b, b); the last result is stored, since both layers need it."""
        last = self._last
        if last is None or last[0] is not a or last[1] is not b:
            u = a.columns - self._origin
            v = b.columns - self._origin
            k, own_a, own_b = self._reweighted.covariance_and_variances(u, v)
            self.vanishing = max(self.vanishing, int(np.sum(own_a < VANISHING)), int(np.sum(own_b < VANISHING)))
            self._last = last = (a, b, k, own_a, own_b)
        return last[2:]

    def n_vanishing(self, a: Encoded) -> int:
        """Return at how many of these configurations K^E(u, u) is 0."""
        return int(np.sum(self._reweighted.variance(a.columns - self._origin) < VANISHING))

    def predictions(self, a: Encoded) -> FloatArray:
        """Return the machine's predictions, (n_a,)."""
        return self.machine.predict(a.columns - self._origin)

    def predictions_with_slopes(self, a: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the predictions (n_a,) and their derivatives by the real inputs of a, (n_a, D_c)."""
        g, slopes = self.machine.predict_with_slopes(a.columns - self._origin)
        return g, slopes[:, list(a.encoder.column_of.values())]

    def slopes(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of K^E(a, b) (n_a, n_b, D_c) and K^E(a, a) (n_a, D_c) by the real inputs of a."""
        u = a.columns - self._origin
        v = b.columns - self._origin
        real = list(a.encoder.column_of.values())
        by_cross = self._reweighted.covariance_gradient(u, v)
        by_own = self._reweighted.variance_gradient(u)
        return by_cross[..., real], by_own[..., real]


class Layer(Given):
    """A use of a machine.

    Attributes
    ----------
    features : callable
        Returns the machine and its re-weighted kernel on a space.
    label : str
        Name of the part.
    """

    label: ClassVar[str]

    def __init__(self, features: Callable[[Layout], MachineFeatures]) -> None:
        self.features = features


class PredictionLayer(Layer):
    """The squared difference of the machine's predictions, in units of their variance at its points."""

    kind = "squared distance"
    label = "prediction"

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        features = self.features(a.encoder)
        return np.square(np.subtract.outer(features.predictions(a), features.predictions(b)) / features.machine.scale)

    @override
    def gradient(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        features = self.features(a.encoder)
        g, slopes = features.predictions_with_slopes(a)
        differences = np.subtract.outer(g, features.predictions(b)) / features.machine.scale
        return np.square(differences), 2 * differences[..., None] * (slopes / features.machine.scale)[:, None]


class OneLayer(Layer):
    """The normalised re-weighted kernel."""

    kind = "correlation"
    label = "one layer"

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        k, own_a, own_b = self.features(a.encoder).values(a, b)
        vanishes = (own_a < VANISHING)[:, None] | (own_b < VANISHING)
        root = np.sqrt(np.maximum(own_a, VANISHING))[:, None] * np.sqrt(np.maximum(own_b, VANISHING))
        correlation = np.where(vanishes, 0.0, k / root)
        if vanishes.any():
            correlation[vanishes & np.all(a.columns[:, None] == b.columns, axis=-1)] = 1.0
        return correlation

    @override
    def gradient(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        features = self.features(a.encoder)
        _, own_a, own_b = features.values(a, b)
        value = self.between(a, b)
        by_cross, by_own = features.slopes(a, b)
        vanishes = (own_a < VANISHING)[:, None] | (own_b < VANISHING)
        safe_a = np.maximum(own_a, VANISHING)
        safe_b = np.maximum(own_b, VANISHING)
        slope = by_cross / (np.sqrt(safe_a)[:, None] * np.sqrt(safe_b))[..., None]
        slope -= value[..., None] * (by_own / (2 * safe_a[:, None]))[:, None]
        return value, np.where(vanishes[..., None], 0.0, slope)


class TwoLayers(Layer):
    """The squared distance of the features, in units of its median."""

    kind = "squared distance"
    label = "two layers"

    @override
    def between(self, a: Encoded, b: Encoded) -> FloatArray:
        features = self.features(a.encoder)
        return _squared_distance(*features.values(a, b)) / features.distance_scale(a.encoder)

    @override
    def gradient(self, a: Encoded, b: Encoded) -> tuple[FloatArray, FloatArray]:
        features = self.features(a.encoder)
        by_cross, by_own = features.slopes(a, b)
        slope = (by_own[:, None] - 2 * by_cross) / features.distance_scale(a.encoder)
        return self.between(a, b), slope


LAYERS: dict[int, type[Layer]] = {0: PredictionLayer, 1: OneLayer, 2: TwoLayers}
"""Uses of a machine by number of layers of its re-weighted kernel."""


def _squared_distance(k: FloatArray, own_a: FloatArray, own_b: FloatArray) -> FloatArray:
    return np.maximum(own_a[:, None] + own_b - 2 * k, 0.0)
