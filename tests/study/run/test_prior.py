"""A belief about the location of the optimum, and the default configuration, in studies."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from optuna.trial import TrialState

import slayr_py as sl
from slayr_py.acquisition import criteria
from slayr_py.study import StanGPSampler, ask, create_study, suggestion_record, tell


def space_of_rates():
    space = ConfigurationSpace()
    optimizer = Categorical("optimizer", ["adam", "sgd"], default="sgd")
    momentum = Float("momentum", (0.0, 1.0), default=0.9)
    space.add(Float("lr", (1e-4, 1e-1), log=True, default=0.05), optimizer, momentum)
    space.add(EqualsCondition(momentum, optimizer, "sgd"))
    return space


BELIEF = {"lr": sl.LogNormal(-7, 0.3), "optimizer": {"adam": 0.9, "sgd": 0.1}}
QUICK = {"method": "map", "seed": 1}


def loss(config):
    return (np.log(config["lr"]) + 6) ** 2 + config.get("momentum", 0.3)


def finish(study, n, values=loss):
    for _ in range(n):
        trial = ask(study)
        tell(study, trial, values(trial.params))
    return study


def params(study):
    return [trial.params for trial in study.trials]


def exponent(trial):
    """Return the exponent of the belief in a suggestion; 0 for a suggestion without the belief."""
    return suggestion_record(trial)["acquisition"].get("prior", {"exponent": 0.0})["exponent"]


def test_the_first_quarter_of_the_design_has_the_belief():
    """Four of 16 points come from the belief, whose middle 99% are a fifth of the scale."""
    study = create_study(space_of_rates(), n_initial=16, prior=BELIEF, **QUICK)
    logs = np.log([ask(study).params["lr"] for _ in range(16)])
    assert np.all(np.abs(logs[:4] + 7) < 0.8)
    plain = create_study(space_of_rates(), n_initial=12, **QUICK)
    assert params(study)[4:] == [ask(plain).params for _ in range(12)]


@pytest.mark.stan
def test_a_resumed_study_replays_the_belief(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    options = {"n_initial": 3, "prior": BELIEF, "prior_beta": 2.0, **QUICK}
    whole = finish(create_study(space_of_rates(), **options), 6)
    finish(create_study(space_of_rates(), storage=url, study_name="a", **options), 4)
    resumed = finish(create_study(space_of_rates(), storage=url, study_name="a", **options), 2)
    assert params(resumed) == params(whole)
    assert [exponent(trial) for trial in whole.trials[3:]] == [2 / 4, 0, 2 / 6]
    for prior, now in ((None, "no prior"), ({"lr": sl.LogNormal(-6, 1)}, "lr: LogNormal")):
        with pytest.raises(sl.DataError, match=f"started with lr: LogNormal.*; optimizer: adam 0.9.*, not {now}"):
            create_study(space_of_rates(), storage=url, study_name="a", seed=1, prior=prior)


@pytest.mark.stan
def test_the_weight_is_a_tenth_of_the_budget():
    options = {"budget": 4, "n_initial": 3, "progress": False, "prior": BELIEF, **QUICK}
    assert exponent(sl.minimize(loss, space_of_rates(), **options).study.trials[3]) == 0.4 / 4
    given = sl.minimize(loss, space_of_rates(), prior_beta=8, **options)
    assert exponent(given.study.trials[3]) == 8 / 4


def test_illegal_uses(monkeypatch):
    monkeypatch.setattr(criteria, "_BY_NAME", dict(criteria._BY_NAME))

    class Mine(sl.acquisition.Acquisition):
        name = "mine"

        def value(self, mean, sd, state):
            return -mean.mean(axis=0)

        def transformed_with_gradient(self, moments, state):
            raise NotImplementedError

    with pytest.raises(sl.DataError, match="acquisition 'mine' is not supported with prior=.*; use 'ei'"):
        create_study(space_of_rates(), prior=BELIEF, acquisition=Mine())
    with pytest.raises(sl.DataError, match="prior_beta is the weight of a prior=, but there is none"):
        create_study(space_of_rates(), prior_beta=3)
    with pytest.raises(sl.DataError, match="prior_beta must be positive"):
        create_study(space_of_rates(), prior=BELIEF, prior_beta=0)
    with pytest.raises(sl.DataError, match="default must be True or False, got 1"):
        create_study(space_of_rates(), default=1)
    with pytest.raises(sl.DataError, match="prior needs a space: StanGPSampler\\(space, prior="):
        StanGPSampler(prior=BELIEF)
    with pytest.raises(sl.DataError, match="default needs a space: enqueue the configuration"):
        StanGPSampler(default=True)


def test_beliefs_of_the_space_are_not_silently_ignored():
    space = ConfigurationSpace(space={"x": (0.0, 1.0)})
    space.add(Categorical("kind", ["a", "b"], weights=[99, 1]))
    with pytest.warns(
        UserWarning, match="distributions or weights of kind, which are ignored; use them .*prior='space'"
    ):
        ask(create_study(space, **QUICK))
    study = create_study(space, prior="space", n_initial=16, **QUICK)
    assert [ask(study).params["kind"] for _ in range(4)] == ["a"] * 4


DEFAULT = {"lr": 0.05, "optimizer": "sgd", "momentum": 0.9}


def test_the_default_configuration_is_the_first():
    space = space_of_rates()
    first = create_study(space, default=True, n_initial=4, prior=BELIEF, **QUICK)
    assert ask(first).params == pytest.approx(DEFAULT)
    assert first.sampler.strategy.design.size == 4
    assert abs(np.log(ask(first).params["lr"]) + 7) < 1  # then the belief
    given = [{"lr": 0.001, "optimizer": "adam"}, DEFAULT]
    study = create_study(space, default=True, initial_configs=given, **QUICK)
    assert [ask(study).params for _ in range(2)] == [pytest.approx(DEFAULT), pytest.approx(given[0])]
    assert study.sampler.strategy.design.size == 2
    fixed = create_study(space, default=True, fixed={"optimizer": "adam"}, **QUICK)
    assert ask(fixed).params == pytest.approx({"lr": 0.05, "optimizer": "adam"})


def test_past_experiments_delay_the_default_configuration():
    history = pd.DataFrame({"lr": [0.01, 0.02], "optimizer": ["adam"] * 2, "value": [1.0, 2.0]})
    study = create_study(space_of_rates(), default=True, n_initial=4, history=history, **QUICK)
    assert ask(study).params == pytest.approx(DEFAULT)
    ask(study)
    assert [suggestion_record(trial)["phase"] for trial in study.trials] == ["history"] * 2 + ["initial"] * 2
    known = pd.DataFrame([{**DEFAULT, "value": 1.0}])
    again = create_study(space_of_rates(), default=True, n_initial=3, history=known, **QUICK)
    assert ask(again).params != pytest.approx(DEFAULT)


def test_a_default_outside_constraints_is_an_error():
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    with pytest.raises(sl.SpaceError, match="of the default configuration 'x \\+ y <= 0.5' is violated by 0.5; change"):
        create_study(space, default=True, within=["x + y <= 0.5"], **QUICK)
    inside = create_study(space, default=True, within=["x + y == 1"], prior={"x": sl.Normal(0.9, 0.05)}, **QUICK)
    points = [ask(inside).params for _ in range(3)]
    assert points[0] == {"x": 0.5, "y": 0.5} and points[1]["x"] > 0.6
    assert all(abs(sum(point.values()) - 1) < 1e-9 for point in points)


@pytest.mark.stan
def test_a_belief_with_enqueued_failed_and_fixed_trials():
    study = create_study(
        space_of_rates(), n_initial=2, prior=BELIEF, prior_beta=50, fixed={"optimizer": "sgd"}, **QUICK
    )
    study.enqueue_trial({"lr": 0.09, "optimizer": "sgd", "momentum": 0.5})
    finish(study, 3)
    tell(study, ask(study), state=TrialState.FAIL)
    trials = [*study.sampler.ask_batch(study, 2), ask(study, context={"momentum": 0.25})]
    assert all(trial.params["optimizer"] == "sgd" for trial in trials)
    stored = study.trials[4:]
    assert [exponent(trial) > 0 for trial in stored] == [True, False, True]
    assert all(abs(np.log(trial.params["lr"]) + 7) < 1 for trial in stored[::2])
    assert trials[2].params["momentum"] == 0.25
    assert {trial.state for trial in study.trials[4:]} == {optuna.trial.TrialState.RUNNING}
