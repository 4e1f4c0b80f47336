"""CmdStanPy's model of a compiled program."""

from __future__ import annotations

import functools
from pathlib import Path

import cmdstanpy


class ExecutableModel(cmdstanpy.CmdStanModel):
    """A model without its source, which asks its executable for its settings once.

    CmdStanPy does so before every run, in a process that takes longer than the search for a mode of a small data set.
    """

    def exe_info(self) -> dict[str, str]:
        """Return the settings with which the executable was compiled."""
        exe = Path(str(self.exe_file))
        return dict(_exe_info(exe, exe.stat().st_mtime_ns))


@functools.lru_cache(maxsize=64)
def _exe_info(exe: Path, mtime_ns: int) -> dict[str, str]:
    return cmdstanpy.CmdStanModel(exe_file=str(exe)).exe_info()
