"""Microseconds a gradient of the log density, against LAPACK's Cholesky factor and inverse of the same size.

    python benchmarks/gradient.py

Both need about n^3 operations: dpotrf + dpotri (OpenBLAS, one thread) are what a gradient could cost if all the rest
cost nothing. A gradient is timed inside the program, by trajectories of NUTS whose length is fixed. The two take turns
on one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from ConfigSpace import Categorical, ConfigurationSpace, Float
from peers import cpu_seconds, hartmann6, one_core
from problems import PROBLEMS
from scipy.linalg.lapack import dpotrf, dpotri
from threadpoolctl import threadpool_limits

import slayr_py as sl
from slayr_py.inference.sampling.programs import Likelihood, compiled

_DEPTH = 8  # 255 gradients a draw: what else a draw costs is a hundredth of them


def graphs_space(graphs: int, levels: int) -> ConfigurationSpace:
    """One number and some complete graphs."""
    space = ConfigurationSpace()
    space.add(Float("x", (0.0, 1.0)), *(Categorical(f"c{i}", range(levels)) for i in range(graphs)))
    return space


def cases() -> dict[str, tuple[sl.GaussianProcess, list, np.ndarray]]:
    out = {}
    for n in (50, 200, 500):
        out[f"Matern, D = 6, n = {n}"] = (sl.GaussianProcess(PROBLEMS["hartmann6"][0], "matern"), *hartmann6(n))
    for graphs, levels in ((5, 17), (3, 4)):
        gp = sl.GaussianProcess(graphs_space(graphs, levels), "fm")
        rng = np.random.default_rng(0)
        levels_of = rng.integers(levels, size=(200, graphs)).tolist()
        configs = [{"x": rng.random()} | {f"c{i}": level for i, level in enumerate(row)} for row in levels_of]
        out[f"FM, {graphs} graphs of {levels}, n = 200"] = (gp, configs, rng.normal(size=200))
    return out


def gradient(program: str, data: dict, likelihood: Likelihood) -> float:
    """Seconds of one gradient."""
    exe = compiled(program, likelihood=likelihood).exe
    with tempfile.TemporaryDirectory() as folder:
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in data.items()}
        (Path(folder) / "data.json").write_text(json.dumps(plain))

        def run(draws: int) -> float:
            how = f"sample num_warmup=0 num_samples={draws} adapt engaged=0 algorithm=hmc stepsize=1e-6"
            how += f" engine=nuts max_depth={_DEPTH} data file={folder}/data.json random seed=1"
            begun = cpu_seconds()
            subprocess.run(
                [str(exe), *how.split(), "output", f"file={folder}/out.csv"], check=True, capture_output=True
            )
            return cpu_seconds() - begun

        short = run(1)
        more = max(2, int(0.5 / short))
        return (run(1 + more) - short) / more / (2**_DEPTH - 1)


def lapack(n: int) -> float:
    """Seconds of a Cholesky factor and the inverse from it."""
    root = np.random.default_rng(0).normal(size=(n, n))
    matrix = np.asfortranarray(root @ root.T / n + np.eye(n))
    times = max(3, int(0.5 / (1e-11 * n**3 + 1e-5)))
    with threadpool_limits(1):
        begun = cpu_seconds()
        for _ in range(times):
            factor, _ = dpotrf(matrix, lower=1)
            dpotri(factor, lower=1, overwrite_c=1)
        return (cpu_seconds() - begun) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--readable", action="store_true", help="also the likelihood written in Stan")
    arguments = parser.parse_args()
    one_core()
    rows = []
    for name, (gp, configs, y) in cases().items():
        train = gp.encoder.encode(configs)
        data = gp.stan_data(train, (y - y.mean()) / y.std(ddof=1), train[:0])
        for _ in range(arguments.repeats):
            row = {"case": name, "accelerated": gradient(gp.kernel.program, data, "accelerated")}
            row |= {"readable": gradient(gp.kernel.program, data, "readable")} if arguments.readable else {}
            row["LAPACK"] = lapack(len(y))
            rows.append(row | {"ratio": row["accelerated"] / row["LAPACK"]})
    table = pd.DataFrame(rows).groupby("case", sort=False)
    seconds = table.median().drop(columns="ratio") * 1e6
    ratios = table["ratio"].agg(["median", "min", "max"])
    print("microseconds (medians), and ratios to LAPACK")
    print(seconds.round(0).astype(int).join(ratios.round(2)).to_string())


if __name__ == "__main__":
    main()
