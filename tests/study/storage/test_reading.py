"""Trials are read once for a step of a suggestion, and again for each decision about what others have done."""

from __future__ import annotations

import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState
from testing_spaces import branin

from slayr_py.study import StanGPSampler
from slayr_py.study.storage.reading import reading_once, trials_of


def test_a_block_has_the_trials_of_its_beginning_and_an_inner_one_reads_again():
    study = optuna.create_study()
    other = optuna.create_study()
    study.ask()
    with reading_once(study):
        study.tell(study.ask(), 1.0)
        other.ask()
        assert len(trials_of(study)) == 1 and len(trials_of(other)) == 1
        with reading_once(study):
            assert [trial.number for trial in trials_of(study, (TrialState.COMPLETE,))] == [1]
        assert len(trials_of(study)) == 1
    assert len(trials_of(study)) == 2


class Counting(InMemoryStorage):
    reads = 0

    def get_all_trials(self, *arguments, **options):
        self.reads += 1
        return super().get_all_trials(*arguments, **options)


@pytest.mark.stan
def test_a_suggestion_reads_the_trials_four_times():
    """For waiting trials, to fit, to search, and under the search lock."""
    storage = Counting()
    sampler = StanGPSampler(ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}), seed=1, n_initial=3)
    study = optuna.create_study(storage=storage, sampler=sampler)
    study.optimize(lambda trial: branin(trial_values(trial)), n_trials=5)
    storage.reads = 0
    trial_values(study.ask())
    assert storage.reads == 4


def trial_values(trial: optuna.Trial) -> dict[str, float]:
    return {"x1": trial.suggest_float("x1", -5, 10), "x2": trial.suggest_float("x2", 0, 15)}
