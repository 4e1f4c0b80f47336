"""A sampler without a declared space: its groups, its spaces and its suggestions."""

from __future__ import annotations

import copy

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from testing_studies import suggestion

from slayr_py.errors import DataError, SpaceError
from slayr_py.space import Encoder, space_from_json, space_to_json
from slayr_py.study import StanGPSampler, ask, posterior_of, replay
from slayr_py.study.inferred_space import groups, to_space
from slayr_py.study.storage.attributes import FIT_KEY, STUDY_KEY
from slayr_py.study.storage.distributions import space_to_distributions, to_configuration, to_params
from slayr_py.study.storage.trials import observations

UNIT = FloatDistribution(0, 1)
KINDS = {
    "c": CategoricalDistribution(("a", 1, None, 0.5)),
    "f": FloatDistribution(-1, 2.5),
    "g": FloatDistribution(-10.2, 10.2, step=0.1),
    "i": IntDistribution(3, 10),
    "j": IntDistribution(3, 9, step=2),
    "k": IntDistribution(1, 100, log=True),
    "l": FloatDistribution(1e-7, 1, log=True),
    "s": FloatDistribution(0, 1, step=0.25),
}


def add(study: optuna.Study, value: float = 0.0, **distributions) -> None:
    """Add a complete trial with these parameters, drawn at random."""
    draw = optuna.samplers.RandomSampler(seed=len(study.trials))
    current = study
    drawn = {
        name: draw.sample_independent(current, None, name, one)  # type: ignore[arg-type]
        for name, one in distributions.items()
    }
    study.add_trial(optuna.create_trial(params=drawn, distributions=distributions, value=value))


def test_parameters_of_the_same_trials_form_a_group_the_common_one_first():
    study = optuna.create_study()
    assert groups(study) == [{}]
    add(study)
    assert groups(study) == [{}]
    add(study, b=UNIT, x=FloatDistribution(0, 5), y=UNIT, one=IntDistribution(1, 1))
    assert groups(study) == [{"b": UNIT, "x": FloatDistribution(0, 5), "y": UNIT}]
    add(study, b=UNIT, x=UNIT, z=UNIT, w=UNIT)
    assert groups(study) == [{"b": UNIT, "x": UNIT}, {"w": UNIT, "z": UNIT}, {"y": UNIT}]
    add(study, other=UNIT)
    assert groups(study)[0] == {}
    running = study.ask()
    running.suggest_float("new", 0, 1)
    assert "new" not in str(groups(study))


def test_spaces_keep_every_kind_of_parameter_and_its_steps():
    space = to_space(KINDS)
    assert space_to_distributions(space) == KINDS
    again = space_from_json(space_to_json(space))
    assert space_to_distributions(again) == KINDS
    assert len(set(np.round([to_params(c)["g"] for c in Encoder(space).sobol(256, 0)], 6))) > 100
    for config in Encoder(again).sobol(64, 0):
        params = to_params(config)
        assert all(one._contains(one.to_internal_repr(params[name])) for name, one in KINDS.items())
        assert {name: type(params[name]) for name in "gjs"} == {"g": float, "j": int, "s": float}
        assert to_params(to_configuration(again, params)) == pytest.approx(params)
    for elsewhere in ({"s": 0.3}, {"j": 11}, {"j": 4}, {"g": "a"}):
        assert to_configuration(space, {**params, **elsewhere}) is None


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
@pytest.mark.filterwarnings("ignore:.*drawn at random:RuntimeWarning")
def test_parameters_that_configspace_cannot_represent_are_drawn_at_random():
    odd = {
        "equal": CategoricalDistribution((1, True)),
        "narrow": FloatDistribution(1.0, 1.0 + 1e-9),
        "objects": CategoricalDistribution(((1, 2), (3,))),
        "huge": IntDistribution(0, 2**63 - 1),
        "nothing": CategoricalDistribution((None, "None")),
    }
    with pytest.warns(RuntimeWarning, match="'[a-z]*' is not modelled, but drawn at random: ") as warned:
        assert len(to_space(odd)) == 0
    assert len(warned) == len(odd)
    study = optuna.create_study(sampler=StanGPSampler(n_initial=1, seed=0))
    add(study, **odd)
    trial = study.ask(odd)
    assert trial.params.keys() == odd.keys() and suggestion(study.trials[-1]) is None


def test_a_design_of_distinct_points_comes_first_and_nothing_is_recorded_in_the_study():
    def run() -> list[dict[str, float]]:
        study = optuna.create_study(sampler=StanGPSampler(n_initial=6, seed=4))
        study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_int("n", 0, 6, step=3), n_trials=6)
        assert [(suggestion(trial) or {}).get("phase") for trial in study.trials] == [None, *["initial"] * 5]
        assert STUDY_KEY not in study.user_attrs
        with pytest.raises(SpaceError, match="no declared space"):
            ask(study)
        return [trial.params for trial in study.trials]

    assert run() == run() and len({params["x"] for params in run()}) == 6


def test_running_trials_are_pending_at_what_was_suggested_to_them():
    study = optuna.create_study(sampler=StanGPSampler(n_initial=9, seed=4))
    values = {"a": CategoricalDistribution(("p", "q")), "n": IntDistribution(0, 4, step=2)}
    add(study, **values)
    tried = [study.trials[0].params, *(study.ask(values).params for _ in range(5))]
    assert len({tuple(params.items()) for params in tried}) == 6  # of 6


