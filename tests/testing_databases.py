"""A PostgreSQL server for the tests, and empty databases on it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy

_controls: dict[str, Callable[..., None]] = {}  # by the URL of a server


def restarted(server_url: str) -> None:
    """Kill a PostgreSQL server of `postgresql_server` and start it again with the same options."""
    _controls[server_url]("pg_ctl", "restart", "--mode=immediate", "--wait")


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

    try:
        call("initdb", "--auth=trust", "--username=slayr", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        call("pg_ctl", "start", "--wait", f"--log={folder / 'log'}", "--options", options)
        url = f"postgresql+psycopg://slayr@/?host={folder}"
        _controls[url] = call
        try:
            yield url
        finally:
            call("pg_ctl", "stop", "--mode=immediate")
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
