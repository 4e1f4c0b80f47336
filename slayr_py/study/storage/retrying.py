"""Repeat operations of a storage that fails for a while: one policy for every call.

A database server that is restarted, a network that is interrupted and a disk that is full for a moment cost a run some
time and nothing else. An operation may have succeeded although its answer was lost, so it has to be repeatable.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar
from weakref import WeakKeyDictionary

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    PendingRollbackError,
    SQLAlchemyError,
    TimeoutError as PoolTimeoutError,
)

from slayr_py.errors import SlayrError, level_outside

PATIENCE = 300.0
"""Seconds for which a failing operation is repeated."""

FIRST_WAIT = 0.1
LONGEST_WAIT = 10.0
"""Seconds before the first repetition, twice as long before each further one, and their limit: a run continues at most
this long after its database has come back."""

_MOVED = "the study's file was deleted, moved or replaced while the study ran"
_LASTING = re.compile(
    r"malformed|not a database|no such|readonly|unable to open|[Pp]ermission|denied|authentication"
    r"|does not exist"
)

MISSING = "Record does not exist"
"""Text, with a full stop, of the KeyErrors of Optuna's storages: the study or a trial was deleted."""

Answer = TypeVar("Answer")


def is_storage_error(error: BaseException) -> bool:
    """Return whether the storage has raised an error."""
    failures = StorageInternalError | SQLAlchemyError | OSError
    return was_deleted(error) or (isinstance(error, failures) and not isinstance(error, SlayrError))


def was_deleted(error: BaseException) -> bool:
    """Return whether the study or a trial is no longer in the storage."""
    return isinstance(error, KeyError) and error.args == (f"{MISSING}.",)


def is_moved(error: BaseException) -> bool:
    """Return whether the SQLite file of the study is no longer at its path."""
    cause = _cause_of(error)
    driver = getattr(cause, "orig", None) or cause
    return getattr(driver, "sqlite_errorname", None) == "SQLITE_READONLY_DBMOVED"  # SQLite says "readonly database"


def _cause_of(error: BaseException) -> BaseException:
    return error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ is not None else error


def storage_reason(error: BaseException) -> str:
    """Return the first line of the driver's own message, without the additions of SQLAlchemy and Optuna."""
    if is_moved(error):
        return _MOVED
    cause = _cause_of(error)
    text = cause.args[0] if was_deleted(cause) else getattr(cause, "orig", None) or cause  # a KeyError quotes its text
    lines = str(text).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(cause).__name__


class Retries:
    """Repeat the operations of one storage until they succeed or `PATIENCE` is used up.

    Once an operation has used it up, or the user has interrupted it, the next ones are tried once only, until one
    succeeds: a run that ends waits no second time.
    """

    def __init__(self) -> None:
        self._given_up = False

    def __call__(self, operation: Callable[[], Answer]) -> Answer:
        """Return the answer of an operation, which is repeated while the storage fails.

        Raises
        ------
        Exception
            The last error of the storage if it lasts, and at once any other error.
        """
        end = time.monotonic() + PATIENCE
        wait = FIRST_WAIT
        while True:
            try:
                answer = operation()
            except Exception as error:
                if self._given_up or not may_pass(error):
                    raise
                if time.monotonic() + wait > end:
                    self._given_up = True
                    raise
                if wait == FIRST_WAIT:
                    # The time makes the texts of two outages differ: Python shows equal warnings once.
                    warnings.warn(
                        f"the study's storage fails ({storage_reason(error)}): trying again for {PATIENCE:g} seconds "
                        f"from {datetime.now():%H:%M:%S} on",
                        RuntimeWarning,
                        stacklevel=level_outside(),
                    )
            else:
                self._given_up = False
                return answer
            try:
                time.sleep(wait)
            except KeyboardInterrupt:
                self._given_up = True
                raise
            wait = min(2 * wait, LONGEST_WAIT)


_retries: WeakKeyDictionary[BaseStorage, Retries] = WeakKeyDictionary()


def retries_of(storage: BaseStorage) -> Retries:
    """Return the only retries of a storage, whatever repeats its operations."""
    return _retries.setdefault(storage, Retries())


def may_pass(error: BaseException) -> bool:
    """Return whether an error of the storage may pass without a change by the user."""
    cause = _cause_of(error)
    if isinstance(cause, SQLAlchemyError):
        passing = OperationalError | InterfaceError | InternalError | PendingRollbackError | PoolTimeoutError
        lost = isinstance(cause, DBAPIError) and cause.connection_invalidated
        if not lost and not isinstance(cause, passing):
            return False
    return is_storage_error(error) and not is_moved(error) and _LASTING.search(storage_reason(error)) is None
