"""Compare the time per suggestion in whole loops with Optuna's GP sampler.

    python -m benchmarks.speed.loops                      # to 100 trials, three seeds
    python -m benchmarks.speed.loops --budget 30 --seeds 1
    python -m benchmarks.speed.loops --report             # only print the table

Hartmann6 and Func3C, one core, one thread, the defaults of both samplers. Each loop runs in a new process with its
sampler; the samplers take turns. The time of a suggestion is what passes between two evaluations: everything that the
loop does, such as audits, NUTS and storing trials. The table has the 10 suggestions up to n, over all seeds: median and
mean of wall-clock time (``wall``) and of processor time with child processes (``cpu``), and the ratios to Optuna's in
the same run.

Run it on an idle core: wall-clock times of a shared core are those of the other programs. The median of Optuna's
suggestions at n = 25, about 0.03 to 0.05 s, shows whether the core was idle. Processor times on a busy machine are
up to a half longer, since programs share caches and execution units, so only ratios of one run are comparable.

Rows are appended to ``results/loops.csv``; loops that are stored for this budget are not run again. Optuna's sampler
needs ``pip install torch``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import optuna
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import cpu_seconds, one_core
from benchmarks.common.problems import PROBLEMS
from slayr_py.study import space_to_distributions

STORED = Path(__file__).parent / "results" / "loops.csv"
LOOPS = ("hartmann6", "func3c")
SAMPLERS = ("slayr", "Optuna GP")
SIZES = (25, 50, 100)
_WINDOW = 10


class Clock:
    """Objective that notes the time since its last evaluation."""

    def __init__(self, problem: str) -> None:
        self.objective = PROBLEMS[problem].objective
        self.rows: list[dict[str, float]] = []
        self.start()

    def start(self) -> None:
        self.wall = time.perf_counter()
        self.cpu = cpu_seconds()

    def __call__(self, config: Mapping[str, Any]) -> float:
        wall = time.perf_counter() - self.wall
        self.rows.append({"n": len(self.rows), "wall": wall, "cpu": cpu_seconds() - self.cpu})
        value = self.objective(config)
        self.start()
        return value


def loop(problem: str, sampler: str, seed: int, budget: int) -> list[dict[str, Any]]:
    """Run a loop and return a row for each suggestion; n is the number of evaluations before it."""
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    clock = Clock(problem)
    space = PROBLEMS[problem].space
    if sampler == "slayr":
        sl.minimize(clock, space, budget=budget, seed=seed, progress=False)
    else:
        distributions = space_to_distributions(space)
        study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed))
        for _ in range(budget):
            trial = study.ask(distributions)
            study.tell(trial, clock(trial.params))
    about = {"problem": problem, "sampler": sampler, "seed": seed, "budget": budget}
    return [about | row for row in clock.rows]


def table() -> pd.DataFrame:
    return pd.read_csv(STORED) if STORED.exists() else pd.DataFrame(columns=["problem", "sampler", "seed", "budget"])


def run(budget: int, seeds: int) -> None:
    # Before the processes start: NumPy makes its threads when it is imported, which this module does first.
    one_core()
    for seed in range(seeds):
        for problem in LOOPS:
            for sampler in SAMPLERS:
                done = table()
                same = (done["problem"] == problem) & (done["sampler"] == sampler)
                if (same & (done["seed"] == seed) & (done["budget"] == budget)).any():
                    continue
                # A new process for each loop: no imports, compiled code or memory of the other sampler.
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    rows = pd.DataFrame(pool.submit(loop, problem, sampler, seed, budget).result())
                rows.to_csv(STORED, mode="a", header=not STORED.exists(), index=False, float_format="%.5g")
                print(problem, sampler, seed, rows[["wall", "cpu"]].median().round(3).to_dict(), flush=True)


def report() -> None:
    rows = table()
    parts = [rows[rows["n"].between(n - _WINDOW + 1, n)].assign(size=n) for n in SIZES if (rows["n"] >= n - 1).any()]
    if not parts:
        print(f"no loop reaches n = {SIZES[0]}")
        return
    groups = pd.concat(parts).groupby(["problem", "size", "sampler"])
    figures = groups[["wall", "cpu"]].agg(["median", "mean"]).unstack("sampler")
    for clock, kind in (("wall", "median"), ("wall", "mean"), ("cpu", "median"), ("cpu", "mean")):
        ratio = figures[clock, kind, "slayr"] / figures[clock, kind, "Optuna GP"]
        figures[clock, kind, "ratio"] = ratio
    print(figures.sort_index(axis=1).round(3).to_string())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--budget", type=int, default=101, help="evaluations of a loop")
    parser.add_argument("--seeds", type=int, default=3, help="loops of each sampler on each problem")
    parser.add_argument("--report", action="store_true", help="run nothing; use the stored rows")
    options = begin(parser, arguments)
    if not options.report:
        run(options.budget, options.seeds)
    report()


if __name__ == "__main__":
    main()
