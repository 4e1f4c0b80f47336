"""Acquisition landscapes with known values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.acquisition import LowerConfidenceBound
from slayr_py.acquisition.criteria import State
from slayr_py.acquisition.landscape import Landscape
from slayr_py.acquisition.merit import OneObjective
from slayr_py.inference.prediction.predictor import Moments, Predictor
from slayr_py.space import Encoder


class KnownFunction:
    """A predictor with one draw, mean -f and variance 1: its confidence bound is f plus a constant."""

    improvement_scale = Predictor.improvement_scale
    is_compared = False

    def __init__(self, f, slope):
        self.f = f
        self.slope = slope
        self.train = [None]
        self.n_draws = 1
        self.incumbent = None
        self.warp = None
        self.pivot = None
        self.visited = []

    def compared(self, recommended):
        return self

    def moments(self, encoded):
        self.visited += encoded.encoder.decode(encoded)
        mean = -self.f(encoded.unit_values, encoded.active)[None]
        return mean, np.ones_like(mean)

    def moments_with_gradient(self, encoded):
        gradient = -self.slope(encoded.unit_values, encoded.active)[None]
        return Moments(*self.moments(encoded), gradient, np.zeros_like(gradient))


@pytest.fixture
def landscape_of():
    """Return a landscape over a space from a function and its gradient, both of unit values and activity."""

    def make(space, f, slope, **options):
        encoder = Encoder(space) if not isinstance(space, Encoder) else space
        state = State(0.0, 1, len(encoder.names))
        merit = OneObjective(KnownFunction(f, slope), 1, LowerConfidenceBound(), state)
        return Landscape(encoder, merit, **options)

    return make


@pytest.fixture
def bowl(landscape_of):
    """Return a landscape whose maximum, 0, is where all real inputs are ``top`` and all levels ``level``."""

    def make(space, top=0.37, level=1, **options):
        encoder = Encoder(space) if not isinstance(space, Encoder) else space
        real = np.array([d.is_real for d in encoder.dimensions])

        def miss(values, active):
            return np.where(active, values - np.where(real, top, level), 0.0)

        return landscape_of(
            encoder,
            lambda values, active: -np.sum(miss(values, active) ** 2, axis=1),
            lambda values, active: -2 * miss(values, active)[:, real],
            **options,
        )

    return make


@pytest.fixture
def one_violated() -> Callable[..., tuple[sl.Posterior, sl.Posterior]]:
    """Fits to the values of four levels and to a constraint that the first one violates, which needs no Stan.

    The model of the constraint takes the violation for noise.
    """

    def fits(values, maximize: bool) -> tuple[sl.Posterior, sl.Posterior]:
        levels = [{"k": level} for level in "abcd"]
        space = ConfigurationSpace({"k": ["a", "b", "c", "d"]})
        gp = sl.GaussianProcess(space, "SE", {"sigma_n": sl.LogNormal(0.0, 0.01)}, inducing=4)
        posterior = gp.fit(levels, values, maximize=maximize, method="laplace", seed=1)
        return posterior, gp.fit(levels, np.array([0.1, -1.0, -1.0, -1.0]), method="laplace", seed=1)

    return fits
