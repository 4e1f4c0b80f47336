"""The steps of a search for the largest value of a landscape.

1. Evaluate the landscape at candidates, from the whole space and from near the best observed configurations, under few
   draws. Evaluate it at the best of them again under more draws.
2. Maximise it from some of the best candidates, under few draws, and compare the maxima under more draws.
3. Unless the criterion vanishes at the best, maximise again from the best few under more draws, and return the best
   under all.

`Effort` has the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import Candidates
from slayr_py.acquisition.effort import Effort
from slayr_py.acquisition.identity import branches, distinct
from slayr_py.acquisition.interior import Interior
from slayr_py.acquisition.landscape import Landscape
from slayr_py.acquisition.refinement import Reached, refine
from slayr_py.space import Encoded, FloatArray

_PER_BRANCH = 3  # starts with the same levels and active parameters, while there are others
_APART = 3  # decimals to which two finalists must differ


@dataclass(frozen=True)
class Maximisation:
    """A search among candidates whose first screen has been evaluated.

    Attributes
    ----------
    landscape, closer : Landscape
        Under all draws, and under those of the last step, of which the earlier steps take some.
    pool : Candidates
    values : (m,) float64
        Values of the candidates under the draws of the first screen.
    effort : Effort
    """

    landscape: Landscape
    closer: Landscape
    pool: Candidates
    values: FloatArray
    effort: Effort

    @classmethod
    def of(cls, landscape: Landscape, pool: Candidates, effort: Effort) -> Maximisation:
        """Evaluate the first screen."""
        return cls._screened(landscape, landscape.subset(effort.finals[0]), pool, effort)

    @classmethod
    def _screened(cls, landscape: Landscape, closer: Landscape, pool: Candidates, effort: Effort) -> Maximisation:
        values = closer.screening(effort.screens[0][0]).values_of(pool.encoded)
        return cls(landscape, closer, pool, values, effort)

    def changed(self, change: Callable[[Landscape], Landscape]) -> Maximisation:
        """Return the search on another landscape with the same draws, whose factors are used again."""
        return self._screened(change(self.landscape), change(self.closer), self.pool, self.effort)

    def multiplied_by(self, interior: Interior) -> Maximisation:
        """Return the search with a belief; the first screen of the merit is used again too."""
        landscape, closer = (replace(each, interior=interior) for each in (self.landscape, self.closer))
        values = self.values + interior.values(self.pool.encoded)
        return replace(self, landscape=landscape, closer=closer, values=values)

    def maximum(self) -> Encoded:
        """Return the configuration with the largest value; where the criterion vanishes by few draws, roughly."""
        climbed = self._climbed()
        highest, _ = self.landscape.place(climbed.genotypes[:1])
        return highest if self.closer.merit.at(highest) < self.closer.merit.least else self._refined(climbed)

    def _climbed(self) -> Reached:
        """Return the local maxima under few draws, from the one that is highest under more draws on."""
        (_, kept), *others = self.effort.screens
        pool = self.pool[_descending(self.values)[:kept]]
        for draws, kept in others:
            pool = pool[_descending(self.closer.screening(draws).values_of(pool.encoded))[:kept]]
        few, climbs = self.effort.climbs
        roughly, _ = self._gains
        reached = refine(self.closer.subset(few), pool.genotypes[_spread(pool.encoded)[:climbs]], roughly)
        values = self.closer.values(reached.genotypes)
        order = _descending(values)
        return Reached(reached.genotypes[order], values[order], reached.curvature[order])

    def _refined(self, climbed: Reached) -> Encoded:
        """Return the best configuration that is reached from the first of these maxima."""
        _, finals = self.effort.finals
        _, precisely = self._gains
        chosen = distinct(self.landscape.place(climbed.genotypes)[0], _APART)[:finals]
        finalists = refine(self.closer, climbed.genotypes[chosen], precisely, climbed.curvature[chosen]).genotypes
        return self.landscape.place(finalists[[np.argmax(self.landscape.values(finalists))]])[0]

    @property
    def _gains(self) -> tuple[float, float]:
        return self.effort.gains if self.landscape.merit.is_logarithm else self.effort.gains_of_bound


def _descending(values: FloatArray) -> NDArray[np.intp]:
    return np.argsort(-values, kind="stable")


def _spread(encoded: Encoded) -> NDArray[np.intp]:
    """Return all rows in order, except that at most ``_PER_BRANCH`` rows of each branch come before the others."""
    branch = branches(encoded)
    earlier = np.tril(branch[:, None] == branch[None, :], -1).sum(axis=1)
    return np.argsort(earlier >= _PER_BRANCH, kind="stable")
