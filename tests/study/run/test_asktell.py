from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from slayr_py.errors import DataError, SpaceError, StorageError
from slayr_py.space import Encoder
from slayr_py.study import (
    ask,
    ask_batch,
    config_of,
    create_study,
    load,
    minimize,
    space_of,
    space_to_distributions,
    tell,
)
from slayr_py.study.storage.distributions import to_params


def test_ask_and_tell(mixed):
    study = create_study(mixed, n_initial=4, seed=1)
    trial = ask(study)
    config = config_of(trial)
    study.sampler.strategy.encoder.configuration(config).check_valid_configuration()
    frozen = tell(study, trial, 1.5)
    assert frozen.value == 1.5 and config_of(frozen) == config
    tell(study, ask(study).number, state=optuna.trial.TrialState.FAIL)
    assert [t.state.name for t in study.trials] == ["COMPLETE", "FAIL"]


FAIL = optuna.trial.TrialState.FAIL
WRONG = [
    (-1, {}, "has no trial -1; it has 3, numbered from 0"),
    (99, {}, "has no trial 99; it has 3, numbered from 0"),
    (True, {}, "the trial is True; give the trial that ask returned, or its number"),
    ("0", {}, "the trial is '0'; give the trial that ask returned, or its number"),
    (1, {}, "trial 1 of study 's' is finished .COMPLETE. and keeps its value; ask for another one"),
    (2, {}, "trial 2 of study 's' is enqueued; start it by ask first"),
    (0, {"sd": np.timedelta64(5, "s")}, "sd is np.timedelta64"),
    (0, {"state": FAIL}, "the value is 1.0 and the state FAIL: .*; leave one of them out"),
    (0, {"state": optuna.trial.TrialState.RUNNING}, "the state is .*RUNNING.*; leave it out"),
]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, np.ma.masked])
def test_a_value_that_is_not_finite_fails_the_trial(plane, value):
    study = create_study(plane, seed=1)
    trial = ask(study)
    with pytest.raises(DataError, match=r"the state COMPLETE; leave the state out, and the trial fails"):
        tell(study, trial, value, optuna.trial.TrialState.COMPLETE, sd=0.3)
    assert "y_sd" not in study.trials[0].user_attrs
    with pytest.warns(UserWarning, match=f"trial 0 fails: its value is {value!r}"):
        assert tell(study, trial, value).state == FAIL


@pytest.mark.parametrize(("trial", "options", "words"), WRONG)
def test_what_cannot_be_told_is_refused_before_anything_is_stored(plane, trial, options, words):
    study = create_study(plane, seed=1, study_name="s", cost="euros")
    ask(study)
    tell(study, ask(study), 1.0)
    study.enqueue_trial({"x": 1.0})
    with pytest.raises(DataError, match=words):
        tell(study, trial, 1.0, **{"sd": 0.5, "cost": 2.0, **options})
    assert not any({"y_sd", "euros"} & trial.user_attrs.keys() for trial in study.trials)
    assert tell(study, np.int64(0), 1.0, sd=0.5).user_attrs["y_sd"] == 0.5


def test_enqueued_values_have_the_types_of_their_parameters(tmp_path):
    space = {"x": (0.0, 1.0), "n": (0, 5), "k": ["a", 1]}
    where = {"storage": f"sqlite:///{tmp_path}/s.db", "study_name": "s", "n_initial": 9, "seed": 1}
    study = create_study(space, **where)
    for _ in range(2):
        study.enqueue_trial({"x": 1, "n": 2.0, "k": True})
    trial = ask(study)
    told = []
    minimize(lambda config: told.append(config) or config["x"], space, 2, progress=False, **where)
    for config in (config_of(trial), *told):
        assert {name: (value, type(value)) for name, value in config.items()} == {
            "x": (1.0, float),
            "n": (2, int),
            "k": (1, int),
        }


