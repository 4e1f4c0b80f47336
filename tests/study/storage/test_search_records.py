from __future__ import annotations

import pytest
from optuna.trial import create_trial

from slayr_py.processes import this_process
from slayr_py.study import create_study
from slayr_py.study.storage.attributes import SEARCH_KEY, SEARCHING_KEY
from slayr_py.study.storage.search_records import claim_search, last_search


def with_searches(space, *dues):
    study = create_study(space, n_initial=9, seed=1)
    for due in dues:
        attributes = {} if due is None else {SEARCH_KEY: {"due": due, "expressions": ["RBF"]}}
        study.add_trial(create_trial(value=1.0, user_attrs=attributes))
    return study


@pytest.mark.parametrize(
    ("due", "before", "trial"),
    [(3, None, None), (4, None, 2), (7, None, 2), (8, None, 3), (99, None, 3), (99, 3, 3), (99, 2, 2), (99, 0, 0)],
)
def test_the_last_search_is_that_of_most_observations_then_of_the_last_trial(plane, due, before, trial):
    found = last_search(with_searches(plane, 4, None, 4, 8, 6), due if due != 7 else 5, before)
    assert (None if found is None else found.trial) == trial


def test_one_living_process_runs_a_search_until_it_is_stored(plane):
    study = with_searches(plane, 4)
    study.ask()
    study.ask()
    first, second = study.trials[1:]
    assert not claim_search(study, first, 4)
    assert claim_search(study, first, 8) and claim_search(study, first, 8)
    assert not claim_search(study, second, 8) and claim_search(study, second, 9)
    gone = f"{this_process()._replace(started=1)} x"
    study._storage.set_trial_user_attr(first._trial_id, SEARCHING_KEY, {"due": 8, "process": gone})
    assert claim_search(study, second, 8)
