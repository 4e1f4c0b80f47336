"""The user's cache folder: its location, and atomic writes into it."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISLNK

import platformdirs
from filelock import FileLock, Timeout

from slayr_py.errors import ToolchainError

_STAGING = ".staging"


def cache_dir() -> Path:
    """Return the folder of the assembled CmdStan and the compiled programs.

    It is ``SLAYR_CACHE_DIR`` if that is set, else a folder in the user's cache.

    Raises
    ------
    ToolchainError
        If there is neither, since the user has no home folder, or if a home folder in ``SLAYR_CACHE_DIR`` is unknown.
    """
    chosen = os.environ.get("SLAYR_CACHE_DIR")
    try:
        folder = Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("slayr")
    except RuntimeError:  # the home folder is unknown
        if chosen:
            raise ToolchainError(
                f"the home folder in SLAYR_CACHE_DIR={chosen} is unknown. Set SLAYR_CACHE_DIR to an absolute path."
            ) from None
        folder = Path("~")
    if not folder.is_absolute():  # some versions of platformdirs leave "~" as it is
        raise ToolchainError("there is no home folder for the cache. Set SLAYR_CACHE_DIR to a folder.")
    return folder


def cache_error(error: OSError) -> ToolchainError:
    """Make the error for a cache that cannot be written, with the remedy."""
    return ToolchainError(
        f"cannot write the cache folder {cache_dir()}: {error.strerror or error}. "
        "Free disk space or change permissions there, or set SLAYR_CACHE_DIR to a folder on another disk."
    )


def noexec_error() -> ToolchainError:
    """Make the error for a cache on a disk from which no program can be run, with the remedy."""
    return ToolchainError(
        f"programs in {cache_dir()} cannot be run: its disk is mounted noexec. "
        "Set SLAYR_CACHE_DIR to a folder on another disk."
    )


def is_noexec(path: Path) -> bool:
    """Return whether the disk of a file or a folder is mounted so that no program on it can be run."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_NOEXEC)
    except (OSError, AttributeError):  # it cannot be read, or the system has no such mounts
        return False


def check_executable(program: Path) -> None:
    """Check that the disk of a program in the cache lets programs run.

    Raises
    ------
    ToolchainError
        If the disk is mounted noexec.
    """
    if is_noexec(program):
        raise noexec_error()


def check_owner(*paths: Path) -> None:
    """Check that no other user can write to the cache, whose programs are run.

    Parameters
    ----------
    *paths
        Files and folders in the cache that are executed, linked or compiled. Those that exist are checked with all the
        folders above them, up to the cache; folders also with their contents. The cache itself is always checked.

    Raises
    ------
    ToolchainError
        If one of them belongs to another user (except root) or is writable by everybody, or cannot be read.
    """
    if os.name == "nt":
        return
    cache = cache_dir()
    if reason := _unsafe(cache, follow=True):
        raise ToolchainError(
            f"the cache folder {cache} {reason}, so others could put programs there that you would run. "
            "Set SLAYR_CACHE_DIR to another folder, or change its owner and permissions (chown, chmod go-w)."
        )
    for path in paths:
        above = [folder for folder in path.parents if cache in folder.parents]
        try:
            below = sorted(path.rglob("*"))
        except OSError as error:  # without permission, before Python 3.13
            raise cache_error(error) from error
        for part in (*reversed(above), path, *below):
            if reason := _unsafe(part):
                raise ToolchainError(
                    f"{part} in the cache {reason}, so others could have replaced a program that you would run. "
                    f"Remove it (rm -r {shlex.quote(str(part))}) and run this again: it is built anew."
                )


def _unsafe(path: Path, follow: bool = False) -> str | None:
    """Return why others can change a file or folder; None if they cannot, or if there is no such file."""
    try:
        stat = path.stat(follow_symlinks=follow)
    except OSError:
        return None  # an unusable file raises an error where it is used
    if stat.st_uid not in (os.geteuid(), 0):
        return f"belongs to user {stat.st_uid}, and you are user {os.geteuid()}"
    if stat.st_mode & 0o002 and not S_ISLNK(stat.st_mode):
        return f"is writable by everybody (mode {stat.st_mode & 0o7777:o})"
    return None


@contextlib.contextmanager
def locked(name: str, wait: bool = True) -> Iterator[None]:
    """Hold the cache's lock of that name; the lock of a dead process is released.

    Raises
    ------
    Timeout
        With ``wait=False``, if another process holds the lock.
    """
    path = _lock_path(name)
    lock = FileLock(path, mode=0o644)
    try:
        make_folder(path.parent)
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        raise
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
        make_folder(cache_dir() / _STAGING)
        check_owner(cache_dir() / _STAGING)
        folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=cache_dir() / _STAGING))
        yield folder
    except OSError as error:
        raise cache_error(error) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """Write a finished folder's contents to disk, then rename the folder to its place in the cache.

    Only its owner can write to the published files and folders, whatever the umask.
    """
    for path in [*sorted(folder.rglob("*")), folder]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o755)
            _sync(path)
    make_folder(target.parent)
    if target.exists():
        # An unusable older folder is renamed before its removal, so that no process sees it half removed.
        removed = Path(tempfile.mkdtemp(prefix="replaced.", dir=folder.parent))
        os.rename(target, removed / target.name)
        shutil.rmtree(removed, ignore_errors=True)
    os.rename(folder, target)
    _sync(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a small file of the cache atomically: readers see the old text or the new one."""
    make_folder(path.parent)
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
        with contextlib.suppress(Timeout), locked(folder.name.rsplit(".", 1)[0], wait=False):
            shutil.rmtree(folder, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Create a folder of the cache, and those above it, without write permission for others, whatever the umask."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o755, exist_ok=True)


def _lock_path(name: str) -> Path:
    return cache_dir() / "locks" / f"{name}.lock"


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
