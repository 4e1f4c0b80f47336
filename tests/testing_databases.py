"""A PostgreSQL server for the tests, and empty databases on it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import optuna
import pytest
import sqlalchemy

_starts: dict[str, Callable[[], None]] = {}  # functions that start the server of a URL
_stops: dict[str, Callable[[], None]] = {}


def restarted(server_url: str) -> None:
    """Kill a PostgreSQL server of `postgresql_server` and start it again with the same options."""
    _stops[server_url]()
    _starts[server_url]()


@contextmanager
def postgresql_server() -> Iterator[str]:
    """Start a PostgreSQL server; return its URL without the name of a database."""
    found = [shutil.which("initdb"), *sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    programs = [Path(str(path)).resolve().parent for path in found if path]
    if not programs:
        message = "no PostgreSQL server is installed (on Debian: apt-get install postgresql)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    folder = Path(tempfile.mkdtemp(prefix="slayr-postgresql-"))
    # The server refuses to run as root.
    ordinary: dict[str, Any] = {}
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
        ordinary = {"user": "nobody", "group": "nogroup", "extra_groups": []}

    def call(program: str, *arguments: str) -> None:
        command = [str(programs[0] / program), "-D", str(folder / "data"), *arguments]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120, **ordinary)

    def start() -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        call("pg_ctl", "start", "--wait", f"--log={folder / 'log'}", "--options", options)

    def stop() -> None:
        call("pg_ctl", "stop", "--mode=immediate")

    url = f"postgresql+psycopg://slayr@/?host={folder}"
    _starts[url] = start
    _stops[url] = stop
    try:
        call("initdb", "--auth=trust", "--username=slayr", "--no-sync")
        start()
        try:
            yield url
        finally:
            stop()
    finally:
        shutil.rmtree(folder)


def new_database(server_url: str, template: str = "template1") -> str:
    """Create a database on a PostgreSQL server, empty or a copy of another one; return its URL."""
    server = sqlalchemy.make_url(server_url)
    name = f"study_{uuid4().hex}"
    engine = sqlalchemy.create_engine(server.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    engine.dispose()
    return server.set(database=name).render_as_string(hide_password=False)


def copy_tables(file: Path) -> None:
    """Create an SQLite file with Optuna's tables, which takes a tenth of a second without this copy."""
    try:
        shutil.copyfile(_tables(), file)
    except OSError:  # SQLite fails in the same way afterwards: the disk is full, or the folder does not exist
        with suppress(OSError):
            file.unlink()


@functools.cache
def _tables() -> Path:
    """Return a file with Optuna's tables."""
    folder = tempfile.mkdtemp(prefix="slayr-tables-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "tables.db"
    file.touch()  # it is no new file when the storage connects
    storage = optuna.storages.RDBStorage(f"sqlite:///{file}")
    storage.engine.dispose()
    return file
