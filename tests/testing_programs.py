"""Programs with the readable likelihood."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from testing_own_kernel import bent_program

from slayr_py.inference.sampling.programs import program_folder, program_names
from slayr_py.toolchain import CompiledProgram, combined_header, compile_program, ensure_cmdstan, processor_options
from slayr_py.toolchain.source import stan_code


def readable(name: str) -> CompiledProgram:
    """Compile a program with the readable likelihood for tests.

    All programs are one executable, which selects the program by the name with which it is called.
    """
    together = all_readable()
    folder = program_folder()
    exe = together.exe.with_name(name)
    with suppress(FileExistsError):
        os.link(together.exe, exe)
    source = folder / f"{name}.stan"
    return dataclasses.replace(
        together,
        exe=exe,
        name=name,
        source=source,
        source_hash=hashlib.sha256(stan_code(source, (folder,)).encode()).hexdigest(),
        flags=tuple(flag for flag in together.flags if not flag.startswith("USER_HEADER=")),
    )


@functools.cache
def all_readable() -> CompiledProgram:
    """Compile all programs with the readable likelihood as one, in half of the time: they use the same templates.

    Without optimisations they compile in a quarter of the time. The options for this processor are those of the
    accelerated programs: the front end is then not compiled again.
    """
    cmdstan = ensure_cmdstan()
    with tempfile.TemporaryDirectory() as folder:
        for name in program_names():
            # With relative paths, which messages quote, all checkouts share the executable.
            command = [cmdstan.path / "bin" / "stanc", "--include-paths=.", f"--o={folder}/{name}.hpp", f"{name}.stan"]
            subprocess.run(command, cwd=program_folder(), check=True)
        own = Path(folder, "bent_gp.stan")
        own.write_text(bent_program())
        command = [cmdstan.path / "bin" / "stanc", "--include-paths=.", f"--filename-in-msg={own.name}", own]
        subprocess.run(command, cwd=program_folder(), check=True)
        source = Path(folder, "readable.stan")
        header = Path(folder, "readable_programs.hpp")
        source.write_text("parameters { real unused; }\n")
        header.write_text(combined_header([*program_names(), own.stem]))
        options = {"O": "0", "USER_HEADER": header} | processor_options(cmdstan)
        return compile_program(source, cpp_options=options)


def compile_readable_in_background() -> None:
    """Start to compile the readable programs, which tests then find in the cache or wait for.

    A process of its own, because tests change the environment of theirs.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", "from testing_programs import all_readable; all_readable()"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # An interrupt also ends the compiler.
    atexit.register(process.send_signal, signal.SIGINT)
