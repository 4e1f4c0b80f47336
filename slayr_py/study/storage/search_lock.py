"""The search lock of a study: one process at a time decides on a configuration, in the order in which they came.

A database holds the queue in an attribute of the study, the holder first. Beside the file of a journal there is a lock
file for all of its studies, which has no order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from optuna import Study
from optuna.storages import InMemoryStorage, RDBStorage

from slayr_py.study.storage.atomic import database_of, insert, new_name, process_named, read, swap
from slayr_py.study.storage.attributes import LOCK_KEY
from slayr_py.study.storage.optuna_private import STUDY_ATTRIBUTES, id_of_study, journal_of, storage_of

LONGEST_HOLD = 600.0
"""Seconds after which the search lock is taken from its holder, dead or alive. A search takes seconds. The lock file of
a journal cannot be taken from a living process: the search then runs without it."""

LONGEST_SILENCE = 60.0
"""Seconds after which a process that could take the lock and does not loses its place in the queue."""

_POLL_SECONDS = 0.05  # times the place in the queue; suggestions take seconds
_HOLDS = " holds"

_Queue = list[str]


@contextmanager
def search_lock(study: Study) -> Iterator[None]:
    """Lock a study, so that only one process at a time decides on a configuration.

    Storages other than databases and journals in files have no lock: see `missing_lock`.

    Raises
    ------
    optuna.exceptions.StorageInternalError
        If the database fails.
    OSError
        If the lock file cannot be written.
    """
    database = database_of(study)
    if database is None:
        journal = journal_of(storage_of(study))
        with nullcontext() if journal is None else _lock_beside(journal):
            yield
        return
    name = new_name()
    study_id = id_of_study(study)
    try:
        _wait_for_turn(database, study_id, name)
        yield
    finally:
        _change(database, study_id, partial(_without, names=(name, name + _HOLDS)))


def missing_lock(study: Study) -> str | None:
    """Describe the consequences of a storage without a search lock; None if it has one.

    A storage in memory cannot be shared, so it does not need a lock.
    """
    storage = storage_of(study)
    if isinstance(storage, RDBStorage | InMemoryStorage) or journal_of(storage) is not None:
        return None
    return (
        f"the storage {type(storage).__name__} of study {study.study_name!r} has no search lock: processes that share "
        "the study do not wait for each other's suggestions and may evaluate the same configuration twice. To run "
        "several, use a database such as sqlite:///study.db, or Optuna's JournalFileBackend"
    )


def _wait_for_turn(database: RDBStorage, study_id: int, name: str) -> None:
    """Join the queue, wait until all that came before have left it or are gone, and take the lock."""
    first = ""
    since = time.monotonic()
    while True:
        # A process that was silent for too long has lost its place and joins again.
        queue = _change(database, study_id, lambda queue: queue if name in queue else [*queue, name])
        if queue[0] == name:
            queue = _change(database, study_id, lambda queue: _hold(queue, name))
            if queue[:1] == [name + _HOLDS]:
                return
            continue
        if queue[0] != first:
            first = queue[0]
            since = time.monotonic()
        if _has_left(first, time.monotonic() - since):
            _change(database, study_id, partial(_without, names=(first,)))
        else:
            time.sleep(_POLL_SECONDS * queue.index(name))


def _has_left(first: str, seconds: float) -> bool:
    """Return whether the first process of a queue is gone, or has been there for too long."""
    process = process_named(first)
    longest = LONGEST_HOLD if first.endswith(_HOLDS) else LONGEST_SILENCE
    return process is None or process.is_gone or seconds > longest


def _hold(queue: _Queue, name: str) -> _Queue:
    return [name + _HOLDS, *queue[1:]] if queue[:1] == [name] else queue


def _without(queue: _Queue, names: tuple[str, ...]) -> _Queue:
    return [each for each in queue if each not in names]


def _change(database: RDBStorage, study_id: int, change: Callable[[_Queue], _Queue]) -> _Queue:
    """Change the queue of a study and return it."""
    while True:
        stored = read(database, STUDY_ATTRIBUTES, study_id, LOCK_KEY)
        if stored is None:
            insert(database, STUDY_ATTRIBUTES, study_id, LOCK_KEY, [])
            continue
        queue = _queue(stored)
        changed = change(queue)
        if changed == queue or swap(database, STUDY_ATTRIBUTES, study_id, LOCK_KEY, stored, changed):
            return changed


def _queue(stored: Any) -> _Queue:
    """Return a stored queue; an invalid one is empty."""
    return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []


@contextmanager
def _lock_beside(journal: Path) -> Iterator[None]:
    """Hold the lock file of a journal; the system frees it when its process ends."""
    # Optuna's own lock is journal.lock, held for single writes.
    lock = FileLock(f"{journal}.search-lock")
    with suppress(Timeout):
        lock.acquire(timeout=LONGEST_HOLD)
    try:
        yield
    finally:
        lock.release()
