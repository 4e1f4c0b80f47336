"""Opening the storage of a study: the embedded SQLite default, or any database Optuna can use."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, RDBStorage

from slayr_py.errors import SlayrError, StorageError
from slayr_py.study.storage import workers
from slayr_py.study.storage.workers import WorkerStorage

LOCK_SECONDS = 60
"""Several workers share one SQLite file: each waits so long for another's write, rather than SQLite's five seconds."""

_MET_ANOTHER_WORKER = re.compile(r"already exists|alembic_version|version_info|duplicate key")
_LOOKS_LIKE = (
    "a storage URL looks like sqlite:///study.db (a file) or postgresql+psycopg://user:password@host/name (a server)"
)
_REMEDIES = (
    (r"malformed|not a database|no such (table|column)", "restore a copy of it, or name another storage"),
    (r"readonly|unable to open|[Pp]ermission", "make the file and its folder readable and writable, or name another"),
    (r"disk I/O|is full|No space|too large", "make room on its disk"),
    (r"locked", "another program holds it: let that one finish or end it"),
    (r"no longer compatible", "or name another storage"),  # Optuna has said which of the two is to be upgraded
)


def open_storage(
    storage: str | BaseStorage | None, *, must_exist: bool = False, worker: bool = False
) -> BaseStorage | None:
    """Open a storage by its URL.

    Parameters
    ----------
    storage : str, optuna.storages.BaseStorage or None
        A URL as SQLAlchemy knows them; an opened storage and None (the study lives in memory) pass through.
    must_exist : bool
        Refuse, rather than create, an SQLite file that is not there or has no tables of Optuna's.
    worker : bool
        Trials carry the name of this process and beat while they run, and those that killed processes left are taken up
        again: for Optuna's own loop, which ask and tell are not.

    Returns
    -------
    optuna.storages.BaseStorage or None
        None for None.

    Raises
    ------
    StorageError
        The URL is no URL, its driver is missing, or the database does not open.
    """
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    url = _parse(storage)
    shown = url.render_as_string(hide_password=True)
    engine: dict[str, Any] = {}
    if url.get_backend_name() == "sqlite":
        _check_file(url, shown, must_exist)
        # Every thread, so the heart too, would have a database of its own.
        worker = worker and not _is_in_memory(url)
        engine["connect_args"] = {"timeout": LOCK_SECONDS}
    attempts = 5
    while True:
        attempts -= 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)  # the heartbeat, chosen on purpose
                return (WorkerStorage if worker else RDBStorage)(
                    url.render_as_string(hide_password=False),
                    engine_kwargs=engine,
                    heartbeat_interval=workers.HEARTBEAT_SECONDS if worker else None,
                    skip_table_creation=must_exist,
                )
        except Exception as error:  # SQLAlchemy, the driver, a missing driver, Optuna: any of them
            reason = _reason(error)
            # Two workers that create the tables of a new database at the same moment trip over each other once. For a
            # lock the driver has waited already.
            if attempts > 0 and _MET_ANOTHER_WORKER.search(str(error)) and "locked" not in reason:
                time.sleep(0.2)
                continue
            raise StorageError(
                f"the storage {shown} does not open: {reason}; {_remedy(reason, _LOOKS_LIKE)}"
            ) from error


@contextmanager
def storage_failures() -> Iterator[None]:
    """Turn failures of an open storage into `StorageError`."""
    try:
        yield
    except Exception as error:
        if (cause := failure_of_storage(error)) is None:
            raise
        raise StorageError(
            f"the study's storage failed: {storage_reason(cause)}. What was evaluated before is kept: run the same "
            "study again to go on"
        ) from cause


def failure_of_storage(error: Exception) -> Exception | None:
    """Give what the storage raised, if it is to blame for an error that Optuna let through, or None."""
    # Optuna asserts that a trial has ended, even when the storage has just refused its end.
    cause = error.__context__ if isinstance(error, AssertionError) else error
    if isinstance(cause, StorageInternalError | OSError) and not isinstance(cause, SlayrError):
        return cause
    return None


def storage_reason(error: Exception) -> str:
    """Say why a storage failed, and what to do about it."""
    reason = _reason(error)
    return f"{reason}; {_remedy(reason, 'make sure that it can be reached and written')}"


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna's own log lines, one or more a trial, out of the progress bar; its errors still show."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def study_names(storage: BaseStorage) -> list[str]:
    """Give the names of the studies in a storage."""
    return list(optuna.study.get_all_study_names(storage))


def url_without_password(text: str) -> str:
    """Write a storage URL as it may be shown on a screen or kept in a log."""
    return _parse(text).render_as_string(hide_password=True)


def _parse(text: str) -> sqlalchemy.URL:
    try:
        return sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):  # a port that is no number is a ValueError
        # Not the text itself where it may hold a password.
        raise StorageError(f"{_unparsed(text)} is not a storage URL; {_LOOKS_LIKE}") from None


def _unparsed(text: str) -> str:
    return repr(re.sub(r"//.*@", "//***@", text))


def _reason(error: Exception) -> str:
    """First line of what the driver itself said; SQLAlchemy and Optuna go on about statements and web pages."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ is not None else error
    lines = str(getattr(cause, "orig", None) or cause).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(cause).__name__


def _remedy(reason: str, otherwise: str) -> str:
    return next((remedy for pattern, remedy in _REMEDIES if re.search(pattern, reason)), otherwise)


def _is_in_memory(url: sqlalchemy.URL) -> bool:
    return not url.database or url.database == ":memory:"


def _check_file(url: sqlalchemy.URL, shown: str, must_exist: bool) -> None:
    if _is_in_memory(url):
        return
    path = Path(url.database or "")
    try:
        if not path.parent.is_dir():
            raise StorageError(f"the storage {shown} does not open: there is no folder {path.parent}; create it first")
        if path.is_dir():
            raise StorageError(f"the storage {shown} does not open: {path} is a folder; {_LOOKS_LIKE}")
        if must_exist and not path.is_file():
            raise StorageError(f"there is no study file {path}; {_LOOKS_LIKE}")
    except StorageError:
        raise
    except (OSError, ValueError) as error:  # a name that no file can have: too long, or with a null character
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"the storage {shown:.200} does not open: {reason}; name another file") from error
