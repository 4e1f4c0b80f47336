"""Batches: suggestions that take the pending ones into account."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

import slayr_py as sl
from slayr_py.acquisition import suggest, suggest_tradeoff
from slayr_py.acquisition.effort import DEFAULT
from slayr_py.acquisition.identity import Taken

pytestmark = pytest.mark.stan

PLANE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
POINTS = np.random.default_rng(0).random((14, 2))
BOWL = ((POINTS - 0.4) ** 2).sum(axis=1)
"""Its predicted minimum is far below the smallest value, so that the improvement beside a pending point stays large
unless the incumbent falls."""

APART = 0.005


def fit(values, **options):
    return fit_in_plane(tuple(values), **options)


@functools.cache
def fit_in_plane(values, **options):
    return fitted(PLANE, POINTS, values, **options)


def fitted(space, configs, values, likelihood="gaussian", warp="none", maximize=False):
    priors = {"sigma_n": sl.LogNormal(-4, 1)} if likelihood == "gaussian" else None
    gp = sl.GaussianProcess(space, priors=priors, likelihood=likelihood, warp=warp)
    return gp.fit(configs, values, method="laplace", seed=1, maximize=maximize)


def batch(posterior, best, q=4, acquisition="ei", **options):
    """Return q suggestions, none of which is beside another."""
    found = []
    for _ in range(q):
        pending = [each.config for each in found]
        new = suggest(posterior, acquisition, best=best, t=1, rng=np.random.default_rng(0), pending=pending, **options)
        encode = posterior.encoder.encode
        assert not Taken(encode(pending), APART).contains(encode([new.config])).any()
        found.append(new)
    return found


@pytest.mark.parametrize(
    ("acquisition", "maximize", "warp", "falls_to"),
    [("ei", False, "none", 0.2), ("log_ei", True, "none", 0.2), ("ei", True, "auto", 0.2), ("pi", False, "none", 0.8)],
)
def test_a_batch_spreads_and_its_improvement_falls(acquisition, maximize, warp, falls_to):
    """Without the believed values the improvement stays above .69 of the first one, its probability rises."""
    sign = -1.0 if maximize else 1.0
    posterior = fit(sign * BOWL, warp=warp, maximize=maximize)
    found = batch(posterior, sign * BOWL.min(), acquisition=acquisition)
    first, *_, last = np.exp([each.value for each in found]) if acquisition == "log_ei" else [e.value for e in found]
    assert last < falls_to * first
    assert all(np.isfinite(each.error) for each in found)


@pytest.mark.parametrize("objectives", [1, 2])
def test_beside_a_running_evaluation_an_exact_objective_improves_on_nothing(objectives):
    """However much noise the model needs for what its kernel does not explain; a noisy one may be evaluated again."""
    spot = sl.space.Encoder(PLANE, within=["x >= 0.3599", "x <= 0.3601", "y >= 0.4099", "y <= 0.4111"])
    gp = sl.GaussianProcess(spot, priors={"sigma_n": sl.LogNormal(-1, 0.1)}, warp="none")
    posteriors = [gp.fit(POINTS, values, method="laplace", seed=1) for values in (BOWL, POINTS[:, 0])][:objectives]
    best = np.argmin(BOWL)
    recommended = [{"x": POINTS[best, 0], "y": POINTS[best, 1]}]
    several = {"front": [[BOWL[best], POINTS[best, 0]]], "reference": [1.0, 1.0]}

    def value(pending, noisy, error=None):
        options = {"rng": np.random.default_rng(0), "pending": pending, "interior": False}
        if objectives == 2:
            return suggest_tradeoff(posteriors, **several, noisy=noisy, errors=[error, error], **options).value
        options["recommended"] = recommended if noisy else ()
        return suggest(posteriors[0], best=BOWL[best], t=1, error=error, **options).value

    beside = [{"x": 0.36, "y": 0.411}]
    assert value(beside, noisy=False) < 0.02 * value([], noisy=False)
    # Of one objective, what draws believe of both is left out: only what the next value may change stays.
    assert value(beside, noisy=True) > 0.03 * value([], noisy=True)
    assert value(beside, noisy=False, error=0.5) > 0.1 * value([], noisy=False, error=0.5)


@functools.cache
def fits_far_below(within):
    """Return fits to two objectives that are far smaller where y > 1/2."""
    encoder = sl.space.Encoder(PLANE, within=["y <= 0.5"] if within else None)
    values = [POINTS[:, 0] - 10 * (POINTS[:, 1] > 0.5), (POINTS[:, 0] - 1) ** 2 - 10 * (POINTS[:, 1] > 0.5)]
    gp = sl.GaussianProcess(encoder, priors={"sigma_n": sl.LogNormal(-4, 0.1)}, warp="none")
    return [gp.fit(POINTS, y, method="laplace", seed=1) for y in values]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("objectives", [1, 2])
@pytest.mark.parametrize("within", [False, True])
def test_a_running_evaluation_counts_only_where_an_observed_one_would(objectives, noisy, within):
    """It may have other values than the fixed ones, or violate constraints on inputs as past experiments may."""
    posteriors = fits_far_below(within)[:objectives]
    best = {"x": 0.2, "y": 0.2}
    given = {"rng": np.random.default_rng(0), "fixed": None if within else {"y": 0.2}}

    def value(pending):
        if objectives == 2:
            several = {"front": [[0.2, 0.64]], "reference": [2.0, 2.0], "noisy": noisy, "configs": [best]}
            return suggest_tradeoff(posteriors, **several, pending=pending, **given).value
        return suggest(posteriors[0], best=0.2, t=1, recommended=[best] * noisy, pending=pending, **given).value

    assert value([{"x": 0.2, "y": 0.9}]) > 0.5 * value([])


def test_fixed_values_that_no_observed_configuration_has_replace_those_of_a_running_one():
    """As those of the observed ones: improvement is measured from the best prediction there."""
    posterior = fit(BOWL)
    centre, _ = posterior.predict([{"x": x, "y": 0.41} for x in POINTS[:, 0]]).centre_and_spread()
    given = {"best": centre.min(), "t": 1, "fixed": {"y": 0.41}}
    first = suggest(posterior, **given, rng=np.random.default_rng(0))
    pending = [{**first.config, "y": 0.411}]
    assert suggest(posterior, **given, rng=np.random.default_rng(0), pending=pending).value < 0.3 * first.value


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("objectives", [1, 2])
def test_a_running_evaluation_that_is_infeasible_is_not_improved_on(objectives, noisy):
    """It may be a point of the design, or one of the user's."""
    posteriors = [fit(-POINTS[:, 0]), fit((POINTS[:, 1] - 0.4) ** 2 - POINTS[:, 0])][:objectives]
    best = {"x": 0.4, "y": 0.4}
    given = {"rng": np.random.default_rng(0), "feasibility": [fit(POINTS[:, 0] - 0.5)]}

    def value(pending):
        if objectives == 2:
            several = {"front": [[-0.4, -0.4]], "reference": [1.0, 1.0], "noisy": noisy, "configs": [best]}
            return suggest_tradeoff(posteriors, **several, pending=pending, **given).value
        return suggest(posteriors[0], best=-0.4, t=1, recommended=[best] * noisy, pending=pending, **given).value

    assert value([{"x": 1.0, "y": 0.4}]) > 0.5 * value([])


