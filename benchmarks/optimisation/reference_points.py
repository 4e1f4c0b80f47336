"""Compare rules for the default reference point of several objectives.

    python -m benchmarks.optimisation.reference_points --seeds 2 --budget 25

Each rule makes the reference point of every suggestion from the values so far; the hypervolume that is missing at the
end is that within the reference point of the problem, which no rule knows. Problems: those of
benchmarks.optimisation.objectives without constraints and noise. The hyperparameters are the mode (method="map"), which
costs a fifth of a study with draws. A run is written to reference_points.csv when it is finished; run the same command
again to resume. --report only prints the tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import optuna
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.objectives_problems import TRADEOFFS
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from benchmarks.optimisation.objectives import KEYS, log_difference, replace_run, run, unfinished
from slayr_py.space import FloatArray
from slayr_py.study.model import incumbent
from slayr_py.study.storage.objectives import default_reference

Rule = Callable[[FloatArray, FloatArray], FloatArray]
"""The reference point (p,) from all values (n, p) and the non-dominated ones."""


def beyond_front(share: float) -> Rule:
    """Return the rule "worst of the front, and a share of the front's range"."""

    def rule(values: FloatArray, front: FloatArray) -> FloatArray:
        return front.max(axis=0) + share * _range(front, values)

    return rule


def beyond_front_by_spread(values: FloatArray, front: FloatArray) -> FloatArray:
    """Return the rule "worst of the front, and its range or the standard deviation of all values, the larger"."""
    return front.max(axis=0) + np.maximum(_range(front, values), values.std(axis=0))


def worst_or_range(values: FloatArray, front: FloatArray) -> FloatArray:
    """Return the rule "worst of all values, but at least the front's range worse than the front"."""
    return np.maximum(values.max(axis=0), front.max(axis=0) + _range(front, values))


def alternating(near: float, far: float) -> Rule:
    """Return the rule that takes one of two shares of the front's range in turns."""

    def rule(values: FloatArray, front: FloatArray) -> FloatArray:
        return beyond_front(far if len(values) % 2 else near)(values, front)

    return rule


def of_all(quantile: float) -> Rule:
    """Return the rule "quantile of all values, and at least a tenth of the front's range worse than the front"."""

    def rule(values: FloatArray, front: FloatArray) -> FloatArray:
        near = front.max(axis=0) + 0.1 * _range(front, values)
        return np.maximum(near, np.quantile(values, quantile, axis=0))

    return rule


def _range(front: FloatArray, values: FloatArray) -> FloatArray:
    extent = np.ptp(front, axis=0)
    extent = np.where(extent > 0, extent, np.ptp(values, axis=0))
    return np.where(extent > 0, extent, 1.0)


RULES = {
    "default": default_reference,  # of slayr_py
    "front + 0.1 range": beyond_front(0.1),
    "front + 0.5 range": beyond_front(0.5),
    "front + range": beyond_front(1.0),
    "front + range or sd": beyond_front_by_spread,
    "front + range or worst": worst_or_range,
    "0.1 and 1 in turns": alternating(0.1, 1.0),
    "median of all": of_all(0.5),
    "worst of all": of_all(1.0),
}


def ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rank of each rule on each problem and seed; smaller is better."""
    wide = table.pivot_table(index=["problem", "seed"], columns="sampler", values="log")
    return wide.reindex(columns=list(RULES)).dropna().rank(axis=1)


def report(rows: pd.DataFrame, budget: int) -> str:
    """Return the table in Markdown: means by problem, and over the problems that all rules have, and mean ranks."""
    found = [
        {"problem": problem, "sampler": rule, "seed": seed, "log": log_difference(own, TRADEOFFS[problem], budget)}
        for (problem, rule, seed), own in rows.groupby(KEYS)
        if len(own) >= budget
    ]
    table = pd.DataFrame(found, columns=[*KEYS, "log"])
    means = table.pivot_table(index="problem", columns="sampler", values="log").reindex(columns=list(RULES))
    complete = means.dropna()
    lines = [
        [str(name), *(f"{value:.2f}" for value in row)] for name, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    lines.append(["**mean**", *(f"{value:.3f}" for value in complete.mean())])
    lines.append(["**mean rank**", *(f"{value:.2f}" for value in ranks(table).mean())])
    return markdown(["problem", *RULES], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    usual = [name for name, problem in TRADEOFFS.items() if problem.constraints is None and problem.noise is None]
    parser.add_argument("--problems", nargs="+", choices=TRADEOFFS, default=usual, metavar="PROBLEM")
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES), metavar="RULE")
    parser.add_argument("--seeds", type=int, default=2, help="runs per problem and rule")
    parser.add_argument("--budget", type=int, default=25, help="evaluations per run")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    stored = ResultFile(options.output / "reference_points.csv", KEYS, [*KEYS, "number", "values", "violation"])
    if not options.report:
        runs = [(p, r, seed) for seed in range(options.seeds) for p in options.problems for r in options.rules]
        for problem, rule, seed in unfinished(stored, runs, options.budget):
            incumbent.default_reference = RULES[rule]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                key = {"problem": problem, "sampler": rule, "seed": seed}
                made = [key | row for row in run(TRADEOFFS[problem], "slayr:method=map", seed, options.budget)]
            replace_run(stored, [{name: row[name] for name in stored.columns} for row in made])
            print(f"{problem}, {rule}, seed {seed}: {len(made)} evaluations", flush=True)
    print(report(stored.rows(), options.budget))


if __name__ == "__main__":
    main()
