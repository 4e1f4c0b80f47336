"""The argument parser of a benchmark command."""

from __future__ import annotations

import argparse
from pathlib import Path


def command_parser(file: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the module ``file`` whose ``--help`` prints the module's docstring unwrapped."""
    path = Path(file)
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{path.parent.name}.{path.stem}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
