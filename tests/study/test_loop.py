"""The page that shows the loop."""

from __future__ import annotations

import inspect
from pathlib import Path

from slayr_py.study.loop import run_loop, suggest_next

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_architecture_begins_with_the_code_that_runs():
    sources = [inspect.getsource(function).rstrip() for function in (run_loop, suggest_next)]
    blocks = [block.partition("```")[0].rstrip() for block in PAGE.split("```python\n")[1:3]]
    assert blocks == sources
    assert PAGE.index("```python") < PAGE.index("## Rooms")
    assert sum(len(source.splitlines()) for source in sources) <= 60
