"""Compile programs of this package: ``python -m slayr_py.toolchain fm_gp``.

It needs httpstan, filelock and platformdirs only, so that ``make example`` compiles while pip installs the other
requirements. Everything else uses ``slayr toolchain build``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.building import compile_program
from slayr_py.toolchain.package_programs import accelerated_options, accelerated_sources


def main(names: Sequence[str]) -> None:
    """Compile programs with the accelerated likelihood, unless they are in the cache."""
    for name in names:
        sources = accelerated_sources(name)
        compile_program(sources.stan_file, **accelerated_options(sources))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ToolchainError as error:
        sys.exit(f"error: {error}")
