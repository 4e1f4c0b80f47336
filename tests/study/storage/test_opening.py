from __future__ import annotations

import sqlite3
from contextlib import closing

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from slayr_py.errors import StorageError
from slayr_py.study import create_study, load
from slayr_py.study.storage.opening import open_storage, quiet_optuna, study_names
from slayr_py.study.storage.workers import WorkerStorage


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("study", "'study' is not a storage URL; a storage URL looks like sqlite:///study.db"),
        ("nosuchdb://x", "nosuchdb://x does not open: .*; a storage URL looks like sqlite:///study.db"),
        ("sqlite:////nowhere/at/all/study.db", "no folder /nowhere/at/all; create it first"),
        ("postgresql://me:secret@localhost/x", r"me:\*\*\*@localhost/x does not open"),
        ("postgresql://me:secret@localhost:port/x", r"'postgresql://\*\*\*@localhost:port/x' is not a storage URL"),
        ("sqlite:///a\0b.db", "does not open: .*null.*; a storage URL looks like sqlite:///study.db"),
    ],
)
def test_error_for_a_bad_url_has_a_remedy(url, words):
    with pytest.raises(StorageError, match=words) as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)


def test_a_folder_and_a_file_that_is_no_database_are_refused(tmp_path):
    with pytest.raises(StorageError, match="is a folder"):
        open_storage(f"sqlite:///{tmp_path}")
    with pytest.raises(StorageError, match="does not open: File name too long; name another file"):
        open_storage(f"sqlite:///{'n' * 300}")
    (tmp_path / "letter.db").write_text("Dear Sir, this is no database, but a letter. " * 40)
    with pytest.raises(StorageError, match="not a database"):
        open_storage(f"sqlite:///{tmp_path / 'letter.db'}")


def test_must_exist_creates_no_file(tmp_path):
    path = tmp_path / "study.db"
    with pytest.raises(StorageError, match="no study file"):
        open_storage(f"sqlite:///{path}", must_exist=True)
    assert not path.exists()
    path.touch()
    with pytest.raises(StorageError):
        study_names(open_storage(f"sqlite:///{path}", must_exist=True))
    assert path.stat().st_size == 0


def test_an_index_that_a_killed_process_left_out_is_created(tmp_path):
    """Without the index of names, a study that exists would be created again, and neither could be loaded."""
    path = tmp_path / "study.db"
    optuna.create_study(study_name="one", storage=open_storage(path))
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP INDEX ix_studies_study_name")
    with pytest.raises(optuna.exceptions.DuplicatedStudyError):
        optuna.create_study(study_name="one", storage=open_storage(path))


def test_open_storages_and_none_are_returned_unchanged(tmp_path):
    storage = optuna.storages.InMemoryStorage()
    assert open_storage(storage) is storage and open_storage(None) is None
    opened = open_storage(f"sqlite:///{tmp_path / 'study.db'}")
    optuna.create_study(storage=opened, study_name="a")
    assert study_names(open_storage(f"sqlite:///{tmp_path / 'study.db'}", must_exist=True)) == ["a"]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_damaged_line_of_a_journal_is_named(tmp_path, plane):
    path = tmp_path / "journal.log"
    storage = JournalStorage(JournalFileBackend(str(path)))
    create_study(plane, storage=storage, study_name="s", seed=1)
    lines = path.read_text().splitlines()
    with path.open("a") as file:
        file.write('{"op_code": 4, "work\n{}\n')
    words = f"line {len(lines) + 1} of the journal {path} is damaged; restore a copy of it, or end a copy of it before"
    for read in (load, lambda storage: create_study(plane, storage=storage, study_name="s")):
        with pytest.raises(StorageError, match=words) as caught:
            read(storage)
        assert "run the same study again" not in str(caught.value)
    path.write_text("\n".join([*lines, ""]))
    assert load(JournalStorage(JournalFileBackend(str(path)))).study.study_name == "s"


def test_a_database_in_memory_has_no_workers(tmp_path):
    assert isinstance(open_storage(tmp_path / "study.db", worker=True), WorkerStorage)
    for url in ("sqlite://", "sqlite:///:memory:"):
        assert not isinstance(open_storage(url, worker=True), WorkerStorage)


@pytest.mark.parametrize("verbosity", [optuna.logging.INFO, optuna.logging.CRITICAL])
def test_the_log_of_optuna_is_never_made_louder(verbosity):
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(verbosity)
    try:
        with quiet_optuna():
            assert optuna.logging.get_verbosity() == max(verbosity, optuna.logging.ERROR)
        assert optuna.logging.get_verbosity() == verbosity
    finally:
        optuna.logging.set_verbosity(before)
