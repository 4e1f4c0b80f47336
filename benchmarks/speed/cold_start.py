"""Measure the time from an empty cache to the first fit, and again with a full cache.

    python -m benchmarks.speed.cold_start

Cold: with an empty cache folder, ``slayr toolchain build`` on all cores, then the first fit of 50 points of Hartmann6
with the default options of ``GaussianProcess.fit``. Programs: each program is removed and compiled again with the front
end in place; first and second use are timed. Warm: the cold measurement again in a new process with the same cache.
Each phase runs in a separate process, so imports are included.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import begin, command_parser

SETUP = """
import shutil, sys, time
start = time.perf_counter()
import numpy as np
import slayr_py as sl
from slayr_py.inference.sampling.programs import build, compiled
from slayr_py.toolchain import program_names
from slayr_py.space import Encoder
from slayr_py.toolchain import ensure_cmdstan
from benchmarks.common.problems import PROBLEMS
space, objective, *_ = PROBLEMS["hartmann6"]
configs = Encoder(space).sobol(50, 0)
y = np.array([objective(config) for config in configs])
gp = sl.GaussianProcess(space)
imported = time.perf_counter()
"""

FIT = """
ensure_cmdstan()
assembled = time.perf_counter()
each = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in build())
compiled_all = time.perf_counter()
gp.fit(configs, y)
fitted = time.perf_counter()
print(f"{sys.argv[1]}: import {imported - start:.2f} s, CmdStan {assembled - imported:.2f} s, "
      f"compile {compiled_all - assembled:.2f} s, fit {fitted - compiled_all:.2f} s, all {fitted - start:.2f} s")
if sys.argv[1] == "cold":
    print(f"      compiled after: {each}")
"""

PROGRAMS = """
for name in program_names():
    shutil.rmtree(compiled(name).exe.parent)
    times = []
    for _ in range(2):
        started = time.perf_counter()
        compiled(name)
        times.append(time.perf_counter() - started)
    print(f"{name}: first use {times[0]:.1f} s, second {times[1]:.3f} s")
"""


def main(arguments: Sequence[str] | None = None) -> None:
    begin(command_parser(__file__, __doc__), arguments)
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SLAYR_CACHE_DIR": cache}
        environment.pop("CMDSTAN", None)
        for phase, text in (("cold", FIT), ("programs", PROGRAMS), ("warm", FIT)):
            command = [sys.executable, "-c", SETUP + text, phase]
            subprocess.run(command, check=True, env=environment, cwd=Path(__file__).resolve().parents[2])


if __name__ == "__main__":
    main()