def test_enqueued_trials_and_other_ranges_are_followed():
    study = optuna.create_study(sampler=StanGPSampler(n_initial=9, seed=4))
    add(study, x=UNIT, y=UNIT)
    study.enqueue_trial({"x": 0.5})
    trial = study.ask()
    assert trial.suggest_float("x", 0, 1) == 0.5 and 0 <= trial.suggest_float("y", 0, 1) <= 1
    assert 5 <= study.ask().suggest_float("x", 5, 6) <= 6
    assert 0 <= study.ask().suggest_float("never seen", 0, 1) <= 1


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_rest_is_suggested_given_enqueued_and_partly_fixed_values_also_on_a_grid():
    study = optuna.create_study(sampler=StanGPSampler(n_initial=9, seed=4))
    add(study, x=UNIT, s=KINDS["s"])
    study.enqueue_trial({"s": 0.75})
    study.ask({"s": KINDS["s"], "x": UNIT})
    study.sampler = optuna.samplers.PartialFixedSampler({"s": 0.25}, study.sampler)
    study.ask({"s": KINDS["s"], "x": UNIT})
    for number, s in ((1, 0.75), (2, 0.25)):
        record = suggestion(study.trials[number])
        assert record["config"]["s"] == s and record["fixed"] == {"s": s}
        assert record["config"]["x"] == study.trials[number].params["x"]


def test_the_search_is_spared_if_all_parameters_of_the_main_group_were_enqueued():
    study = optuna.create_study(sampler=StanGPSampler(n_initial=1, seed=4))
    add(study, x=UNIT)
    study.enqueue_trial({"x": 0.75})
    study.ask({"x": UNIT, "new": UNIT})
    assert suggestion(study.trials[1]) == {"phase": "enqueued", "config": {"x": 0.75}}


def test_configurations_of_the_design_need_a_space():
    with pytest.raises(DataError, match="initial_configs needs a space"):
        StanGPSampler(initial_configs=[{"x": 1.0}])


def test_the_sampler_can_be_copied():
    study = optuna.create_study(sampler=StanGPSampler(n_initial=4, seed=1))
    add(study, x=UNIT)
    study.ask().suggest_float("x", 0, 1)
    study.sampler = copy.deepcopy(study.sampler)
    assert study.sampler.strategy.bind(study) == 1
    assert 0 <= study.ask().suggest_float("x", 0, 1) <= 1


def test_a_fit_needs_common_parameters():
    study = optuna.create_study(sampler=StanGPSampler())
    for names in ("x", "y"):
        add(study, **{names: UNIT})
    with pytest.raises(DataError, match="no parameter in common"):
        study.sampler.fit(study)
    with pytest.raises(DataError, match="no parameter in common"):
        optuna.create_study(sampler=StanGPSampler()).sampler.fit(optuna.create_study())


def test_branches_are_modelled_by_themselves_and_keep_the_record_of_the_trial(quick):
    def objective(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("which", ["a", "b"]) == "a":
            return (trial.suggest_float("x", 0, 1, step=0.125) - 0.5) ** 2
        return 1 + trial.suggest_float("y", 0, 1)

    study = optuna.create_study(sampler=StanGPSampler(n_initial=3, seed=0, **quick))
    with pytest.warns(UserWarning, match="only some trials have x, y: the model of the other parameters") as caught:
        study.optimize(objective, n_trials=14)
    assert len(caught) == 1
    a = [trial for trial in study.trials if "x" in trial.params]
    assert len(a) > 7
    last = a[-1]
    assert suggestion(last)["config"] == last.params and suggestion(last)["phase"] == "model"
    assert suggestion(last)["observations"] == last.number  # of the common group
    assert [one["name"] for one in last.user_attrs[FIT_KEY]["space"]["space"]["hyperparameters"]] == ["which"]
    assert min(trial.value for trial in a) <= 0.125**2


def test_the_common_parameters_are_fitted_and_fits_replay(quick):
    study = optuna.create_study(sampler=StanGPSampler(n_initial=3, seed=0, **quick))
    study.optimize(lambda t: t.suggest_float("x", 0, 2, step=0.5) + t.suggest_float("y", 0, 1), n_trials=5)
    assert suggestion(study.trials[-1])["phase"] == "model"
    with pytest.warns(UserWarning, match="'x' has a step"):
        posterior = study.sampler.fit(study)
    assert list(posterior.encoder.names) == ["x", "y"] and len(posterior.train) == 5
    assert replay(study, 4)[0].agrees
    assert len(observations(study, posterior.encoder.space).numbers) == 5


@pytest.mark.stan
def test_a_posterior_that_numbers_the_values_of_a_grid_says_so():
    sampler = StanGPSampler(seed=1, n_initial=4, method="map")
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: (t.suggest_int("n", 1, 9, step=2) - 3) ** 2 + t.suggest_float("x", 0, 1), n_trials=6)
    words = "'n' has a step, and the posterior numbers its values from 0: give it n for 1 \\+ 2 n, from 0 to 4"
    with pytest.warns(UserWarning, match=words):
        posterior = sampler.fit(study)
    best = study.best_params
    (mean,) = posterior.predict([{"n": (best["n"] - 1) // 2, "x": best["x"]}]).mean
    assert mean == pytest.approx(study.best_value, abs=1.0)
    with pytest.warns(UserWarning, match=words):
        posterior_of(study, 5)
