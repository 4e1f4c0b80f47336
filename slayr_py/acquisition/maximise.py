"""Maximise a criterion of one objective on a mixed, possibly conditional space, or return its values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from typing_extensions import Unpack

from slayr_py.acquisition.criteria import Acquisition, NoCriterion, State, from_name
from slayr_py.acquisition.effort import DEFAULT, Effort
from slayr_py.acquisition.identity import Taken, distinct
from slayr_py.acquisition.landscape import blocks
from slayr_py.acquisition.merit import OneObjective
from slayr_py.acquisition.search import AcquisitionSearch, SearchKeywords, SearchTerms, Suggestion, most_draws
from slayr_py.arguments import check_integer, check_number
from slayr_py.errors import DataError
from slayr_py.inference import Posterior, recent_error
from slayr_py.space import Encoded, FloatArray
from slayr_py.threads import ignoring_underflow, one_thread


@ignoring_underflow
def suggest(
    posterior: Posterior,
    acquisition: str | Acquisition = "ei",
    *,
    best: float | None,
    t: int,
    rng: np.random.Generator,
    recommended: Iterable[Mapping[str, object]] = (),
    error: float | None = None,
    least_feasible: float = 0.0,
    **terms: Unpack[SearchKeywords],
) -> Suggestion:
    """Maximise a criterion over the posterior's space.

    If the criterion vanishes everywhere, its maximum is noise: an improvement of 1e-8 standard deviations of the
    targets depends on the far tails of normal distributions. The most uncertain of the configurations that are probably
    feasible is suggested instead.

    Parameters
    ----------
    posterior : Posterior
    acquisition : str or Acquisition
    best : float
        Best value so far, in the user's units: the smallest, or the largest if ``posterior.maximize``.
        None if no feasible value is known: the probability of feasibility is maximised then, multiplied by the prior
        if there is one.
    t : int
        Iteration, from 1, for the schedule of the confidence bound.
    rng : numpy.random.Generator
        Draws the candidates; the only source of randomness.
    recommended : iterable of configurations, optional
        For a noisy objective: the configuration with the best posterior mean, ``best``, and the runner-up, if there is
        one, which may turn out to be better. The expected improvement is then that of the posterior mean, by an
        evaluation; see `Predictor.compared`. The other criteria ignore it.
    error : float, optional
        Known standard deviation of the error of the next evaluations, besides the noise of the model. By default it is
        the median of those of the last five observations.
    pending : iterable of configurations, optional
        Configurations being evaluated elsewhere: every draw is conditioned on its own mean there, and improvement is
        measured from the smallest of ``best`` and these means, of those with the ``fixed`` values that may be
        feasible. For the expected improvement they are exact, so that there is none beside them, unless
        ``recommended`` is given, or an ``error`` is given or known. With ``recommended`` they may be repeated by it;
        else they are excluded.
    exclude : iterable of configurations, optional
        Evaluated configurations. These and their neighbours are suggested only if the space has no others left. Leave
        it empty for a noisy objective, where evaluating a configuration twice can be useful.
    feasibility : sequence of Posterior, optional
        Models of success (probit likelihood), and of constraints, which hold where their values are not positive. The
        criterion is multiplied by the probability of feasibility (Gardner et al. 2014); its logarithm is added to the
        confidence bound, in standard deviations of the targets times the scale of improvements.
    least_feasible : float, default 0
        Smallest probability of feasibility. If it is smaller at the maximum, small probabilities weigh more in another
        search, then the most uncertain configuration that is probably feasible is searched and, if its probability is
        too small as well, the largest probability.
    fixed : mapping of str to value, optional
        Parameters that keep these values: the criterion is maximised over the others.
    prior : OptimumPrior, optional
        A belief about the location of the optimum, by which the criterion is multiplied. If the criterion vanishes at
        the maximum of the product, the belief is left out.
    cost : Posterior, optional
        Model of the logarithm of the cost of an evaluation: an improvement is then divided by its expected cost. The
        logarithm of the criterion has to be maximised, as of "ei". It is left out without a best value.
    interior : bool or None, default False
        Whether the criterion is multiplied by a weak belief that the optimum is inside the ranges of the floats; see
        ``slayr_py/acquisition/interior.py``. None: unless plateaus exist. It is left out with ``prior``, without a best
        value, if the logarithm of the criterion is not maximised, and if the criterion vanishes at the maximum of the
        product.
    outcomes : Outcomes, optional
        What each observation of the posterior returned, such as its value and whether it is feasible. Where evaluations
        have exactly equal outcomes in regions, the criterion is multiplied by a power of the probability of a new one,
        and the note says so; see ``slayr_py/acquisition/plateaus.py``.
    effort : Effort, optional
        Numbers of candidates, maximisations and draws.

    Raises
    ------
    DataError
        If ``best`` is not finite, or None without models of feasibility, or the acquisition is unknown, or not
        supported with a prior or a cost.
    SpaceError
        If no configuration has the fixed values, or the posteriors have different spaces, graphs or scales.
    TypeError
        For an unknown argument.
    """
    given = SearchTerms.of(**terms)
    if best is None and not given.feasibility:
        raise DataError("best is None, and no feasibility is modelled; give the best value so far")
    goal = np.inf if best is None else _standardised(posterior, best)
    criterion = from_name(acquisition)
    if given.cost is not None and not criterion.is_logarithm:
        raise DataError(f"acquisition {acquisition!r} cannot be divided by a cost; choose 'ei' or 'pi'")
    if given.prior is not None:
        criterion = criterion.logarithmic()
    compared = posterior.encoder.encode(recommended)
    with one_thread():
        applicable = given.applicable(has_best=best is not None, is_logarithm=criterion.is_logarithm)
        search = AcquisitionSearch.of([posterior], applicable, repeats=criterion.is_of_means and len(compared) > 0)
        believed = search.believed(has_best=best is not None)
        known = best is not None or believed is not None
        what = (criterion, goal) if known else (NoCriterion(), 0.0)
        merit = _merit(posterior, *what, t, search.most, search.running, believed, compared, error)
        found, note = search.run(merit, rng, least_feasible)
        uncertainty = merit.error(found.encoded, posterior.chains(merit.predictor.n_draws))
        return search.describe([merit.predictor], found, uncertainty, note)


@ignoring_underflow
def criterion_values(
    posterior: Posterior,
    configs: Encoded | Iterable[Mapping[str, object]] | pd.DataFrame,
    acquisition: str | Acquisition = "ei",
    *,
    best: float,
    t: int = 1,
    recommended: Iterable[Mapping[str, object]] = (),
    error: float | None = None,
    pending: Encoded | Iterable[Mapping[str, object]] | pd.DataFrame = (),
    effort: Effort = DEFAULT,
) -> FloatArray:
    """Return the values of a criterion at configurations, as `suggest` maximises it.

    Warps, the direction and running evaluations are taken into account; feasibility, costs and beliefs are not.

    Parameters
    ----------
    posterior : Posterior
    configs : iterable of configurations, DataFrame, or Encoded
        m configurations; columns of a DataFrame that are not parameters of the space are ignored.
    acquisition : str or Acquisition
    best : float
        Best value so far, in the user's units: the smallest, or the largest if ``posterior.maximize``. The confidence
        bound needs it too: under a warp, its moments are on the scale of the tangent at the best value.
    t : int
        Iteration, from 1, for the schedule of the confidence bound.
    recommended : iterable of configurations, optional
        For a noisy objective: see `suggest`.
    error : float, optional
        Known error of the next evaluation: see `suggest`.
    pending : iterable of configurations, DataFrame, or Encoded
        Configurations being evaluated elsewhere: see `suggest`. Here all of them count.
    effort : Effort
        Its number of draws.

    Returns
    -------
    (m,) float64
        Larger is better, on the scale of `Suggestion.value`: for standardised targets. The expected improvement in the
        user's units is ``abs(posterior.y_sd)`` times as large.

    Raises
    ------
    DataError
        If ``best`` is not finite, the acquisition is unknown, or another argument is out of range or of another type.
    SpaceError
        If a configuration does not belong to the space.

    Examples
    --------
    >>> table["ei"] = criterion_values(posterior, table, best=min(y)) * abs(posterior.y_sd)    # doctest: +SKIP
    """
    if not isinstance(posterior, Posterior):
        raise DataError(f"posterior must be a single Posterior, got {posterior!r:.200}")
    if not isinstance(effort, Effort):
        raise DataError(f"effort must be an Effort, such as Effort(draws=200), got {effort!r:.200}")
    t = check_integer("t", t)
    standardised = _standardised(posterior, best)
    encoded = posterior.encoder.encode(configs, other_columns=True)
    running = posterior.encoder.encode(pending, other_columns=True)
    believed = running if len(running) else None
    compared = posterior.encoder.encode(recommended)
    with one_thread():
        most = most_draws([posterior], effort)
        merit = _merit(posterior, from_name(acquisition), standardised, t, most, running, believed, compared, error)
        parts = [merit.criterion_values(encoded[rows]) for rows in blocks(len(encoded), merit.doubles(1))]
    return np.concatenate(parts) if parts else np.empty(0)


def _standardised(posterior: Posterior, best: float) -> float:
    return (check_number("best", best, least=-np.inf) - posterior.y_mean) / posterior.y_sd


def standardised_error(posterior: Posterior, error: float | None) -> float:
    """Return the known error of further evaluations on the scale of the targets, from that in the user's units.

    None stands for the default, see `suggest`.
    """
    if error is None:
        return recent_error(posterior.targets.errors)
    return check_number("error", error, least=0) / abs(posterior.y_sd)


def _merit(
    posterior: Posterior,
    criterion: Acquisition,
    best: float,
    t: int,
    n_draws: int,
    running: Encoded,
    believed: Encoded | None,
    compared: Encoded,
    error: float | None,
) -> OneObjective:
    """Return a criterion under at most ``n_draws`` draws that know running configurations; ``best`` is standardised.

    ``believed`` are those whose believed values count as observed ones, ``compared`` those of ``recommended``.
    """
    if len(compared) > 2 or len(distinct(compared)) < len(compared):
        raise DataError(
            f"recommended has {len(compared)} configurations, {len(distinct(compared))} of them different; give the "
            "recommended one and, if there is one, another that may be better"
        )
    known = standardised_error(posterior, error)
    # Just beside an exact value on a slope, some improvement is certain: its probability keeps the noise.
    exact = criterion.is_of_means and not len(compared) and known == 0
    base = posterior.predictor(n_draws)
    predictor = base.with_error(known).with_pending(running, exact=exact)
    if len(compared) and criterion.is_of_means:
        if base.n_draws == posterior.n_draws:  # its factors are known
            prediction = base.predict(compared[:1], posterior.y_mean, posterior.y_sd)
        else:
            prediction = posterior.predict(compared[:1])
        beyond = best - _standardised(posterior, float(prediction.centre_and_spread()[0][0]))
        if believed is not None:
            believed = believed[~Taken(compared[:1], 0.0).contains(believed)]
        predictor = predictor.compared(compared, believed).linearised(beyond)
    else:
        predictor = predictor.linearised(best, believed)
    state = State(best, t, len(posterior.encoder.names))
    return OneObjective(predictor, posterior.n_chains, criterion, state)
