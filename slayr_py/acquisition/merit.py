"""The merit of configurations under posterior draws, which a search maximises: of one objective, or of several."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from typing_extensions import override

from slayr_py.acquisition.boxes import Boxes
from slayr_py.acquisition.criteria import (
    LEAST,
    Acquisition,
    NoCriterion,
    State,
    Uncertainty,
    error_of_mean,
    gradient_by_inputs,
)
from slayr_py.acquisition.functions import SMALLEST_VARIANCE
from slayr_py.acquisition.hypervolume_improvement import (
    Improvement,
    Sides,
    derivatives,
    expected_improvement_of_boxes,
    mean_over_draws,
    terms_of_draws,
)
from slayr_py.acquisition.shortfall import Shortfall, Transformation
from slayr_py.inference import Chains, FrontGradient, Predictor
from slayr_py.space import Encoded, FloatArray

_FEW = 32  # draws


class Merit(ABC):
    """A criterion under the posterior draws of one or more objectives.

    Attributes
    ----------
    least : float
        Below this value at its maximum, the criterion is no improvement that a belief may choose by: see
        `Acquisition.least`.
    is_logarithm : bool
        Whether `values` are logarithms, whose differences are relative.
    """

    least: float

    @property
    def least_to_tell(self) -> float:
        """Return the value below which, at its maximum, the criterion does not tell configurations apart."""
        return self.least

    @property
    def is_logarithm(self) -> bool:
        """Whether `values` are logarithms."""
        return True

    @abstractmethod
    def subset(self, n_draws: int) -> Self:
        """Return the merit under at most ``n_draws`` of the draws of each objective."""

    def screening(self, n_draws: int) -> Self:
        """Return the merit under at most ``n_draws`` of the draws, to compare many configurations."""
        return self.subset(n_draws)

    @abstractmethod
    def values(self, encoded: Encoded) -> FloatArray:
        """Return an increasing function of the criterion that is easier to maximise, at m configurations, (m,)."""

    @abstractmethod
    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return `values` (m,) and their derivatives by the real inputs, (m, D_real)."""

    @abstractmethod
    def at(self, encoded: Encoded) -> float:
        """Return the criterion at one configuration."""

    def means(self, encoded: Encoded) -> FloatArray | None:
        """Return the posterior means of p noisy objectives at n observed configurations, (n, p); None without noise.

        The best of noisy values are partly luck. Few draws are enough to find the best configurations.
        """
        return None

    @abstractmethod
    def doubles(self, width: int) -> int:
        """Return the size of the largest array for one configuration with ``width`` derivatives."""

    @abstractmethod
    def exploring(self) -> Merit:
        """Return the uncertainty about the objectives, for a search that explores."""

    @abstractmethod
    def nothing(self) -> Merit:
        """Return the constant 0, for a search that maximises the probability of feasibility alone."""


@dataclass(frozen=True)
class OneObjective(Merit):
    """An acquisition of one objective.

    Attributes
    ----------
    predictor : Predictor
        Predictor for the draws over which the criterion is averaged, linearised at the value to improve on.
    n_chains : int
        Number of chains of these draws.
    criterion : Acquisition
    state : State
    is_rough : bool
        Whether the tangents of the inverse warps may replace them, to compare many points.
    """

    predictor: Predictor
    n_chains: int
    criterion: Acquisition
    state: State
    is_rough: bool = False

    @property
    def least(self) -> float:  # type: ignore[override]
        """Return the smallest improvement of the criterion that counts."""
        return self.criterion.at_scale(self.criterion.least, self.drawn_state.scale)

    @property
    @override
    def least_to_tell(self) -> float:
        least = self.criterion.least_of_means if self.predictor.is_compared else self.criterion.least
        return self.criterion.at_scale(least, self.drawn_state.scale)

    @property
    @override
    def is_logarithm(self) -> bool:
        return self.criterion.is_logarithm

    @cached_property
    def drawn_state(self) -> State:
        """The state with the incumbent and the warp of each draw, and the scale of improvements."""
        incumbent = self.predictor.incumbent
        best = self.state.best if incumbent is None else incumbent
        warp = self.predictor.warp
        scale = self.predictor.improvement_scale
        state = self.state._replace(best=best, is_tangent=warp is not None, scale=scale)
        return state if self.is_rough else state._replace(warp=warp, pivot=self.predictor.pivot)

    @override
    def subset(self, n_draws: int) -> Self:
        return replace(self, predictor=self.predictor.subset(self.n_chains, n_draws).for_search())

    @override
    def screening(self, n_draws: int) -> Self:
        return replace(self.subset(n_draws), is_rough=True)

    @override
    def values(self, encoded: Encoded) -> FloatArray:
        return self.criterion.transformed(*self.predictor.moments(encoded), self.drawn_state)

    @override
    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        moments = self.predictor.moments_with_gradient(encoded)
        return self.criterion.transformed_with_gradient(moments, self.drawn_state)

    @override
    def at(self, encoded: Encoded) -> float:
        return float(self.criterion_values(encoded)[0])

    def criterion_values(self, encoded: Encoded) -> FloatArray:
        """Return the criterion at m configurations, (m,)."""
        mean, variance = self.predictor.moments(encoded)
        return self.criterion.value(mean, np.sqrt(variance), self.drawn_state)

    @override
    def means(self, encoded: Encoded) -> FloatArray | None:
        if not self.predictor.is_compared:
            return None
        return _means(encoded, [self.predictor], [self.n_chains])

    @override
    def doubles(self, width: int) -> int:
        return self.predictor.n_draws * len(self.predictor.train) * width

    @override
    def exploring(self) -> OneObjective:
        return replace(self, criterion=Uncertainty(), predictor=self.predictor.compared(None))

    @override
    def nothing(self) -> OneObjective:
        return replace(self, criterion=NoCriterion(), predictor=self.predictor.compared(None))

    def error(self, encoded: Encoded, chains: list[Chains]) -> float:
        """Return the Monte Carlo standard error of the criterion at one configuration."""
        mean, variance = self.predictor.moments(encoded)
        return self.criterion.error(mean[:, 0], np.sqrt(variance[:, 0]), self.drawn_state, chains)


