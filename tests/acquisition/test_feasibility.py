from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from scipy.stats import norm

import slayr_py as sl
from slayr_py.acquisition import suggest
from slayr_py.acquisition.feasibility import Feasibility, infeasible
from slayr_py.acquisition.landscape import Landscape

pytestmark = pytest.mark.stan

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
QUICK = {"chains": 2, "warmup": 150, "draws": 50, "seed": 1}


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(0).random((24, 2))


@pytest.fixture(scope="module")
def objective(points):
    return sl.GaussianProcess(SPACE).fit(points, (points**2).sum(axis=1), **QUICK)


@pytest.fixture(scope="module")
def success(points):
    return sl.GaussianProcess(SPACE, likelihood="probit").fit(points, points.sum(axis=1) > 0.9, **QUICK)


@pytest.fixture(scope="module")
def constraint(points):
    """A constraint that holds where x > 0.5."""
    return sl.GaussianProcess(SPACE).fit(points, 30 - 60 * points[:, 0], **QUICK)


@pytest.fixture(scope="module")
def band(constraint):
    """A constraint that holds where 0.4 < x < 0.6."""
    return constraint.with_limits(-6.0, 6.0)


def nothing(posterior):
    return posterior.encoder.encode([])


@pytest.mark.parametrize("name", ["success", "constraint", "band"])
def test_probabilities_and_their_gradients(request, name):
    posterior = request.getfixturevalue(name)
    model = Feasibility.of(posterior, nothing(posterior), 60)
    x = np.random.default_rng(1).random((6, 2))
    prediction = posterior.predict(x)
    if name == "success":
        wanted = posterior.probability(x)
    else:
        below, above = ((limit - prediction.draw_mean) / prediction.draw_sd for limit in posterior.limits)
        wanted = (norm.cdf(above) - norm.cdf(below)).mean(axis=0)
    every = Feasibility.of(posterior, nothing(posterior), posterior.n_draws)
    # The feasibility by a probit model has 64 of the 100 draws.
    tolerance = {"atol": 0.03} if name == "success" else {"rtol": 1e-6}
    np.testing.assert_allclose(np.exp(every.log_probability(posterior.encoder.encode(x))), wanted, **tolerance)
    value, gradient = model.values_and_gradients(posterior.encoder.encode(x))
    np.testing.assert_allclose(value, model.values(posterior.encoder.encode(x)), rtol=1e-10)
    h = 1e-4  # the log probabilities of the constraint are about -1e6: a smaller step loses the digits
    for j in range(2):
        step = h * np.eye(2)[j]
        up, down = (model.values(posterior.encoder.encode(x + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(gradient[:, j], (up - down) / (2 * h), rtol=1e-2, atol=1e-4)


def test_success_is_learnt(success):
    inside, outside = success.probability(np.array([[0.9, 0.9], [0.05, 0.05]]))
    assert inside > 0.9 and outside < 0.1


def test_suggestions_are_feasible(objective, success, constraint):
    free = suggest(objective, best=0.3, t=1, rng=np.random.default_rng(2))
    assert free.feasible == 1.0 and free.config["x"] + free.config["y"] < 0.3
    found = suggest(objective, best=0.9, t=1, rng=np.random.default_rng(2), feasibility=[success, constraint])
    assert found.feasible > 0.4
    assert found.config["x"] + found.config["y"] > 0.75 and found.config["x"] > 0.45


def test_both_limits_of_a_band_hold(objective, band):
    found = suggest(objective, best=0.9, t=1, rng=np.random.default_rng(2), feasibility=[band])
    assert found.feasible > 0.4 and 0.35 < found.config["x"] < 0.65
    values = np.array([-6.1, -6.0, 0.0, 6.0, 6.1])
    assert infeasible(band, values).tolist() == [True, False, False, False, True]


def test_the_gradient_of_a_narrow_band_does_not_cancel(constraint):
    """The slopes become those of the density."""
    x = np.array([[0.45, 0.5], [0.52, 0.2]])
    encoded = constraint.encoder.encode(x)
    slopes = []
    for half in (1e-6, 1e-9, 1e-12):
        law = Feasibility.of(constraint.with_limits(-half, half), nothing(constraint), 60).law
        slopes.append(law.log_terms_with_gradient(encoded)[1])
    for narrow in slopes[1:]:
        np.testing.assert_allclose(narrow, slopes[0], rtol=1e-3, atol=1e-6 * np.abs(slopes[0]).max())


def test_a_least_probability_of_feasibility_is_kept_if_a_configuration_reaches_it(objective, monkeypatch):
    """All improvement is where a constraint that holds in the opposite corner is probably violated."""
    violated = 0.4 + 0.1 * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1], [0, 0]])
    configs = np.vstack([violated, [[0.9, 0.9], [1.0, 0.9], [0.9, 1.0]]])
    corner = sl.GaussianProcess(SPACE).fit(configs, np.repeat([2.0, -1.0], [5, 3]), **QUICK)
    options = {"best": 0.3, "t": 1, "feasibility": [corner]}
    doubtful = suggest(objective, rng=np.random.default_rng(2), **options)
    assert 0.01 < doubtful.feasible < 0.3 and not doubtful.note
    calls = []
    original = Landscape.probability
    monkeypatch.setattr(Landscape, "probability", lambda *given: calls.append(given) or original(*given))
    kept = suggest(objective, rng=np.random.default_rng(2), least_feasible=0.3, **options)
    assert kept.feasible >= 0.3 and "< 0.3" in kept.note
    assert len(calls) == 3  # once for each maximum: of the acquisition, with more weight, and of the uncertainty


@pytest.mark.parametrize("acquisition", ["pi", "lcb"])
def test_every_criterion_has_feasibility(objective, constraint, acquisition):
    found = suggest(objective, acquisition, best=0.9, t=1, rng=np.random.default_rng(2), feasibility=[constraint])
    assert np.isfinite(found.value) and found.config["x"] > 0.4


def test_without_a_feasible_value_feasibility_is_maximised(objective, constraint):
    found = suggest(objective, best=None, t=1, rng=np.random.default_rng(2), feasibility=[constraint])
    assert found.feasible > 0.99 and found.value == 0.0 and np.isnan(found.error)
    with pytest.raises(sl.DataError, match="best is None, and no feasibility is modelled"):
        suggest(objective, best=None, t=1, rng=np.random.default_rng(2))


def test_only_a_probit_model_has_probabilities(objective):
    with pytest.raises(sl.DataError, match="likelihood='probit'"):
        objective.probability(np.array([[0.5, 0.5]]))
