"""Long attributes are stored in pieces that fit into the columns of MySQL, and read as if they were whole."""

from __future__ import annotations

import json

import pytest
from ConfigSpace import ConfigurationSpace
from optuna.storages import InMemoryStorage
from testing_studies import advance

from slayr_py.errors import StorageError
from slayr_py.study import create_study, replay
from slayr_py.study.storage import pieces
from slayr_py.study.storage.attributes import (
    FIT_KEY,
    KERNEL_KEY,
    SEARCH_KEY,
    START_KEY,
    SUGGESTION_KEY,
    is_history,
    suggestion_record,
)
from slayr_py.study.storage.fit_records import _fitted as fitted_trials
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.pieces import PIECE_KEY, in_pieces, store_in_study, store_in_trial, stored
from slayr_py.study.storage.search_records import store_search, stored_searches

OPTIONS = {"method": "map", "n_initial": 4, "seed": 3, "study_name": "s"}


class NarrowStorage(InMemoryStorage):
    """Refuse long attributes, as MySQL does."""

    def __init__(self, longest: int = 65_535) -> None:
        super().__init__()
        self.longest = longest

    def set_trial_user_attr(self, trial_id, key, value):
        assert len(json.dumps(value)) <= self.longest, key
        super().set_trial_user_attr(trial_id, key, value)

    def create_new_trial(self, study_id, template_trial=None):
        for key, value in ({} if template_trial is None else template_trial.user_attrs).items():
            assert len(json.dumps(value)) <= self.longest, key
        return super().create_new_trial(study_id, template_trial)

    def set_study_user_attr(self, study_id, key, value):
        assert len(json.dumps(value)) <= self.longest, key
        super().set_study_user_attr(study_id, key, value)


@pytest.mark.parametrize("text", ['"\\' * 50_000, "é" * 30_000, "x" * 200_000])
def test_a_long_attribute_of_any_text_fits_and_is_read_as_it_was(plane, text):
    study = create_study(plane, storage=NarrowStorage(), **OPTIONS)
    study.ask()
    value = {"draws": text, "n": [0.1, None]}
    store_in_trial(study, study.trials[0], "mine", value)
    store_in_study(study, "mine", value)
    assert stored(study.trials[0].user_attrs, "mine") == value == stored(study.user_attrs, "mine")


def test_short_attributes_are_stored_as_they_are(plane):
    study = create_study(plane, **OPTIONS)
    store_in_study(study, "short", {"a": 1})
    assert study.user_attrs["short"] == {"a": 1} == stored(study.user_attrs, "short")
    assert stored(study.user_attrs, "none") is None
    assert not any(key.startswith(PIECE_KEY) for key in study.user_attrs)


def test_a_large_space_has_a_record_in_pieces():
    space = ConfigurationSpace({"x": (0.0, 1.0), "level": [f"{number} {'x' * 700}" for number in range(100)]})
    storage = NarrowStorage()
    study = create_study(space, storage=storage, **OPTIONS)
    study.ask()
    assert any(key.startswith(PIECE_KEY) for key in study.user_attrs)
    study.set_user_attr("mine", {"format": 2, "sha256": "0", "pieces": 1})  # of the user
    check_integrity(study)
    create_study(space, storage=storage, **OPTIONS).ask()


