"""Compare effective samples per processor second with NumPyro and PyMC with nutpie, on one core.

    python -m benchmarks.speed.sampling             # cold fits, compilation excluded
    python -m benchmarks.speed.sampling --loop      # n grows by one per fit, everything included

Hartmann6 with a Sobol design, 4 chains of 500 + 500, and the same posterior for all samplers (see
``benchmarks/common/peers.py``). In the loop slayr_py starts from the previous fit and stops at 50 effective draws.
Samplers take turns. The effective sample size (ESS) is that of the worst hyperparameter.

Every table has the largest difference of a sampler's means and variances from those of a long run, in Monte Carlo
standard errors. Few effective samples of several modes make this error too small. If slayr_py is more than 4 errors
away, no ratio is printed and the exit status is 1, so that a fast but wrong sampler cannot win.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import SAMPLERS, Process, distance, effective, one_core

LIMIT = 4.0


def measure(process: Process, name: str, method: str, sizes: list[int], seeds: list[int]) -> list[dict]:
    rows = []
    for n, seed in zip(sizes, seeds, strict=True):
        draws, seconds = process(method, n, seed)
        ess = effective(draws)
        rows.append({"sampler": name, "n": n, "seed": seed, "ess": ess, "seconds": seconds, "draws": draws})
        print(f"  {name:14} n {n:4} seed {seed}: {ess:6.0f} in {seconds:7.2f} s", flush=True)
    return rows


def table(rows: pd.DataFrame, reference: dict[int, np.ndarray]) -> tuple[pd.DataFrame, bool]:
    """Return medians over repeats with the ratio to the best other sampler, and whether slayr_py is correct."""
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
                "ess per second": group["rate"].median(),
                "least": group["rate"].min(),
                "most": group["rate"].max(),
                "from reference": distance(together, reference[n]) if n in reference else np.nan,
            }
        )
    result = pd.DataFrame(out)
    ours = result["sampler"] == "slayr"
    right = result["from reference"] <= LIMIT
    for n, group in result[~ours].groupby("n"):
        here = ours & right & (result["n"] == n)
        result.loc[here, "ratio"] = result.loc[here, "ess per second"] / group["ess per second"].max()
    return result, bool(right[ours].all())


def cold(processes: dict[str, Process], sizes: list[int], repeats: int) -> bool:
    rows: list[dict] = []
    reference = {}
    for n in sizes:
        reference[n], _ = processes["slayr"]("reference", n, 1000)
        for name, process in processes.items():
            process("cold", n, 99)  # compiles the samplers whose code depends on n
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
    counted = pd.DataFrame([row for row in rows if row["n"] > begin])  # the first fit has no warm start
    last = begin + steps
    reference = {last: processes["slayr"]("reference", last, 1000)[0]}
    total = counted.groupby("sampler", sort=False)[["ess", "seconds"]].sum()
    total["ess per second"] = total["ess"] / total["seconds"]
    total["seconds per fit"] = counted.groupby("sampler")["seconds"].median()
    at_last = counted[counted["n"] == last].set_index("sampler")["draws"]
    total["from reference"] = [distance(at_last[name], reference[last]) for name in total.index]
    right = bool(total.loc["slayr", "from reference"] <= LIMIT)
    if right:
        others = total.drop(index="slayr")["ess per second"]
        total.loc["slayr", "ratio"] = total.loc["slayr", "ess per second"] / others.max()
    print(f"n = {begin + 1} to {last}")
    print(total.round(2).to_string())
    return right


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200], help="values of n for cold fits")
    parser.add_argument("--repeats", type=int, default=3, help="cold fits per sampler and n")
    parser.add_argument("--loop", action="store_true", help="fit in a loop with growing n instead")
    parser.add_argument("--begin", type=int, default=50, help="n of the first fit of the loop, which is not measured")
    parser.add_argument("--steps", type=int, default=8, help="measured fits of the loop")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS))
    options = begin(parser, arguments)
    warnings.simplefilter("ignore")
    one_core()
    processes = {name: Process(name) for name in options.samplers}
    if options.loop:
        return int(not loop(processes, options.begin, options.steps))
    return int(not cold(processes, options.sizes, options.repeats))


if __name__ == "__main__":
    sys.exit(main())
