"""Find the configuration that maximises the expected hypervolume improvement of several objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from slayr_py.acquisition.boxes import non_dominated_boxes
from slayr_py.acquisition.effort import DEFAULT, Effort
from slayr_py.acquisition.maximise import AcquisitionSearch, SearchTerms, Suggestion, pending_that_count
from slayr_py.acquisition.merit import HypervolumeImprovement, Merit
from slayr_py.acquisition.optimum_prior import OptimumPrior
from slayr_py.errors import DataError
from slayr_py.inference import Posterior, Predictor
from slayr_py.space import Fixed, FloatArray
from slayr_py.threads import ignoring_underflow, one_thread


@ignoring_underflow
def suggest_tradeoff(
    posteriors: Sequence[Posterior],
    *,
    front: FloatArray | None,
    reference: FloatArray,
    noisy: bool = False,
    rng: np.random.Generator,
    pending: Iterable[Mapping[str, object]] = (),
    exclude: Iterable[Mapping[str, object]] = (),
    feasibility: Sequence[Posterior] = (),
    least_feasible: float = 0.0,
    fixed: Mapping[str, object] | Fixed | None = None,
    prior: OptimumPrior | None = None,
    cost: Posterior | None = None,
    interior: bool | None = False,
    outcomes: FloatArray | None = None,
    effort: Effort = DEFAULT,
) -> Suggestion:
    """Maximise the expected hypervolume improvement over the space of several objectives.

    Parameters
    ----------
    posteriors : sequence of Posterior
        One for each of 2 to 4 objectives, of the same configurations.
    front : (n, p) array, or None
        Values of the objectives at feasible configurations, in the user's units, from which improvement is measured;
        dominated ones do not matter. None if none is known: the probability of feasibility is maximised then,
        multiplied by the prior if there is one.
    reference : (p,) array
        Reference point, in the user's units: values that are not better in all objectives improve on nothing.
    noisy : bool
        Whether ``front`` consists of posterior means of noisy objectives. Improvement is then that of the posterior
        mean at the configuration, which a noisy evaluation there changes by less than the function is uncertain.
    rng, pending, exclude, feasibility, least_feasible, fixed, prior, cost, interior, outcomes, effort
        As in :func:`suggest`. The front also has the medians that are predicted at pending configurations: a front of
        each draw would couple the objectives.

    Raises
    ------
    DataError
        If shapes differ, values are not finite, or ``front`` is None without models of feasibility.
    SpaceError
        If no configuration has the fixed values.
    """
    if front is None and not feasibility:
        raise DataError("front is None, and no feasibility is modelled; give the values so far")
    values = np.empty((0, len(posteriors))) if front is None else np.asarray(front, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(posteriors) or np.shape(reference) != (len(posteriors),):
        raise DataError(
            f"front has the shape {values.shape} and reference {np.shape(reference)}; they must be (n, p) and (p,) for "
            f"the {len(posteriors)} objectives"
        )
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(reference))):
        raise DataError("front and reference must be finite")
    centre = np.array([posterior.y_mean for posterior in posteriors])
    scale = np.array([posterior.y_sd for posterior in posteriors])

    terms = SearchTerms(
        pending=pending,
        exclude=exclude,
        feasibility=feasibility,
        fixed=fixed,
        prior=prior,
        cost=cost,
        interior=interior,
        outcomes=outcomes,
        effort=effort,
    )

    def merit(search: AcquisitionSearch) -> tuple[Merit, list[Predictor]]:
        predictors = [posterior.predictor(search.most).with_pending(search.running) for posterior in posteriors]
        known = values
        if (believed := pending_that_count(search.running, search.models, has_best=front is not None)) is not None:
            pairs = zip(predictors, posteriors, strict=True)
            medians = [each.predict(believed, of.y_mean, of.y_sd).centre_and_spread()[0] for each, of in pairs]
            known = np.vstack([values, np.column_stack(medians)])
        boxes = non_dominated_boxes((known - centre) / scale, (np.asarray(reference) - centre) / scale)
        chains = tuple(posterior.n_chains for posterior in posteriors)
        improvement = HypervolumeImprovement(tuple(predictors), chains, boxes, noisy)
        return improvement if len(known) else improvement.nothing(), predictors

    with one_thread():
        search = AcquisitionSearch.of(posteriors, terms.applicable(has_best=front is not None, is_logarithm=True))
        maximised, predictors = merit(search)
        found, note = search.run(maximised, rng, least_feasible)
        error = float("nan")
        if isinstance(maximised, HypervolumeImprovement):
            pairs = zip(posteriors, predictors, strict=True)
            error = maximised.error(found.encoded, [posterior.chains(each.n_draws) for posterior, each in pairs])
        return search.describe(predictors, found, error, note)
