from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

from slayr_py.errors import DataError
from slayr_py.study import ask, create_study, tell
from slayr_py.study.storage import distributions, trials
from slayr_py.study.storage.attributes import FAILURE_KEY, SUGGESTION_KEY
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.optuna_private import optimizing
from slayr_py.study.storage.suggesting import suggest_all
from slayr_py.study.storage.trials import (
    excluded,
    from_ranges,
    has_known_error,
    known_error,
    known_infeasible,
    left_out,
    observations,
    outcomes,
    pending,
    to_ranges,
    trial_configuration,
    with_configuration,
)


def test_a_running_trial_is_pending_before_its_parameters_are_read(plane):
    study = create_study(plane, n_initial=5, seed=2)
    trial = study.ask()
    assert trial.relative_params == trial.params == {}
    suggested = study.trials[0].user_attrs[SUGGESTION_KEY]["config"]
    other = study.ask()
    frozen = study.trials[other.number]
    assert [to_params(c) for c in pending(study, plane, frozen)] == [suggested]


def test_a_running_trial_without_a_record_is_pending_at_its_point_of_the_design(plane):
    study = create_study(plane, n_initial=3, seed=2)
    study._storage.create_new_trial(study._study_id)  # by a process that has not suggested anything yet
    design = study.sampler.strategy.design.points(2)
    current = study.ask()._trial_id
    assert pending(study, plane, study._storage.get_trial(current), design) == [design[0]]


@pytest.mark.parametrize(("direction", "best"), [("minimize", 2.0), ("maximize", 5.0)])
def test_observations_are_in_the_users_units(plane, direction, best):
    study = create_study(plane, n_initial=5, seed=2, direction=direction)
    for value in (3.0, 5.0, 2.0):
        study.tell(ask(study), value)
    observed = observations(study, plane)
    assert observed.y.tolist() == [3.0, 5.0, 2.0] and observed.best_of(observed.y) == best
    assert observed.maximize == (direction == "maximize")


def test_the_next_value_is_expected_to_have_the_error_of_the_last_ones(plane):
    """Neither one bad measurement nor one exact value decides."""
    study = create_study(plane, n_initial=12, seed=2)
    for number, sd in enumerate([0.1, 0.1, 20.0, 0.1, 0.1, 0.0, 0.1]):
        tell(study, ask(study), 1.0 + 0.1 * number, sd=sd)
        assert observations(study, plane).further_error == 0.1


@pytest.mark.parametrize("sd", [0.25, Decimal("0.25"), Fraction(1, 4), np.float32(0.25)])
def test_a_known_error_is_any_real_number(sd):
    one = create_trial(value=1.0, user_attrs={"y_sd": sd})
    two = [create_trial(values=[1.0, 2.0], user_attrs={"y_sd": parts}) for parts in ([0.0, sd], (0.0, sd))]
    assert known_error(one) == 0.25 and [known_error(trial, 1) for trial in two] == [0.25, 0.25]
    assert all(map(has_known_error, [one, *two]))


@pytest.mark.parametrize("sd", [True, "0.1", [0.1], -0.1, np.inf, Decimal("sNaN"), Fraction(10**400)])
def test_a_damaged_known_error_is_named(sd):
    trial = create_trial(value=1.0, user_attrs={"y_sd": sd})
    with pytest.raises(DataError, match="'y_sd' = .* must be a finite number >= 0"):
        known_error(trial)


def test_forecasts_of_stopped_trials_do_not_tell_the_error_of_the_next_value(plane, monkeypatch):
    study = create_study(plane, n_initial=8, seed=2)
    for number in range(6):
        study.tell(ask(study), 1.0 + number)
    monkeypatch.setattr(trials, "evidence_of", lambda trial: (2.0, 0.3) if trial.number % 2 else None)
    observed = observations(study, plane)
    assert observed.y_sd.tolist() == [0.0, 0.3] * 3 and observed.further_error == 0.3
    stopped = [trial.number for trial in study.trials if trial.number % 2]
    monkeypatch.setattr(trials, "trials_of", lambda *_: [stop(t) if t.number in stopped else t for t in study.trials])
    assert observations(study, plane).further_error == 0.0


def stop(trial):
    trial.state = TrialState.PRUNED
    return trial