def _means(encoded: Encoded, predictors: Sequence[Predictor], n_chains: Sequence[int]) -> FloatArray:
    """Return the means (n, p) of predictors at n configurations, under few of their draws."""
    few = [each.compared(None).subset(chains, _FEW) for each, chains in zip(predictors, n_chains, strict=True)]
    return np.column_stack([each.moments(encoded)[0].mean(axis=0) for each in few])


@dataclass(frozen=True)
class MeritSum(Merit):
    """The sum of the merits of independent objectives.

    Attributes
    ----------
    parts : tuple of OneObjective
    """

    parts: tuple[OneObjective, ...]
    least: float = -np.inf

    @property
    @override
    def is_logarithm(self) -> bool:
        return all(part.is_logarithm for part in self.parts)

    @override
    def subset(self, n_draws: int) -> Self:
        return replace(self, parts=tuple(part.subset(n_draws) for part in self.parts))

    @override
    def values(self, encoded: Encoded) -> FloatArray:
        return np.asarray(np.sum([part.values(encoded) for part in self.parts], axis=0))

    @override
    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        values, gradients = zip(*(part.values_and_gradients(encoded) for part in self.parts), strict=True)
        return np.sum(values, axis=0), np.sum(gradients, axis=0)

    @override
    def at(self, encoded: Encoded) -> float:
        return sum(part.at(encoded) for part in self.parts)

    @override
    def doubles(self, width: int) -> int:
        return max(part.doubles(width) for part in self.parts)

    @override
    def exploring(self) -> MeritSum:
        return replace(self, parts=tuple(part.exploring() for part in self.parts))

    @override
    def nothing(self) -> MeritSum:
        return replace(self, parts=tuple(part.nothing() for part in self.parts))


