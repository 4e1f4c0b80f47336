"""Programs that only tests use."""

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

from testing_functions import table_program
from testing_own_kernel import bent_program

from slayr_py.inference import export_stan
from slayr_py.inference.sampling.programs import program_folder, program_names
from slayr_py.toolchain import CompiledProgram, combined_header, compile_program, ensure_cmdstan, processor_options
from slayr_py.toolchain.source import stan_code

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def readable(name: str) -> CompiledProgram:
    """Return one of the package's programs with the readable likelihood."""
    program = shared_program(name)
    folder = program_folder()
    source = folder / f"{name}.stan"
    return dataclasses.replace(
        program,
        source=source,
        source_hash=hashlib.sha256(stan_code(source, (folder,)).encode()).hexdigest(),
        flags=tuple(flag for flag in program.flags if not flag.startswith("USER_HEADER=")),
    )


def shared_program(name: str) -> CompiledProgram:
    """Return a program of `all_programs` by its name."""
    together = all_programs()
    exe = together.exe.with_name(name)
    with suppress(FileExistsError):
        os.link(together.exe, exe)
    return dataclasses.replace(together, exe=exe, name=name)


@functools.cache
def all_programs() -> CompiledProgram:
    """Compile the programs of the tests as one executable, which selects the program by the name of its file.

    These are the package's programs with the readable likelihood, `testing_functions.table_program`, the program of a
    user's kernel (`testing_own_kernel`), and two programs with the functions that the package exports. Together they
    compile in less than half of the time: they use the same templates. Without optimisations they compile in a quarter
    of the time. The options for this processor are those of the accelerated programs: the front end is then not
    compiled again.
    """
    cmdstan = ensure_cmdstan()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = folder / "functions_table.stan"
        table.write_text(table_program())
        own = folder / "bent_gp.stan"
        own.write_text(bent_program())
        export_stan(folder)
        programs = {program_folder() / f"{name}.stan": program_folder() for name in program_names()}
        programs |= {table: program_folder(), own: program_folder()}
        programs[ROOT / "benchmarks" / "speed" / "exported.stan"] = folder
        programs[ROOT / "examples" / "growth_curves.stan"] = folder
        for file, includes in programs.items():
            # With relative paths, which messages quote, all checkouts share the executable.
            options = ["--allow-undefined", "--include-paths=.", f"--filename-in-msg={file.name}"]
            command = [cmdstan.path / "bin" / "stanc", *options, f"--o={folder / file.stem}.hpp", file]
            subprocess.run(command, cwd=includes, check=True)
        source = folder / "shared.stan"
        source.write_text("parameters { real unused; }\n")
        header = folder / "shared_programs.hpp"
        header.write_text(combined_header([file.stem for file in programs], ["slayr.hpp"]))
        cpp_options = {"O": "0", "USER_HEADER": header} | processor_options(cmdstan)
        return compile_program(source, cpp_options=cpp_options)


def compile_in_background() -> None:
    """Start to compile the programs of the tests, which then find them in the cache or wait for them.

    A process of its own, because tests change the environment of theirs.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", "from testing_programs import all_programs; all_programs()"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # An interrupt also ends the compiler.
    atexit.register(process.send_signal, signal.SIGINT)
