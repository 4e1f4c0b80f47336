"""The recommended configuration of a noisy study."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState

from slayr_py.errors import DataError, InferenceError
from slayr_py.inference import GaussianProcess
from slayr_py.space import Encoder
from slayr_py.study import Regret, Result, ask, create_study, minimize, space_of, tell
from slayr_py.study.model.incumbent import counts_as_noisy
from slayr_py.study.results import latest_fits
from slayr_py.study.results.noise import is_noisy
from slayr_py.study.results.refits import recorded_fits
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.trials import observations

pytestmark = pytest.mark.stan


@pytest.fixture
def levels() -> ConfigurationSpace:
    return ConfigurationSpace({"k": ["a", "b", "c"]})


def replicated(space, quick, direction="minimize", **options):
    """A study of nine trials: "a" is best on average, "b" in its single best value, and both have replicates."""
    values = {"a": (1.0, 1.2, 0.8, 1.1, 0.9), "b": (0.5, 3.5, 4.0), "c": (5.0,)}
    study = create_study(space, direction=direction, n_initial=9, seed=1, noisy=True, **options, **quick)
    sign = 1.0 if direction == "minimize" else -1.0
    for level in ("b", "a", "a", "b", "a", "c", "a", "b", "a"):
        study.enqueue_trial({"k": level})
        trial = ask(study)
        taken = sum(earlier.params == {"k": level} for earlier in study.trials[: trial.number])
        tell(study, trial, sign * values[level][taken])
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_posterior_mean_is_recommended(levels, quick, direction):
    result = Result(replicated(levels, quick, direction), levels)
    found = result.recommended
    sign = 1.0 if direction == "minimize" else -1.0
    assert result.best_config == {"k": "b"} and result.best_value == sign * 0.5
    assert found.config == {"k": "a"} and found.number == 1
    assert sign * found.mean == pytest.approx(1.0, abs=0.5) and 0 < found.sd < 2
    mean, sd = result.posterior().predict([{"k": "a"}]).centre_and_spread()
    assert (found.mean, found.sd) == (pytest.approx(float(mean[0])), pytest.approx(float(sd[0])))
    assert str(found) == f"{found.mean:.6g} ± {found.sd:.2g} at trial 1"
    assert Regret(1.0).estimate(result.study).incumbent == 1


def constrained(space, quick, excess, **options):
    """A study of nine trials: "b" has the best values, and ``excess`` the values of a constraint by level in turn."""
    study = create_study(space, n_initial=9, seed=1, **options, **quick)
    value = {"a": 1.0, "b": 0.0, "c": 3.0}
    for level in ("b", "a", "a", "b", "a", "c", "b", "b", "a"):
        study.enqueue_trial({"k": level})
        trial = ask(study)
        taken = sum(earlier.params == {"k": level} for earlier in study.trials[: trial.number])
        trial.set_constraint("c", excess[level][taken])
        tell(study, trial, value[level] + 0.02 * trial.number)
    return study


def test_a_noisy_constraint_that_holds_by_luck_is_no_recommendation(levels, quick):
    # "b" violates the constraint in three of four evaluations.
    excess = {"a": (-1.1, -0.9, -1.0, -1.2), "b": (1.0, 0.9, -0.1, 1.1), "c": (-0.5,)}
    study = constrained(levels, quick, excess, noisy=True)
    result = Result(study, levels)
    assert result.best_config == {"k": "b"}
    assert result.recommended.config == {"k": "a"} and result.recommended.feasible > 0.9
    assert Regret(1.0).estimate(study).incumbent == result.recommended.number
    ask(study)
    suggested = suggestion_record(study.trials[-1])["acquisition"]
    assert suggested["best"] == pytest.approx(result.recommended.mean, abs=0.1)
    evaluated = result.optimum().evaluated.set_index("params_k")["probability"]
    assert "b" not in evaluated and evaluated["a"] > 0.9
    exact = Result(constrained(levels, quick, excess), levels)
    assert exact.recommended.config == {"k": "b"} and exact.recommended.feasible == 1
    assert exact.optimum().evaluated["params_k"][0] == "b"


def test_a_noisy_constraint_that_holds_by_luck_is_hardly_on_the_front(levels, quick):
    excess = {"a": (-1.1, -0.9, -1.0, -1.2), "b": (1.0, 0.9, -0.1, 1.1), "c": (-0.5,)}
    values = {"a": (1.0, 1.0), "b": (0.0, 0.0), "c": (3.0, 3.0)}
    probability = {}
    for noisy in (True, False):
        study = create_study(levels, directions=["minimize"] * 2, n_initial=9, seed=1, noisy=noisy, **quick)
        for i, level in enumerate(("b", "a", "a", "b", "a", "c", "b", "b", "a")):
            study.enqueue_trial({"k": level})
            trial = ask(study)
            taken = sum(earlier.params == {"k": level} for earlier in study.trials[:i])
            trial.set_constraint("c", excess[level][taken])
            tell(study, trial, [value + 0.02 * i for value in values[level]])
        result = Result(study, levels)
        probability[noisy] = result.front_probability().groupby("params_k")["probability"].max()
        if noisy:
            low = result.front_band(0.5, n=2, reference=[4.0, 4.0])["median"].min()
            assert low == pytest.approx(1.0, abs=0.5)  # that of "a"
    assert probability[True]["b"] < 0.2 and probability[True]["a"] > 0.8 and probability[False]["b"] == 1


def test_the_models_of_failures_and_constraints_know_the_last_trials(monkeypatch):
    repeated = []
    last = latest_fits.last_feasibility
    monkeypatch.setattr(latest_fits, "last_feasibility", lambda study: repeated.append(study) or last(study))
    study = create_study({"x": (0.0, 1.0)}, n_initial=4, seed=1, method="map")
    for i in range(6):
        trial = ask(study)
        trial.set_constraint("c", 50.0 if i == 4 else trial.params["x"] - 0.5)
        if i < 5:
            tell(study, trial, trial.params["x"])
        else:
            tell(study, trial, state=TrialState.FAIL)
    models = latest_fits.feasibility_of_all(study, Encoder({"x": (0.0, 1.0)}))
    assert {name: len(model.train) for name, model in models.items()} == {"success": 6, "constraint c": 6}
    assert not repeated
    ask(study)
    again = latest_fits.feasibility_of_all(study, Encoder({"x": (0.0, 1.0)}))
    assert len(repeated) == 1 and {name: len(model.train) for name, model in again.items()} == {
        "success": 6,
        "constraint c": 6,
    }


def test_without_a_likely_one_the_most_probably_feasible_configuration_is_recommended_with_its_probability(
    levels, quick
):
    excess = {"a": (0.8, -0.2, 0.9, 1.0), "b": (2.0, 1.9, -0.1, 2.1), "c": (1.5,)}
    found = Result(constrained(levels, quick, excess, noisy=True), levels).recommended
    assert found.config == {"k": "a"} and found.feasible < 0.5
    assert str(found).endswith(f"at trial 2 (feasible with probability {found.feasible:.2f})")


def test_a_recommendation_is_fitted_once_and_again_after_another_trial(levels, quick, monkeypatch):
    fits = []
    fit = GaussianProcess.fit
    monkeypatch.setattr(GaussianProcess, "fit", lambda *a, **k: fits.append(len(a[1])) or fit(*a, **k))
    study = replicated(levels, quick)
    result = Result(study, levels)
    assert "recommended" not in repr(result) and fits == []
    assert result.recommended == result.recommended and fits == [9]
    assert f"recommended={result.recommended}: {{'k': 'a'}}, best_value=0.5" in repr(result)
    study.add_trial(
        optuna.trial.create_trial(
            params={"k": "c"}, value=-9.0, distributions={"k": study.trials[0].distributions["k"]}
        )
    )
    assert "recommended" not in repr(result)
    assert result.recommended.config == {"k": "c"} and fits == [9, 10]


def test_the_fit_of_the_last_suggestion_is_repeated_if_it_has_seen_all_trials(levels, quick, monkeypatch):
    study = replicated(levels, quick)
    last = ask(study)
    tell(study, last, state=optuna.trial.TrialState.FAIL)

    def fail(*arguments, **options):
        raise InferenceError("no further fit is needed")

    with monkeypatch.context() as patch:
        patch.setattr(GaussianProcess, "fit", fail)
        found = Result(study, levels).recommended
    assert found.config == {"k": "a"}
    tell(study, ask(study), 1.0)
    monkeypatch.setattr(GaussianProcess, "fit", fail)
    with pytest.raises(InferenceError, match="no further fit"):
        _ = Result(study, levels).recommended


def test_a_study_without_its_sampler_has_the_model_of_its_last_fit(levels, quick, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = replicated(levels, quick, storage=url, study_name="s")
    loaded = optuna.load_study(study_name="s", storage=url)
    with pytest.raises(DataError, match="'s' has no fit yet, and is without the sampler that makes one"):
        _ = Result(loaded, levels).recommended
    tell(study, ask(study), 1.0)
    tell(study, ask(study), 1.0)
    here = Result(study, levels).recommended
    there = Result(loaded, levels).recommended
    assert here == there
    for result in (Result(study, levels), Result(loaded, levels)):
        posterior = result.posterior(method="laplace", chains=1, draws=30)
        assert posterior.record["arguments"]["method"] == "laplace"
        assert posterior.idata.posterior.sizes["draw"] == 30
        with pytest.raises(TypeError, match="did you mean 'draws'"):
            result.posterior(draw=30)


@pytest.mark.parametrize("failures", ["learn", "ignore"])
def test_a_loaded_study_treats_failures_as_its_sampler_did(levels, quick, tmp_path, failures):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    ask(replicated(levels, {**quick, "failures": failures}, storage=url, study_name="s"))
    loaded = optuna.load_study(study_name="s", storage=url)
    assert latest_fits._recorded_model(loaded, recorded_fits(loaded, 9)).options.failures == failures


def test_minimize_shows_the_recommendation_of_a_noisy_study(plane, quick):
    noise = np.random.default_rng(0)
    drawn = io.StringIO()
    with redirect_stderr(drawn):
        result = minimize(
            lambda c: c["x"] ** 2 + noise.normal(), plane, budget=5, n_initial=4, seed=1, noisy=True, **quick
        )
    assert f"recommended {result.recommended} | best {result.best_value:.6g}" in drawn.getvalue()
    assert f"recommended={result.recommended}" in repr(result)


def test_values_with_known_errors_have_a_recommendation(plane, quick):
    history = pd.DataFrame({"x": [0.1, 0.4, 0.9], "y": 0.5, "value": [3.0, -2.0, 1.0], "y_sd": 2.0})
    result = minimize(lambda c: c["x"], plane, budget=1, history=history, n_initial=1, seed=1, progress=False, **quick)
    assert f"recommended={result.recommended}" in repr(result)
    assert result.recommended.mean > result.best_value == -2.0


@pytest.mark.filterwarnings("ignore:history row 1. 'x <= 0.5' is violated:UserWarning")
def test_the_known_error_of_an_infeasible_value_leaves_a_study_exact():
    history = pd.DataFrame({"x": [0.3, 0.9], "value": [1.0, 2.0], "y_sd": [0.0, 0.05]})
    for within, noisy in ((["x <= 0.5"], False), (None, True)):
        study = create_study({"x": (0.0, 1.0)}, within=within, history=history, n_initial=2, seed=1)
        observed = observations(study, space_of(study))
        assert is_noisy(study) == counts_as_noisy(study.sampler.options, [observed]) == noisy


def test_a_failed_last_fit_warns(plane, quick, monkeypatch):
    monkeypatch.setattr(
        "slayr_py.study.declared_space.DeclaredSpace.fit_all", lambda *a: (_ for _ in ()).throw(InferenceError("x"))
    )
    with pytest.warns(RuntimeWarning, match="no configuration is recommended: x"):
        minimize(lambda c: c["x"], plane, budget=5, n_initial=4, seed=1, noisy=True, progress=False, **quick)


def test_a_noisy_study_without_a_feasible_trial_returns_its_result(plane, quick):
    with pytest.warns(RuntimeWarning, match="no configuration is recommended: .* no feasible trial"):
        result = minimize(
            lambda config: (1.0, {"excess": 1.0 + config["x"] ** 2}),
            plane,
            budget=5,
            n_initial=3,
            seed=1,
            noisy=True,
            constraints=["excess <= 0"],
            progress=False,
            **quick,
        )
    assert len(result.trials) == 5
