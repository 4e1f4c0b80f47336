"""Programs with the readable likelihood."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys

from slayr_py.inference.sampling.programs import program_folder, program_names
from slayr_py.toolchain import CompiledProgram, compile_program, ensure_cmdstan, processor_options


def readable(name: str) -> CompiledProgram:
    """Compile a program with the readable likelihood for tests.

    Without optimisations a program compiles in a quarter of the time. The options for this processor are those of the
    accelerated programs: the front end is then not compiled again, which takes longer than a program.
    """
    folder, options = program_folder(), processor_options(ensure_cmdstan()) | {"O": "0"}
    return compile_program(folder / f"{name}.stan", include_paths=(folder,), cpp_options=options)


def compile_readable_in_background() -> None:
    """Start to compile all programs with the readable likelihood, which tests then find in the cache or wait for.

    Two workers begin at opposite ends, so that each compiles other programs. A process of its own, because tests change
    the environment of theirs.
    """
    names = program_names()[:: -1 if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" else 1]
    script = "import sys; from testing_programs import readable\nfor name in sys.argv[1:]: readable(name)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *names], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    # An interrupt also ends the compiler.
    atexit.register(process.send_signal, signal.SIGINT)
