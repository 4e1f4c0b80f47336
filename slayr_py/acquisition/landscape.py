"""The function of the genotype that the search maximises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.cost import Cost
from slayr_py.acquisition.feasibility import Feasibility, log_probability_of
from slayr_py.acquisition.identity import Taken
from slayr_py.acquisition.interior import Interior
from slayr_py.acquisition.merit import Merit
from slayr_py.acquisition.optimum_prior import OptimumPrior
from slayr_py.acquisition.plateaus import Plateaus
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray

_BLOCK = 2**17  # doubles in the largest array of a block of configurations: 1 MB, about one core's share of the cache


@dataclass(frozen=True)
class Landscape:
    """Merit plus logarithms of factors, minus infinity at genotypes not to be suggested.

    The factors are the probability of feasibility, beliefs about the optimum, the probability of a new value, and the
    inverse of the expected cost.

    Attributes
    ----------
    encoder : Encoder
    merit : Merit
    feasibility : tuple of Feasibility
        Their values are added to the merit.
    taken : Taken, optional
        Configurations that must not be suggested.
    relaxed : bool
        Whether integers may take all values between their bounds. ``taken`` is then ignored, because the search could
        otherwise not move past an evaluated integer.
    fixed : Fixed, optional
        Values that all genotypes get.
    prior : OptimumPrior, optional
    interior : Interior, optional
    plateaus : Plateaus, optional
    cost : Cost, optional
        The logarithm of the expected cost is subtracted from the merit.
    """

    encoder: Encoder
    merit: Merit
    feasibility: tuple[Feasibility, ...] = ()
    taken: Taken | None = None
    relaxed: bool = False
    fixed: Fixed | None = None
    prior: OptimumPrior | None = None
    interior: Interior | None = None
    plateaus: Plateaus | None = None
    cost: Cost | None = None

    @property
    def summands(self) -> tuple[Feasibility | OptimumPrior | Interior | Plateaus | Cost, ...]:
        """Return what is added to the merit."""
        others = (self.prior, self.interior, self.plateaus, self.cost)
        return (*self.feasibility, *(each for each in others if each is not None))

    def subset(self, n_draws: int) -> Landscape:
        """Return the landscape under at most ``n_draws`` of its draws."""
        return self._with_draws(self.merit.subset(n_draws), n_draws)

    def screening(self, n_draws: int) -> Landscape:
        """Return the landscape under at most ``n_draws`` of its draws, to compare many configurations."""
        return self._with_draws(self.merit.screening(n_draws), n_draws)

    def _with_draws(self, merit: Merit, n_draws: int) -> Landscape:
        models = tuple(model.subset(n_draws) for model in self.feasibility)
        cost = None if self.cost is None else self.cost.subset(n_draws)
        return replace(self, merit=merit, feasibility=models, cost=cost)

    def cautious(self, merit: Merit | None = None) -> Landscape:
        """Return the landscape in which improbable feasibility weighs more; if a merit is given, of it alone.

        The cost and the belief in the interior are factors of an improvement only, so that another merit omits them.
        """
        models = tuple(model.cautious() for model in self.feasibility)
        if merit is None:
            return replace(self, feasibility=models)
        return replace(self, merit=merit, feasibility=models, interior=None, cost=None)

    def probability(self, encoded: Encoded) -> float:
        """Return the probability that one configuration is feasible; 1 without models."""
        return float(np.exp(log_probability_of(self.feasibility, encoded)[0]))

    def relax(self) -> Landscape:
        """Return the same landscape with continuous integers."""
        return replace(self, relaxed=True)

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Dimensions along which the landscape has a gradient, (D,)."""
        # An integer with children stays discrete: the landscape jumps where they become active or inactive. So does an
        # integer in a constraint on inputs: the floats of the constraint depend on its value.
        parents = {name for ancestors in self.encoder.ancestors.values() for name in ancestors}
        discrete = parents | self.encoder.constrained
        continuous = np.array(
            [
                d.kind == "float" or (self.relaxed and d.kind == "integer" and d.name not in discrete)
                for d in self.encoder.dimensions
            ]
        )
        return continuous & ~self.encoder.listed

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Dimensions without a fixed value, (D,)."""
        fixed = () if self.fixed is None else self.fixed.columns
        return ~np.isin(np.arange(len(self.encoder.dimensions)), fixed)

    def place(self, genotypes: FloatArray) -> tuple[Encoded, NDArray[np.bool_]]:
        """Return the configurations of genotypes and which of them are allowed, (m,)."""
        encoded, allowed = self.encoder.resolve(genotypes, self.fixed)
        if self.relaxed:
            relaxed = self.continuous & [d.kind == "integer" for d in self.encoder.dimensions]
            values = np.where(relaxed & self.free & encoded.active, np.clip(genotypes, 0.0, 1.0), encoded.unit_values)
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
            values[rows] = sum(model.values(encoded[rows]) for model in self.summands)
            values[rows] += self.merit.values(encoded[rows])
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
        parts = [model.values_and_gradients(encoded) for model in self.summands]
        parts.append(self.merit.values_and_gradients(encoded))
        values, gradients = zip(*parts, strict=True)
        return np.sum(values, axis=0), np.sum(gradients, axis=0)

    def _blocks(self, m: int, width: int) -> list[slice]:
        return blocks(m, self.merit.doubles(width))


def blocks(m: int, doubles: int) -> list[slice]:
    """Return slices of m configurations, for each of which the largest array has this size."""
    size = max(1, _BLOCK // doubles)
    return [slice(i, i + size) for i in range(0, m, size)]