@pytest.mark.parametrize("objectives", [1, 2])
def test_the_prediction_for_a_suggestion_does_not_believe_pending_configurations(objectives):
    posteriors = [fit(BOWL), fit(POINTS[:, 0])][:objectives]
    several = {"front": np.column_stack([BOWL, POINTS[:, 0]]), "reference": np.array([1.0, 1.0])}
    for pending in ([], [{"x": 0.4, "y": 0.4}, {"x": 0.0, "y": 0.4}, {"x": 0.2, "y": 0.4}]):
        options = {"rng": np.random.default_rng(0), "pending": pending}
        if objectives == 1:
            found = suggest(posteriors[0], best=BOWL.min(), t=1, **options)
        else:
            found = suggest_tradeoff(posteriors, **several, **options)
        for posterior, predicted in zip(posteriors, found.predicted, strict=True):
            there = posterior.encoder.encode([found.config])
            given_values = posterior.predictor(DEFAULT.draws).predict(there, posterior.y_mean, posterior.y_sd)
            np.testing.assert_allclose(predicted, np.ravel(given_values.centre_and_spread()), rtol=1e-5)


def test_a_batch_spreads_on_a_conditional_space():
    space = ConfigurationSpace()
    kind = Categorical("kind", ["a", "b"])
    x = Float("x", (0.0, 1.0))
    child = Float("child", (0.0, 1.0))
    space.add(kind, x, child, EqualsCondition(child, kind, "b"))
    configs = [{"kind": "a", "x": a} if a > b else {"kind": "b", "x": a, "child": b} for a, b in POINTS]
    values = [(c["x"] - 0.4) ** 2 + (c.get("child", 0.6) - 0.6) ** 2 for c in configs]
    batch(fitted(space, configs, values), min(values))


def test_a_batch_spreads_beside_a_constraint():
    found = batch(fit(BOWL), BOWL[POINTS[:, 0] < 0.45].min(), q=3, feasibility=[fit(POINTS[:, 0] - 0.45)])
    assert min(each.feasible for each in found) > 0.3


def test_a_batch_spreads_without_a_feasible_value():
    """The probability alone is maximised, until a pending configuration is probably feasible."""
    found = batch(fit(BOWL), None, q=3, feasibility=[fit(POINTS[:, 0] < 0.45, likelihood="probit")])
    assert found[0].value == 0.0 and found[1].value > 0.0 and min(each.feasible for each in found) > 0.5
