"""What the loop learns from failures, and how often it fits."""

from __future__ import annotations

import math
import pickle
from contextlib import nullcontext

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState

import slayr_py as sl
from slayr_py.acquisition import Feasibility
from slayr_py.inference import GaussianProcess
from slayr_py.study import StanGPSampler, ask, config_of, create_study, tell
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.results.refits import feasibility_of
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.trials import observations, outcomes

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def bordered(config):
    """The optimum without failures, (0.7, 0.6), fails; the best success is at (0.6, 0.5), with value 0.02."""
    x = config["x"]
    y = config["y"]
    return math.nan if x + y > 1.1 else (x - 0.7) ** 2 + (y - 0.6) ** 2


@pytest.mark.stan
@pytest.mark.slow
def test_failures_are_learnt():
    result = sl.minimize(bordered, SPACE, budget=18, seed=3, progress=False, method="map")
    model = [t for t in result.study.trials if t.user_attrs["slayr:suggestion"]["phase"] == "model"]
    # The loop looks for the border from both sides, so that any number of trials may fail, but the later ones are near.
    late = [trial.params["x"] + trial.params["y"] - 1.1 for trial in model[5:]]
    assert max(late) < 0.1 and min(late) < 0
    assert result.best_value < 0.0225  # the best success has 0.02
    records = [trial.user_attrs["slayr:suggestion"] for trial in model]
    checked = [record["conditions"]["success"]["diagnostics"]["ok"] for record in records if "conditions" in record]
    assert len(checked) > 5 and all(checked)
    assert sl.study.suggestion_table(result.study)["feasible"].notna().sum() == len(checked)


@pytest.mark.stan
def test_nothing_is_suggested_next_to_an_evaluated_configuration(quick):
    """The optimum is in a corner, to which every suggestion would go."""
    result = sl.minimize(lambda c: c["x"] + c["y"], SPACE, budget=12, n_initial=4, seed=1, progress=False, **quick)
    points = result.trials[["params_x", "params_y"]].to_numpy()
    apart = np.abs(points[:, None] - points[None]).max(axis=2)[np.triu_indices(12, 1)]
    assert apart.min() > 1e-4


@pytest.fixture
def fits(monkeypatch):
    """The likelihoods of the models that are fitted."""
    fit = GaussianProcess.fit
    fits = []

    def counted(gp, *arguments, **options):
        fits.append(gp.model.likelihood)
        return fit(gp, *arguments, **options)

    monkeypatch.setattr(GaussianProcess, "fit", counted)
    return fits


@pytest.mark.stan
def test_suggestions_from_the_same_trials_share_a_fit(quick, fits):
    study = create_study(SPACE, n_initial=5, seed=1, **quick)
    for _ in range(5):
        trial = ask(study)
        value = bordered(config_of(trial))
        tell(study, trial, value if math.isfinite(value) else None, None if math.isfinite(value) else TrialState.FAIL)
    batch = study.sampler.ask_batch(study, 4)
    assert sorted(fits) == ["gaussian", "probit"]
    points = np.array([[trial.params["x"], trial.params["y"]] for trial in batch])
    assert np.abs(points[:, None] - points[None]).max(axis=2)[np.triu_indices(4, 1)].min() > 1e-3
    tell(study, batch[0], 0.5)
    ask(study)
    assert len(fits) == 4


@pytest.mark.stan
def test_studies_of_the_same_name_share_no_fit(fits, quick):
    sampler = StanGPSampler(SPACE, n_initial=4, seed=1, **quick)
    for x in (0.1, 0.2):
        study = optuna.create_study(study_name="bench", sampler=sampler)
        for number in range(4):
            study.enqueue_trial({"x": x + 0.2 * number, "y": 0.5})
            state = TrialState.FAIL if number == 2 else TrialState.COMPLETE
            tell(study, ask(study), None if number == 2 else float(number), state)
        ask(study)
    assert sorted(fits) == ["gaussian", "gaussian", "probit", "probit"]


@pytest.mark.stan
def test_a_fit_to_the_same_trials_is_the_same_in_another_process(tmp_path):
    """A resumed batch makes the same suggestions as an uninterrupted one."""
    options = {"n_initial": 4, "seed": 1, "method": "map"}

    def started(name):
        study = create_study(SPACE, storage=f"sqlite:///{tmp_path / name}", study_name="s", **options)
        for _ in range(5):
            trial = ask(study)
            tell(study, trial, config_of(trial)["x"] ** 2)
        return study

    whole = started("a.db")
    wanted = [config_of(trial) for trial in whole.sampler.ask_batch(whole, 3)]
    first = started("b.db")
    found = [config_of(ask(first))]
    again = create_study(SPACE, storage=f"sqlite:///{tmp_path / 'b.db'}", study_name="s", **options)
    found += [config_of(trial) for trial in again.sampler.ask_batch(again, 2)]
    assert found == wanted
    hashes = [trial.user_attrs["slayr:fit"]["draws_sha256"] for trial in again.trials[5:]]
    assert len(set(hashes)) == 1
    assert sum("slayr:start" in trial.user_attrs for trial in again.trials[5:]) == 1


def test_outcomes_of_trials():
    study = create_study(SPACE, n_initial=8, seed=1)
    for number in range(5):
        trial = ask(study)
        if number == 2:
            trial.set_user_attr("slayr:failure", "KeyboardInterrupt")
        if number == 3:
            tell(study, trial, state=TrialState.PRUNED)
        else:
            tell(study, trial, 1.0 if number in (0, 4) else None, None if number in (0, 4) else TrialState.FAIL)
    study.enqueue_trial({"x": 7.0})
    with pytest.raises(sl.EnqueuedError, match="outside its range"):
        ask(study)  # this trial fails, and its suggestion is never evaluated
    found = outcomes(study, SPACE, ())
    assert found.numbers == [0, 1, 4] and found.values.tolist() == [1.0, 0.0, 1.0]
    assert outcomes(study, SPACE, [4]).values.tolist() == [1.0, 0.0, 0.0]


