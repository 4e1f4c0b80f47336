"""Check that the Stan files are formatted as ``stanc --auto-format`` prints them; ``--write`` formats them.

An included file is no program by itself. It is formatted in place of its ``#include`` line, between two marks, in the
first program that includes it; a file that no program includes is an error. The functions for other programs in
``stan/export`` are formatted as a program of their own. Versions of stanc break lines at different places: only that of
CI checks and formats.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from slayr_py.toolchain import ensure_cmdstan

STAN = Path(__file__).resolve().parents[1] / "stan"
VERSION = "2.35.0"
WIDTH = 100
EXPORTED = "functions {{\n  #include export/{name}\n}}\n"
MARK = "// formatted file\n"


def print_program(text: str, width: int, stanc: Path) -> str:
    """Return the text of a program as stanc prints it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "program.stan"
        copy.write_text(text)
        options = ["--auto-format", "--allow-undefined", f"--max-line-length={width}", f"--include-paths={STAN}"]
        return subprocess.run([str(stanc), *options, str(copy)], check=True, stdout=subprocess.PIPE, text=True).stdout


def formatted(path: Path, stanc: Path) -> str:
    """Return the text of a file as stanc prints it."""
    if path.parent == STAN:
        return print_program(path.read_text(), WIDTH, stanc).strip("\n") + "\n"
    include = f"#include {path.parent.name}/{path.name}\n"
    programs = [*map(Path.read_text, sorted(STAN.glob("*.stan"))), EXPORTED.format(name=path.name)]
    programs = [text for text in programs if include in text]
    if not programs:
        sys.exit(f"no program includes {path}; delete it, or include it")
    program = programs[0]
    indent = program.partition(include)[0].rpartition("\n")[2]
    text = print_program(program.replace(include, MARK + path.read_text() + MARK), WIDTH + len(indent), stanc)
    return textwrap.dedent(text.split(indent + MARK)[1]).strip("\n") + "\n"


def main() -> int:
    """Return the number of files whose format differs, and 1 if another version should format them."""
    cmdstan = ensure_cmdstan(print)
    stanc = cmdstan.path / "bin" / "stanc"
    if cmdstan.version != VERSION:
        print(f"the Stan files are formatted by stanc {VERSION}, this is {cmdstan.version}: not checked")
        return int("--write" in sys.argv)
    differing = []
    for path in sorted(STAN.rglob("*.stan")):
        text = formatted(path, stanc)
        if text != path.read_text():
            differing.append(path)
            if "--write" in sys.argv:
                path.write_text(text)
    for path in differing:
        print(f"{path.relative_to(STAN.parent)}: {'formatted' if '--write' in sys.argv else 'not formatted'}")
    return 0 if "--write" in sys.argv else len(differing)


if __name__ == "__main__":
    sys.exit(main())
