"""Measure the cost of records, and check that replays of saved fits are identical.

    python -m benchmarks.correctness.recording
    python -m benchmarks.correctness.recording --replays 60

The cost is the processor time in milliseconds to make and to write the record of a fit, next to the time of the fit
without it. With ``--replays``, fits of every program by every method, each with its own seed, are saved and replayed by
``slayr replay`` in a new process; the exit status is 1 unless all are identical.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import cpu_seconds, hartmann6, one_core
from benchmarks.common.problems import PROBLEMS, tree
from slayr_py.inference.records.record import as_text, make_record
from slayr_py.space import Encoder

METHODS = ("nuts", "nuts, rounds", "nuts, warm", "pathfinder", "laplace", "map")
_PROBLEMS = {"matern": PROBLEMS["hartmann6"], "hierarchical": tree(2), "fm": PROBLEMS["func2c"]}


def options(method: str, draws: int) -> dict[str, Any]:
    """Return the options of a fit with ``draws`` draws per chain."""
    rounds = {"ess": draws} if method == "nuts, rounds" else {}
    return {"method": method.partition(",")[0], "chains": 4, "warmup": draws, "draws": draws} | rounds


def overhead(n: int, methods: Sequence[str], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield the milliseconds of fits of n observations and of their records."""
    gp = sl.GaussianProcess(PROBLEMS["hartmann6"][0])
    configs, y = hartmann6(n)
    spent: list[float] = []

    def timed(*arguments: Any) -> dict[str, Any]:
        started = cpu_seconds()
        record = make_record(*arguments)
        spent.append(cpu_seconds() - started)
        return record

    with tempfile.TemporaryDirectory() as folder, patch("slayr_py.inference.part.make_record", timed):
        start = gp.fit(configs[:-1], y[:-1], seed=0, **options("nuts", 500)).warm_start()
        for method, seed in product(methods, range(repeats)):
            spent.clear()
            started = cpu_seconds()
            posterior = gp.fit(
                configs,
                y,
                seed=seed,
                start=start if method == "nuts, warm" else None,
                **options(method, 500 if method == "nuts" else 100),
            )
            fit = cpu_seconds() - started - sum(spent)
            started = cpu_seconds()
            text = as_text(posterior.record)
            (Path(folder) / "record.json").write_text(text, encoding="utf-8")
            written = cpu_seconds() - started
            made = np.mean(spent)  # a discarded fit has a record as well
            yield {
                "n": n,
                "fit": method,
                "kB": len(text) / 1000,
                "fit ms": 1000 * fit / len(spent),
                "make ms": 1000 * made,
                "write ms": 1000 * written,
                "ratio": (made + written) / (fit / len(spent)),
            }


def replays(tries: int) -> Counter[tuple[str, str, int]]:
    """Replay fits in new processes and count (kernel, method, exit code)."""
    found: Counter[tuple[str, str, int]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed, (method, kernel) in enumerate(islice(cycle(product(METHODS, _PROBLEMS)), tries)):
            space, objective, *_ = _PROBLEMS[kernel]
            gp = sl.GaussianProcess(space, kernel)
            configs = Encoder(space).sobol(10 + seed % 30, seed)
            y = [objective(config) for config in configs]
            start = gp.fit(configs, y, seed=seed, **options("nuts", 100)).warm_start() if "warm" in method else None
            posterior = gp.fit(configs, y, seed=seed, start=start, **options(method, 100))
            posterior.save(folder)
            command = [sys.executable, "-c", "from slayr_py.cli import main; main()", "replay", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(method, kernel, seed, done.stdout, done.stderr, flush=True)
            arguments = posterior.record["arguments"]
            used = f"{arguments['method']} {arguments.get('start', '')}".strip()
            found[kernel, used + (", rounds" if len(arguments.get("rounds", [])) > 1 else ""), done.returncode] += 1
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100], help="values of n")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["nuts", "nuts, warm", "pathfinder", "map"])
    parser.add_argument("--repeats", type=int, default=7, help="fits per method and n")
    parser.add_argument("--replays", type=int, metavar="N", help="replay N saved fits instead")
    options = begin(parser, arguments)
    warnings.simplefilter("ignore")
    if options.replays:
        found = replays(options.replays)
        print(pd.Series(found).rename_axis(["kernel", "fit", "exit code"]).sort_index().to_string())
        identical = sum(n for (_, _, code), n in found.items() if code == 0)
        print(f"identical: {identical} of {options.replays}")
        return int(identical < options.replays)
    one_core()
    table = pd.DataFrame([row for n in options.sizes for row in overhead(n, options.methods, options.repeats)])
    medians = table.groupby(["n", "fit"], sort=False).median()
    print(medians.assign(ratio=(100 * medians["ratio"]).round(2).astype(str) + "%").round(1).to_string())
    return 0


if __name__ == "__main__":
    sys.exit(main())
