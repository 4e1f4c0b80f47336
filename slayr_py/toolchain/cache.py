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


def check_owner() -> None:
    """Check that nobody else can put programs into the cache, which are run from it without being looked at.

    Raises
    ------
    ToolchainError
        When the cache folder belongs to another user (but root), or everybody may write it.
    """
    try:
        stat = cache_dir().stat()
    except OSError:
        return  # there is none yet, or it cannot be used at all, which whoever needs it says
    if os.name == "nt":
        return
    if stat.st_uid not in (os.geteuid(), 0):
        trouble = f"belongs to user {stat.st_uid}, you are {os.geteuid()}"
    elif stat.st_mode & 0o002:
        trouble = f"may be written by everybody (mode {stat.st_mode & 0o7777:o})"
    else:
        return
    raise ToolchainError(
        f"the cache folder {cache_dir()} {trouble}: others could put programs there that you would run. "
        "Set SLAYR_CACHE_DIR to a folder of your own, or make this one yours alone (chown, chmod go-w)."
    )


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the cache's lock of that name; other processes wait, and a process that dies lets go."""
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
    """Write a small file of the cache so that readers see the old text or the new, never a part."""
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
    """Remove staging folders of builds that were killed: those whose lock nobody holds."""
    for folder in cache_dir().glob(f"{_STAGING}/*"):
        lock = FileLock(_lock_path(folder.name.rsplit(".", 1)[0]))
        with contextlib.suppress(Timeout), lock.acquire(timeout=0):
            shutil.rmtree(folder, ignore_errors=True)


def _make_cache() -> None:
    # Whatever the umask says, nobody else may write where programs are run from.
    cache_dir().mkdir(mode=0o755, parents=True, exist_ok=True)


def _lock_path(name: str) -> Path:
    return cache_dir() / "locks" / f"{name}.lock"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
