"""Programs with the readable likelihood."""

from __future__ import annotations

from slayr_py.inference.sampling.programs import program_folder
from slayr_py.toolchain import CompiledProgram, compile_program, ensure_cmdstan, processor_options


def readable(name: str) -> CompiledProgram:
    """Compile a program with the readable likelihood for tests.

    Without optimisations a program compiles in a quarter of the time. The options for this processor are those of the
    accelerated programs: the front end is then not compiled again, which takes longer than a program.
    """
    folder, options = program_folder(), processor_options(ensure_cmdstan()) | {"O": "0"}
    return compile_program(folder / f"{name}.stan", include_paths=(folder,), cpp_options=options)
