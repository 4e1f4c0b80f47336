"""Compare the time per gradient of the log density with LAPACK's Cholesky factor and inverse of the same size.

    python -m benchmarks.speed.gradient

Both need about n^3 operations: dpotrf + dpotri (OpenBLAS, one thread) cost as much as a gradient whose other parts are
free. Gradients are timed inside the Stan program by NUTS trajectories of fixed length. The two take turns on one core.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import cpu_seconds, hartmann6, one_core
from benchmarks.common.problems import PROBLEMS
from slayr_py.inference.sampling.programs import compiled


def graphs_space(graphs: int, levels: int) -> ConfigurationSpace:
    """Return a space of one real parameter and several complete graphs."""
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), *(Categorical(f"c{i}", range(levels)) for i in range(graphs)))
    return space


def cases() -> dict[str, tuple[sl.GaussianProcess, list, np.ndarray]]:
    out = {}
    for n in (50, 200, 500):
        for kernel in ("matern", "additive"):
            gp = sl.GaussianProcess(PROBLEMS["hartmann6"][0], kernel)
            out[f"{kernel.capitalize()}, D = 6, n = {n}"] = (gp, *hartmann6(n))
    for graphs, levels in ((5, 17), (3, 4)):
        gp = sl.GaussianProcess(graphs_space(graphs, levels), "fm")
        rng = np.random.default_rng(0)
        levels_of = rng.integers(levels, size=(200, graphs)).tolist()
        configs = [{"x": rng.random()} | {f"c{i}": level for i, level in enumerate(row)} for row in levels_of]
        out[f"FM, {graphs} graphs of {levels}, n = 200"] = (gp, configs, rng.normal(size=200))
    months = np.arange(200.0) / 12
    series = months + 3 * np.sin(2 * np.pi * months) + np.random.default_rng(0).normal(size=200)
    line = ConfigurationSpace({"t": (0.0, 17.0)})
    for expression in ("SE", "LIN * PER * PER + RQ * PER"):
        gp = sl.GaussianProcess(line, sl.kernels.Composite(expression))
        out[f"{expression}, n = 200"] = (gp, [{"t": t} for t in months], series)
    return out


def gradient(exe: Path, data: dict, depth: int = 8) -> float:
    """Return the seconds of one gradient, from draws of 2^depth - 1 gradients."""
    with tempfile.TemporaryDirectory() as folder:
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in data.items()}
        (Path(folder) / "data.json").write_text(json.dumps(plain))

        def run(draws: int) -> float:
            command = f"sample num_warmup=0 num_samples={draws} adapt engaged=0 algorithm=hmc stepsize=1e-6"
            command += f" engine=nuts max_depth={depth} data file={folder}/data.json random seed=1"
            started = cpu_seconds()
            subprocess.run(
                [str(exe), *command.split(), "output", f"file={folder}/out.csv"], check=True, capture_output=True
            )
            return cpu_seconds() - started

        short = run(1)
        more = max(2, int(0.5 / short))
        return (run(1 + more) - short) / more / (2**depth - 1)


def lapack(n: int) -> float:
    """Return the seconds of one Cholesky factor and the inverse from it."""
    root = np.random.default_rng(0).normal(size=(n, n))
    matrix = np.asfortranarray(root @ root.T / n + np.eye(n))
    times = max(3, int(0.5 / (1e-11 * n**3 + 1e-5)))
    with threadpool_limits(1):
        started = cpu_seconds()
        for _ in range(times):
            factor, _ = dpotrf(matrix, lower=1)
            dpotri(factor, lower=1, overwrite_c=1)
        return (cpu_seconds() - started) / times


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--repeats", type=int, default=5, help="measurements per case")
    parser.add_argument("--cases", default="", help="measure only cases whose name has this text")
    parser.add_argument("--readable", action="store_true", help="also measure the likelihood written in Stan")
    options = begin(parser, arguments)
    one_core()
    rows = []
    for name, (gp, configs, y) in cases().items():
        if options.cases not in name:
            continue
        train = gp.encoder.encode(configs)
        data = gp.model.stan_data(train, (y - y.mean()) / y.std(ddof=1), train[:0])
        for _ in range(options.repeats):
            row = {"case": name}
            for likelihood in ("accelerated", "readable")[: 1 + options.readable]:
                row[likelihood] = gradient(compiled(gp.kernel.program, likelihood=likelihood).exe, data)
            row["LAPACK"] = lapack(len(y))
            rows.append(row | {"ratio": row["accelerated"] / row["LAPACK"]})
    table = pd.DataFrame(rows).groupby("case", sort=False)
    seconds = table.median().drop(columns="ratio") * 1e6
    ratios = table["ratio"].agg(["median", "min", "max"])
    print("microseconds (medians), and ratios to LAPACK")
    print(seconds.round(0).astype(int).join(ratios.round(2)).to_string())


if __name__ == "__main__":
    main()
