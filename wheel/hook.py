"""Pack compiled programs into the wheel, if SLAYR_PREBUILT names a folder that wheel/programs.py has written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledPrograms(BuildHookInterface[Any]):
    """Hatchling's build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the executables and the platform's tag; without SLAYR_PREBUILT the wheel is for every platform."""
        folder = os.environ.get("SLAYR_PREBUILT")
        if not folder or version == "editable":
            return
        manifest = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{manifest['platform']}"
        build_data["force_include"][folder] = "slayr_py/prebuilt"
