"""The command line, ``slayr``."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its exit code."""
    from slayr_py.cli.app import app

    app(prog_name="slayr")


__all__ = ["main"]
