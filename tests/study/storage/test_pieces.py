"""Long attributes are stored in pieces that fit into the columns of MySQL, and read as if they were whole."""

from __future__ import annotations

import json

import pytest
from ConfigSpace import ConfigurationSpace
from optuna.storages import InMemoryStorage
from testing_studies import advance

from slayr_py.study import create_study, replay
from slayr_py.study.storage import pieces
from slayr_py.study.storage.attributes import FIT_KEY, START_KEY, SUGGESTION_KEY, suggestion_record
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.pieces import PIECE_KEY, store_in_study, store_in_trial, stored

OPTIONS = {"method": "map", "n_initial": 4, "seed": 3, "study_name": "s"}


class NarrowStorage(InMemoryStorage):
    """Refuse long attributes, as MySQL does."""

    def __init__(self, longest: int = 65_535) -> None:
        super().__init__()
        self.longest = longest

    def set_trial_user_attr(self, trial_id, key, value):
        assert len(json.dumps(value)) <= self.longest, key
        super().set_trial_user_attr(trial_id, key, value)

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


def test_short_attributes_are_stored_as_they_are_and_long_ones_of_earlier_versions_are_read(plane):
    study = create_study(plane, **OPTIONS)
    store_in_study(study, "short", {"a": 1})
    study.set_user_attr("long", "x" * 100_000)
    assert study.user_attrs["short"] == {"a": 1} == stored(study.user_attrs, "short")
    assert stored(study.user_attrs, "long") == "x" * 100_000 and stored(study.user_attrs, "none") is None
    assert not any(key.startswith(PIECE_KEY) for key in study.user_attrs)


def test_a_large_space_has_a_record_in_pieces():
    space = ConfigurationSpace({"x": (0.0, 1.0), "level": [f"{number} {'x' * 700}" for number in range(100)]})
    storage = NarrowStorage()
    study = create_study(space, storage=storage, **OPTIONS)
    study.ask()
    assert any(key.startswith(PIECE_KEY) for key in study.user_attrs)
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
    with pytest.raises(ValueError, match=f"a piece of the attribute '{key}' is missing"):
        stored(stopped.get_trials(deepcopy=False)[-1].user_attrs, key)
