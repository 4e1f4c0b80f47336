"""Check that the Stan programs are formatted as ``stanc --auto-format`` would; ``--write`` formats them.

Function files are formatted as ``.stanfunctions``, which is what they are to stanc, with the others included before
them, since they call each other.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from slayr_py.toolchain import ensure_cmdstan

STAN = Path(__file__).resolve().parents[1] / "stan"


def formatted(path: Path, stanc: Path) -> str:
    """The text as stanc prints it."""
    with tempfile.TemporaryDirectory() as folder:
        of_functions = path.parent.name == "functions"
        definitions = STAN / "functions"
        others = sorted(f for f in definitions.glob("*.stan") if f != path) if path.parent == definitions else []
        includes = "".join(f"#include functions/{f.name}\n" for f in others)
        copy = Path(folder) / f"{path.stem}{'.stanfunctions' if of_functions else '.stan'}"
        copy.write_text(includes + path.read_text())
        options = ["--auto-format", "--allow-undefined", "--max-line-length=78", f"--include-paths={STAN}"]
        command = [str(stanc), *options, str(copy)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        lines = [line for line in text.splitlines() if not (of_functions and line.startswith("#include"))]
        return "\n".join(lines).strip("\n") + "\n"


def main() -> int:
    """Exit status: the number of files that differ."""
    stanc = ensure_cmdstan(print).path / "bin" / "stanc"
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
