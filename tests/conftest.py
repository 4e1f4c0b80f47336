"""The marker ``stan``, one thread for BLAS, and spaces, data and fits that many tests use."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

# Before NumPy and Matplotlib are imported; the processes that tests start inherit it.
os.environ |= {"OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
if sys.dont_write_bytecode:
    # Without bytecode, each process would compile its libraries for seven seconds. Keep it apart from the sources.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).resolve().parents[1] / "build" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

if (
    "PYTEST_XDIST_WORKER" not in os.environ
    and os.access("/dev/shm", os.W_OK)
    and not os.statvfs("/dev/shm").f_flag & os.ST_NOEXEC
    and shutil.disk_usage("/dev/shm").free > 4e9
):
    # Thousands of small files take a minute on a disk. Some tests run as another user.
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="slayr-tests-", dir="/dev/shm")
    os.chmod(os.environ["TMPDIR"], 0o755)
    tempfile.tempdir = None
    # After the temporary folder of multiprocessing, which has priority -100.
    Finalize(None, shutil.rmtree, (os.environ["TMPDIR"], True), exitpriority=-200)

import numpy as np
import pytest
import sqlalchemy
from ConfigSpace import ConfigurationSpace
from testing_databases import copy_tables, postgresql_server
from testing_programs import compile_in_background
from testing_spaces import SPACES, branin, mixed_space
from threadpoolctl import threadpool_limits

import slayr_py as sl
from slayr_py.space import Encoder

threadpool_limits(1)  # a plugin of pytest may have imported NumPy already

CACHE = os.environ.get("SLAYR_CACHE_DIR")
NO_CACHE = "/dev/null/this test needs the marker stan"
FITS = {"branin_posterior", "mixed_posterior", "program", "quick", "threaded"}


class RepeatableEntropy(np.random.SeedSequence):
    """Entropy by the file of the test, so that a test without a seed has the same numbers in every run."""

    file = ""
    drawn = 0

    def __init__(self, entropy: Any = None, **options: Any) -> None:
        if entropy is None:
            type(self).drawn += 1
            entropy = [zlib.crc32(self.file.encode()), self.drawn]
        super().__init__(entropy, **options)


class RepeatableState(np.random.RandomState):
    """The generator of Optuna's samplers, seeded alike."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(RepeatableEntropy().generate_state(1)[0] if seed is None else seed)


np.random.SeedSequence = RepeatableEntropy
np.random.RandomState = RepeatableState


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "connect")
def _do_not_wait_for_the_disk(connection: object, _: object) -> None:
    """Let the system write SQLite files when it likes, as for the PostgreSQL server: only a power failure differs."""
    if isinstance(connection, sqlite3.Connection):
        with contextlib.suppress(sqlite3.Error):  # of a damaged file, which the test looks at later
            connection.execute("PRAGMA synchronous = OFF")


@sqlalchemy.event.listens_for(sqlalchemy.Engine, "do_connect")
def _copy_tables_to_new_files(dialect: Any, _: object, arguments: list[Any], options: dict[str, Any]) -> None:
    """Start new SQLite files as a copy of one with Optuna's tables."""
    is_file = dialect.name == "sqlite" and arguments[0] != ":memory:" and not options.get("uri")
    if is_file and not os.path.exists(arguments[0]):
        copy_tables(Path(arguments[0]))


# Optuna reads all of its migrations whenever a storage opens, which takes most of the time to open one: read them once.
with contextlib.suppress(ImportError, AttributeError):  # names that another version may not have
    from optuna.storages._rdb.storage import _VersionManager

    read_head_version = _VersionManager.get_head_version
    head_versions: list[str] = []

    def head_version(manager: _VersionManager) -> str:
        if not head_versions:
            head_versions.append(read_head_version(manager))
        return head_versions[0]

    _VersionManager.get_head_version = head_version


def pytest_xdist_auto_num_workers() -> int:
    """Start one worker more than there are processors: some tests wait for other processes most of their time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that request a shared fit or program, and run tests that need Stan first, the slow ones before.

    One worker then compiles while another runs the tests that need no program: with ``worksteal`` the workers start
    with equal parts of the list and those that finish early take over tests from the others.
    """
    for item in items:
        if FITS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("stan")
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("stan", "slow")])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Compile the programs before the first test marked ``stan``; give other tests a cache that cannot be created."""
    RepeatableEntropy.file = item.nodeid.partition("::")[0]
    RepeatableEntropy.drawn = 0
    if item.get_closest_marker("stan") is None:
        os.environ["SLAYR_CACHE_DIR"] = NO_CACHE
        return
    if CACHE is None:
        os.environ.pop("SLAYR_CACHE_DIR", None)
    else:
        os.environ["SLAYR_CACHE_DIR"] = CACHE
    compile_programs(item.session)


@functools.cache
def compile_programs(session: pytest.Session) -> None:
    """Compile the programs once: a lock on each makes other workers wait for it.

    One worker also starts to compile the programs that only tests use. Otherwise one worker would compile them in a
    test, and another would wait in its next.
    """
    from slayr_py.inference.sampling.programs import build

    list(build())
    is_first = os.environ.get("PYTEST_XDIST_WORKER") == "gw0"
    if is_first and any("tests/stan/test_" in item.nodeid for item in session.items):
        compile_in_background()


@pytest.fixture(params=sorted(SPACES))
def any_space(request: pytest.FixtureRequest) -> ConfigurationSpace:
    return SPACES[request.param]()


@pytest.fixture(scope="session")
def branin_data() -> tuple[ConfigurationSpace, list, np.ndarray]:
    """20 Sobol points of Branin on its usual domain."""
    space = ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)})
    configs = Encoder(space).sobol(20, 0)
    return space, configs, np.array([branin(c) for c in configs])


@pytest.fixture(scope="session")
def branin_posterior(branin_data) -> sl.Posterior:
    space, configs, y = branin_data
    return sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=300, draws=300, seed=5)


@pytest.fixture(scope="session")
def mixed_posterior() -> sl.Posterior:
    """A small fit on a space with every kind of parameter."""
    space = mixed_space()
    configs = Encoder(space).sobol(12, 3)
    y = [np.log(c["lr"]) + c["layers"] + (c["act"] == "relu") + 0.1 * len(c["size"]) for c in configs]
    return sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=150, draws=100, seed=2)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL server, without the name of a database."""
    with postgresql_server() as url:
        yield url


@pytest.fixture
def slayr() -> Callable[..., tuple[int, str, str]]:
    """Call the command line; return the exit code, standard output and standard error."""
    from typer.testing import CliRunner

    from slayr_py.cli.app import app

    def call(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call
