"""Code on pages of the documentation, run as scripts."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"


def python_blocks(page: str | Path) -> dict[tuple[str, int], str]:
    """Return the Python blocks of a page, of which those in the documentation have a name, by heading and position."""
    found = {}
    for section in re.split(r"^## ", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading = section.partition("\n")[0]
        for i, block in enumerate(re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)):
            found[heading, i] = block
    return found


def run_script(code: str, folder: Path) -> dict[str, Any]:
    """Run code as a script in a folder, which is the working directory; return the names that it defines."""
    # A file, and the name "__main__", because processes import the script to find the objective.
    (folder / "script.py").write_text(code, encoding="utf-8")
    return runpy.run_path(str(folder / "script.py"), run_name="__main__")