@pytest.mark.stan
def test_a_study_whose_attributes_are_all_in_pieces_is_the_same_resumed_and_replayed(plane, monkeypatch):
    whole = advance(create_study(plane, **OPTIONS), 7)
    monkeypatch.setattr(pieces, "LONGEST", 200)
    storage = NarrowStorage(210)
    for n in (5, 1, 1):
        stopped = advance(create_study(plane, storage=storage, **OPTIONS), n)
    assert [trial.params for trial in stopped.trials] == [trial.params for trial in whole.trials]
    last = stopped.trials[-1]
    assert all("pieces" in last.user_attrs[key] for key in (FIT_KEY, START_KEY, SUGGESTION_KEY))
    assert stored(last.user_attrs, START_KEY) == whole.trials[-1].user_attrs[START_KEY]
    assert suggestion_record(last)["config"] == suggestion_record(whole.trials[-1])["config"]
    assert stored(last.user_attrs, FIT_KEY)["start"] == {"trial": 5}
    assert replay(stopped, 6)[0].identical
    check_integrity(stopped)
    piece = next(key for key in last.user_attrs if key.startswith(PIECE_KEY))
    for trial in stopped.get_trials(deepcopy=False):
        trial.user_attrs.pop(piece, None)
    key = next(key for key in (SUGGESTION_KEY, FIT_KEY, START_KEY) if last.user_attrs[key]["sha256"] in piece)
    with pytest.raises(StorageError, match=f"a piece of the attribute '{key}' is missing"):
        stored(stopped.get_trials(deepcopy=False)[-1].user_attrs, key)


def test_past_experiments_and_kernel_searches_are_stored_in_pieces(plane, monkeypatch):
    monkeypatch.setattr(pieces, "LONGEST", 40)
    past = [({"x": 0.1234567, "y": 10.1234567}, 1.0)]
    study = create_study(plane, storage=NarrowStorage(200), history=past, **OPTIONS)
    study.ask()
    assert "pieces" in study.trials[0].user_attrs[SUGGESTION_KEY] and is_history(study.trials[0])
    assert suggestion_record(study.trials[0])["config"] == past[0][0]
    record = {"due": 1, "expressions": ["SE[x]"], "scores": [[0.1] * 50]}
    store_search(study, study.trials[1], record)
    assert "pieces" in study.trials[1].user_attrs[SEARCH_KEY]
    assert [search.record for search in stored_searches(study)] == [record]
    check_integrity(study)


@pytest.mark.parametrize("key", [FIT_KEY, START_KEY, SEARCH_KEY, SUGGESTION_KEY])
@pytest.mark.parametrize("piece", ["missing", "altered"])
def test_a_missing_or_altered_piece_of_any_attribute_is_reported(plane, monkeypatch, key, piece):
    study = create_study(plane, storage=NarrowStorage(), **OPTIONS)
    study.ask()
    trials = study.get_trials()
    monkeypatch.setattr(study, "get_trials", lambda **_: trials)
    attributes = trials[0].user_attrs
    attributes.update(in_pieces(key, {"draws": "1" * 100_000}))
    last = next(name for name in reversed(attributes) if name.startswith(PIECE_KEY))
    if piece == "missing":
        del attributes[last]
    else:
        attributes[last] = attributes[last].replace("1", "2", 1)
    with pytest.raises(StorageError, match=f"a piece of the attribute '{key}' of trial 0 is missing or altered. Rest"):
        check_integrity(study)
    if key == FIT_KEY:
        with pytest.raises(StorageError, match="a piece of the attribute"):
            fitted_trials(trials[0], FIT_KEY)


@pytest.mark.parametrize("piece", ["missing", "altered"])
def test_a_missing_or_altered_piece_of_an_attribute_of_the_study_is_reported(plane, piece):
    study = create_study(plane, **OPTIONS)
    attributes = in_pieces(key := f"{KERNEL_KEY}:mine", {"name": "1" * 100_000})
    last = list(attributes)[-2]
    if piece == "missing":
        del attributes[last]
    else:
        attributes[last] = attributes[last].replace("1", "2", 1)
    for name, value in attributes.items():
        study.set_user_attr(name, value)
    with pytest.raises(StorageError, match=f"a piece of the attribute '{key}' of the study is missing or altered. Res"):
        check_integrity(study)


def test_the_reference_comes_after_its_pieces():
    names = list(in_pieces("mine", "x" * 100_000))
    assert names[-1] == "mine" and all(name.startswith(PIECE_KEY) for name in names[:-1]) and len(names) > 2
