"""Which process did something, and whether it still lives: what a killed one leaves behind is for others to take up."""

from __future__ import annotations

import contextlib
import os
import platform
import uuid
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psutil


class Process(NamedTuple):
    """One process among all that ever ran on one start of one machine.

    Attributes
    ----------
    host : str
        Within which process numbers mean something.
    pid : int
    started : int
        When, in a unit of the system's own: numbers are given out again.
    """

    host: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.host}-{self.pid}-{self.started}"

    @classmethod
    def parse(cls, text: str) -> Process:
        """Read what ``str`` wrote.

        Raises
        ------
        ValueError
            It is no such text.
        """
        host, pid, started = text.split("-")
        return cls(host, int(pid), int(started))

    @property
    def is_local(self) -> bool:
        """Whether it could be seen from here."""
        return self.host == _host()

    @property
    def is_gone(self) -> bool:
        """Whether it has ended; False also for a process of another machine or container, which cannot be seen."""
        return self.is_local and _started(self.pid) != self.started


def this_process() -> Process:
    """The process that asks."""
    started = _started(os.getpid())
    assert started is not None
    return Process(_host(), os.getpid(), started)


def end_processes_about(folder: Path) -> None:
    """Kill the programs that were started with a file of this folder, by the folder's owner if it is this user."""
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
    """A name for this start of this machine, and the container whose process numbers these are."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:12]
        return f"{boot}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # no Linux
        return f"{platform.node().replace('-', '_')}.{uuid.getnode():x}"


def _started(pid: int) -> int | None:
    """When a process began, or None if there is none (or only its remains)."""
    try:
        if Path("/proc/self/stat").exists():
            # Ticks since the machine's start; psutil's time of day would move with the clock.
            state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return None if state in "ZX" else int(fields[18])
        return int(psutil.Process(pid).create_time())
    except (OSError, psutil.Error):
        return None
