"""CmdStanPy's model of a compiled program."""

from __future__ import annotations

from pathlib import Path

import cmdstanpy

_settings: dict[tuple[Path, int], dict[str, str]] = {}  # by the executable and the time of its last change


class ExecutableModel(cmdstanpy.CmdStanModel):
    """A model without its source, which asks its executable for its settings once.

    CmdStanPy does so before every run, in a process that takes longer than the search for a mode of a small data set.
    """

    def exe_info(self) -> dict[str, str]:
        """Return the settings with which the executable was compiled."""
        exe = Path(str(self.exe_file))
        key = exe, exe.stat().st_mtime_ns
        if key not in _settings:
            _settings[key] = super().exe_info()
        return dict(_settings[key])
