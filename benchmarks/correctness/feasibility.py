"""Score the predicted feasibility of the next suggestions in stored runs with constraints.

    python -m benchmarks.correctness.feasibility --seeds 3

Designs: the first 15, 25 and 40 evaluations of slayr's runs in benchmarks.optimisation.constrained. A model of each
constraint is fitted to a design by its posterior mode, and predicts whether the constraint holds at the next ten
configurations of the run. The score is the mean log probability of what happened; a coin has log 0.5 = -0.693.
Probabilities are cut at 1e-6.

Variants differ in the compression of the values and in the prior of ``sigma_n``. Each row is appended to
feasibility.csv; run the same command again to resume after an interruption. --report only prints the table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell
from benchmarks.optimisation.runs import read_trials
from slayr_py.acquisition import Feasibility
from slayr_py.study.model.compression import compress
from slayr_py.study.model.options import EXACT_CONSTRAINTS, LOOP_OPTIONS, NOISELESS

RUNS = Path(__file__).parents[1] / "optimisation" / "results"
SIZES = (15, 25, 40)
NEXT = 10
SMALLEST = 1e-6  # probability; a constraint that is certain and wrong would have an infinite score
KEYS = ["problem", "seed", "n", "constraint", "variant"]
COLUMNS = [*KEYS, "score"]


class Variant(NamedTuple):
    """A model of a constraint: how its values are compressed, and the prior of the noise."""

    compress: Callable[[np.ndarray], np.ndarray]
    noise: sl.LogNormal


def bilog(values: np.ndarray) -> np.ndarray:
    """Return sign(c) log(1 + |c| / s), s the median of |c| over all values."""
    return np.sign(values) * np.log1p(np.abs(values) / np.median(np.abs(values)))


VARIANTS = {
    "median of all, LogNormal(-4, 0.5)": Variant(bilog, NOISELESS),
    "median of all, LogNormal(-7, 0.5)": Variant(bilog, sl.LogNormal(-7.0, 0.5)),
    "median of all, LogNormal(-9, 0.5)": Variant(bilog, EXACT_CONSTRAINTS),
    "no compression, LogNormal(-7, 0.5)": Variant(np.asarray, sl.LogNormal(-7.0, 0.5)),
    "asinh, median of the first ten, LogNormal(-7, 0.5)": Variant(compress, sl.LogNormal(-7.0, 0.5)),
    "asinh, median of the first ten, LogNormal(-9, 0.5)": Variant(compress, EXACT_CONSTRAINTS),
}
"""The first is the package's earlier model, the last is its model of values that it compresses."""


def score(key: dict[str, Any], run: pd.DataFrame, method: str) -> float:
    """Return the mean log probability of the outcomes of one constraint at the next ten configurations."""
    problem = CONSTRAINED[key["problem"]]
    configs = [json.loads(text) for text in run.sort_values("number")["params"][: key["n"] + NEXT]]
    values = np.array([problem.constraints(config)[key["constraint"]] for config in configs])
    variant = VARIANTS[key["variant"]]
    gp = sl.GaussianProcess(problem.space, priors={"sigma_n": variant.noise})
    options = LOOP_OPTIONS.updated(method=method)
    with threadpool_limits(limits=1):
        posterior = gp.fit(configs[: key["n"]], variant.compress(values[: key["n"]]), seed=key["seed"], options=options)
        encoder = posterior.encoder
        model = Feasibility.of(posterior, encoder.encode([]), posterior.n_draws)
        holds = np.exp(model.log_probability(encoder.encode(configs[key["n"] :])))
    right = np.where(values[key["n"] :] <= 0, holds, 1 - holds)
    return float(np.mean(np.log(np.clip(right, SMALLEST, 1.0))))


def report(rows: pd.DataFrame) -> str:
    """Return the mean scores and their standard errors over runs and constraints, in Markdown."""
    heads = ["compression and noise", *rows["problem"].unique(), "designs of a problem"]
    lines = []
    for variant in [variant for variant in VARIANTS if variant in set(rows["variant"])]:
        own = rows[rows["variant"] == variant]
        runs = own.groupby(["problem", "seed", "n"])["score"].mean()
        cells = [mean_cell(runs[runs.index.get_level_values("problem") == problem]) for problem in heads[1:-1]]
        lines.append([variant, *cells, str(runs.groupby("problem").size().min())])
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=CONSTRAINED, default=list(CONSTRAINED), metavar="PROBLEM")
    parser.add_argument("--seeds", type=int, default=3, help="runs per problem")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder of the stored runs")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--method", default="map", help="fit method (default: %(default)s)")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    file = ResultFile(options.output / "feasibility.csv", KEYS, COLUMNS)
    if not options.report:
        trials = read_trials(options.runs, ["slayr"], "constrained")
        for problem, seed in product(options.problems, range(options.seeds)):
            run = trials[(trials["problem"] == problem) & (trials["seed"] == seed)]
            names = CONSTRAINED[problem].constraints(json.loads(run["params"].iloc[0]))
            for key in file.missing(product([problem], [seed], SIZES, names, options.variants)):
                named = dict(zip(KEYS, key, strict=True))
                file.append([named | {"score": score(named, run, options.method)}])
    print(report(file.rows()))


if __name__ == "__main__":
    main()
