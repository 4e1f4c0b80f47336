"""Effective samples a processor second, against NumPyro and PyMC with nutpie, on one core.

    python benchmarks/sampling.py                       # fits from nothing, compilation excluded
    python benchmarks/sampling.py --loop                # n grows by one each time, everything counted

Hartmann6 with a Sobol design, one posterior for all (``peers.py``), 4 chains of 500 + 500; in the loop ours begin where
the last fit ended and stop when there is enough. Samplers take turns. The effective sample size is that of the worst
hyperparameter. Every table says how far the means and variances of a sampler's draws are from those of a long run, in
Monte Carlo standard errors, which few effective samples of several modes make too small. With more than 4 of ours there
is no ratio, and the exit status is 1: a fast wrong sampler cannot win.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
import pandas as pd
from peers import SAMPLERS, Process, distance, effective, one_core

LIMIT = 4.0


def measure(process: Process, name: str, method: str, sizes: list[int], seeds: list[int]) -> list[dict]:
    rows = []
    for n, seed in zip(sizes, seeds, strict=True):
        draws, seconds = process(method, n, seed)
        ess = effective(draws)
        rows.append({"sampler": name, "n": n, "seed": seed, "ess": ess, "seconds": seconds, "draws": draws})
        print(f"  {name:14} n {n:4} seed {seed}: {ess:6.0f} in {seconds:7.2f} s", flush=True)
    return rows


def table(rows: pd.DataFrame, reference: dict[int, np.ndarray], ours: str = "slayr") -> tuple[pd.DataFrame, bool]:
    """Medians over repeats, distances from the reference, and the ratio to the best other sampler."""
    rows = rows.assign(rate=rows["ess"] / rows["seconds"])
    out = []
    for (n, name), group in rows.groupby(["n", "sampler"], sort=False):
        together = np.concatenate(list(group["draws"]))
        out.append(
            {
                "n": n,
                "sampler": name,
                "ess": group["ess"].median(),
                "seconds": group["seconds"].median(),
                "ess a second": group["rate"].median(),
                "least": group["rate"].min(),
                "most": group["rate"].max(),
                "from reference": distance(together, reference[n]) if n in reference else np.nan,
            }
        )
    result = pd.DataFrame(out)
    mine = result["sampler"] == ours
    right = result["from reference"] <= LIMIT
    for n, group in result[~mine].groupby("n"):
        here = mine & right & (result["n"] == n)
        result.loc[here, "ratio"] = result.loc[here, "ess a second"] / group["ess a second"].max()
    return result, bool(right[mine].all())


def cold(processes: dict[str, Process], sizes: list[int], repeats: int) -> bool:
    rows: list[dict] = []
    reference = {}
    for n in sizes:
        reference[n], _ = processes["slayr"]("reference", n, 1000)
        for name, process in processes.items():
            process("cold", n, 99)  # compiles, where that depends on n
            print(f"  {name:14} n {n:4} compiled", flush=True)
        for seed in range(repeats):
            for name, process in processes.items():
                rows += measure(process, name, "cold", [n], [seed])
        result, right = table(pd.DataFrame(rows), reference)
        print(result.round(2).to_string(index=False), flush=True)
    return right


def loop(processes: dict[str, Process], begin: int, steps: int) -> bool:
    rows: list[dict] = []
    for step in range(steps + 1):
        for name, process in processes.items():
            rows += measure(process, name, "next", [begin + step], [step])
    counted = pd.DataFrame([row for row in rows if row["n"] > begin])  # the first fit has nothing to begin with
    last = begin + steps
    reference = {last: processes["slayr"]("reference", last, 1000)[0]}
    total = counted.groupby("sampler", sort=False)[["ess", "seconds"]].sum()
    total["ess a second"] = total["ess"] / total["seconds"]
    total["seconds a fit"] = counted.groupby("sampler")["seconds"].median()
    at_last = counted[counted["n"] == last].set_index("sampler")["draws"]
    total["from reference"] = [distance(at_last[name], reference[last]) for name in total.index]
    right = bool(total.loc["slayr", "from reference"] <= LIMIT)
    if right:
        others = total.drop(index="slayr")["ess a second"]
        total.loc["slayr", "ratio"] = total.loc["slayr", "ess a second"] / others.max()
    print(f"n = {begin + 1} to {last}")
    print(total.round(2).to_string())
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--begin", type=int, default=50, help="first n of the loop")
    parser.add_argument("--steps", type=int, default=8, help="further fits of the loop")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    one_core()
    processes = {name: Process(name) for name in arguments.samplers}
    if arguments.loop:
        return int(not loop(processes, arguments.begin, arguments.steps))
    return int(not cold(processes, arguments.sizes, arguments.repeats))


if __name__ == "__main__":
    sys.exit(main())
