"""Find the configuration that maximises the expected hypervolume improvement of several objectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import Unpack

from slayr_py.acquisition.boxes import non_dominated_boxes
from slayr_py.acquisition.maximise import (
    AcquisitionSearch,
    SearchKeywords,
    SearchTerms,
    Suggestion,
    pending_that_count,
)
from slayr_py.acquisition.merit import HypervolumeImprovement
from slayr_py.errors import DataError
from slayr_py.inference import Posterior
from slayr_py.space import FloatArray
from slayr_py.threads import ignoring_underflow, one_thread


@ignoring_underflow
def suggest_tradeoff(
    posteriors: Sequence[Posterior],
    *,
    front: FloatArray | None,
    reference: FloatArray,
    noisy: bool = False,
    rng: np.random.Generator,
    least_feasible: float = 0.0,
    **terms: Unpack[SearchKeywords],
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
    TypeError
        For an unknown argument.
    """
    given = SearchTerms.of(**terms)
    if front is None and not given.feasibility:
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

    with one_thread():
        search = AcquisitionSearch.of(posteriors, given.applicable(has_best=front is not None, is_logarithm=True))
        predictors = [posterior.predictor(search.most).with_pending(search.running) for posterior in posteriors]
        if (believed := pending_that_count(search.running, search.models, has_best=front is not None)) is not None:
            pairs = zip(predictors, posteriors, strict=True)
            medians = [each.predict(believed, of.y_mean, of.y_sd).centre_and_spread()[0] for each, of in pairs]
            values = np.vstack([values, np.column_stack(medians)])
        boxes = non_dominated_boxes((values - centre) / scale, (np.asarray(reference) - centre) / scale)
        chains = tuple(posterior.n_chains for posterior in posteriors)
        improvement = HypervolumeImprovement(tuple(predictors), chains, boxes, noisy)
        found, note = search.run(improvement if len(values) else improvement.nothing(), rng, least_feasible)
        error = float("nan")
        if len(values):
            drawn = zip(posteriors, predictors, strict=True)
            error = improvement.error(found.encoded, [posterior.chains(each.n_draws) for posterior, each in drawn])
        return search.describe(predictors, found, error, note)
