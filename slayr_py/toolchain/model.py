"""CmdStanPy's model of a compiled program."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cmdstanpy

_MOMENT = 2e-4  # seconds between two looks at a process that writes nothing any more

_settings: dict[tuple[Path, int], dict[str, str]] = {}  # by the executable and the time of its last change


class ExecutableModel(cmdstanpy.CmdStanModel):
    """A model without its source, which asks its executable for its settings once and waits for its runs without work.

    CmdStanPy asks before every run, in a process that takes longer than the search for a mode of a small data set. From
    the end of a run's output to the end of its process it asks without a pause whether the process has ended, which
    takes much of a processor that other processes want.
    """

    def exe_info(self) -> dict[str, str]:
        """Return the settings with which the executable was compiled."""
        exe = Path(str(self.exe_file))
        key = exe, exe.stat().st_mtime_ns
        if key not in _settings:
            _settings[key] = super().exe_info()
        return dict(_settings[key])

    def _run_cmdstan(self, *arguments: Any, **options: Any) -> None:
        hook: Callable[[str, int], None] | None = options.get("progress_hook")

        def look(line: str, idx: int) -> None:
            if not line:  # also an empty line of the output
                time.sleep(_MOMENT)
            if hook is not None:
                hook(line, idx)

        super()._run_cmdstan(*arguments, **{**options, "progress_hook": look})
