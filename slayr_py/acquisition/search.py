"""The search for the configuration to evaluate next: its terms, its landscape, and when it is repeated.

`Maximisation` has the steps of one search. There are fewer draws than `Effort.draws` if their Cholesky factors would
need more than half a gigabyte.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

import numpy as np
from ConfigSpace import Configuration
from typing_extensions import Unpack

from slayr_py.acquisition.boxes import non_dominated
from slayr_py.acquisition.candidates import Candidates, best_first, candidates
from slayr_py.acquisition.cost import Cost
from slayr_py.acquisition.effort import DEFAULT, Effort
from slayr_py.acquisition.feasibility import Feasibility, log_probability_of
from slayr_py.acquisition.identity import NEIGHBOURHOOD, Taken
from slayr_py.acquisition.interior import Interior
from slayr_py.acquisition.landscape import Landscape
from slayr_py.acquisition.maximisation import Maximisation
from slayr_py.acquisition.merit import Merit
from slayr_py.acquisition.optimum_prior import OptimumPrior
from slayr_py.acquisition.plateaus import Outcomes, Plateaus
from slayr_py.errors import SpaceError, did_you_mean
from slayr_py.inference import Posterior, Predictor
from slayr_py.space import Encoded, Fixed

_INFEASIBLE = 0.05  # probability of feasibility below which improvement is not measured from a pending configuration
_FEW = 32  # draws that are enough to compare the probability with `_INFEASIBLE`
_FACTORS = 2**26  # most doubles in the Cholesky factors of the draws for the final choice


class Suggestion(NamedTuple):
    """A configuration to evaluate next.

    Attributes
    ----------
    config : Configuration
    value : float
        The criterion there, for standardised targets.
    predicted : tuple of (float, float)
        For each objective, mean and standard deviation of the latent function there given the observations, in the
        user's units; `Prediction.centre_and_spread`.
    feasible : float
        Probability that the configuration is feasible; 1 if neither failures nor constraints are modelled.
    error : float
        Monte Carlo standard error of the criterion there: relative to the criterion for improvements, in standard
        deviations of the targets times ``scale`` for the bound; NaN for a point estimate.
    note : str
        Reason why another configuration than the maximum of the criterion is suggested; empty for the maximum.
    cost : float or None
        Expected cost of the evaluation, in its unit; None if costs are not modelled.
    interior : float
        Logarithm of the factor of the belief that the optimum is inside the ranges; 0 without it.
    new : float
        Logarithm of the factor for a new value, by which the criterion was multiplied; 0 without plateaus.
    scale : float
        Factor of thresholds in standard deviations of the targets: product of the `Predictor.improvement_scale`.
    """

    config: Configuration
    value: float
    predicted: tuple[tuple[float, float], ...]
    error: float
    feasible: float = 1.0
    note: str = ""
    cost: float | None = None
    interior: float = 0.0
    new: float = 0.0
    scale: float = 1.0

    @property
    def mean(self) -> float:
        """Predicted mean of the only or the first objective."""
        return self.predicted[0][0]

    @property
    def sd(self) -> float:
        """Predicted standard deviation of the only or the first objective."""
        return self.predicted[0][1]


class SearchKeywords(TypedDict, total=False):
    """The terms of a search as keyword arguments, all of them optional; `SearchTerms` has the defaults."""

    pending: Iterable[Mapping[str, object]]
    exclude: Iterable[Mapping[str, object]]
    feasibility: Sequence[Posterior]
    fixed: Mapping[str, object] | Fixed | None
    prior: OptimumPrior | None
    cost: Posterior | None
    interior: bool | None
    outcomes: Outcomes | None
    effort: Effort


@dataclass(frozen=True)
class SearchTerms:
    """What determines a search besides the posteriors; `suggest` describes it."""

    pending: Iterable[Mapping[str, object]] = ()
    exclude: Iterable[Mapping[str, object]] = ()
    feasibility: Sequence[Posterior] = ()
    fixed: Mapping[str, object] | Fixed | None = None
    prior: OptimumPrior | None = None
    cost: Posterior | None = None
    interior: bool | None = False
    outcomes: Outcomes | None = None
    effort: Effort = DEFAULT

    @classmethod
    def of(cls, **keywords: Unpack[SearchKeywords]) -> SearchTerms:
        """Return the terms with the values of keyword arguments.

        Raises
        ------
        TypeError
            For an unknown argument.
        """
        for name in keywords:
            if name not in SearchKeywords.__annotations__:
                known = ("rng", "least_feasible", *SearchKeywords.__annotations__)
                raise TypeError(f"unknown argument {name!r}{did_you_mean(name, known)}")
        return cls(**keywords)

    def applicable(self, *, has_best: bool, is_logarithm: bool) -> SearchTerms:
        """Return the terms without the belief in the interior if another belief, or no improvement, is maximised.

        The belief multiplies an improvement. There is none without a best value, and none to multiply if the logarithm
        of the criterion is not maximised.
        """
        is_factor = self.prior is None and has_best and is_logarithm
        return self if is_factor else replace(self, interior=False)


@dataclass(frozen=True)
class AcquisitionSearch:
    """A search over the space of the posteriors of one or more objectives.

    Attributes
    ----------
    posteriors : sequence of Posterior
    running : Encoded
        Pending configurations.
    excluded : Encoded
        Those that are suggested only if the space has no others left.
    feasibility : sequence of Posterior
    models : tuple of Feasibility
        Those of ``feasibility``, conditioned on the pending configurations.
    cost : Cost, optional
    kept : Fixed, optional
    prior : OptimumPrior, optional
    plateaus : Plateaus, optional
    effort : Effort
    most : int
        Most draws of an objective.
    interior : bool
        Whether the belief that the optimum is inside the ranges is a factor.
    """

    posteriors: Sequence[Posterior]
    running: Encoded
    excluded: Encoded
    feasibility: Sequence[Posterior]
    models: tuple[Feasibility, ...]
    cost: Cost | None
    kept: Fixed | None
    prior: OptimumPrior | None
    plateaus: Plateaus | None
    effort: Effort
    most: int
    interior: bool

    @classmethod
    def of(cls, posteriors: Sequence[Posterior], terms: SearchTerms, *, repeats: bool) -> AcquisitionSearch:
        """Encode the terms of a search, which ``repeats`` pending configurations if that is worth most."""
        encoder = posteriors[0].encoder
        others = [*posteriors[1:], *terms.feasibility, *(() if terms.cost is None else (terms.cost,))]
        if not all(encoder.matches(each.encoder) for each in others):
            raise SpaceError(
                "the posteriors have different spaces, graphs or logarithmic scales; fit the others in "
                "posterior.encoder of the first"
            )
        running = encoder.encode(list(terms.pending))
        excluded = encoder.encode(list(terms.exclude))
        most = most_draws(posteriors, terms.effort)
        plateaus = None if terms.outcomes is None else Plateaus.of(posteriors[0].train, terms.outcomes)
        return cls(
            posteriors=posteriors,
            running=running,
            excluded=excluded if repeats else excluded.concatenate(running),
            feasibility=terms.feasibility,
            models=tuple(Feasibility.of(model, running, most) for model in terms.feasibility),
            cost=None if terms.cost is None else Cost.of(terms.cost, most),
            kept=encoder.fix(terms.fixed, "fixed: ") if isinstance(terms.fixed, Mapping) else terms.fixed,
            prior=terms.prior,
            plateaus=plateaus,
            effort=terms.effort,
            most=most,
            interior=plateaus is None if terms.interior is None else terms.interior,
        )

    def believed(self, *, has_best: bool) -> Encoded | None:
        """Return the pending configurations whose believed values count as observed ones; None if there are none.

        Those with the fixed values that satisfy the constraints on inputs count, as of the observed ones; if no
        observed one has the fixed values, these replace those of the pending ones. If a feasible value is known
        (``has_best``), all of them count unless they are infeasible by the observations: beside a pending
        configuration, a feasible one improves on nothing, because the pending one is feasible then too. Otherwise only
        those count that are probably feasible.
        """
        encoder = self.posteriors[0].encoder
        running = self.running
        if self.kept is not None and not self.kept.hold(self.posteriors[0].train).any():
            running, counts = encoder.resolve(running.unit_values, self.kept)
        else:
            counts = np.array([not broken for broken in encoder.broken(running)], dtype=np.bool_)
            if self.kept is not None:
                counts &= self.kept.hold(running)
        if self.models and counts.any():
            least = _INFEASIBLE if has_best else 0.5
            models = [Feasibility.of(each, running[:0], _FEW) for each in self.feasibility] if has_best else self.models
            counts &= log_probability_of(models, running) >= np.log(least)
        return running[np.flatnonzero(counts)] if counts.any() else None

    def run(self, merit: Merit, rng: np.random.Generator, least_feasible: float) -> tuple[Found, str]:
        """Return the configuration to suggest, and the reason if it is not the maximum."""
        first = self.posteriors[0]
        doubtful = log_probability_of(self.models, first.train) < np.log(0.5)
        doubtful |= ~first.encoder.inside(first.train, recorded=True)
        front = None
        y = merit.means(first.train)
        if y is None:
            y = np.column_stack([posterior.targets.y for posterior in self.posteriors])
        if len(self.posteriors) > 1:
            rows = np.flatnonzero(~doubtful)
            front = rows[non_dominated(y[rows])]
        pool = candidates(first, rng, self.effort.candidates, self.kept, doubtful, front, self.prior, y[:, 0])
        pool, taken = _available(pool, self.excluded)
        reasons = []
        if self.plateaus is not None:
            reasons = ["values repeat those of points nearby, so that the probability of a new value is a factor"]
        inside = None
        if self.interior:
            best = best_first(y[:, 0], doubtful)[:1] if front is None or not len(front) else front
            inside = Interior.of(first.encoder, first.train[best], self.kept)
        landscape = Landscape(
            first.encoder,
            merit,
            self.models,
            taken,
            fixed=self.kept,
            prior=self.prior,
            interior=inside,
            plateaus=self.plateaus,
            cost=self.cost if merit.is_logarithm else None,  # without a value there is no improvement
        )
        return _search(landscape, pool, self.effort, least_feasible, reasons)

    def describe(self, predictors: Sequence[Predictor], found: Found, error: float, note: str) -> Suggestion:
        """Return the suggestion of a configuration, with a prediction that is not conditioned on the running ones."""
        predicted = []
        for searched, posterior in zip(predictors, self.posteriors, strict=True):
            predictor = posterior.predictor(self.most) if len(self.running) else searched
            prediction = predictor.predict(found.encoded, posterior.y_mean, posterior.y_sd)
            centre, spread = prediction.centre_and_spread()
            predicted.append((float(centre[0]), float(spread[0])))
        config = self.posteriors[0].encoder.decode(found.encoded)[0]
        cost = None if self.cost is None else float(self.cost.expected(found.encoded)[0])
        factors = (found.interior, found.new)
        scale = math.prod(each.improvement_scale for each in predictors)
        return Suggestion(config, found.value, tuple(predicted), error, found.feasible, note, cost, *factors, scale)


class Found(NamedTuple):
    """A configuration with the criterion, the probability of feasibility, and the logarithms of other factors there."""

    encoded: Encoded
    value: float
    feasible: float
    interior: float
    new: float


def _search(
    landscape: Landscape, pool: Candidates, effort: Effort, least_feasible: float, reasons: Sequence[str] = ()
) -> tuple[Found, str]:
    """Return the configuration to suggest, and the reason if it is not the maximum of the landscape.

    ``reasons`` explain factors of the landscape.
    """
    merit = landscape.merit

    def maximise(search: Maximisation) -> Found:
        chosen = search.maximum()
        factors = (search.landscape.interior, search.landscape.plateaus)
        logs = (0.0 if factor is None else float(factor.values(chosen)[0]) for factor in factors)
        return Found(chosen, merit.at(chosen), landscape.probability(chosen), *logs)

    search = Maximisation.of(replace(landscape, interior=None), pool, effort)
    if landscape.interior is None:
        found = maximise(search)
    else:
        believed = search.multiplied_by(landscape.interior)
        found = maximise(believed)
        if found.value < merit.least:
            found = maximise(search)
        else:
            search = believed
    reasons = [*reasons]
    if landscape.prior is not None and found.value < merit.least:
        reasons.append(f"with the prior it is only {found.value:.1e}, so that the prior is left out")
        search = search.changed(lambda each: replace(each, prior=None))
        found = maximise(search)
    if found.feasible < least_feasible:
        reasons.append(f"its probability of feasibility is {found.feasible:.2g} < {least_feasible}")
        found = maximise(search.changed(lambda each: each.cautious()))
    vanishes = found.value < merit.least_to_tell
    if vanishes or found.feasible < least_feasible:
        reasons += [f"it is only {found.value:.1e}"] if vanishes else []
        found = maximise(search.changed(lambda each: each.cautious(each.merit.exploring())))
    if found.feasible < least_feasible:
        reasons.append("no configuration with a larger one was found")
        found = maximise(search.changed(lambda each: each.cautious(each.merit.nothing())))
    return found, f"not at the maximum of the acquisition: {', and '.join(reasons)}" if reasons else ""


def _available(pool: Candidates, evaluated: Encoded) -> tuple[Candidates, Taken | None]:
    """Return the candidates that may be suggested, and the configurations that the search has to avoid.

    If all candidates have an evaluated neighbour, the search avoids evaluated configurations only. If all candidates
    are evaluated, it avoids none.
    """
    for radius in (NEIGHBOURHOOD, 0.0):
        taken = Taken(evaluated, radius)
        new = ~taken.contains(pool.encoded)
        if new.any():
            return pool[new], taken
    return pool, None


def most_draws(posteriors: Sequence[Posterior], effort: Effort) -> int:
    """Return the most draws of an objective, at least one of each chain."""
    chains = max(posterior.n_chains for posterior in posteriors)
    return min(effort.draws, max(chains, _FACTORS // len(posteriors[0].train) ** 2))
