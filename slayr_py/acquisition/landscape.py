"""The function of the genotype that the search maximises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.criteria import Acquisition, State
from slayr_py.acquisition.feasibility import Feasibility
from slayr_py.acquisition.identity import Taken
from slayr_py.inference import Chains, Predictor
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray

_BLOCK = 2**18  # doubles in the largest array of a block of configurations: 2 MB, about one core's share of the cache


@dataclass(frozen=True)
class Landscape:
    """Transformed criterion plus log probability of feasibility; minus infinity at genotypes not to be suggested.

    Attributes
    ----------
    encoder : Encoder
    predictor : Predictor
        Predictor for the draws over which the criterion is averaged.
    n_chains : int
        Number of chains of these draws.
    criterion : Acquisition
    state : State
    feasibility : tuple of Feasibility
        Their values are added to the transformed criterion.
    taken : Taken, optional
        Configurations that must not be suggested.
    relaxed : bool
        Whether integers may take all values between their bounds. ``taken`` is then ignored, because the search could
        otherwise not move past an evaluated integer.
    fixed : Fixed, optional
        Values that all genotypes get.
    """

    encoder: Encoder
    predictor: Predictor
    n_chains: int
    criterion: Acquisition
    state: State
    feasibility: tuple[Feasibility, ...] = ()
    taken: Taken | None = None
    relaxed: bool = False
    fixed: Fixed | None = None

    def subset(self, n_draws: int) -> Landscape:
        """Return the landscape under at most ``n_draws`` of its draws."""
        some = self.predictor.subset(self.n_chains, n_draws).for_search()
        return replace(self, predictor=some, feasibility=tuple(model.subset(n_draws) for model in self.feasibility))

    @cached_property
    def drawn_state(self) -> State:
        """The state with the incumbent and the warp of each draw."""
        incumbent = self.predictor.incumbent
        best = self.state.best if incumbent is None else incumbent
        return self.state._replace(best=best, warp=self.predictor.warp)

    def cautious(self, criterion: Acquisition | None = None) -> Landscape:
        """Return the landscape, of another criterion if one is given, in which improbable feasibility weighs more."""
        models = tuple(model.cautious() for model in self.feasibility)
        return replace(self, criterion=criterion or self.criterion, feasibility=models)

    def criterion_at(self, encoded: Encoded, chains: Sequence[Chains]) -> tuple[float, float]:
        """Return the criterion at one configuration, and its Monte Carlo standard error."""
        mean, variance = self.predictor.moments(encoded)
        sd = np.sqrt(variance)
        value = float(self.criterion.value(mean, sd, self.drawn_state)[0])
        return value, self.criterion.error(mean[:, 0], sd[:, 0], self.drawn_state, chains)

    def probability(self, encoded: Encoded) -> float:
        """Return the probability that one configuration is feasible; 1 without models."""
        return float(np.exp(sum(model.log_probability(encoded)[0] for model in self.feasibility)))

    def relax(self) -> Landscape:
        """Return the same landscape with continuous integers."""
        return replace(self, relaxed=True)

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Dimensions along which the landscape has a gradient, (D,)."""
        # An integer with children stays discrete: the landscape jumps where they become active or inactive.
        parents = {name for ancestors in self.encoder.ancestors.values() for name in ancestors}
        return np.array(
            [
                d.kind == "float" or (self.relaxed and d.kind == "integer" and d.name not in parents)
                for d in self.encoder.dimensions
            ]
        )

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Dimensions without a fixed value, (D,)."""
        fixed = () if self.fixed is None else self.fixed.columns
        return ~np.isin(np.arange(len(self.encoder.dimensions)), fixed)

    def place(self, genotypes: FloatArray) -> tuple[Encoded, NDArray[np.bool_]]:
        """Return the configurations of genotypes and which of them are allowed, (m,)."""
        encoded, allowed = self.encoder.resolve(genotypes, self.fixed)
        if self.relaxed:
            values = np.where(
                self.continuous & self.free & encoded.active, np.clip(genotypes, 0.0, 1.0), encoded.unit_values
            )
            return Encoded(values, encoded.active, self.encoder), allowed
        return encoded, allowed & ~self.taken.contains(encoded) if self.taken is not None else allowed

    def values(self, genotypes: FloatArray) -> FloatArray:
        """Return the values (m,) at genotypes (m, D)."""
        encoded, allowed = self.place(genotypes)
        values = np.full(len(genotypes), -np.inf)
        values[allowed] = self.values_of(encoded[allowed])
        return values

    def values_of(self, encoded: Encoded) -> FloatArray:
        """Return the values (m,) at allowed configurations."""
        values = np.empty(len(encoded))
        for rows in self._blocks(len(encoded), width=1):
            values[rows] = sum(model.values(encoded[rows]) for model in self.feasibility)
            values[rows] += self.criterion.transformed(*self.predictor.moments(encoded[rows]), self.drawn_state)
        return values

    def values_and_gradients(self, genotypes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return values (m,) and gradients (m, D), which are 0 for inactive, discrete and fixed parameters."""
        gradients = np.zeros(genotypes.shape)
        if not self.continuous.any():
            return self.values(genotypes), gradients
        real = np.flatnonzero([d.is_real for d in self.encoder.dimensions])
        encoded, allowed = self.place(genotypes)
        values = np.empty(len(genotypes))
        for rows in self._blocks(len(genotypes), width=len(real)):
            values[rows], gradients[rows, real] = self._by_real_inputs(encoded[rows])
        along = encoded.active & self.continuous & self.free
        return np.where(allowed, values, -np.inf), np.where(along, gradients, 0.0)

    def _by_real_inputs(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the values (m,) and their derivatives by the real inputs (m, D_real)."""
        parts = [model.values_and_gradients(encoded) for model in self.feasibility]
        moments = self.predictor.moments_with_gradient(encoded)
        parts.append(self.criterion.transformed_with_gradient(moments, self.drawn_state))
        values, gradients = zip(*parts, strict=True)
        return np.sum(values, axis=0), np.sum(gradients, axis=0)

    def _blocks(self, m: int, width: int) -> list[slice]:
        doubles = self.predictor.n_draws * len(self.predictor.train) * width
        size = max(1, _BLOCK // doubles)
        return [slice(i, i + size) for i in range(0, m, size)]
