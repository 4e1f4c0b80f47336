"""Change attributes in a database atomically, and name the processes that do so.

The one operation that every database executes atomically is to change an attribute if it still has the value that was
read. The search lock and the trials of killed processes rest on it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import sqlalchemy
from optuna import Study
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage

from slayr_py.processes import Process, this_process
from slayr_py.study.storage.optuna_private import storage_of
from slayr_py.study.storage.retrying import Answer, retries_of


def new_name() -> str:
    """Return a new name of this process."""
    return f"{this_process()} {uuid.uuid4().hex}"


def process_named(name: Any) -> Process | None:
    """Return the process of a name from `new_name`, or None if it is not one."""
    try:
        return Process.parse(name.partition(" ")[0])
    except (ValueError, AttributeError):
        return None


def database_of(study: Study) -> RDBStorage | None:
    """Return the storage of a study if it is a database."""
    storage = storage_of(study)
    return storage if isinstance(storage, RDBStorage) else None


def read(database: RDBStorage, where: sqlalchemy.TableClause, owner: int, key: str) -> Any:
    """Return an attribute; None if there is none."""
    statement = sqlalchemy.select(where.c.value_json).where(_row(where, owner, key))

    def select() -> Any:
        with database.engine.connect() as connection:
            return connection.execute(statement).scalar()

    text = in_database(database, select)
    return None if text is None else json.loads(text)


def swap(database: RDBStorage, where: sqlalchemy.TableClause, owner: int, key: str, old: Any, new: Any) -> bool:
    """Change an attribute if it still has the old value; return whether it had.

    False is returned, too, if the first answer of the database was lost after the change: read the attribute again.
    """
    row = _row(where, owner, key) & (where.c.value_json == json.dumps(old))
    statement = sqlalchemy.update(where).where(row).values(value_json=json.dumps(new))

    def change() -> bool:
        with database.engine.begin() as connection:
            return connection.execute(statement).rowcount == 1

    return in_database(database, change)


def insert(database: RDBStorage, where: sqlalchemy.TableClause, owner: int, key: str, value: Any) -> None:
    """Insert an attribute unless another process has just inserted it."""
    row = {next(iter(where.c)).name: owner, "key": key, "value_json": json.dumps(value)}

    def add() -> None:
        with suppress(sqlalchemy.exc.IntegrityError), database.engine.begin() as connection:
            connection.execute(sqlalchemy.insert(where).values(row))

    in_database(database, add)


def in_database(database: RDBStorage, operation: Callable[[], Answer]) -> Answer:
    """Return the answer of an operation on the engine of a database; failures become Optuna's.

    Raises
    ------
    optuna.exceptions.StorageInternalError
        If the database fails.
    """
    try:
        return retries_of(database)(operation)
    except sqlalchemy.exc.SQLAlchemyError as error:
        raise StorageInternalError(str(error)) from error


def _row(where: sqlalchemy.TableClause, owner: int, key: str) -> sqlalchemy.ColumnElement[bool]:
    return (next(iter(where.c)) == owner) & (where.c.key == key)