@pytest.mark.stan
@pytest.mark.parametrize("numbers", [[], [3], [0, 1, 2, 5, 7, 8]])
def test_ranges_of_trial_numbers_round_trip(numbers):
    assert from_ranges(to_ranges(np.random.default_rng(0).permutation(numbers).tolist())) == numbers


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore:Heartbeat of storage")
def test_nothing_is_learnt_from_trials_of_killed_processes(plane, tmp_path):
    storage = RDBStorage(f"sqlite:///{tmp_path / 'study.db'}", heartbeat_interval=60)
    study = create_study(plane, n_initial=5, seed=2, storage=storage)

    def raises(trial):
        raise ValueError(suggest_all(trial, plane))

    study.optimize(raises, n_trials=1, catch=ValueError)
    study.tell(ask(study), state=TrialState.FAIL)
    with optimizing(study):
        study.tell(ask(study), state=TrialState.FAIL)
        killed = ask(study)
    storage.set_trial_state_values(killed._trial_id, TrialState.FAIL)  # as `optuna.storages.fail_stale_trials`
    study.add_trial(create_trial(state=TrialState.FAIL, params=killed.params, distributions=killed.distributions))
    study.tell(ask(study), 1.0)
    assert outcomes(study, plane, ()).numbers == [0, 1, 2, 4, 5]
    assert len(excluded(study, plane)) == 6


def test_a_trial_is_converted_once(plane, monkeypatch):
    conversions = []
    convert = distributions.deactivate_inactive_hyperparameters
    monkeypatch.setattr(
        distributions,
        "deactivate_inactive_hyperparameters",
        lambda values, space: conversions.append(values) or convert(values, space),
    )
    study = create_study(plane, n_initial=5, seed=2)
    tried = []
    for value in (3.0, 5.0, 2.0):
        study.tell(ask(study), value)
        conversions.clear()
        seen = observations(study, plane).configs
        assert excluded(study, plane) == outcomes(study, plane, ()).configs == seen and not left_out(study, plane)
        assert len(conversions) <= 1
        tried.append(study.trials[-1].params)
        assert [to_params(config) for config in seen] == tried
    # Another value of the same number is another configuration, as in a study that was edited.
    edited = study.get_trials(deepcopy=False)[0]
    monkeypatch.setitem(edited.params, "x", 0.5)
    assert to_params(observations(study, plane).configs[0])["x"] == 0.5


def test_repeatable_configurations_are_not_excluded(plane):
    study = create_study(plane, n_initial=5, seed=2)
    for value in (3.0, 5.0):
        study.tell(ask(study), value)
    first, second = excluded(study, plane)
    assert excluded(study, plane, [first]) == [second]


@pytest.mark.filterwarnings("ignore:1 trial has no value of constraint 'c':UserWarning")
@pytest.mark.parametrize("failures", ["learn", "ignore"])
def test_configurations_that_failed_or_violate_a_constraint_are_known_to_be_infeasible(plane, failures):
    study = create_study(plane, n_initial=8, seed=2, failures=failures)
    for excess in (1.0, -1.0, None):
        trial = ask(study)
        if excess is not None:
            trial.set_constraint("c", excess)
        study.tell(trial, 1.0)
    interrupted = ask(study)
    interrupted.set_user_attr(FAILURE_KEY, "KeyboardInterrupt")
    pruned = ask(study)
    pruned.set_constraint("c", 0.5)
    for trial, state in ((interrupted, TrialState.FAIL), (pruned, TrialState.PRUNED), (ask(study), TrialState.FAIL)):
        study.tell(trial, state=state)
    study.tell(ask(study), 1e6)
    expected = [0, 4, 5, 6] if failures == "learn" else [0, 4]
    found = [to_params(config) for config in known_infeasible(study, plane, [6] if failures == "learn" else [])]
    assert found == [study.trials[number].params for number in expected]


def test_other_trials_have_a_configuration_once_it_is_suggested(plane):
    study = create_study(plane, n_initial=5, seed=2)
    study.tell(ask(study), 1.0)
    assert study.ask().relative_params == {}  # suggested, not yet read
    study._storage.create_new_trial(study._study_id)
    study.ask()
    assert with_configuration(study, study.trials[3]) == {0, 1}


def test_a_complete_trial_counts_with_what_it_has_evaluated(plane):
    study = create_study(plane, n_initial=5, seed=2)
    for state in (TrialState.FAIL, TrialState.COMPLETE):
        trial = study.ask()
        assert trial.relative_params == {}  # suggested, not yet read
        study.tell(trial, 1.0 if state == TrialState.COMPLETE else None, state)
    failed, complete = study.trials
    assert trial_configuration(complete, plane) is None and trial_configuration(failed, plane) is not None