def test_a_copy_of_the_cache_is_empty():
    cache = FitCache()
    cache.get("key", lambda: "posterior")
    assert cache.get("key", lambda: "another") == "posterior"
    assert pickle.loads(pickle.dumps(cache)).get("key", lambda: "another") == "another"
    for i in range(40):
        cache.get(i, lambda: "other")
    assert cache.get("key", lambda: "again") == "again"


@pytest.mark.parametrize("sd", [-1.0, float("nan"), "large", True])
def test_an_illegal_error_is_refused(sd):
    study = create_study(SPACE, n_initial=4, seed=1)
    trial = ask(study)
    with pytest.raises(sl.DataError, match="standard deviation of the value's error"):
        tell(study, trial, 1.0, sd=sd)


@pytest.mark.stan
def test_known_errors_of_values_are_fitted(quick):
    study = create_study(SPACE, n_initial=4, seed=1, **quick)
    for number in range(4):
        trial = ask(study)
        tell(study, trial, float(number), sd=0.5 * number)
    posterior = study.sampler.fit(study)
    np.testing.assert_allclose(posterior.data["y_sd"] * posterior.y_sd, [0, 0.5, 1.0, 1.5], rtol=1e-12)

    trial = ask(study)
    trial.set_user_attr("y_sd", "large")
    tell(study, trial, 1.0)
    with pytest.raises(sl.DataError, match="trial 4 has the user attribute 'y_sd' = 'large'"):
        study.sampler.fit(study)


@pytest.mark.parametrize("given", [float("nan"), np.float32("nan"), None], ids=repr)
def test_an_unknown_error_is_named_and_counts_as_none(given):
    study = create_study(SPACE, n_initial=4, seed=1)
    for sd in (0.5, given):
        trial = ask(study)
        trial.set_user_attr("y_sd", sd)
        warned = nullcontext() if sd == 0.5 else pytest.warns(UserWarning, match="trial 1 .* without a known error")
        with warned:
            tell(study, trial, 1.0)
    np.testing.assert_array_equal(observations(study, SPACE).y_sd, [0.5, 0.0])
    trials = sl.study.Result(study, SPACE).trials
    assert trials["y_sd"].tolist()[0] == 0.5 and np.isnan(trials["y_sd"][1])


@pytest.mark.parametrize("given", [float("nan"), None, [None, 0.5]], ids=repr)
def test_an_unknown_error_of_several_objectives_may_be_given_once(given):
    study = create_study(SPACE, directions=["minimize", "maximize"], n_initial=4, seed=1)
    trial = ask(study)
    trial.set_user_attr("y_sd", given)
    with pytest.warns(UserWarning, match="trial 0 .* without a known error"):
        tell(study, trial, (1.0, 2.0))
    errors = [observations(study, SPACE, objective=objective).y_sd[0] for objective in (0, 1)]
    assert errors == [0.0, 0.5 if isinstance(given, list) else 0.0]


@pytest.mark.stan
def test_suggestions_share_the_fits_to_many_constraints(quick, monkeypatch):
    study = create_study(SPACE, n_initial=3, seed=1, **quick)
    for _ in range(3):
        trial = ask(study)
        for i in range(33):
            trial.set_constraint(f"bound {i:02}", i - 40.0 * config_of(trial)["x"])
        tell(study, trial, config_of(trial)["x"])
    fitted = []
    fit = GaussianProcess.fit
    monkeypatch.setattr(GaussianProcess, "fit", lambda *args, **options: fitted.append(1) or fit(*args, **options))
    ask(study)
    assert len(fitted) == 34
    ask(study)
    assert len(fitted) == 34


@pytest.mark.stan
@pytest.mark.parametrize("space", [SPACE, None])
def test_a_study_goes_on_after_an_unknown_error(space, quick):
    def measured(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y", 0.0, 1.0)
        trial.set_user_attr("y_sd", float("nan") if trial.number == 1 else 0.1)
        return x**2 + y

    study = optuna.create_study(sampler=sl.study.StanGPSampler(space, n_initial=4, seed=1, **quick))
    with pytest.warns(UserWarning, match="trial 1 .* without a known error"):
        study.optimize(measured, n_trials=6)
    assert suggestion_record(study.trials[5])["phase"] == "model"


@pytest.mark.stan
def test_the_border_of_a_constraint_is_sharp(quick):
    """A constraint that holds where x is below 0.37 is known to 0.005 from values all over the space.

    With the noise of the objective's model the probabilities there are between 0.1 and 0.9.
    """
    study = create_study(SPACE, n_initial=10, seed=1, **quick)
    for _ in range(10):
        trial = ask(study)
        config = config_of(trial)
        trial.set_constraint("c", config["x"] - 0.37)
        tell(study, trial, config["x"] + config["y"])
    tell(study, ask(study), 1.0)
    (posterior,) = feasibility_of(study, 10).values()
    encode = posterior.encoder.encode
    model = Feasibility.of(posterior, encode([]), posterior.n_draws)
    inside, outside = np.exp(model.log_probability(encode([{"x": x, "y": 0.5} for x in (0.365, 0.375)])))
    assert inside > 0.9 and outside < 0.1