def test_decimals_and_fractions_are_numbers(plane):
    study = create_study(plane, n_initial=5, seed=1, cost="euros")
    trial = tell(study, ask(study), Decimal("0.1"), sd=Fraction(1, 4), cost=Decimal("3.5"))
    assert (trial.value, trial.user_attrs["y_sd"], trial.user_attrs["euros"]) == (0.1, 0.25, 3.5)
    open_trial = ask(study)
    for wrong in ({"sd": Decimal("sNaN")}, {"sd": 10**400}, {"cost": Decimal("NaN")}, {"cost": 10**400}):
        with pytest.raises(DataError, match="(sd|the cost 'euros') is .*; give"):
            tell(study, open_trial, 1.0, **wrong)
    with pytest.warns(UserWarning, match="its value is Decimal"):
        assert tell(study, open_trial, Decimal("NaN")).state.name == "FAIL"


def test_decimals_of_an_objective_and_its_constraints(plane):
    def objective(config):
        return Decimal("0.5"), {"memory": Decimal("9.5"), "euros": Fraction(7, 2)}

    result = minimize(objective, plane, 1, n_initial=1, progress=False, constraints=["memory <= 8"], cost="euros")
    trial = result.study.trials[0]
    assert (trial.value, trial.constraints["memory"], trial.user_attrs["euros"]) == (0.5, 1.5, 3.5)


def test_decimals_and_fractions_are_values_of_parameters(plane):
    given = {"x": Decimal("0.1"), "y": Fraction(1, 2)}
    options = {"seed": 1, "history": [(given, 1.0)], "initial_configs": [given], "fixed": given}
    study = create_study(plane, **options)  # a warning that fixed values replace equal ones would be an error
    assert study.trials[0].params == ask(study).params == ask(study, context=given).params == {"x": 0.1, "y": 0.5}


def test_asking_for_an_enqueued_value_outside_the_space_fails_its_trial(mixed):
    study = create_study(mixed, n_initial=4, seed=1)
    study.enqueue_trial({"kernel": "ploy"})
    with pytest.raises(
        SpaceError, match="'ploy' of the parameter 'kernel' is not one of its levels; did you mean 'poly'"
    ):
        ask(study)
    tell(study, ask(study), 1.0)
    assert [t.state.name for t in study.trials] == ["FAIL", "COMPLETE"]
    assert "'ploy'" in study.trials[0].user_attrs["slayr:failure"]


def test_graphs_come_with_an_encoder_and_leave_the_distributions_alone(mixed):
    study = create_study(Encoder(mixed, graphs={"degree": "path"}), n_initial=4, seed=1)
    assert space_of(study) == mixed and study.sampler.strategy.encoder.graphs["degree"].number_of_nodes() == 8
    assert study.sampler.strategy.distributions == space_to_distributions(mixed)
    for _ in range(4):
        study.sampler.strategy.encoder.configuration(config_of(ask(study))).check_valid_configuration()


