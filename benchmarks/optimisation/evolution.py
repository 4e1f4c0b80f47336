"""Regularised evolution: Real et al. (2019), *Regularized Evolution for Image Classifier Architecture Search*.

Oh et al. (2021, supplement 4.2) extend it to mixed spaces: population, sample and mutations here have their settings.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.optimisation.told import Told
from slayr_py.study.storage.distributions import to_params


class Evolution(Told):
    """Mutate the best of a sample from the latest evaluations; the oldest member of the population dies.

    The first `POPULATION` evaluations are the initial design and random configurations. A mutation changes one number
    and one parameter with levels: the number by normal noise, and the level to another one with equal probabilities.
    The paper has "a small variance" of the noise without a number.
    """

    POPULATION = 50
    SAMPLE = 15
    NOISE = 0.1
    """Standard deviation, in ranges of the parameter on its scale."""

    packages = ()

    def ask(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.seed, len(self.values)])
        is_random = len(self.values) < self.POPULATION
        while True:
            genotype = self.encoder.uniform(1, rng) if is_random else self._child(rng)[None]
            encoded, allowed = self.encoder.resolve(genotype)
            if allowed[0]:
                return to_params(self.encoder.decode(encoded)[0])

    def _child(self, rng: np.random.Generator) -> np.ndarray:
        alive = np.arange(len(self.values))[-self.POPULATION :]
        sample = rng.choice(alive, self.SAMPLE, replace=False)
        child = self.rows[min(sample, key=self.values.__getitem__)].copy()
        dimensions = self.encoder.dimensions
        if numbers := [j for j, d in enumerate(dimensions) if d.is_real]:
            j = rng.choice(numbers)
            child[j] = np.clip(child[j] + self.NOISE * rng.normal(), 0, 1)
        if with_levels := [j for j, d in enumerate(dimensions) if len(d.levels) > 1]:
            j = rng.choice(with_levels)
            others = [level for level in range(len(dimensions[j].levels)) if level != child[j]]
            child[j] = rng.choice(others)
        return child
