"""Compile the Stan programs for a wheel, by the portable compiler, for every kind of processor of one machine type.

    python wheel/programs.py --machine x86_64 --output build/prebuilt

The executables are static, so that they run on every Linux and give the same bits on every one. ``make wheel`` packs
them.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from slayr_py.toolchain import (
    Build,
    accelerated_sources,
    assembled_cmdstan,
    code_hashes,
    compile_executable,
    portable_compiler,
    program_names,
    write_manifest,
)


class Kind(NamedTuple):
    """A kind of processor.

    Attributes
    ----------
    name
        Its name.
    target
        Target of the compiler.
    cpu
        Processor of the compiler.
    instructions
        Instruction sets that a processor must have, as ``/proc/cpuinfo`` names them.
    """

    name: str
    target: str
    cpu: str
    instructions: tuple[str, ...]


V3 = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")
KINDS = {
    "x86_64": (
        Kind("x86_64_v3", "x86_64-linux-musl", "x86_64_v3", V3),
        Kind("x86_64", "x86_64-linux-musl", "x86_64", ()),
    ),
    "aarch64": (Kind("aarch64", "aarch64-linux-musl", "generic", ()),),
}
PLATFORMS = {machine: f"manylinux2014_{machine}" for machine in KINDS}


def build(kind: Kind, output: Path, machine: str) -> dict[str, Any]:
    """Compile all programs for a kind of processor; return their description."""
    compiler = portable_compiler(f"-target {kind.target} -mcpu={kind.cpu}")
    if compiler is None:
        raise SystemExit('the portable compiler is not installed: pip install -e ".[compile]"')
    cmdstan = assembled_cmdstan(compiler)
    sources = {name: accelerated_sources(name) for name in program_names()}
    builds = [
        Build(
            source.stan_file,
            source.include_paths,
            ("--allow-undefined",),
            ("LDFLAGS=-s", "NO_SUNDIALS=TRUE", "USED_MATH=TRUE", f"USER_HEADER={source.header}"),
            cmdstan,
        )
        for source in sources.values()
    ]
    file = f"programs-{kind.name}"
    with tempfile.TemporaryDirectory() as work:
        shutil.copyfile(compile_executable(builds, Path(work)), output / file)
    path, *words = shlex.split(compiler.name)
    return {
        "file": file,
        "system": "Linux",
        "machine": machine,
        "processor": kind.name,
        "instructions": list(kind.instructions),
        "stan_version": cmdstan.version,
        "compiler": compiler.version,
        "command": shlex.join([Path(path).name, *words]),
        "sources": {name: code_hashes(*source)[1] for name, source in sources.items()},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile the programs and describe them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", choices=list(KINDS), default=platform.machine(), help="default: this machine's")
    parser.add_argument("--output", type=Path, required=True, help="folder for the executables and their manifest")
    options = parser.parse_args(arguments)
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    builds = []
    for kind in KINDS[options.machine]:
        print(f"compiling the programs for {kind.name}", flush=True)
        builds.append(build(kind, options.output, options.machine))
    write_manifest(options.output, PLATFORMS[options.machine], builds)


if __name__ == "__main__":
    main()
