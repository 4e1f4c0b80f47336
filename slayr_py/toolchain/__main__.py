"""Compile programs of this package: ``python -m slayr_py.toolchain fm_gp``, or all of them without a name.

It needs httpstan, filelock and platformdirs only, so that ``make example`` and ``make check`` compile while the
other requirements are installed. Everything else uses ``slayr toolchain build``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.package_programs import compile_accelerated, compile_accelerated_together, program_names


def main(names: Sequence[str]) -> None:
    """Compile programs with the accelerated likelihood, unless they are in the cache."""
    names = names or program_names()
    if len(names) > 1:
        compile_accelerated_together(names)
    for name in names:
        compile_accelerated(name)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ToolchainError as error:
        sys.exit(f"error: {error}")
