"""Assemble a CmdStan installation from the httpstan wheel and a front end, for cmdstanpy and make."""

from __future__ import annotations

import hashlib
import importlib.resources
import os
import shutil
from pathlib import Path

from slayr_py.toolchain.cache import cache_dir, cache_error, locked, publish, staging
from slayr_py.toolchain.compiler import Compiler
from slayr_py.toolchain.wheel import Wheel

# Only assembled installations contain this file.
_MARK = "assembled_by_slayr"
# The makefile has it instead of the version of Stan.
_STAN_VERSION = b"@STAN_VERSION@"


def installation_path(wheel: Wheel, compiler: Compiler) -> Path:
    """Return the path of the installation for this wheel, compiler and front end.

    The wheel is identified by version and platform, not by its folder: environments with equal wheels share one
    installation.
    """
    identity = hashlib.sha256()
    for part in (wheel.version, wheel.tags, str(compiler.path), compiler.name, compiler.version):
        identity.update(part.encode() + b"\0")
    for name, text in sorted(_frontend().items()):
        identity.update(name.encode() + b"\0" + text + b"\0")
    return cache_dir() / f"cmdstan-{wheel.stan_version}-{identity.hexdigest()[:12]}"


def is_assembled(path: Path) -> bool:
    """Return whether :func:`assemble` created the folder."""
    return _has(path / _MARK)


def is_complete(path: Path) -> bool:
    """Return whether an installation can be used: all files and the wheel with the headers exist."""
    return _has_copies(path) and (path / "include" / "stan" / "version.hpp").is_file()


def _has_copies(path: Path) -> bool:
    """Return whether all copied files still exist; a cleaner of temporary folders may have removed some."""
    files = [path / _MARK, path / "bin" / "stanc", path / "make" / "local", *(path / name for name in _copies())]
    return all(map(_has, files)) and any((path / "lib").glob("*"))


def _has(file: Path) -> bool:
    try:
        return file.is_file() and file.stat().st_size > 0
    except OSError:  # the user may not enter the folder
        return False


def _copies() -> list[str]:
    """Return the paths of the front end's sources inside an installation."""
    return [name if name == "makefile" else f"frontend/{name}" for name in _frontend()]


def assemble(wheel: Wheel, compiler: Compiler) -> Path:
    """Assemble the installation unless it exists; link its headers again if their wheel was removed.

    Libraries and stanc are copied (25 MB), so that programs work after the removal of the environment in which they
    were compiled. The headers (200 MB) are a link into the wheel, which is updated if the wheel is removed and another
    wheel is used.

    Raises
    ------
    ToolchainError
        If the cache cannot be written.
    """
    path = installation_path(wheel, compiler)
    if is_complete(path):
        return path
    with locked(path.name):
        if is_complete(path):
            return path
        if _has_copies(path):
            _link_headers(path, wheel)
            return path
        with staging(path.name) as folder:
            fresh = folder / path.name
            (fresh / "bin").mkdir(parents=True)
            shutil.copy2(wheel.folder / "stanc", fresh / "bin" / "stanc")
            (fresh / "bin" / "stanc").chmod(0o755)
            shutil.copytree(wheel.folder / "lib", fresh / "lib")
            (fresh / "include").symlink_to(wheel.folder / "include")
            (fresh / "frontend").mkdir()
            for name, text in zip(_copies(), _frontend().values(), strict=True):
                (fresh / name).write_bytes(text.replace(_STAN_VERSION, wheel.stan_version.encode()))
            (fresh / "make").mkdir()
            (fresh / "make" / "local").write_text(f"CXX := {compiler.name}\n", encoding="utf-8")
            (fresh / _MARK).write_text(f"httpstan {wheel.version}\n{compiler.version}\n", encoding="utf-8")
            publish(fresh, path)
    return path


def _link_headers(path: Path, wheel: Wheel) -> None:
    link = path / f".include.{os.getpid()}"
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(wheel.folder / "include")
        os.replace(link, path / "include")
    except OSError as error:
        raise cache_error(error) from error


def _frontend() -> dict[str, bytes]:
    """Read the sources of the front end by file name."""
    folder = importlib.resources.files("slayr_py.toolchain") / "frontend"
    suffixes = (".cpp", ".hpp", ".sh", "makefile")
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(suffixes)}
