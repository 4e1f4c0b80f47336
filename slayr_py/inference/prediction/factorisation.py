"""Points whose covariance a fit factorises to predict: all its observations, or inducing points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.kernels import Draws, Kernel
from slayr_py.space import Encoded, FloatArray


@dataclass(frozen=True)
class Factorisation(ABC):
    """Points whose covariance is factorised under each draw.

    Attributes
    ----------
    kernel : Kernel
    support : Encoded
        The n points.
    targets : Targets
        The observations as the program saw them.
    """

    kernel: Kernel
    support: Encoded
    targets: Targets

    @abstractmethod
    def predictor(self, draws: Draws, rows: NDArray[np.intp]) -> KernelPredictor:
        """Return a predictor from these rows of the draws."""


@dataclass(frozen=True)
class ExactFactorisation(Factorisation):
    """All observations; their covariance is factorised for each predictor."""

    @override
    def predictor(self, draws: Draws, rows: NDArray[np.intp]) -> KernelPredictor:
        def factorised(rows: NDArray[np.intp]) -> KernelPredictor:
            chosen = {name: values[rows] for name, values in draws.items()}
            return KernelPredictor.factorise(self.kernel, self.support, self.targets, chosen)

        # Resampled draws repeat: about a quarter of those that a carried posterior returns.
        table = np.column_stack([values[rows].reshape(len(rows), -1) for values in draws.values()])
        _, first, copies = np.unique(table, axis=0, return_index=True, return_inverse=True)
        return factorised(rows) if len(first) == len(rows) else factorised(rows[first]).at(copies)


@dataclass(frozen=True)
class SparseFactorisation(Factorisation):
    """Inducing points with known factors; see `SparseMarginal.pseudo_factor`.

    Attributes
    ----------
    lower : (s, n, n) float64
        Factor of the covariance of the pseudo-observations for each draw.
    weights : (s, n) float64
        Weights of the covariances in the mean.
    """

    lower: FloatArray
    weights: FloatArray

    @override
    def predictor(self, draws: Draws, rows: NDArray[np.intp]) -> KernelPredictor:
        chosen = {name: values[rows] for name, values in draws.items()}
        return KernelPredictor.from_factors(
            self.kernel, self.support, self.targets, chosen, self.lower[rows], self.weights[rows]
        )
