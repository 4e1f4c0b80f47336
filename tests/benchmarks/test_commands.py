"""Every benchmark command prints its help and has a section on the page of its folder."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
COMMANDS = [
    f"benchmarks.{folder}.{path.stem}"
    for folder in ("optimisation", "speed", "correctness", "search")
    for path in sorted((BENCHMARKS / folder).glob("[!_]*.py"))
    if "def main(" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_page(command, capsys):
    module = import_module(command)
    with pytest.raises(SystemExit) as exit_info:
        module.main(["--help"])
    assert exit_info.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"usage: python -m {command} ") and module.__doc__.strip() in printed
    assert f"python -m {command}" in (Path(module.__file__).parent / "README.md").read_text(encoding="utf-8")
