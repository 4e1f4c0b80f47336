"""The argument parser of a benchmark command, and the versions that it prints first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.versions import versions


def command_parser(file: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the module ``file`` whose ``--help`` prints the module's docstring unwrapped."""
    path = Path(file)
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{path.parent.name}.{path.stem}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def begin(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments, and print the versions behind the results unless only stored results are reported."""
    given = parser.parse_args(arguments)
    if not getattr(given, "report", False):
        print(", ".join(f"{name} {version}" for name, version in versions().items()), flush=True)
    return given
