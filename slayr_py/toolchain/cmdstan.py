"""Find the user's CmdStan, or assemble one from the httpstan wheel."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.cache import check_owner
from slayr_py.toolchain.cleaning import mark_used
from slayr_py.toolchain.compiler import Compiler, find_compiler, find_make
from slayr_py.toolchain.installation import assemble, installation_path, is_assembled, is_complete
from slayr_py.toolchain.wheel import find_wheel

OLDEST = (2, 35)  # version of the older supported httpstan wheel

Origin = Literal["CMDSTAN", "cmdstanpy", "assembled", "wheel"]


@dataclass(frozen=True)
class CmdStan:
    """A CmdStan installation that can compile programs.

    Attributes
    ----------
    path
        Its folder.
    version
        Its version, such as ``"2.35.0"``.
    origin
        Origin: the environment variable ``CMDSTAN``, cmdstanpy's folder, assembled by this package, or the package's
        wheel, whose programs were compiled before (it has no folder that could compile others).
    compiler
        The C++ compiler to use with it.
    """

    path: Path
    version: str
    origin: Origin
    compiler: Compiler


def ensure_cmdstan(on_progress: Callable[[str], None] | None = None) -> CmdStan:
    """Find a CmdStan, or assemble one.

    Parameters
    ----------
    on_progress
        Called with a message before a slow step.

    Raises
    ------
    ToolchainError
        If ``CMDSTAN`` names an unusable folder; if the compiler, the make that a CmdStan needs which is not assembled,
        or both CmdStan and httpstan are missing; or if the cache cannot be written or belongs to another user.
    """
    check_owner()
    cmdstan = find_cmdstan()
    if cmdstan is not None:
        if cmdstan.origin == "assembled":
            mark_used(cmdstan.path)
        else:
            find_make()
        return cmdstan
    compiler = find_compiler()
    find_wheel()
    if on_progress is not None:
        on_progress("assembling CmdStan from the httpstan wheel (once)")
    return assembled_cmdstan(compiler)


def assembled_cmdstan(compiler: Compiler) -> CmdStan:
    """Assemble a CmdStan for a compiler, unless it exists.

    Raises
    ------
    ToolchainError
        If httpstan is missing, or the cache cannot be written.
    """
    path = assemble(find_wheel(), compiler)
    return CmdStan(path, _version(path), "assembled", compiler)


def check_toolchain() -> None:
    """Check that programs can be compiled, without compiling or writing anything.

    Raises
    ------
    ToolchainError
        As by :func:`ensure_cmdstan`.
    """
    check_owner()
    cmdstan = find_cmdstan()
    if cmdstan is None:
        find_wheel()
    elif cmdstan.origin != "assembled":
        find_make()


def find_cmdstan() -> CmdStan | None:
    """Find an existing CmdStan; return ``None`` if one must be assembled first.

    Raises
    ------
    ToolchainError
        If ``CMDSTAN`` names an unusable folder, there is no compiler, or others can write to the assembled CmdStan.
    """
    compiler = find_compiler()
    chosen = os.environ.get("CMDSTAN", "")
    # cmdstanpy also sets CMDSTAN, so an assembled installation in it is not a choice of the user.
    if chosen and not is_assembled(Path(chosen)):
        path = Path(chosen).expanduser()
        reason = _unusable(path)
        if reason is not None:
            raise ToolchainError(
                f"CMDSTAN={chosen} cannot be used: {reason}. Correct it, or unset CMDSTAN to find or assemble another."
            )
        return CmdStan(path, _version(path), "CMDSTAN", compiler)
    for path in _cmdstanpy_folders():
        if _unusable(path) is None:
            return CmdStan(path, _version(path), "cmdstanpy", compiler)
    try:
        path = installation_path(find_wheel(), compiler)
    except ToolchainError:
        return None
    if not is_complete(path):
        return None
    check_owner(path)
    return CmdStan(path, _version(path), "assembled", compiler)


def ignored_cmdstans() -> list[str]:
    """List the unusable CmdStans in cmdstanpy's folder, each with the reason."""
    return [f"{path}: {reason}" for path in _cmdstanpy_folders() if (reason := _unusable(path)) is not None]


def _cmdstanpy_folders() -> list[Path]:
    """List the installations of cmdstanpy's ``install_cmdstan`` (newest first), then conda's installation."""
    folders: list[Path] = []
    with suppress(OSError, RuntimeError):  # the home folder belongs to another user, as under sudo, or there is none
        folders = [path for path in (Path.home() / ".cmdstan").glob("cmdstan-*") if path.is_dir()]
    folders.sort(key=lambda path: ([int(part) for part in re.findall(r"\d+", path.name)], path.name), reverse=True)
    conda = os.environ.get("CONDA_PREFIX")
    if conda and (Path(conda) / "bin" / "cmdstan").is_dir():
        folders.append(Path(conda) / "bin" / "cmdstan")
    return folders


def _unusable(path: Path) -> str | None:
    """Return why a CmdStan cannot be used; ``None`` if it can."""
    try:
        return _missing(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _missing(path: Path) -> str | None:
    if not _exists(path):
        return "there is no such folder"
    if not _exists(path / "makefile"):
        return "it has no makefile, so it is not a CmdStan"
    version = _version(path)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        return f"its version is {version or 'unknown'}, {OLDEST[0]}.{OLDEST[1]} or newer is needed"
    if not _exists(path / "bin" / "stanc"):
        return "it is not built (no bin/stanc): run make build in it"
    return None


def _exists(path: Path) -> bool:
    """Return whether a file exists; raise OSError without permission, which Path.exists of Python 3.14 ignores."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _version(path: Path) -> str:
    try:
        makefile = (path / "makefile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(r"^CMDSTAN_VERSION := (\S+)", makefile, flags=re.MULTILINE)
    return match.group(1) if match else ""
