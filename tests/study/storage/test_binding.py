from __future__ import annotations

import optuna
import pytest
from ConfigSpace import ConfigurationSpace

from slayr_py.errors import DataError, SpaceError
from slayr_py.space import space_from_json
from slayr_py.study import StanGPSampler, ask, config_of, create_study
from slayr_py.study.storage.attributes import STUDY_KEY


def test_a_study_records_its_space_and_seed_and_refuses_others(plane, mixed):
    study = create_study(plane, n_initial=3)
    record = study.user_attrs[STUDY_KEY]
    assert space_from_json(record["space"]) == plane and record["acquisition"] == "ei" and record["noisy"] is False
    assert record["kernel"] == {
        "name": "matern",
        "options": {"p": 2},
        "description": "Matérn kernel (p = 2)",
        "chosen": "auto",
        "reason": "all parameters are numbers",
        "stan_files": {},
    }
    again = optuna.create_study(
        storage=study._storage, study_name=study.study_name, load_if_exists=True, sampler=StanGPSampler(plane)
    )
    assert again.sampler.strategy.bind(again) == record["seed"]
    again.sampler = StanGPSampler(plane, noisy=True)
    assert again.sampler.strategy.bind(again) == record["seed"]
    assert study.user_attrs[STUDY_KEY] == record | {"noisy": True}
    with pytest.raises(DataError, match=f"was started with seed {record['seed']}, not 4"):
        StanGPSampler(plane, seed=4).strategy.bind(study)
    with pytest.raises(SpaceError, match="also has x, y"):
        StanGPSampler(mixed).strategy.bind(study)
    remedy = rf"another study name and .* as history=, from sl\.study\.load\(storage, '{study.study_name}'\)\.trials"
    words = f"parameter 'x' differs in upper.*; .*{remedy}"
    with pytest.raises(SpaceError, match=words):
        StanGPSampler(ConfigurationSpace({"x": (-5.0, 11.0), "y": (0.0, 15.0)})).strategy.bind(study)


def test_new_studies_without_a_seed_differ(plane):
    first, second = (config_of(ask(create_study(plane))) for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    "distribution",
    [
        optuna.distributions.IntDistribution(-5, 10),
        optuna.distributions.FloatDistribution(0.1, 10.0, log=True),
        optuna.distributions.CategoricalDistribution([1, 2]),
    ],
)
def test_trials_of_another_sampler_with_another_kind_of_parameter_are_refused_before_a_trial_starts(
    plane, distribution, tmp_path
):
    storage = f"sqlite:///{tmp_path}/s.db"
    study = optuna.create_study(storage=storage, study_name="s")
    study.add_trial(optuna.trial.create_trial(value=0.0, params={"x": 1}, distributions={"x": distribution}))
    with pytest.raises(SpaceError, match=r"'x' as .* declared as FloatDistribution.*history=study\.trials_dataframe"):
        create_study(plane, storage=storage, study_name="s")
    assert len(study.trials) == 1 and STUDY_KEY not in study.user_attrs


def test_trials_of_another_sampler_with_other_bounds_are_accepted(plane):
    study = optuna.create_study(sampler=StanGPSampler(plane, seed=1))
    wide = optuna.distributions.FloatDistribution(-50.0, 100.0)
    study.add_trial(optuna.trial.create_trial(value=0.0, params={"x": 1.0}, distributions={"x": wide}))
    assert study.sampler.strategy.bind(study) == 1
