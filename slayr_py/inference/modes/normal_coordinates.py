"""Hyperparameters as functions of coordinates that are standard normal under the prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slayr_py.inference.normal import log_phi
from slayr_py.kernels import Hyperparameter, LogNormal, Normal
from slayr_py.space import FloatArray

LARGEST = 8.0
"""Coordinates are clipped to this size in the transformation. Beyond it, a quantile is the end of the support."""


class NormalCoordinates:
    """Map between coordinates z (s, P) and hyperparameters by name, (s,) or (s, entries).

    Every coordinate is standard normal under the prior, whatever its family: theta is the prior's quantile at Phi(z).

    Attributes
    ----------
    size : int
        Number P of coordinates. A fixed hyperparameter has coordinates too, which have no effect.
    entries : tuple of (str, str)
        Name of the hyperparameter and label of the entry of every coordinate; the label of a scalar is "".
    """

    def __init__(self, hyperparameters: Sequence[Hyperparameter]) -> None:
        self._hyperparameters = tuple(hyperparameters)
        self._places: dict[str, slice] = {}
        entries: list[tuple[str, str]] = []
        for h in self._hyperparameters:
            labels = ("",) if h.labels is None else h.labels
            self._places[h.name] = slice(len(entries), len(entries) + len(labels))
            entries += [(h.name, label) for label in labels]
        self.entries = tuple(entries)
        self.size = len(entries)
        # Normal and log-normal priors are transformed together, since a call for each prior costs more than the
        # covariance of a hundred points.
        self._location, self._scale = np.zeros((2, self.size))
        self._is_log = np.zeros(self.size, dtype=np.bool_)
        self._others: list[Hyperparameter] = []
        for h in self._hyperparameters:
            place = self._places[h.name]
            if isinstance(h.prior, Normal | LogNormal):
                self._location[place] = h.prior.mu
                self._scale[place] = h.prior.sigma
                self._is_log[place] = isinstance(h.prior, LogNormal)
            else:
                self._others.append(h)

    def place(self, name: str) -> slice:
        """Return the coordinates of a hyperparameter."""
        return self._places[name]

    def theta(self, z: FloatArray) -> dict[str, FloatArray]:
        """Return the hyperparameters by name, (s,) for a scalar and (s, entries) for a vector."""
        values = self._values(z)
        return {h.name: values[:, self._places[h.name]].reshape(len(z), *h.shape) for h in self._hyperparameters}

    def by_coordinate(self, z: FloatArray, slopes: Mapping[str, FloatArray]) -> FloatArray:
        """Return derivatives by the coordinates, (s, P), from derivatives by hyperparameters with shapes of `theta`."""
        gradient = np.zeros(z.shape)
        for name, values in slopes.items():
            gradient[:, self._places[name]] = values.reshape(len(z), -1)
        return np.where(np.abs(z) < LARGEST, gradient * self._slopes(z), 0.0)

    def _values(self, z: FloatArray) -> FloatArray:
        clipped = np.clip(z, -LARGEST, LARGEST)
        values = self._location + self._scale * clipped
        values[:, self._is_log] = np.exp(values[:, self._is_log])
        for h in self._others:
            values[:, self._places[h.name]] = h.prior.at_score(clipped[:, self._places[h.name]])
        return values

    def _slopes(self, z: FloatArray) -> FloatArray:
        """Return the derivatives of the values by their coordinates, (s, P)."""
        slopes = self._scale * np.where(self._is_log, self._values(z), 1.0)
        for h in self._others:
            # The slope of a quantile transformation is the ratio of the densities of coordinate and value.
            clipped = np.clip(z[:, self._places[h.name]], -LARGEST, LARGEST)
            slopes[:, self._places[h.name]] = np.exp(log_phi(clipped) - h.prior.log_density(h.prior.at_score(clipped)))
        return slopes