@dataclass(frozen=True)
class HypervolumeImprovement(Merit):
    """Expected hypervolume improvement of several objectives; the search maximises its logarithm.

    Attributes
    ----------
    predictors : tuple of Predictor
        Of the transformed function of each objective.
    n_chains : tuple of int
    boxes : Boxes
        Of the non-dominated region, on the standardised scales.
    noisy : bool
        Whether the front consists of posterior means, on which the posterior mean after a noisy evaluation improves.
    front : (q, p) float64, optional
        Its values at the configurations that the predictors are `Predictor.beside`.
    is_rough : bool
        Whether an error of a few percent is accepted, to compare many points under few draws.
    """

    predictors: tuple[Predictor, ...]
    n_chains: tuple[int, ...]
    boxes: Boxes
    noisy: bool = False
    front: FloatArray | None = None
    is_rough: bool = False

    @property
    def least(self) -> float:  # type: ignore[override]
        """Return `LEAST` in units of the improvements of all objectives."""
        return LEAST * math.prod(each.improvement_scale for each in self.predictors)

    @cached_property
    def sides(self) -> tuple[Sides, ...]:
        """The edges of the boxes in each objective."""
        values = [None] * len(self.predictors) if self.front is None else self.front.T
        return tuple(Sides.of(self.boxes, j, front) for j, front in enumerate(values))

    @override
    def subset(self, n_draws: int) -> Self:
        pairs = zip(self.predictors, self.n_chains, strict=True)
        some = tuple(predictor.subset(chains, n_draws).for_search() for predictor, chains in pairs)
        return replace(self, predictors=some)

    @override
    def screening(self, n_draws: int) -> Self:
        return replace(self.subset(n_draws), is_rough=True)

    @override
    def values(self, encoded: Encoded) -> FloatArray:
        return self._improvement(self._shortfalls(encoded)).log

    @override
    def values_and_gradients(self, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        pairs = zip(self.predictors, self.sides, strict=True)
        moments = [self._moments_with_gradient(predictor, side, encoded) for predictor, side in pairs]
        shortfalls = [self._shortfall(j, mean, sd) for j, (mean, sd, _) in enumerate(moments)]
        improvement = self._improvement(shortfalls)
        parts = zip(moments, shortfalls, improvement.relevance, strict=True)
        gradients = [gradient(*derivatives(shortfall, relevance)) for (_, _, gradient), shortfall, relevance in parts]
        return improvement.log, np.sum(gradients, axis=0)

    @override
    def at(self, encoded: Encoded) -> float:
        return float(np.exp(self.values(encoded)[0]))

    @override
    def means(self, encoded: Encoded) -> FloatArray | None:
        return _means(encoded, self.predictors, self.n_chains) if self.noisy else None

    @override
    def doubles(self, width: int) -> int:
        edges = [len(side.edges) for side in self.sides]
        sizes = [
            predictor.n_draws * max(len(predictor.train) * width, k)
            for predictor, k in zip(self.predictors, edges, strict=True)
        ]
        return max(*sizes, len(self.boxes.lower))

    @override
    def exploring(self) -> MeritSum:
        state = State(0.0, 1, 1)
        pairs = zip(self.predictors, self.n_chains, strict=True)
        parts = [OneObjective(predictor.compared(None), chains, Uncertainty(), state) for predictor, chains in pairs]
        return MeritSum(tuple(parts))

    @override
    def nothing(self) -> MeritSum:
        return self.exploring().nothing()

    def error(self, encoded: Encoded, chains: list[list[Chains]]) -> float:
        """Return the relative Monte Carlo standard error at one configuration, from the chains of each objective.

        The draws of the objectives are independent, so that their contributions add up in squares.
        """
        shortfalls = self._shortfalls(encoded)
        triples = zip(shortfalls, self._improvement(shortfalls).relevance, chains, strict=True)
        return math.hypot(*(error_of_mean(terms_of_draws(psi, by)[:, 0], groups) for psi, by, groups in triples))

    def _shortfalls(self, encoded: Encoded) -> list[Shortfall]:
        pairs = zip(self.predictors, self.sides, strict=True)
        return [self._shortfall(j, *self._moments(*pair, encoded)) for j, pair in enumerate(pairs)]

    def _shortfall(self, objective: int, mean: FloatArray, sd: FloatArray) -> Shortfall:
        transformation = self._transformation(self.predictors[objective])
        return transformation.shortfall(mean, sd, self.sides[objective].edges)

    def _moments(self, predictor: Predictor, side: Sides, encoded: Encoded) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the standard deviation of the value that may improve, (s, m, 1) or (s, m, k).

        The value is the function or, if noisy, the posterior mean after an evaluation.
        """
        if self.noisy:
            mean, sd = predictor.front_moments(encoded)
            return mean[..., side.owners], _positive(sd)[..., side.owners]
        mean, variance = predictor.moments(encoded)
        return mean[..., None], _positive(np.sqrt(variance))[..., None]

    def _moments_with_gradient(
        self, predictor: Predictor, side: Sides, encoded: Encoded
    ) -> tuple[FloatArray, FloatArray, FrontGradient]:
        """Return `_moments`, and a function that returns gradients from derivatives (s, m, k) by both."""
        if self.noisy:
            mean, sd, gradient = predictor.front_moments_with_gradient(encoded)
            of_owner = (side.owners[:, None] % mean.shape[2] == np.arange(mean.shape[2])).astype(float)

            def by_owners(by_mean: FloatArray, by_sd: FloatArray) -> FloatArray:
                return gradient(by_mean @ of_owner, by_sd @ of_owner)

            return mean[..., side.owners], _positive(sd)[..., side.owners], by_owners
        moments = predictor.moments_with_gradient(encoded)
        spread = _positive(np.sqrt(moments.variance))

        def by_edges(by_mean: FloatArray, by_sd: FloatArray) -> FloatArray:
            return gradient_by_inputs(moments, by_mean.sum(axis=2), by_sd.sum(axis=2) / (2 * spread))

        return moments.mean[..., None], spread[..., None], by_edges

    def _transformation(self, predictor: Predictor) -> Transformation:
        exact = Transformation.of(predictor.warp, predictor.pivot)
        return exact.rough() if self.is_rough else exact

    def _improvement(self, shortfalls: list[Shortfall]) -> Improvement:
        return expected_improvement_of_boxes(self.sides, [mean_over_draws(each) for each in shortfalls])


def _positive(sd: FloatArray) -> FloatArray:
    return np.maximum(sd, np.sqrt(SMALLEST_VARIANCE))
