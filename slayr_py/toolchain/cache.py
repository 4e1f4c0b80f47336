"""The user's cache folder: where it is, how something is put into it whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from slayr_py.errors import ToolchainError

_STAGING = ".staging"


def cache_dir() -> Path:
    """Folder of the assembled CmdStan and the compiled programs: ``SLAYR_CACHE_DIR``, else the user's cache."""
    chosen = os.environ.get("SLAYR_CACHE_DIR")
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("slayr")


def cache_error(error: OSError) -> ToolchainError:
    """Say that the cache cannot be written, and the way out."""
    return ToolchainError(
        f"cannot write the cache folder {cache_dir()}: {error.strerror or error}. "
        "Make room or permissions there, or set SLAYR_CACHE_DIR to a folder on another disk."
    )


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cache's lock of that name; other processes wait, and a process that dies lets go."""
    path = _lock_path(name)
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise cache_error(error) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def staging(name: str) -> Iterator[Path]:
    """Give an empty private folder on the cache's disk; whatever is left in it is removed in the end.

    The caller holds the lock of that name, so other folders of the name were left by killed processes, and go too.
    """
    folder: Path | None = None
    try:
        remove_leftovers()
        for leftover in cache_dir().glob(f"{_STAGING}/{name}.*"):
            shutil.rmtree(leftover, ignore_errors=True)
        (cache_dir() / _STAGING).mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=cache_dir() / _STAGING))
        yield folder
    except OSError as error:
        raise cache_error(error) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """Move a finished folder to its name in the cache, once its contents are on the disk."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            _sync(path)
    _sync(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        # An unusable older one: it leaves by a rename as well, so nobody sees it half removed.
        grave = Path(tempfile.mkdtemp(prefix="replaced.", dir=folder.parent))
        os.rename(target, grave / target.name)
        shutil.rmtree(grave, ignore_errors=True)
    os.rename(folder, target)
    _sync(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a small file so that readers see the old text or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def remove_leftovers() -> None:
    """Remove staging folders of builds that were killed: those whose lock nobody holds."""
    for folder in cache_dir().glob(f"{_STAGING}/*"):
        lock = FileLock(_lock_path(folder.name.rsplit(".", 1)[0]))
        with contextlib.suppress(Timeout), lock.acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def _lock_path(name: str) -> Path:
    return cache_dir() / "locks" / f"{name}.lock"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
