"""Compile programs of this package: ``python -m slayr_py.toolchain fm_gp``, or all of them without a name.

It needs httpstan, filelock and platformdirs only, so that ``make example`` and ``make check`` compile while pip
installs the other requirements. Everything else uses ``slayr toolchain build``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from slayr_py.errors import ToolchainError
from slayr_py.toolchain.building import compile_program
from slayr_py.toolchain.package_programs import accelerated_options, accelerated_sources, program_names
from slayr_py.toolchain.together import compile_together


def main(names: Sequence[str]) -> None:
    """Compile programs with the accelerated likelihood, unless they are in the cache."""
    sources = [accelerated_sources(name) for name in names or program_names()]
    files = [source.stan_file for source in sources]
    options = accelerated_options(sources[0])
    if len(files) > 1:
        compile_together(files, **options)
    for file in files:
        compile_program(file, **options)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ToolchainError as error:
        sys.exit(f"error: {error}")
