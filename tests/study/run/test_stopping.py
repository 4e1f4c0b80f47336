"""Stopping by the posterior of the regret."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

import slayr_py as sl
from slayr_py.errors import DataError
from slayr_py.inference import GaussianProcess
from slayr_py.study import StanGPSampler, create_study, regret_table
from slayr_py.study.model import prediction_error
from slayr_py.study.run import stopping
from slayr_py.study.storage.attributes import SUGGESTION_KEY, regret_records
from slayr_py.study.storage.trials import observations

LINE = ConfigurationSpace({"x": (-1.0, 1.0)})


def bowl(config):
    return 10 * (config["x"] - 0.3) ** 2


def loose(**changes):
    return sl.Regret(**{"epsilon": 1.0, "probability": 0.9} | changes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilon": 0}, "epsilon must be .* got 0"),
        ({"epsilon": "1"}, "epsilon must be .* got '1'"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"probability": 1.0}, r"probability must be a single number in \(0, 1\), got 1.0"),
        ({"probability": -0.5}, "probability"),
    ],
)
def test_illegal_arguments_are_named(arguments, words):
    with pytest.raises(DataError, match=words):
        loose(**arguments)


def test_a_rule_of_another_type_is_refused():
    with pytest.raises(DataError, match=r"stop must be a stopping rule such as sl.Regret\(0.01\), not 0.01"):
        sl.minimize(bowl, LINE, stop=0.01)


def test_the_rule_needs_a_model():
    study = optuna.create_study()
    with pytest.raises(DataError, match="the sampler of study .* must be a StanGPSampler"):
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1, callbacks=[loose()])


def test_nothing_is_estimated_during_the_initial_design():
    study = create_study(LINE, n_initial=4, seed=1)
    for value in (1.0, 2.0):
        sl.study.tell(study, sl.study.ask(study), value)
    assert loose().estimate(study) is None and regret_table(study).empty


@pytest.mark.stan
def test_running_trials_do_not_end_the_initial_design_and_abandoned_ones_do_not_prolong_it(quick):
    study = create_study(LINE, n_initial=4, seed=1, **quick)
    running, *others = sl.study.ask_batch(study, 5)
    for trial in others[:3]:
        assert loose().estimate(study) is None
        sl.study.tell(study, trial, bowl(sl.study.config_of(trial)))
    assert loose().estimate(study) is None and regret_table(study).empty
    sl.study.tell(study, others[3], bowl(sl.study.config_of(others[3])))
    assert loose().estimate(study).observations == 4 and study.trials[running.number].state.name == "RUNNING"


@pytest.mark.stan
def test_minimize_stops_and_a_resumed_study_stays_stopped(quick):
    drawn = io.StringIO()
    options = {"n_initial": 4, "seed": 1, "storage": optuna.storages.InMemoryStorage(), "study_name": "s", **quick}
    with redirect_stderr(drawn):
        result = sl.minimize(bowl, LINE, budget=30, stop=loose(), **options)
    n = len(result.trials)
    table = regret_table(result.study)
    assert n < 30 and result.best_value < 1
    assert table["stop"].tolist() == [False] * (len(table) - 1) + [True]
    assert table["number"].tolist() == list(range(3, n)) and table["observations"].iloc[-1] == n
    last = table.iloc[-1]
    assert last["probability"] >= 0.9 and last["upper"] <= 1.0 and last["epsilon"] == 1.0 and last["target"] == 0.9
    assert f"stopped after {n} observations: P(regret < 1) = {last['probability']:.2f} >= 0.9" in drawn.getvalue()
    assert re.search(r"best [^|]* \| P\(regret < 1\) = ", drawn.getvalue())
    assert len(sl.minimize(bowl, LINE, budget=30, stop=loose(), progress=False, **options).trials) == n
    # A stricter rule continues, with the trials of a study that never stopped.
    again = sl.minimize(bowl, LINE, budget=n + 1, stop=loose(epsilon=1e-9), progress=False, **options)
    plain = sl.minimize(bowl, LINE, budget=n + 1, n_initial=4, seed=1, progress=False, **quick)
    assert again.trials["params_x"].tolist() == plain.trials["params_x"].tolist()


@pytest.mark.stan
def test_trials_that_finish_after_the_stop_do_not_continue_a_study(quick, monkeypatch):
    def trials_with(rule, budget=9, **changes):
        return len(sl.minimize(bowl, plane, budget=budget, stop=rule, **options, **changes).trials)

    plane = ConfigurationSpace({"x": (-1.0, 1.0), "y": (0.0, 1.0)})
    options = {"n_initial": 4, "seed": 1, "storage": optuna.storages.InMemoryStorage(), "study_name": "s", **quick}
    options["progress"] = False
    surely = loose(epsilon=1e6)
    assert trials_with(surely) == 4
    assert not loose(epsilon=1e-9).estimate(sl.minimize(bowl, plane, budget=4, **options).study).stop
    assert trials_with(None, budget=5) == 5
    monkeypatch.setattr(stopping, "sample_regret", lambda *arguments: np.full(256, 1e9))
    assert trials_with(surely) == trials_with(loose(epsilon=2e6, probability=0.8)) == 5
    assert trials_with(loose(epsilon=1e5), budget=6) == 6
    assert trials_with(loose(epsilon=1e6, probability=0.95), budget=7) == 7
    assert trials_with(surely, fixed={"y": 0.5}, budget=8) == 8
    assert trials_with(surely) == 8


@pytest.mark.stan
def test_each_of_several_estimates_has_a_row_if_trials_finish_out_of_order(quick):
    study = create_study(LINE, n_initial=4, seed=1, **quick)
    trials = sl.study.ask_batch(study, 6)
    for number in (0, 1, 2, 5, 4, 3):
        sl.study.tell(study, trials[number], bowl(sl.study.config_of(trials[number])))
        loose().estimate(study)
    table = regret_table(study)
    assert table["observations"].tolist() == [4, 5, 6] and table["number"].tolist() == [5, 5, 5]


@pytest.mark.stan
def test_a_model_that_was_too_certain_has_a_wider_regret(quick, monkeypatch):
    study = sl.minimize(bowl, LINE, budget=6, n_initial=4, seed=1, progress=False, **quick).study
    fair = loose().estimate(study)
    assert fair.inflation >= 1.0

    def surprised(trial):
        """Return a record whose prediction is 100 of its standard deviations away from the value."""
        return {"predicted": {"mean": trial.value - 30.0, "sd": 0.3}} if trial.number >= 4 else {}

    monkeypatch.setattr(prediction_error, "suggestion_record", surprised)
    wide = loose().estimate(study)
    assert wide.inflation > max(10.0, 5 * fair.inflation) and wide.upper > 2 * fair.upper
    assert regret_table(study)["inflation"].iloc[-1] == wide.inflation


@pytest.mark.stan
def test_the_estimate_shares_the_fit_with_the_next_suggestion(quick, monkeypatch):
    calls = []
    fit = GaussianProcess.fit
    monkeypatch.setattr(GaussianProcess, "fit", lambda self, *a, **k: calls.append(1) or fit(self, *a, **k))
    options = {"n_initial": 3, "seed": 1, "progress": False, **quick}
    sl.minimize(bowl, LINE, budget=6, stop=loose(epsilon=1e-9), **options)
    assert len(calls) == 4  # for three suggestions, and for the estimate after the last trial


@pytest.mark.stan
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_rule_is_a_callback_of_optuna(quick, direction):
    study = optuna.create_study(direction=direction, sampler=StanGPSampler(LINE, n_initial=4, seed=1, **quick))
    sign = 1 if direction == "minimize" else -1
    study.optimize(lambda trial: sign * bowl({"x": trial.suggest_float("x", -1, 1)}), n_trials=30, callbacks=[loose()])
    assert len(study.trials) < 30 and abs(study.best_value) < 1
    assert regret_table(study)["stop"].iloc[-1]


@pytest.mark.stan
def test_in_ask_and_tell_the_rule_tells_whether_to_stop(quick):
    study = create_study(LINE, n_initial=4, seed=1, **quick)
    rule = loose(epsilon=1e6)
    while (estimate := rule.decide(study)) is None or not estimate.stop:
        trial = sl.study.ask(study)
        sl.study.tell(study, trial, bowl(sl.study.config_of(trial)))
    rule(study, study.trials[-1])  # no loop to stop
    assert len(study.trials) == 4 and regret_table(study)["stop"].tolist() == [True]


@pytest.mark.stan
def test_failures_noise_fixed_values_and_parallel_evaluations(quick):
    space = ConfigurationSpace({"x": (-1.0, 1.0), "n": (1, 3)})

    def objective(config):
        if config["x"] > 0.8:
            raise ValueError("diverged")
        return bowl(config) + config["n"], {"size": config["n"] - 2.5}

    options = {"n_initial": 6, "seed": 1, "progress": False, "noisy": True, "n_parallel": 2, **quick}
    with_rule = sl.minimize(objective, space, budget=12, stop=loose(), fixed={"n": 2}, **options)
    assert not regret_table(with_rule.study).empty
    assert set(with_rule.trials["params_n"]) == {2}


@pytest.mark.stan
@pytest.mark.parametrize("unit", [1e-170, 1e170])
def test_the_inflation_does_not_depend_on_the_unit_of_the_objective(unit):
    def inflation(scale):
        options = {"n_initial": 4, "seed": 1, "method": "map", "stop": sl.Regret(1e-9 * scale), "progress": False}
        return regret_table(sl.minimize(lambda config: bowl(config) * scale, LINE, budget=7, **options).study)

    assert inflation(unit)["inflation"].tolist() == pytest.approx(inflation(1.0)["inflation"].tolist(), rel=1e-6)


def test_the_unit_of_an_error_has_all_that_makes_a_value_uncertain():
    study = optuna.create_study()
    for mean, y in ((None, 1.0), (1.0, 15.0), (5.0, -2.0)):
        record = {} if mean is None else {"predicted": {"mean": mean, "sd": 2.0}}
        given = {"params": {"x": 0.5}, "distributions": {"x": FloatDistribution(-1.0, 1.0)}}
        study.add_trial(create_trial(value=y, user_attrs={SUGGESTION_KEY: record, "y_sd": 6.0}, **given))
    spread = SimpleNamespace(centre_and_spread=lambda: (None, np.array([3.0, 3.0])))
    prediction = SimpleNamespace(with_noise=lambda: spread)
    posterior = SimpleNamespace(train=np.zeros(3), predict=lambda _: prediction)
    found = prediction_error.prediction_error(study, posterior, observations(study, LINE))
    assert found == pytest.approx(np.sqrt((2.0**2 + 1.0**2) / 2))  # errors 14 and -7 in units of 7


def with_regret(monkeypatch, regret):
    """Return a study of one trial whose regret has these draws."""
    study = create_study(LINE, n_initial=4, seed=1)
    sl.study.tell(study, sl.study.ask(study), 1.0)
    sample = stopping.Sampled(observations(study, LINE), 0, 1.0, regret)
    monkeypatch.setattr(sl.Regret, "_sample", lambda *_: sample)
    return study


def test_a_study_could_stop_now_with_the_upper_regret_as_epsilon(monkeypatch):
    study = with_regret(monkeypatch, np.linspace(0, 1, 256))
    upper = loose().estimate(study).upper
    assert upper == pytest.approx(0.9)
    assert loose(epsilon=upper + 0.01).estimate(study).stop and not loose(epsilon=upper - 0.01).estimate(study).stop


def test_a_looser_rule_that_has_stopped_keeps_its_estimate_unless_it_is_about_other_values(monkeypatch):
    regret = np.full(256, 0.5)
    study = with_regret(monkeypatch, regret)

    def stored(rule):
        rule.estimate(study)
        (record,) = [record for _, record in regret_records(study)]
        return record["epsilon"], record["stop"]

    assert stored(loose()) == stored(loose(epsilon=0.1)) == (1.0, True)
    regret[:] = 2.0
    assert stored(loose()) == (1.0, False)
    assert stored(loose(epsilon=0.1)) == (0.1, False)
    assert stored(loose(epsilon=3.0)) == (3.0, True)
    study.sampler = StanGPSampler(LINE, n_initial=4, seed=1, fixed={"x": 0.5})
    assert stored(loose()) == (1.0, False)


@pytest.mark.stan
@pytest.mark.parametrize(("noisy", "stops"), [(False, True), (True, False)])
def test_the_regret_is_0_where_all_configurations_have_exact_values(noisy, stops):
    """Equal values, of which the model explains the best one by noise."""
    numbers = [{"k": k} for k in range(1, 7)]
    options = {"initial_configs": numbers, "priors": {"sigma_n": sl.LogNormal(0.0, 0.01)}, "method": "map", "seed": 1}
    options |= {"progress": False, "noisy": noisy}
    result = sl.minimize(lambda config: float(config["k"] != 3), {"k": (1, 6)}, budget=6, **options)
    estimate = sl.Regret(1e-6).estimate(result.study)
    assert estimate.stop == stops and (estimate.upper == 0) == stops


@pytest.mark.stan
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("failures", "least", "most"), [("learn", 0.0, 1e-6), ("ignore", 1.0, 20.0)])
def test_where_all_configurations_are_evaluated_no_regret_is_where_they_failed(failures, least, most, several, sign):
    """The model believes the three that failed to be better than all others."""
    goal = "minimize" if sign > 0 else "maximize"
    goals = {"directions": [goal, goal]} if several else {"direction": goal}
    numbers = [{"n": n} for n in range(10)]
    study = create_study({"n": (0, 9)}, initial_configs=numbers, seed=1, method="map", failures=failures, **goals)
    for n in range(10):
        if n < 3:
            sl.study.tell(study, sl.study.ask(study), state=optuna.trial.TrialState.FAIL)
        else:
            sl.study.tell(study, sl.study.ask(study), [sign * n, sign * (9 - n)] if several else sign * n)
    assert least <= sl.Regret(0.1).estimate(study).mean <= most
