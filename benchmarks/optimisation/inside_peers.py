"""Optimisers of problems with linear constraints on inputs: random points inside, and BayBE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common.problems import Problem
from slayr_py.space import Encoder
from slayr_py.space.within import read_within
from slayr_py.study.storage.distributions import to_params


class LinearConstraint(NamedTuple):
    """sum_i coefficients_i x_i = limit of an equality, else <= limit."""

    coefficients: dict[str, float]
    limit: float
    is_equality: bool

    def excess(self, params: Mapping[str, Any]) -> float:
        """Return by how much a configuration violates the constraint."""
        difference = sum(factor * params[name] for name, factor in self.coefficients.items()) - self.limit
        return abs(difference) if self.is_equality else max(difference, 0.0)


def linear_constraints(problem: Problem) -> list[LinearConstraint]:
    """Return the constraints on the inputs of a problem, all of which are linear."""
    found = []
    for constraint in read_within(problem.within):
        origin = {name: np.zeros(1) for name in constraint.names}
        value, slopes = constraint.evaluate(origin, list)
        coefficients = {name: float(slope[0]) for name, slope in slopes.items()}
        found.append(LinearConstraint(coefficients, -float(value[0]), constraint.is_equality))
    return found


class RandomInside:
    """Points drawn uniformly from the part of the space in which the constraints hold."""

    packages = ()
    own_design = False
    resumes = True
    conditional = True
    rhat = None

    def __init__(self, problem: Problem, seed: int) -> None:
        self.encoder = Encoder(problem.space, within=problem.within or None)
        self.seed = seed
        self.told = 0

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        self.told += 1

    def ask(self) -> dict[str, Any]:
        rng = np.random.default_rng([self.seed, self.told])
        encoded, allowed = self.encoder.resolve(self.encoder.uniform(20, rng))
        return to_params(self.encoder.decode(encoded[np.flatnonzero(allowed)[:1]])[0])


class BayBE:
    """A campaign of BayBE on floats with linear constraints: its Gaussian process and log expected improvement."""

    packages = ("baybe", "botorch", "gpytorch", "torch")
    own_design = False
    resumes = False
    conditional = False
    rhat = None

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch
        from baybe import Campaign
        from baybe.constraints import ContinuousLinearConstraint
        from baybe.parameters import NumericalContinuousParameter
        from baybe.recommenders import BotorchRecommender
        from baybe.searchspace import SearchSpace
        from baybe.targets import NumericalTarget

        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (BayBE uses the global generator)
        parameters = [NumericalContinuousParameter(name, (p.lower, p.upper)) for name, p in problem.space.items()]
        constraints = [
            ContinuousLinearConstraint(
                parameters=list(c.coefficients),
                operator="=" if c.is_equality else "<=",
                coefficients=list(c.coefficients.values()),
                rhs=c.limit,
            )
            for c in linear_constraints(problem)
        ]
        space = SearchSpace.from_product(parameters, constraints)
        target = NumericalTarget("value", minimize=True)
        self.campaign = Campaign(space, target.to_objective(), BotorchRecommender())
        self.names = list(problem.space)

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        import pandas as pd

        self.campaign.add_measurements(pd.DataFrame([{**params, "value": value}]))

    def ask(self) -> dict[str, Any]:
        row = self.campaign.recommend(1).iloc[0]
        return {name: float(row[name]) for name in self.names}
