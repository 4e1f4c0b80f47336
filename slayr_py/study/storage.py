"""Opening the storage of a study: the embedded SQLite default, or any database Optuna can use."""

from __future__ import annotations

import re
import time
import warnings
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, RDBStorage

from slayr_py.errors import StorageError

HEARTBEAT_SECONDS = 60
"""A worker that has been silent for twice this long is taken for dead and its running trial fails, so a killed process
neither blocks the budget nor stays in the model as pending for ever."""

_MET_ANOTHER_WORKER = re.compile(r"already exists|alembic_version|version_info|duplicate key")
_LOOKS_LIKE = "a storage URL looks like sqlite:///study.db (a file) or postgresql://user:password@host/name (a server)"


def open_storage(
    storage: str | BaseStorage | None, *, must_exist: bool = False, heartbeat: bool = False
) -> BaseStorage | None:
    """Open a storage by its URL.

    Parameters
    ----------
    storage : str, optuna.storages.BaseStorage or None
        A URL as SQLAlchemy knows them; an opened storage and None (the study lives in memory) pass through.
    must_exist : bool
        Refuse, rather than create, an SQLite file that is not there or has no tables of Optuna's.
    heartbeat : bool
        Let trials beat while they run, which Optuna's own loop does and ask and tell cannot.

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
        # Several workers share one file: wait for another's write rather than fail after SQLite's five seconds.
        engine["connect_args"] = {"timeout": 60}
    attempts = 5
    while True:
        attempts -= 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)  # the heartbeat, chosen on purpose
                return RDBStorage(
                    url.render_as_string(hide_password=False),
                    engine_kwargs=engine,
                    heartbeat_interval=HEARTBEAT_SECONDS if heartbeat else None,
                    skip_table_creation=must_exist,
                )
        except Exception as error:  # SQLAlchemy, the driver, a missing driver, Optuna: any of them
            # Two workers that create the tables of a new database at the same moment trip over each other once.
            if attempts > 0 and _MET_ANOTHER_WORKER.search(str(error)):
                time.sleep(0.2)
                continue
            # The driver's own message comes first; SQLAlchemy's goes on about statements and web pages.
            reason = str(getattr(error, "orig", None) or error).strip().splitlines()
            raise StorageError(
                f"the storage {shown} does not open: {reason[0] if reason else type(error).__name__}; {_LOOKS_LIKE}"
            ) from error


def storage_failure(error: Exception) -> StorageError:
    """Turn a failure of an open storage into the suite's own error."""
    cause = error.__cause__
    return StorageError(
        f"the study's storage failed: {str(getattr(cause, 'orig', None) or cause or error).strip()}; "
        "what was evaluated before is kept: run the same study again to go on"
    )


def study_names(storage: BaseStorage) -> list[str]:
    """Give the names of the studies in a storage."""
    return list(optuna.study.get_all_study_names(storage))


def _parse(text: str) -> sqlalchemy.URL:
    try:
        return sqlalchemy.make_url(text)
    except sqlalchemy.exc.ArgumentError:
        raise StorageError(f"{text!r} is not a storage URL; {_LOOKS_LIKE}") from None


def _check_file(url: sqlalchemy.URL, shown: str, must_exist: bool) -> None:
    if not url.database or url.database == ":memory:":
        return
    path = Path(url.database)
    if not path.parent.is_dir():
        raise StorageError(f"the storage {shown} does not open: there is no folder {path.parent}; create it first")
    if path.is_dir():
        raise StorageError(f"the storage {shown} does not open: {path} is a folder; {_LOOKS_LIKE}")
    if must_exist and not path.is_file():
        raise StorageError(f"there is no study file {path}; {_LOOKS_LIKE}")
