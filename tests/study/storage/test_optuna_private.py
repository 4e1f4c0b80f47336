"""Optuna's private names exist in the installed release, and no other module uses one."""

from __future__ import annotations

import ast
from pathlib import Path

import optuna
import pytest
import sqlalchemy
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from slayr_py.study import create_study
from slayr_py.study.storage import optuna_private
from slayr_py.study.storage.optuna_private import (
    DatabaseStorage,
    fails_silent_trials,
    is_in_loop,
    is_stopped,
    journal_of,
    may_stop,
    optimizing,
    storage_of,
    stored_trial,
)

USED = {
    *("_storage", "_study_id", "_trial_id", "_backend", "_file_path", "_contains", "_fixed_params", "_stop_flag"),
    "_thread_local",
    *("_create_new_trial", "_get_stale_trial_ids", "_get_trials", "_set_trial_param"),
}
TABLES = {"trial_user_attributes", "study_system_attributes"}
OTHERS = {
    *("_cached_frozen_trial", "_directions", "_filter_study", "_get_latest_trial"),
    *("_is_multi_objective", "_raise_error_if_multi_objective", "_relative_params"),
    *("_thread_lock", "_GroupDecomposedSearchSpace", "_CachedStorage"),
}
"""Private names that would be convenient, too."""

PACKAGE = Path(optuna_private.__file__).parents[2]


def private_names(path: Path) -> set[str]:
    """Return the private names of Optuna that a file reads, defines, imports or spells as a string."""
    found = set()
    text = path.read_text(encoding="utf-8")
    if "optuna" not in text and not any(name in text for name in USED | TABLES | OTHERS):
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            found.add(node.attr)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name if node.name in USED else "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("optuna"):
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            found |= {part for part in parts if part.startswith("_")}
            if any(part.startswith("_") for part in parts):
                return {"import of a private module or name"}
    return found & (USED | TABLES | OTHERS)


def test_one_module_uses_optunas_private_names():
    using = {path: names for path in PACKAGE.rglob("*.py") if (names := private_names(path))}
    assert using == {Path(optuna_private.__file__): USED | TABLES}


def test_the_names_exist(tmp_path):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'study.db'}")
    trial = study.ask()
    backend = JournalFileBackend(str(tmp_path / "journal"))
    for thing, name in (
        (study, "_storage"),
        (study, "_study_id"),
        (trial, "_trial_id"),
        (study.trials[0], "_trial_id"),
        (study._storage, "_backend"),
        (JournalStorage(backend), "_backend"),
        (backend, "_file_path"),
        (optuna.distributions.BaseDistribution, "_contains"),
        (RDBStorage, "_create_new_trial"),
        (RDBStorage, "_get_stale_trial_ids"),
        *((RDBStorage, name) for name in optuna_private._REPEATABLE),
    ):
        assert hasattr(thing, name)
    columns = {"trial_user_attributes": "trial_id", "study_system_attributes": "study_id"}
    tables = optuna.storages._rdb.models.BaseModel.metadata.tables
    assert {"trial_id", "state", "datetime_start"} <= set(tables["trials"].columns.keys())
    assert all({column, "key", "value_json"} <= set(tables[name].columns.keys()) for name, column in columns.items())


def test_storages_are_found_behind_the_cache(tmp_path):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert isinstance(storage_of(study), RDBStorage) and journal_of(storage_of(study)) is None
    study = optuna.create_study(storage=JournalStorage(JournalFileBackend(str(tmp_path / "journal"))))
    assert isinstance(storage_of(study), JournalStorage) and journal_of(storage_of(study)) == tmp_path / "journal"
    study = optuna.create_study()
    assert isinstance(storage_of(study), InMemoryStorage) and journal_of(storage_of(study)) is None


