"""Compare the exported log densities with Stan's own functions: time of a gradient inside the same program.

    python -m benchmarks.speed.exported

The program has a linear mean and can use the functions of ``slayr stan --export``, or ``gp_*_cov`` and
``multi_normal_cholesky``. Gradients are timed by NUTS trajectories of fixed length; the two take turns on one core.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import one_core
from benchmarks.speed.gradient import gradient
from slayr_py.inference import export_stan
from slayr_py.toolchain import compile_program, ensure_cmdstan, processor_options

D = 6
KERNELS = {"Matern 5/2": 1, "squared-exponential": 2, "SE + PER * Matern 3/2": 3}


def program() -> Path:
    """Compile the program as the package compiles its own."""
    with tempfile.TemporaryDirectory() as folder:
        _, header, _ = export_stan(folder)
        options = {"USER_HEADER": header} | processor_options(ensure_cmdstan())
        source = Path(__file__).with_suffix(".stan")
        return compile_program(source, include_paths=[folder], cpp_options=options).exe


def data(kernel: int, n: int) -> dict:
    """Return the data of the program: uniform inputs, normal values."""
    rng = np.random.default_rng(0)
    reads = [[1] * D, [0] * (D - 1) + [1], [0] * (D - 1) + [1]]
    entries = {"N": n, "D": D, "X": rng.random((n, D)), "y": rng.normal(size=n), "weight": np.ones(n)}
    expression = {"steps": [1, 2, 3, 0, -1], "kind": [1, 3, 6], "reads": reads}
    return entries | expression | {"kernel": kernel, "p": 2, "check": 0}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 500], help="values of n")
    parser.add_argument("--repeats", type=int, default=3, help="measurements per case")
    options = begin(parser, arguments)
    one_core()
    exe = program()
    rows = []
    for name, kernel in KERNELS.items():
        for n in options.sizes:
            for _ in range(options.repeats):
                row = {"kernel": name, "n": n}
                row |= {
                    label: 1e6 * gradient(exe, data(kernel, n) | {"builtin": builtin}, depth=5)
                    for builtin, label in enumerate(("slayr", "Stan"))
                }
                rows.append(row | {"ratio": row["Stan"] / row["slayr"]})
    table = pd.DataFrame(rows).groupby(["kernel", "n"], sort=False)
    ratios = table["ratio"].agg(["median", "min", "max"]).round(1)
    print("microseconds (medians), and ratios of Stan's functions to the exported ones")
    print(table[["slayr", "Stan"]].median().round(0).astype(int).join(ratios).to_string())


if __name__ == "__main__":
    main()
