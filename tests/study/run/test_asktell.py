from __future__ import annotations

import optuna
import pytest

from slayr_py.errors import SpaceError
from slayr_py.space import Encoder
from slayr_py.study import ask, config_of, create_study, space_of, space_to_distributions, tell
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
    assert "kernel" in config_of(ask(study))
    with pytest.raises(SpaceError, match="no declared space"):
        space_of(optuna.create_study())
