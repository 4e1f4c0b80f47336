"""Find the configuration that maximises the expected hypervolume improvement of several objectives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from typing_extensions import Unpack

from slayr_py.acquisition.boxes import non_dominated_boxes
from slayr_py.acquisition.maximise import standardised_error
from slayr_py.acquisition.merit import HypervolumeImprovement
from slayr_py.acquisition.search import AcquisitionSearch, SearchKeywords, SearchTerms, Suggestion
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
    configs: Iterable[Mapping[str, object]] | None = None,
    errors: Sequence[float] | None = None,
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
    configs : iterable of n configurations, optional
        Those of ``front``, if it is noisy. An evaluation beside one of them changes what is known of both: the
        improvement is then that of the difference; see `Predictor.front_moments`.
    errors : sequence of float, optional
        Of each objective, as ``error`` of :func:`suggest`.
    rng, pending, exclude, feasibility, least_feasible, fixed, prior, cost, interior, outcomes, effort
        As in :func:`suggest`. The front also has the medians that are predicted at pending configurations: a front of
        each draw would couple the objectives.

    Raises
    ------
    DataError
        If shapes differ, values are not finite, or ``front`` is None without models of feasibility.
    SpaceError
        If no configuration has the fixed values, or the posteriors have different spaces, graphs or scales.
    TypeError
        For an unknown argument.
    """
    given = SearchTerms.of(**terms)
    if front is None and not given.feasibility:
        raise DataError("front is None, and no feasibility is modelled; give the values so far")
    values = _values_of(front, reference, len(posteriors))
    centre = np.array([posterior.y_mean for posterior in posteriors])
    scale = np.array([posterior.y_sd for posterior in posteriors])

    with one_thread():
        applicable = given.applicable(has_best=front is not None, is_logarithm=True)
        search = AcquisitionSearch.of(posteriors, applicable, repeats=noisy and configs is not None)
        known = [None] * len(posteriors) if errors is None else errors
        if len(known) != len(posteriors):
            raise DataError(f"errors has {len(known)} numbers for the {len(posteriors)} objectives")
        predictors = []
        for posterior, given_error in zip(posteriors, known, strict=True):
            further = standardised_error(posterior, given_error)
            predictor = posterior.predictor(search.most).with_error(further)
            predictors.append(predictor.with_pending(search.running, exact=not noisy and further == 0))
        compared = None if configs is None else posteriors[0].encoder.encode(configs)
        if compared is not None and len(compared) != len(values):
            raise DataError(f"configs has {len(compared)} configurations for the {len(values)} values of front")
        if (believed := search.believed(has_best=front is not None)) is not None:
            pairs = zip(predictors, posteriors, strict=True)
            medians = [each.predict(believed, of.y_mean, of.y_sd).centre_and_spread()[0] for each, of in pairs]
            values = np.vstack([values, np.column_stack(medians)])
            compared = None if compared is None else compared.concatenate(believed)
        standard = (values - centre) / scale
        beside = None
        if noisy and compared is not None:
            beside = standard
            predictors = [each.beside(compared, goal) for each, goal in zip(predictors, standard.T, strict=True)]
        boxes = non_dominated_boxes(standard, (np.asarray(reference) - centre) / scale)
        chains = tuple(posterior.n_chains for posterior in posteriors)
        improvement = HypervolumeImprovement(tuple(predictors), chains, boxes, noisy, beside)
        found, note = search.run(improvement if len(values) else improvement.nothing(), rng, least_feasible)
        error = float("nan")
        if len(values):
            drawn = zip(posteriors, predictors, strict=True)
            error = improvement.error(found.encoded, [posterior.chains(each.n_draws) for posterior, each in drawn])
        return search.describe(predictors, found, error, note)


def _values_of(front: FloatArray | None, reference: FloatArray, p: int) -> FloatArray:
    """Return the values (n, p) of a front, none if it is unknown; check them and the reference point."""
    values = np.empty((0, p)) if front is None else np.asarray(front, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != p or np.shape(reference) != (p,):
        raise DataError(
            f"front has the shape {values.shape} and reference {np.shape(reference)}; they must be (n, p) and (p,) for "
            f"the {p} objectives"
        )
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(reference))):
        raise DataError("front and reference must be finite")
    return values
