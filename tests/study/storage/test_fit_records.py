"""Fits of a study start from the last one, also after an interruption."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState
from testing_studies import NUTS, advance, creased_bowl, starts_of_fits, suggestion

import slayr_py as sl
from slayr_py.errors import InferenceError, StorageError
from slayr_py.inference import FitOptions, GaussianProcess
from slayr_py.space import Encoder
from slayr_py.study import ask, config_of, create_study, posterior_of, replay, suggestion_table, tell
from slayr_py.study.model import loop_fits
from slayr_py.study.storage.attributes import FIT_KEY, KERNEL_KEY, START_KEY, SUGGESTION_KEY
from slayr_py.study.storage.fit_records import last_warm_start

pytestmark = [pytest.mark.stan, pytest.mark.usefixtures("any_monte_carlo_error")]


@pytest.mark.usefixtures("any_diagnostics")
def test_fits_after_the_first_start_warm_also_when_resumed(plane, tmp_path):
    whole = advance(create_study(plane, **NUTS), 7)
    assert starts_of_fits(whole) == [None] * 4 + ["cold", "warm", "warm"]
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for n in (5, 1, 1):
        stopped = advance(create_study(plane, storage=url, study_name="s", **NUTS), n)
    assert [t.params for t in stopped.trials] == [t.params for t in whole.trials]
    assert [t.user_attrs.get(START_KEY) for t in stopped.trials] == [t.user_attrs.get(START_KEY) for t in whole.trials]
    record = whole.trials[-1].user_attrs[SUGGESTION_KEY]
    assert record["fit"]["draws"] >= 80 and record["fit"]["abandoned"] == []
    assert 0 < record["acquisition"]["error"] < np.inf
    json.dumps(whole.trials[-1].user_attrs, allow_nan=False)


@pytest.mark.usefixtures("any_diagnostics")
def test_posteriors_are_carried_also_when_resumed_and_audited(plane, tmp_path, monkeypatch):
    monkeypatch.setattr(loop_fits, "AUDITS", frozenset({7}))
    options = NUTS | {"method": "carried"}
    whole = advance(create_study(plane, **options), 9)
    assert starts_of_fits(whole) == [None] * 4 + ["cold", "carried", "carried", "cold", "carried"]
    assert [*suggestion_table(whole)["since_cold"][4:]] == [0, 1, 2, 0, 1]
    (audit,) = whole.trials[7].user_attrs[SUGGESTION_KEY]["fit"]["abandoned"]
    difference = float(re.fullmatch(r"audit: \S+ differs by (\S+) posterior standard deviations", audit["why"][0])[1])
    assert difference < 1.6  # five times the Monte Carlo error with 20 effective draws each
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for n in (6, 1, 2):
        stopped = advance(create_study(plane, storage=url, study_name="s", **options), n)
    assert [t.params for t in stopped.trials] == [t.params for t in whole.trials]
    assert [t.user_attrs.get(START_KEY) for t in stopped.trials] == [t.user_attrs.get(START_KEY) for t in whole.trials]


def test_a_mode_is_sought_from_the_last_one_also_when_resumed(plane, tmp_path):
    options = {"method": "map", "n_initial": 10, "seed": 3, "cost": "seconds"}

    def advanced(study, n):
        for _ in range(n):
            trial = ask(study)
            tell(study, trial, creased_bowl(config_of(trial)), cost=1.0 + trial.number)
        return study

    whole = advanced(create_study(plane, **options), 13)
    for key in (FIT_KEY, f"{FIT_KEY}:cost seconds"):
        records = [trial.user_attrs[key] for trial in whole.trials[10:]]
        # Random starts join the last mode when there are a tenth more observations.
        assert [len(record["calls"]) for record in records] == [5, 5, 1]
        assert [record["arguments"]["searched"] for record in records] == [10, 11, 11]
        assert [record["start"] for record in records] == [None, {"trial": 10}, {"trial": 11}]
    assert all(each.identical for number in (11, 12) for each in replay(whole, number))
    url = f"sqlite:///{tmp_path / 'study.db'}"
    for n in (11, 1, 1):
        stopped = advanced(create_study(plane, storage=url, study_name="s", **options), n)
    assert [t.params for t in stopped.trials] == [t.params for t in whole.trials]


def test_warm_starts_can_be_turned_off(plane):
    study = advance(create_study(plane, warm_starts=False, **NUTS), 6)
    assert starts_of_fits(study) == [None] * 4 + ["cold", "cold"]
    assert not any(START_KEY in trial.user_attrs for trial in study.trials)


def test_another_number_of_chains_starts_cold(plane):
    study = advance(create_study(plane, **NUTS), 5)
    study.sampler = create_study(plane, **NUTS | {"chains": 3}).sampler
    fits = [trial.user_attrs[SUGGESTION_KEY]["fit"] for trial in advance(study, 2).trials[-2:]]
    # The first attempt of each: whether a warm one passes its diagnostics depends on the machine's last bits.
    assert [[*fit["abandoned"], fit][0]["start"] for fit in fits] == ["cold", "warm"]


def test_an_invalid_start_is_ignored(plane):
    study = advance(create_study(plane, **NUTS), 4)
    trial = ask(study)
    trial.set_user_attr(START_KEY, {"points": "?"})
    tell(study, trial, 1.0)
    assert starts_of_fits(advance(study, 1))[-1] == "cold"


def test_a_failed_trial_provides_a_warm_start(plane):
    study = advance(create_study(plane, **NUTS, failures="ignore"), 4)
    study.tell(ask(study), state=TrialState.FAIL)
    # The next trial has the same data, so that it shares the fit.
    fits = [suggestion(trial)["fit"] for trial in advance(study, 2).trials[4:]]
    assert [[*fit["abandoned"], fit][0]["start"] for fit in fits] == ["cold", "cold", "warm"]
    gp = study.sampler.strategy.surrogate.gp
    options = FitOptions(chains=2)
    assert last_warm_start(study, 6, gp, options, range(6)) is not None
    assert last_warm_start(study, 5, gp, options, range(4)) is None
    assert last_warm_start(study, 4, gp, options, range(4)) is None


def test_an_audit_that_fails_its_check_keeps_the_carried_posterior(plane, monkeypatch):
    monkeypatch.setattr(loop_fits, "AUDITS", frozenset({6}))
    fit = GaussianProcess.fit

    def audited(self, configs, y, **options):
        if len(y) == 6 and options["start"] is None:
            raise InferenceError("Stan failed")
        return fit(self, configs, y, **options)

    monkeypatch.setattr(GaussianProcess, "fit", audited)
    study = advance(create_study(plane, **NUTS | {"method": "carried"}), 7)
    record = study.trials[6].user_attrs[SUGGESTION_KEY]
    assert record["method"] == "carried"
    assert record["fit"]["abandoned"][-1]["why"] == ["audit: Stan failed"]
    assert record["fit"]["abandoned"][-1]["then"] == "back to the carried posterior"


@pytest.fixture
def learned():
    """A kernel learned from 40 related values: its options are long."""
    space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
    configs = Encoder(space).sobol(40, 1)
    values = [creased_bowl(config) for config in configs]
    return sl.svm.pretrain(space, configs, values, machine="ridge", C=10.0, lengthscale=0.5).kernel()


def test_a_long_kernel_is_stored_once_and_a_damaged_one_is_named(plane, learned, tmp_path):
    options = {"kernel": learned, "n_initial": 4, "seed": 3, "method": "map"}
    where = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "study_name": "s"}
    whole = advance(create_study(plane, **options), 6)
    for n in (5, 1):
        stopped = advance(create_study(plane, **where, **options), n)
    assert [t.params for t in stopped.trials] == [t.params for t in whole.trials]
    study = optuna.load_study(**where)
    (key,) = [name for name in study.user_attrs if name.startswith(f"{KERNEL_KEY}:")]
    assert study.user_attrs[key] == {"name": "pretrained", "options": learned.options()}
    for trial in study.trials[4:]:
        assert trial.user_attrs[FIT_KEY]["kernel"] == {"name": "pretrained", "sha256": key.split(":")[-1]}
        assert len(json.dumps(trial.user_attrs[FIT_KEY])) < 6000 < len(json.dumps(learned.options())) * 3
        assert replay(study, trial.number)[0].identical
    posterior = posterior_of(study, 5)
    assert posterior.kernel.options() == learned.options() and len(posterior.train) == 5
    notes = study.trials[5].user_attrs[SUGGESTION_KEY]["diagnostics"]["kernel_notes"]
    assert notes == [f"share of the base kernel {posterior.draws['share'][0, -1]:.2f}"]

    changed = study.user_attrs[key]
    changed["options"]["alpha"][0] += 1e-12
    for damaged in (changed, None, "deleted"):
        study.set_user_attr(key, damaged)
        if damaged == "deleted":
            with closing(sqlite3.connect(tmp_path / "study.db")) as database:
                database.execute("DELETE FROM study_user_attributes WHERE key = ?", (key,))
                database.commit()
        with pytest.raises(StorageError, match="is damaged: .* trial 5, ValueError: the study has no attribute"):
            posterior_of(study, 5)
