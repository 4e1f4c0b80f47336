"""Open the storage of a study: an SQLite file, or any database that Optuna supports."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage

from slayr_py.errors import StorageError
from slayr_py.study.storage import workers
from slayr_py.study.storage.optuna_private import DatabaseStorage, damaged_journal
from slayr_py.study.storage.retrying import MISSING, is_moved, is_storage_error, storage_reason, was_deleted
from slayr_py.study.storage.workers import WorkerStorage
from slayr_py.threads import ignored_warnings

LOCK_SECONDS = 60
"""Time to wait for a lock on an SQLite file. SQLite's five seconds are too short for several workers."""

_CREATED_CONCURRENTLY = re.compile(r"already exists|alembic_version|version_info|duplicate key")
_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
_URL_FORMAT = (
    "a storage URL looks like sqlite:///study.db (a file) or postgresql+psycopg://user:password@host/name (a server)"
)
_REMEDIES = (
    (r"malformed|not a database|no such (table|column)", "restore a copy of it, or name another storage"),
    (MISSING, "the study was deleted while it ran: run it again to begin a new one"),
    (r"readonly|unable to open|[Pp]ermission", "make the file and its folder readable and writable, or name another"),
    (r"disk I/O|is full|No space|too large", "make room on its disk"),
    (r"locked", "another program has locked it: wait for that program or end it"),
    (r"no longer compatible", "or name another storage"),  # the reason says which of the two to upgrade
)


def open_storage(
    storage: str | Path | BaseStorage | None, *, must_exist: bool = False, worker: bool = False
) -> BaseStorage | None:
    """Open a storage by its URL.

    Parameters
    ----------
    storage : str, Path, optuna.storages.BaseStorage or None
        An SQLAlchemy URL, or the path of an SQLite file; as a string it ends in .db, .sqlite or .sqlite3. An open
        storage is returned as it is, and so is None (a study in memory).
    must_exist : bool
        Raise an error for an SQLite file that does not exist or has no tables of Optuna, instead of creating it.
    worker : bool
        Return a `WorkerStorage`: trials carry the name of this process and send heartbeats, and trials of
        killed processes are resumed. Only the loop of `minimize` supports this, ask and tell do not.

    Returns
    -------
    optuna.storages.BaseStorage or None

    Raises
    ------
    StorageError
        If the URL is malformed, its driver is missing, or the database does not open.
    """
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    url = sqlalchemy.URL.create("sqlite", database=str(storage)) if isinstance(storage, Path) else _parse(storage)
    shown = url.render_as_string(hide_password=True)
    engine: dict[str, Any] = {"pool_pre_ping": True}  # a connection may be stale, although the server is up
    if url.get_backend_name() == "sqlite":
        _check_file(url, shown, must_exist)
        # Each thread, including the heartbeat's, would get its own database in memory.
        worker = worker and not _is_in_memory(url)
        engine["connect_args"] = {"timeout": LOCK_SECONDS}
    attempts = 5
    while True:
        attempts -= 1
        try:
            with ignored_warnings(ExperimentalWarning):  # for the heartbeat
                opened = (WorkerStorage if worker else DatabaseStorage)(
                    url.render_as_string(hide_password=False),
                    engine_kwargs=engine,
                    heartbeat_interval=workers.HEARTBEAT_SECONDS if worker else None,
                    skip_table_creation=must_exist,
                )
            if url.get_backend_name() == "sqlite" and not must_exist:
                opened.create_missing_index()
            return opened
        except Exception as error:  # of SQLAlchemy, the driver, a missing driver or Optuna
            reason = storage_reason(error)
            # Two workers that create the tables of a new database at the same moment fail once. The driver has already
            # waited for a lock.
            if attempts > 0 and _CREATED_CONCURRENTLY.search(str(error)) and "locked" not in reason:
                time.sleep(0.2)
                continue
            raise StorageError(
                f"the storage {shown} does not open: {reason}; {_remedy(reason, _URL_FORMAT)}"
            ) from error


@contextmanager
def translate_storage_errors() -> Iterator[None]:
    """Turn failures of an open storage into `StorageError`."""
    try:
        yield
    except Exception as error:
        damaged = damaged_journal(error) is not None
        if not damaged and not is_storage_error(error):
            raise
        kept = ". Finished evaluations are kept: run the same study again to resume it"
        if damaged or was_deleted(error):
            kept = ""
        elif is_moved(error):
            kept = " and run the same study again"
        raise StorageError(f"the study's storage failed: {describe_storage_error(error)}{kept}") from error


def describe_storage_error(error: BaseException) -> str:
    """Return the reason for a failure of the storage and a remedy."""
    if (journal := damaged_journal(error)) is not None:
        return (
            f"line {_damaged_line(journal)} of the journal {journal} is damaged; restore a copy of it, or end a copy "
            "of it before this line, which keeps the trials until then, and open that"
        )
    reason = storage_reason(error)
    remedy = "put it back" if is_moved(error) else _remedy(reason, "make sure that it can be reached and written")
    return f"{reason}; {remedy}"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log lines about trials, which would break the progress bar; errors are still logged."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def study_names(storage: BaseStorage) -> list[str]:
    """Return the names of the studies in a storage."""
    return list(optuna.study.get_all_study_names(storage))


def url_without_password(text: str) -> str:
    """Return a storage URL without its password, for screens and logs."""
    return _parse(text).render_as_string(hide_password=True)


def _parse(text: str) -> sqlalchemy.URL:
    if not isinstance(text, str):
        raise StorageError(f"the storage is {text!r:.200}; {_URL_FORMAT}")
    if "://" not in text and text.endswith(_SQLITE_SUFFIXES):
        return sqlalchemy.URL.create("sqlite", database=text)
    try:
        return sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):  # a ValueError for a port that is not a number
        # The text may contain a password.
        raise StorageError(f"{_hide_password(text)} is not a storage URL; {_URL_FORMAT}") from None


def _hide_password(text: str) -> str:
    return repr(re.sub(r"//.*@", "//***@", text))


def _damaged_line(journal: Path) -> int:
    """Return the number of the first line of a journal that is no JSON, otherwise of its last line."""
    number = 1
    with suppress(ValueError), journal.open("rb") as lines:
        for number, line in enumerate(lines, 1):  # noqa: B007
            json.loads(line)
    return number


def _remedy(reason: str, otherwise: str) -> str:
    return next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, reason)), otherwise)


def _is_in_memory(url: sqlalchemy.URL) -> bool:
    return not url.database or url.database == ":memory:"


def _check_file(url: sqlalchemy.URL, shown: str, must_exist: bool) -> None:
    if _is_in_memory(url):
        return
    path = Path(url.database or "")
    try:
        # The tests below return False for any error since Python 3.14. SQLite reports a null character.
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            path.stat()
    except OSError as error:  # the name is too long, or the folder is closed
        raise StorageError(f"the storage {shown:.200} does not open: {error.strerror}; name another file") from error
    if not path.parent.is_dir():
        raise StorageError(f"the storage {shown} does not open: there is no folder {path.parent}; create it first")
    if path.is_dir():
        raise StorageError(f"the storage {shown} does not open: {path} is a folder; {_URL_FORMAT}")
    if must_exist and not path.is_file():
        raise StorageError(f"there is no study file {path}; {_URL_FORMAT}")