def test_a_trial_is_read_with_the_attributes_set_since(plane):
    study = create_study(plane, n_initial=1)
    before = study.trials
    study.ask()
    frozen = study.trials[0]
    optuna_private.set_trial_attribute(study, frozen, "mine", 3)
    assert before == [] and stored_trial(study, frozen).user_attrs["mine"] == 3


@pytest.mark.parametrize("kind", ["sqlite", "journal", "memory"])
def test_attributes_are_added_in_one_statement_and_never_replaced(kind, tmp_path):
    storage = {
        "sqlite": f"sqlite:///{tmp_path / 'study.db'}",
        "journal": JournalStorage(JournalFileBackend(str(tmp_path / "journal"))),
        "memory": None,
    }[kind]
    study = optuna.create_study(storage=storage)
    study.ask().set_user_attr("a", 1.0)
    frozen = study.trials[0]
    written = []
    if kind == "sqlite":

        @sqlalchemy.event.listens_for(storage_of(study).engine, "before_cursor_execute")
        def _(connection, cursor, statement, *rest):
            written.extend([statement] * statement.startswith("INSERT"))

    for _ in range(2):
        optuna_private.add_trial_attributes(study, frozen, {"a": 2.0, "b": 3, "c": 4.0})
    assert study.trials[0].user_attrs == {"a": 1.0, "b": 3, "c": 4.0}
    assert len(written) == (kind == "sqlite")


def test_attributes_that_the_database_refuses_are_left_out(tmp_path, monkeypatch):
    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'study.db'}")
    study.ask()
    monkeypatch.setattr(optuna_private, "TRIAL_ATTRIBUTES", sqlalchemy.table("no_such_table"))
    optuna_private.add_trial_attributes(study, study.trials[0], {"a": 1.0})
    assert study.trials[0].user_attrs == {}


def test_enqueued_values_are_those_of_a_trial_and_of_its_copies():
    study = optuna.create_study()
    study.enqueue_trial({"x": 1.0})
    trial = study.ask()
    assert optuna_private.enqueued_values(trial) == {"x": 1.0} == optuna_private.enqueued_values(study.trials[0])
    assert optuna_private.enqueued_values(study.ask()) == {} == optuna_private.enqueued_values(study.trials[1])


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_values_of_the_outer_of_two_partial_fixed_samplers_count():
    fixed = optuna.samplers.PartialFixedSampler
    inner = fixed({"x": 1.0, "y": 1.0}, optuna.samplers.RandomSampler(seed=1))
    study = optuna.create_study(sampler=fixed({"x": 2.0}, inner))
    assert optuna_private.partly_fixed(study) == {"x": 2.0, "y": 1.0}
    assert study.ask().suggest_float("x", 0, 9) == 2.0


def test_a_stop_ends_one_loop_and_is_allowed_only_in_it():
    study = optuna.create_study()
    with optimizing(study):
        with may_stop(study):
            study.stop()
        assert is_in_loop(study) and is_stopped(study)
    assert not is_in_loop(study)
    with optimizing(study):
        assert not is_stopped(study)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("kind", "seconds", "fails"), [(RDBStorage, 60, True), (RDBStorage, None, False), (DatabaseStorage, 60, False)]
)
def test_optuna_fails_silent_trials_of_its_own_storage_with_heartbeats_in_a_loop(tmp_path, kind, seconds, fails):
    study = optuna.create_study(storage=kind(f"sqlite:///{tmp_path / 'study.db'}", heartbeat_interval=seconds))
    assert not fails_silent_trials(study)
    with may_stop(study):
        assert fails_silent_trials(study) == fails


def test_the_state_of_a_finished_trial_is_set_once(tmp_path):
    study = optuna.create_study(storage=DatabaseStorage(f"sqlite:///{tmp_path / 'study.db'}"))
    trial = study.ask()
    study.tell(trial, 1.0)
    with pytest.raises(optuna.exceptions.UpdateFinishedTrialError):
        storage_of(study).set_trial_state_values(trial._trial_id, optuna.trial.TrialState.COMPLETE, [2.0])
