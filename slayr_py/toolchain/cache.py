"""The user's cache folder: its location, and atomic writes into it."""

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
    """Return the folder of the assembled CmdStan and the compiled programs.

    It is ``SLAYR_CACHE_DIR`` if that is set, else a folder in the user's cache.
    """
    chosen = os.environ.get("SLAYR_CACHE_DIR")
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("slayr")


def cache_error(error: OSError) -> ToolchainError:
    """Make the error for a cache that cannot be written, with the remedy."""
    return ToolchainError(
        f"cannot write the cache folder {cache_dir()}: {error.strerror or error}. "
        "Free disk space or change permissions there, or set SLAYR_CACHE_DIR to a folder on another disk."
    )


def check_owner() -> None:
    """Check that no other user can write to the cache, whose programs are run without a check.

    Raises
    ------
    ToolchainError
        If the cache folder belongs to another user (except root) or is writable by everybody.
    """
    try:
        stat = cache_dir().stat()
    except OSError:
        return  # there is no folder yet; an unusable folder raises an error where it is used
    if os.name == "nt":
        return
    if stat.st_uid not in (os.geteuid(), 0):
        reason = f"belongs to user {stat.st_uid}, and you are user {os.geteuid()}"
    elif stat.st_mode & 0o002:
        reason = f"is writable by everybody (mode {stat.st_mode & 0o7777:o})"
    else:
        return
    raise ToolchainError(
        f"the cache folder {cache_dir()} {reason}, so others could put programs there that you would run. "
        "Set SLAYR_CACHE_DIR to another folder, or change its owner and permissions (chown, chmod go-w)."
    )


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cache's lock of that name; other processes wait, and the lock of a dead process is released."""
    path = _lock_path(name)
    lock = FileLock(path)
    try:
        _make_cache()
        path.parent.mkdir(exist_ok=True)
        lock.acquire()
    except OSError as error:
        raise cache_error(error) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def staging(name: str) -> Iterator[Path]:
    """Create an empty private folder on the cache's disk and remove it at the end.

    The caller must hold the lock of that name. Folders of the same name from killed processes are removed.
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
    """Write a finished folder's contents to disk, then rename the folder to its place in the cache."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            _sync(path)
    _sync(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        # An unusable older folder is renamed before its removal, so that no process sees it half removed.
        removed = Path(tempfile.mkdtemp(prefix="replaced.", dir=folder.parent))
        os.rename(target, removed / target.name)
        shutil.rmtree(removed, ignore_errors=True)
    os.rename(folder, target)
    _sync(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a small file of the cache atomically: readers see the old text or the new one."""
    _make_cache()
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
    """Remove the staging folders of killed builds, whose locks are free."""
    for folder in cache_dir().glob(f"{_STAGING}/*"):
        lock = FileLock(_lock_path(folder.name.rsplit(".", 1)[0]))
        with contextlib.suppress(Timeout), lock.acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def _make_cache() -> None:
    # Programs are run from this folder, so no other user may write to it, whatever the umask.
    cache_dir().mkdir(mode=0o755, parents=True, exist_ok=True)


def _lock_path(name: str) -> Path:
    return cache_dir() / "locks" / f"{name}.lock"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
