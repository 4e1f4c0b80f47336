"""Run the compiler's tools so that they end with this process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from slayr_py.errors import CompileError, ToolchainError
from slayr_py.toolchain.cache import cache_dir, check_executable
from slayr_py.watcher import process_watcher

_LAST_LINES = 30  # of the output in an error; compilers print the cause last
_OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")


def run_tool(command: list[str], folder: Path, message: str, settings: Mapping[str, str] | None = None) -> str:
    """Run a tool and return its output; if this process is interrupted or killed, kill the tool and its children."""
    # A make that runs this process (a test run, a package build) must not pass its MAKEFLAGS on.
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    environment |= {"LC_ALL": "C", **(settings or {})}
    with process_watcher() as watch:
        process = _start(command, folder, environment)
        watch(process.pid)
        try:
            output, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if process.returncode != 0:
        lines = output.strip().splitlines()[-_LAST_LINES:]
        raise CompileError(f"{message}:\n" + "\n".join(lines))
    return output


def _start(command: list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            umask=0o022,  # others must not be able to write to objects in the cache
        )
    except OSError as error:
        if error.errno == errno.EACCES and cache_dir() in Path(command[0]).parents:
            check_executable(Path(command[0]))
        raise ToolchainError(f"cannot run {command[0]}: {error.strerror}") from error
