"""Which CmdStan is used: the user's, else one assembled from the httpstan wheel."""

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
from slayr_py.toolchain.compiler import Compiler, find_compiler, find_make
from slayr_py.toolchain.home import assemble, home_path, is_assembled, is_complete
from slayr_py.toolchain.wheel import find_wheel

OLDEST = (2, 35)

Origin = Literal["CMDSTAN", "cmdstanpy", "assembled"]


@dataclass(frozen=True)
class CmdStan:
    """A CmdStan that can compile programs.

    Attributes
    ----------
    path
        Its home.
    version
        Its version, such as ``"2.35.0"``.
    origin
        Who says so: the environment variable ``CMDSTAN``, cmdstanpy's own folder, or assembled here.
    compiler
        The C++ compiler it works with.
    """

    path: Path
    version: str
    origin: Origin
    compiler: Compiler


def ensure_cmdstan(on_progress: Callable[[str], None] | None = None) -> CmdStan:
    """Find a CmdStan, else assemble one.

    Parameters
    ----------
    on_progress
        Called with a line that says what takes time.

    Raises
    ------
    ToolchainError
        When ``CMDSTAN`` is set to what cannot be used, when there is no compiler, no make, neither CmdStan nor
        httpstan, or a cache that cannot be written or belongs to another user.
    """
    find_make()
    check_owner()
    found = find_cmdstan()
    if found is not None:
        return found
    compiler, wheel = find_compiler(), find_wheel()
    if on_progress is not None:
        on_progress("assembling CmdStan from the httpstan wheel (once)")
    home = assemble(wheel, compiler)
    return CmdStan(home, _version(home), "assembled", compiler)


def find_cmdstan() -> CmdStan | None:
    """Find a CmdStan that is there already; ``None`` when one would have to be assembled.

    Raises
    ------
    ToolchainError
        When ``CMDSTAN`` is set to what cannot be used, or there is no compiler.
    """
    compiler = find_compiler()
    chosen = os.environ.get("CMDSTAN", "")
    # cmdstanpy keeps its choice in CMDSTAN as well: a home of ours there is nobody's wish.
    if chosen and not is_assembled(Path(chosen)):
        path = Path(chosen).expanduser()
        trouble = _trouble(path)
        if trouble is not None:
            raise ToolchainError(
                f"CMDSTAN={chosen} cannot be used: {trouble}. Correct it, or unset it to have one found or assembled."
            )
        return CmdStan(path, _version(path), "CMDSTAN", compiler)
    for path in _cmdstanpy_folders():
        if _trouble(path) is None:
            return CmdStan(path, _version(path), "cmdstanpy", compiler)
    try:
        home = home_path(find_wheel(), compiler)
    except ToolchainError:
        return None
    return CmdStan(home, _version(home), "assembled", compiler) if is_complete(home) else None


def ignored_cmdstans() -> list[str]:
    """Say which CmdStans lie in cmdstanpy's folder and are not used, each with the reason."""
    return [f"{path}: {trouble}" for path in _cmdstanpy_folders() if (trouble := _trouble(path)) is not None]


def _cmdstanpy_folders() -> list[Path]:
    """List the installations of cmdstanpy's ``install_cmdstan`` (newest first), then conda's."""
    folders: list[Path] = []
    with suppress(OSError, RuntimeError):  # a home of another user's, as under sudo, or none at all
        folders = [path for path in (Path.home() / ".cmdstan").glob("cmdstan-*") if path.is_dir()]
    folders.sort(key=lambda path: ([int(part) for part in re.findall(r"\d+", path.name)], path.name), reverse=True)
    conda = os.environ.get("CONDA_PREFIX")
    if conda and (Path(conda) / "bin" / "cmdstan").is_dir():
        folders.append(Path(conda) / "bin" / "cmdstan")
    return folders


def _trouble(path: Path) -> str | None:
    """Say why a CmdStan cannot be used; ``None`` when it can."""
    try:
        return _lack(path)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _lack(path: Path) -> str | None:
    if not path.is_dir():
        return "there is no such folder"
    if not (path / "makefile").is_file():
        return "it has no makefile, so it is no CmdStan"
    version = _version(path)
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        return f"its version is {version or 'unknown'}, {OLDEST[0]}.{OLDEST[1]} or newer is needed"
    if not (path / "bin" / "stanc").is_file():
        return "it is not built (no bin/stanc): run make build in it"
    return None


def _version(path: Path) -> str:
    try:
        makefile = (path / "makefile").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(r"^CMDSTAN_VERSION := (\S+)", makefile, flags=re.MULTILINE)
    return match.group(1) if match else ""
