"""Find the C++ compiler, its version and make; errors name the packages to install."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.cache import cache_dir, write_text

INSTALL_COMPILER = """Install a C++ compiler:
  with pip:        pip install "slayr-py[compile]"
  Debian, Ubuntu:  sudo apt-get install g++ make
  Fedora:          sudo dnf install gcc-c++ make
  macOS:           xcode-select --install
  conda:           conda install -c conda-forge cxx-compiler make"""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler.

    Attributes
    ----------
    path
        Its executable.
    name
        Its name in make: the value of ``CXX``, or ``g++`` or ``clang++``.
    version
        First line of the output of ``--version``.
    """

    path: Path
    name: str
    version: str


def find_compiler() -> Compiler:
    """Find the compiler that ``CXX`` names, else g++, else clang++, else the portable one of the ziglang wheel.

    Raises
    ------
    ToolchainError
        If there is no compiler, or ``CXX`` does not name one; the message lists the packages to install.
    """
    chosen = os.environ.get("CXX", "").strip()
    for name in [chosen] if chosen else ["g++", "clang++"]:
        try:
            words = shlex.split(name)
        except ValueError as error:
            raise ToolchainError(f"CXX={chosen} is not a command: {error}. Unset CXX, or correct it.") from error
        path = shutil.which(words[0])
        if path is not None:
            return Compiler(Path(path), name, _version(Path(path), words))
    if chosen:
        raise ToolchainError(f"CXX={chosen} is not a program on the PATH. Unset CXX, or correct it. {INSTALL_COMPILER}")
    portable = portable_compiler()
    if portable is not None:
        return portable
    raise ToolchainError(f"no C++ compiler found: neither g++ nor clang++ is on the PATH. {INSTALL_COMPILER}")


def portable_compiler(options: str = "") -> Compiler | None:
    """Find the compiler of the ziglang wheel: clang with the C and C++ libraries of many platforms.

    Parameters
    ----------
    options
        Options of every call, such as ``"-target aarch64-linux-musl"``; by default it compiles for this machine.
    """
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name("zig.exe" if os.name == "nt" else "zig")
    words = [str(path), "c++", *shlex.split(options)]
    return Compiler(path, shlex.join(words), _version(path, words)) if path.is_file() else None


def compiler_environment() -> dict[str, str]:
    """Return the environment variables that keep a portable compiler's files in the package's cache."""
    return {"ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "zig"), "ZIG_LOCAL_CACHE_DIR": str(cache_dir() / "zig")}


def find_make() -> Path:
    """Find the make that ``MAKE`` names, else make.

    Raises
    ------
    ToolchainError
        If there is no make; the message lists the packages to install.
    """
    name = os.environ.get("MAKE", "").strip() or "make"
    path = shutil.which(name)
    if path is None:
        raise ToolchainError(f"no make found: {name} is not on the PATH. {INSTALL_COMPILER}")
    return Path(path)


def _version(path: Path, words: list[str]) -> str:
    """Return the version of a compiler, cached for as long as its file does not change."""
    stat = path.stat()
    identity = f"{shlex.join(words)}:{path}:{stat.st_size}:{stat.st_mtime_ns}"
    known = _cached_versions()
    if identity in known:
        return known[identity]
    try:
        answer = subprocess.run(
            [*words, "--version"],
            env=os.environ | compiler_environment(),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"the C++ compiler {path} does not run: {error}. {INSTALL_COMPILER}") from error
    if answer.returncode != 0:
        output = (answer.stderr or answer.stdout).strip().splitlines()
        raise ToolchainError(
            f"the C++ compiler {path} does not run: {shlex.join(words)} --version ended with status "
            f"{answer.returncode}: {output[-1] if output else 'no output'}. {INSTALL_COMPILER}"
        )
    version = (answer.stdout.splitlines() or ["unknown version"])[0].strip()
    with suppress(OSError):
        write_text(_version_cache(), json.dumps(known | {identity: version}, indent=1))
    return version


def _version_cache() -> Path:
    return cache_dir() / "compilers.json"


def _cached_versions() -> dict[str, str]:
    """Read the cached versions by identity; return an empty dictionary if the file cannot be read."""
    known: object = None
    with suppress(OSError, ValueError, RecursionError):
        known = json.loads(_version_cache().read_text(encoding="utf-8"))
    return {key: text for key, text in known.items() if isinstance(text, str)} if isinstance(known, dict) else {}
