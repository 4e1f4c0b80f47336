"""Shared state of a sampler: the lock of its threads, its displays, and the warnings that it has issued."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from slayr_py.errors import level_outside
from slayr_py.inference import check_programs


class Phase(NamedTuple):
    """What the sampler is doing, for a progress display."""

    name: str
    """"compiling", "searching kernels", "fitting" or "maximising"; `minimize` adds "evaluating"."""

    trial: int | None
    """Number of the trial; None before the first."""

    diagnostics: Mapping[str, Any] | None = None
    """Diagnostics of the latest fit while maximising, else None."""

    detail: str = ""
    """Message of the toolchain during a long step."""


class Session:
    """The lock, the displays and the warnings of a sampler. A copy in another process has its own lock.

    Parameters
    ----------
    on_progress : callable, optional
        Receives the phases of the work.

    Attributes
    ----------
    displays : list of callables
        Receive each `Phase` of the work.
    lock : threading.RLock
        Threads suggest one after another, so that each knows the pending suggestions of the others.
    """

    def __init__(self, on_progress: Callable[[Phase], None] | None = None) -> None:
        self.displays = [] if on_progress is None else [on_progress]
        self.lock = threading.RLock()
        self._done: set[str] = set()
        self._toolchain_checked = False

    def __getstate__(self) -> dict[str, Any]:
        """Omit the lock, which cannot be copied to another process."""
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Create a new lock."""
        self.__dict__.update(state)
        self.lock = threading.RLock()

    def report(self, phase: Phase) -> None:
        """Show the current phase of the work."""
        for display in self.displays:
            display(phase)

    def check_toolchain(self) -> None:
        """Check once that the Stan programs are installed or can be compiled here.

        Raises
        ------
        ToolchainError
            If there is no compiler or no CmdStan.
        """
        if not self._toolchain_checked:
            check_programs()
            self._toolchain_checked = True

    def is_first(self, what: str) -> bool:
        """Return whether this is the first call with these words, and remember them."""
        is_new = what not in self._done
        self._done.add(what)
        return is_new

    def warn(self, text: str, about: str = "") -> None:
        """Issue a warning unless one with the same ``about`` was issued before."""
        if self.is_first(f"warn about {about}"):
            warnings.warn(text, UserWarning, stacklevel=level_outside())
