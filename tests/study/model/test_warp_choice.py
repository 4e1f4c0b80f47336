from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.errors import InferenceError
from slayr_py.kernels import Stack
from slayr_py.space import Encoder
from slayr_py.study import StanGPSampler, load, posterior_of
from slayr_py.study.model.fit_cache import FitCache
from slayr_py.study.model.warp_choice import _evidence, with_chosen_warp
from slayr_py.study.sampler import declared_space_of
from slayr_py.study.storage.trials import observations

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})


def decades(config):
    """Values from 1e-3 to 10."""
    return 10 ** (5 * ((config["x"] - 0.3) ** 2 + (config["z"] - 0.6) ** 2) - 3)


def smooth(config):
    return (config["x"] - 0.3) ** 2 + np.sin(3 * config["z"])


def study_of(function, n, direction="minimize", **options):
    """A study with n Sobol points as trials."""
    sampler = StanGPSampler(SPACE, seed=1, n_initial=2, **options)
    study = optuna.create_study(sampler=sampler, direction=direction)
    sign = -1.0 if direction == "maximize" else 1.0
    floats = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in SPACE}
    for config in Encoder(SPACE).sobol(n, seed=3):
        value = sign * function(config)
        study.add_trial(optuna.trial.create_trial(params=dict(config), distributions=floats, value=value))
    return study


def chosen(study):
    """The Gaussian process for the next suggestion."""
    model = declared_space_of(study)
    observed = observations(study, SPACE)
    return model.surrogate_of(study).latest(study, observed)


@pytest.mark.stan
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_values_that_differ_by_orders_of_magnitude_choose_the_warp_from_the_best_value(direction):
    gp = chosen(study_of(decades, 16, direction))
    assert gp.warp == "best"
    (note,) = gp.model.left_out
    assert "warp 'best': the first 16 values have a leave-one-out log density that is" in note
    assert chosen(study_of(smooth, 16, direction)).warp == "log"


def floor(config):
    """Half of the values are the smallest one."""
    return max(0.05, (config["x"] - 0.5) ** 2 + (config["z"] - 0.4) ** 2)


@pytest.mark.stan
def test_values_that_equal_the_best_one_do_not_choose_it():
    study = study_of(floor, 12)
    floats = study.trials[0].distributions
    for i in range(6):
        for params in ({"x": 0.35 + 0.06 * i, "z": 0.4}, {"x": 0.48, "z": 0.29 + 0.04 * i}):
            study.add_trial(optuna.trial.create_trial(params=params, distributions=floats, value=floor(params)))
    assert sum(trial.value == 0.05 for trial in study.trials) >= 12
    assert chosen(study).warp == "log"


@pytest.mark.parametrize(
    ("y", "gains", "expected"),
    [
        ([0.0, 1.0, 2.0, 3.0, 4.0], [50.0, 1.0, 1.0, 1.0, 1.0], 4.0),  # the best value is left out
        ([0.0, 0.0, 2.0, 3.0, 4.0], [50.0, 50.0, 1.0, 1.0, 1.0], 3.0),  # and an equal one
        ([5.0, 5.0 + 1e-10, 6.0, 7.0], [50.0, 50.0, 1.0, 1.0], 2.0),
        ([0.0, 1e-3, 2.0, 3.0], [0.0, 50.0, 1.0, 1.0], 5.0),  # no value counts more than 3
        ([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 3.0, 3.0, -2.0, -2.0], 0.0),  # the worse half loses more than half
        ([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 3.0, 3.0, -0.5, -0.5], 5.0),
        ([2.0, 2.0], [1.0, 1.0], 0.0),
    ],
)
def test_evidence_counts_values_that_are_not_near_the_best_one(y, gains, expected):
    assert _evidence(np.array(y), np.array(gains)) == pytest.approx(expected)


@pytest.mark.stan
def test_the_warp_is_chosen_from_the_first_values_at_growing_numbers():
    assert chosen(study_of(decades, 10)).warp == "log"
    at = [chosen(study_of(decades, n)).model.left_out for n in (16, 23)]
    assert at[0] == at[1] and at[0] != chosen(study_of(decades, 24)).model.left_out


def test_later_values_do_not_change_the_first_ones_that_choose_the_warp_also_if_some_are_far(monkeypatch):
    study = study_of(decades, 10)
    floats = study.trials[0].distributions
    gp = sl.GaussianProcess(SPACE, warp="auto")
    fits = FitCache()
    fitted = []

    def fit(self, configs, y, **options):
        fitted.append(y)
        return SimpleNamespace(parts=[SimpleNamespace(leave_one_out=SimpleNamespace(elpd=np.zeros(len(y))))])

    monkeypatch.setattr(type(gp), "fit", fit)
    for i, value in enumerate((1e12, 50.0, 0.0)):  # a penalty, the largest distance of the others, and the best value
        trial = optuna.trial.create_trial(params={"x": 0.9, "z": i / 10}, distributions=floats, value=value)
        study.add_trial(trial)
        with_chosen_warp(study, gp, observations(study, SPACE), fits)
    assert len(fitted) == 2 and 1 < fitted[0][-1] < 100  # one of each warp


@pytest.mark.stan
@pytest.mark.parametrize(
    "options",
    [
        {"warp": "log"},
        {"warp": "none"},
        {"noisy": True},
        {"priors": {"warp": sl.LogNormal(-1.0, 0.5)}},
        {"kernel": Stack(["MAT52", "SE"])},
    ],
    ids=["log", "none", "noisy", "prior", "stack"],
)
def test_a_warp_or_prior_of_the_user_a_stack_and_noise_leave_the_warp(options):
    assert chosen(study_of(decades, 16, **options)).warp == options.get("warp", "log")


@pytest.mark.stan
def test_known_errors_leave_no_warp():
    study = study_of(decades, 16)
    floats = study.trials[0].distributions
    told = {"params": {"x": 0.5, "z": 0.5}, "distributions": floats, "value": 1.0, "user_attrs": {"y_sd": 0.1}}
    study.add_trial(optuna.trial.create_trial(**told))
    assert chosen(study).with_errors(observations(study, SPACE).errors).warp == "none"


def test_a_fit_that_fails_leaves_the_warp(monkeypatch):
    study = study_of(decades, 16)
    gp = sl.GaussianProcess(SPACE, warp="auto")

    def failing(*arguments, **options):
        raise InferenceError("no mode")

    monkeypatch.setattr(type(gp), "fit", failing)
    assert with_chosen_warp(study, gp, observations(study, SPACE), FitCache()).warp == "log"


@pytest.mark.stan
def test_a_study_that_changes_its_warp_starts_cold_and_is_repeated_bit_for_bit(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    result = sl.minimize(decades, SPACE, budget=13, n_initial=9, seed=2, storage=storage, study_name="decades")
    starts = {}
    for number in range(9, 13):
        posterior = posterior_of(result.study, number)  # warns if a draw differs
        starts[number] = (posterior.parts[0].model.warp, posterior.record["start"] is None)
    assert starts == {9: ("log", True), 10: ("log", False), 11: ("best", True), 12: ("best", False)}
    loaded = load(storage).posterior()
    assert loaded.parts[0].model.warp == "best"
    np.testing.assert_array_equal(loaded.parts[0].draws["warp"], result.posterior().parts[0].draws["warp"])
