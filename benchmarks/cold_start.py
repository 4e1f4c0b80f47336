"""Seconds from nothing to the first fit, and again when everything is cached.

    python benchmarks/cold_start.py

Cold: an empty cache folder; assembling CmdStan together with compiling the program, then the first fit of 50 points of
Hartmann6 (default options of ``GaussianProcess.fit``). Warm: a new process with the same cache. Each phase runs in a
process of its own, so imports count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PHASES = """
import sys, time
start = time.perf_counter()
import numpy as np
import slayr_py as sl
from slayr_py.space import Encoder
from problems import PROBLEMS
space, objective, _ = PROBLEMS["hartmann6"]
configs = Encoder(space).sobol(50, 0)
y = np.array([objective(config) for config in configs])
gp = sl.GaussianProcess(space)
from slayr_py.toolchain import ensure_cmdstan
imported = time.perf_counter()
ensure_cmdstan()
assembled = time.perf_counter()
gp.prepare()
compiled = time.perf_counter()
gp.fit(configs, y)
fitted = time.perf_counter()
print(f"{sys.argv[1]}: import {imported - start:.2f} s, toolchain {assembled - imported:.2f} s, "
      f"compile {compiled - assembled:.2f} s, fit {fitted - compiled:.2f} s, all {fitted - start:.2f} s", flush=True)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "SLAYR_CACHE_DIR": cache}
        environment.pop("CMDSTAN", None)
        for phase in ("cold", "warm"):
            command = [sys.executable, "-c", PHASES, phase]
            subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parent)


if __name__ == "__main__":
    main()
