"""A CmdStan home made of the httpstan wheel and our front end: the folder cmdstanpy and make work in."""

from __future__ import annotations

import hashlib
import importlib.resources
import os
import shutil
from pathlib import Path

from slayr_py.toolchain.cache import cache_dir, cache_error, locked, publish, staging
from slayr_py.toolchain.compiler import Compiler
from slayr_py.toolchain.wheel import STAN_VERSION, Wheel

# Present in the homes made here and in no other.
_MARK = "assembled_by_slayr"


def home_path(wheel: Wheel, compiler: Compiler) -> Path:
    """Name the home of this wheel, compiler and front end.

    The wheel counts by version and platform, not by its folder: environments with the same wheel share one home.
    """
    identity = hashlib.sha256()
    for part in (wheel.version, wheel.tags, str(compiler.path), compiler.name, compiler.version):
        identity.update(part.encode() + b"\0")
    for name, text in sorted(_frontend().items()):
        identity.update(name.encode() + b"\0" + text + b"\0")
    return cache_dir() / f"cmdstan-{STAN_VERSION}-{identity.hexdigest()[:12]}"


def is_assembled(home: Path) -> bool:
    """Tell whether the folder was made by :func:`assemble`."""
    return _has(home / _MARK)


def is_complete(home: Path) -> bool:
    """Tell whether a home can be used: it is whole, and the wheel its headers are in still exists."""
    return _is_whole(home) and (home / "include" / "stan" / "version.hpp").is_file()


def _is_whole(home: Path) -> bool:
    """Tell whether all that was copied is still there: what cleans temporary folders may have taken old files."""
    files = [home / _MARK, home / "bin" / "stanc", home / "make" / "local", *(home / name for name in _copies())]
    return all(map(_has, files)) and any((home / "lib").glob("*"))


def _has(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size > 0
    except OSError:  # in a folder that this user may not enter
        return False


def _copies() -> list[str]:
    """Where the sources of the front end stand in a home."""
    return [name if name == "makefile" else f"frontend/{name}" for name in _frontend()]


def assemble(wheel: Wheel, compiler: Compiler) -> Path:
    """Make the home, unless another process has; put its headers right where their wheel has gone.

    Libraries and stanc are copied (25 MB), so that programs outlive the environment they were compiled in; the headers
    (200 MB) are a link into the wheel, which the next environment's wheel replaces.

    Raises
    ------
    ToolchainError
        When the cache cannot be written.
    """
    home = home_path(wheel, compiler)
    if is_complete(home):
        return home
    with locked(home.name):
        if is_complete(home):
            return home
        if _is_whole(home):
            _link_headers(home, wheel)
            return home
        with staging(home.name) as folder:
            fresh = folder / home.name
            (fresh / "bin").mkdir(parents=True)
            shutil.copy2(wheel.folder / "stanc", fresh / "bin" / "stanc")
            (fresh / "bin" / "stanc").chmod(0o755)
            shutil.copytree(wheel.folder / "lib", fresh / "lib")
            (fresh / "include").symlink_to(wheel.folder / "include")
            (fresh / "frontend").mkdir()
            for name, text in zip(_copies(), _frontend().values(), strict=True):
                (fresh / name).write_bytes(text)
            (fresh / "make").mkdir()
            (fresh / "make" / "local").write_text(f"CXX := {compiler.name}\n", encoding="utf-8")
            (fresh / _MARK).write_text(f"httpstan {wheel.version}\n{compiler.version}\n", encoding="utf-8")
            publish(fresh, home)
    return home


def _link_headers(home: Path, wheel: Wheel) -> None:
    link = home / f".include.{os.getpid()}"
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(wheel.folder / "include")
        os.replace(link, home / "include")
    except OSError as error:
        raise cache_error(error) from error


def _frontend() -> dict[str, bytes]:
    """Sources of the front end by file name."""
    folder = importlib.resources.files("slayr_py.toolchain") / "frontend"
    return {
        file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith((".cpp", ".hpp", "makefile"))
    }
