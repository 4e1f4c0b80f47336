"""Fits of a study start from the last one, also after an interruption."""

from __future__ import annotations

import json

import numpy as np
import pytest
from optuna.trial import TrialState

from slayr_py.study import ask, config_of, create_study, proposal, tell
from slayr_py.study.storage.attributes import START_KEY, SUGGESTION_KEY
from slayr_py.study.storage.fit_records import last_warm_start

pytestmark = pytest.mark.stan

OPTIONS = {"n_initial": 4, "seed": 3, "chains": 2, "warmup": 100, "draws": 40, "ess": 20}


@pytest.fixture(autouse=True)
def _never_too_much_to_chance(monkeypatch):
    monkeypatch.setattr(proposal, "LARGEST_ERROR", np.inf)


def bowl(config):
    return (config["x"] - 0.3) ** 2 + abs(config["y"])


def go_on(study, n):
    for _ in range(n):
        trial = ask(study)
        tell(study, trial, bowl(config_of(trial)))
    return study


def fits(study):
    return [trial.user_attrs[SUGGESTION_KEY].get("fit", {}).get("start") for trial in study.trials]


def test_fits_after_the_first_begin_warm_and_resumed_ones_too(plane, tmp_path):
    whole = go_on(create_study(plane, **OPTIONS), 7)
    assert fits(whole) == [None] * 4 + ["cold", "warm", "warm"]
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for n in (5, 1, 1):
        stopped = go_on(create_study(plane, storage=url, study_name="s", **OPTIONS), n)
    assert [t.params for t in stopped.trials] == [t.params for t in whole.trials]
    assert [t.user_attrs.get(START_KEY) for t in stopped.trials] == [t.user_attrs.get(START_KEY) for t in whole.trials]
    record = whole.trials[-1].user_attrs[SUGGESTION_KEY]
    assert record["fit"]["draws"] >= 80 and record["fit"]["abandoned"] == []
    assert 0 < record["acquisition"]["error"] < np.inf
    json.dumps(whole.trials[-1].user_attrs, allow_nan=False)


def test_cold_fits_if_one_prefers_them(plane):
    study = go_on(create_study(plane, warm_starts=False, **OPTIONS), 6)
    assert fits(study) == [None] * 4 + ["cold", "cold"]
    assert not any(START_KEY in trial.user_attrs for trial in study.trials)


def test_another_number_of_chains_begins_cold(plane):
    study = go_on(create_study(plane, **OPTIONS), 5)
    study.sampler = create_study(plane, **OPTIONS | {"chains": 3}).sampler
    assert fits(go_on(study, 2))[-2:] == ["cold", "warm"]


def test_a_start_that_means_nothing_is_passed_over(plane):
    study = go_on(create_study(plane, **OPTIONS), 4)
    trial = ask(study)
    trial.set_user_attr(START_KEY, {"points": "?"})
    tell(study, trial, 1.0)
    assert fits(go_on(study, 1))[-1] == "cold"


def test_a_failed_trial_leaves_its_start_all_the_same(plane):
    study = go_on(create_study(plane, **OPTIONS), 4)
    study.tell(ask(study), state=TrialState.FAIL)
    assert fits(go_on(study, 1))[-2:] == ["cold", "warm"]
    assert last_warm_start(study, study.trials[5], study.sampler.gp, 2) is not None
    assert last_warm_start(study, study.trials[4], study.sampler.gp, 2) is None


def test_more_draws_where_chance_decides(plane, monkeypatch):
    monkeypatch.setattr(proposal, "LARGEST_ERROR", 1e-6)
    study = go_on(create_study(plane, **OPTIONS), 5)
    record = study.trials[-1].user_attrs[SUGGESTION_KEY]["fit"]
    assert record["start"] == "warm" and record["draws"] >= 80
    assert "Monte Carlo error" in record["abandoned"][-1]["why"][0] and record["abandoned"][-1]["start"] == "cold"
    # Whoever fixes the number of draws gets that many.
    study = go_on(create_study(plane, **OPTIONS | {"ess": None}), 5)
    record = study.trials[-1].user_attrs[SUGGESTION_KEY]["fit"]
    assert record["start"] == "cold" and record["draws"] == 80


def test_a_point_estimate_has_neither_start_nor_error(plane):
    study = go_on(create_study(plane, method="map", **OPTIONS), 5)
    record = study.trials[-1].user_attrs[SUGGESTION_KEY]
    assert START_KEY not in study.trials[-1].user_attrs
    assert record["fit"]["start"] is None and record["acquisition"]["error"] is None


def test_of_many_observations_the_mode_is_fitted_with_a_warning(plane, monkeypatch):
    monkeypatch.setattr(proposal, "NUTS_LIMIT", 5)
    study = go_on(create_study(plane, **OPTIONS), 6)
    with pytest.warns(UserWarning, match="6 observations are more than the 5") as warned:
        go_on(study, 2)
    assert len(warned) == 1
    assert [t.user_attrs[SUGGESTION_KEY].get("method") for t in study.trials[4:]] == ["nuts", "nuts", "map", "map"]


@pytest.mark.parametrize("wrong", [1, "yes", None])
def test_warm_starts_are_wanted_or_not(plane, wrong):
    from slayr_py.errors import DataError

    with pytest.raises(DataError, match="warm_starts must be True or False"):
        create_study(plane, warm_starts=wrong)