def test_a_study_is_resumed_by_its_name(plane, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = create_study(plane, storage=url, study_name="s", n_initial=4)
    tell(first, ask(first), 1.0)
    again = create_study(plane, storage=url, study_name="s", n_initial=4)
    seed = first.sampler.strategy.bind(first)
    assert config_of(ask(again)) == to_params(first.sampler.strategy.design.points(seed)[1])


def test_the_space_is_read_back_under_any_sampler(mixed):
    study = create_study(mixed, n_initial=2, seed=0)
    study.sampler = optuna.samplers.RandomSampler(seed=1)
    assert space_of(study) == mixed
    with pytest.warns(UserWarning, match="has the sampler RandomSampler, which knows neither") as caught:
        assert "kernel" in config_of(ask(study))
    assert caught[0].filename == __file__
    with pytest.raises(SpaceError, match="no declared space"):
        space_of(optuna.create_study())


def test_asking_a_loaded_study_warns_that_it_is_without_its_sampler(plane, recwarn):
    storage = optuna.storages.InMemoryStorage()
    study = create_study(plane, storage=storage, study_name="s", n_initial=4, seed=1, within=["x + y <= 1"])
    tell(study, ask(study), 1.0)
    assert not recwarn.list
    for loaded in (load(storage).study, optuna.load_study(study_name="s", storage=storage)):
        with pytest.warns(UserWarning, match=r"'s' has the sampler TPESampler, .* slayr_py.study.create_study\(space"):
            ask(loaded)


def test_numbers_beside_the_value_are_answered_with_the_call_that_stores_constraints(plane):
    study = create_study(plane, n_initial=4, seed=1)
    trial = ask(study)
    for value in ((1.0, {"heat": 3.0}), {"value": 1.0, "heat": 3.0}):
        with pytest.raises(DataError, match=r"give a number, and constraints=\{name: excess\}, or state"):
            tell(study, trial, value)
    with pytest.raises(DataError, match="give a number, or state="):
        tell(study, trial, (1.0, 2.0))
    assert tell(study, trial, 1.0).value == 1.0


def test_a_trial_is_told_its_constraints_by_number_also_in_another_process(plane, tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    study = create_study(plane, storage=storage, study_name="s", n_initial=4, seed=1)
    for _ in range(3):
        ask(study)
    later = create_study(plane, storage=storage, study_name="s", n_initial=4, seed=1)
    assert tell(later, 1, 2.0, constraints={"heat": -0.5, "mass": np.float32(0.25)}).constraints == {
        "heat": -0.5,
        "mass": 0.25,
    }
    assert tell(later, 0, state=TrialState.FAIL, constraints={"heat": 1}).constraints == {"heat": 1.0}
    assert tell(later, 2, 3.0, constraints={"heat": 0.0, "mass": 0.0}).values == [3.0]
    assert later.best_trial.number == 2


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"heat": math.nan}, "the constraint 'heat' is nan, not a finite number"),
        ({"heat": True}, "return a number that is at most 0 where"),
        ({1: 0.5}, "the name 1 of a constraint is not text"),
        (-0.5, r"constraints is -0.5; give the excesses by name, such as \{'memory': -0.5\}"),
    ],
)
def test_an_illegal_constraint_leaves_the_trial_open(plane, constraints, message):
    study = create_study(plane, n_initial=4, seed=1)
    trial = ask(study)
    with pytest.raises(DataError, match=message):
        tell(study, trial, 1.0, constraints=constraints)
    assert not trial.constraints and study.trials[0].state == TrialState.RUNNING


def test_a_batch_replaces_trials_that_were_enqueued_wrongly(plane):
    study = create_study(plane, n_initial=8, seed=1)
    study.enqueue_trial({"x": 1e9})
    words = "trial 0 fails: the enqueued value 1000000000.0 of the parameter 'x'"
    with pytest.warns(RuntimeWarning, match=words) as caught:
        trials = ask_batch(study, 3)
    assert caught[0].filename == __file__
    assert [trial.number for trial in trials] == [1, 2, 3] and all(len(trial.params) == 2 for trial in trials)
    assert [trial.state.name for trial in study.trials] == ["FAIL", "RUNNING", "RUNNING", "RUNNING"]


def test_a_sampler_suggests_no_batch_of_a_study_with_another_sampler(plane):
    study = create_study(plane, n_initial=8, seed=1)
    sampler, study.sampler = study.sampler, optuna.samplers.RandomSampler(seed=1)
    with pytest.raises(DataError, match="the study's sampler is RandomSampler, not this one; set study.sampler"):
        sampler.ask_batch(study, 2)
    assert not study.trials


@pytest.mark.parametrize("read", ["get_study_system_attrs", "get_all_trials"])
def test_every_read_of_tell_names_a_storage_that_fails(plane, monkeypatch, read):
    study = create_study(plane, storage=optuna.storages.InMemoryStorage(), seed=1)
    trial = ask(study)

    def fail(*_, **options):
        raise optuna.exceptions.StorageInternalError("server closed the connection")

    monkeypatch.setattr(optuna.storages.InMemoryStorage, read, fail)
    with pytest.raises(StorageError, match="server closed the connection"):
        tell(study, trial, 1.0)
