"""Identify processes, so that others can clean up or resume the work of a killed one."""

from __future__ import annotations

import contextlib
import os
import platform
import uuid
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil

from slayr_py.errors import StorageError


class Process(NamedTuple):
    """Identity of a process, unique over all machines and restarts.

    Attributes
    ----------
    host : str
        Machine, restart and container within which ``pid`` is valid.
    pid : int
    started : int
        Start time in a unit of the system, because process numbers are reused.
    """

    host: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.host}-{self.pid}-{self.started}"

    @classmethod
    def parse(cls, text: str) -> Process:
        """Read the form of ``str(process)``.

        Raises
        ------
        ValueError
            If the text does not have that form.
        """
        host, pid, started = text.split("-")
        return cls(host, int(pid), int(started))

    @property
    def is_local(self) -> bool:
        """Whether the process runs on this host, where its state is visible."""
        return self.host == _host()

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended; always False for a process of another machine or container."""
        return self.is_local and _start_time(self.pid) != self.started


def this_process() -> Process:
    """Return the identity of the current process.

    Raises
    ------
    StorageError
        If the system does not tell when the process has started.
    """
    started = _start_time(os.getpid())
    if started is None:
        raise StorageError("the start time of this process is unknown because /proc is missing; mount it")
    return Process(_host(), os.getpid(), started)


def kill_processes_using(folder: Path) -> None:
    """Kill processes with a file of this folder among their arguments, if the folder belongs to this user."""
    if folder.is_symlink() or (os.name != "nt" and folder.stat().st_uid != os.geteuid()):
        return
    inside = f"{folder}{os.sep}"
    for process in psutil.process_iter(["cmdline"]):
        if process.pid != os.getpid() and any(inside in argument for argument in process.info["cmdline"] or ()):
            with contextlib.suppress(psutil.Error):
                process.kill()
                process.wait(timeout=5)


@cache
def _host() -> str:
    """Return a name for this machine since its last restart, and for the container of the process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:12]
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # not Linux
        return f"{platform.node().replace('-', '_')}.{uuid.getnode():x}"


def _start_time(pid: int) -> int | None:
    """Return the start time of a process; None if it does not exist or is a zombie."""
    try:
        if Path("/proc/self/stat").exists():
            # Ticks since boot; psutil's time of day would change when the clock is set.
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return None if state in "ZX" else int(fields[18])
        return int(psutil.Process(pid).create_time())
    except (OSError, psutil.Error):
        return None
