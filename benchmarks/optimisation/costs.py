"""Compare the search with and without ``cost=`` at equal sums of costs.

    python -m benchmarks.optimisation.costs --seeds 5 --budget 25

The cost of a configuration is known and differs by a factor of 10 or more: it grows along one parameter of Branin and
of Hartmann3, and gradient boosting costs its number of trees. One of the three minima of "branin" is in a cheap region,
the minimum of "hartmann3" in an expensive one, and that of "hartmann3, cheap" in a cheap one. A run ends when it has
spent as much as --budget random configurations cost on average. The table has the decimal logarithm of the regret, of
boosting the value. Every trial is appended to costs.csv; run the command again to resume. --report only prints the
table. Fits are posterior modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace, Float, Integer

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.curve_problems import PROBLEMS as CURVES
from benchmarks.common.problems import PROBLEMS
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell

COLUMNS = ["problem", "method", "seed", "number", "spent", "value"]
METHODS = ["plain", "cost"]


class Priced(NamedTuple):
    """An objective with a known cost."""

    space: ConfigurationSpace
    value: Callable[[Mapping[str, Any]], float]
    cost: Callable[[Mapping[str, Any]], float]
    score: Callable[[float], float]
    """What the table has of the best value."""


BOOSTING = ConfigurationSpace(
    space=[
        Integer("trees", (10, 300), log=True),
        Float("learning_rate", (0.01, 1.0), log=True),
        Integer("max_depth", (1, 8)),
        Float("subsample", (0.3, 1.0)),
    ]
)


def boosting(config: Mapping[str, Any]) -> float:
    """Return the log mean squared error of gradient boosting on Friedman's first function."""
    from sklearn.ensemble import GradientBoostingRegressor

    train, test, y_train, y_test = CURVES["boosting-friedman"].load()
    rest = {name: config[name] for name in ("learning_rate", "max_depth", "subsample")}
    model = GradientBoostingRegressor(n_estimators=int(config["trees"]), random_state=0, **rest).fit(train, y_train)
    return float(np.log(np.mean((model.predict(test) - y_test) ** 2)))


def priced(name: str, cost: Callable[[Mapping[str, Any]], float]) -> Priced:
    problem = PROBLEMS[name]
    return Priced(
        problem.space, problem.objective, cost, lambda best: float(np.log10(max(best - problem.minimum, 1e-9)))
    )


RUNS = {
    "branin": priced("branin", lambda config: 10 ** ((config["x1"] + 5) / 15)),
    "hartmann3": priced("hartmann3", lambda config: 10 ** config["x3"]),
    "hartmann3, cheap": priced("hartmann3", lambda config: 10 ** (1 - config["x3"])),
    "boosting": Priced(BOOSTING, boosting, lambda config: float(config["trees"]), float),
}


def run(problem: str, method: str, seed: int, budget: float) -> Iterator[dict[str, Any]]:
    """Run a study until it has spent its budget, and yield a row for each trial."""
    space, value, cost, _ = RUNS[problem]
    space.seed(0)
    total = budget * float(np.mean([cost(config) for config in space.sample_configuration(500)]))
    options: dict[str, Any] = {"cost": "paid"} if method == "cost" else {}
    study = sl.study.create_study(space, seed=seed, method="map", **options)
    spent = 0.0
    while spent < total:
        trial = sl.study.ask(study)
        config = sl.study.config_of(trial)
        y = value(config)
        sl.study.tell(study, trial, y, cost=cost(config) if options else None)
        spent += cost(config)
        row = {"problem": problem, "method": method, "seed": seed, "number": trial.number}
        yield {**row, "spent": spent / total, "value": y}


def best_after(rows: pd.DataFrame, part: float) -> float:
    return float(rows.loc[rows["spent"] <= part, "value"].min())


def table(rows: pd.DataFrame) -> str:
    """Return the mean best value after parts of the cost, and in how many seeds costs have helped, in Markdown."""
    marks = [0.25, 0.5, 1.0]
    lines = []
    for problem in [name for name in RUNS if name in set(rows["problem"])]:
        best = {}
        for method in METHODS:
            runs = rows[(rows["problem"] == problem) & (rows["method"] == method)].groupby("seed")
            found = {mark: runs.apply(best_after, mark, include_groups=False) for mark in marks}
            best[method] = pd.DataFrame(found).map(RUNS[problem].score)
            trials = f"{runs.size().mean():.0f}"
            lines.append([problem, method, str(len(runs)), trials, *(mean_cell(best[method][mark]) for mark in marks)])
        wins = [f"{(best['cost'][m] < best['plain'][m]).sum()} of {len(best['cost'])} better" for m in marks]
        lines.append(["", "", "", "", *wins])
    return markdown(["problem", "method", "runs", "trials", *(f"best at {m:.0%} of the cost" for m in marks)], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=RUNS, default=list(RUNS), metavar="PROBLEM")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=25.0)
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    file = ResultFile(options.output / "costs.csv", ["problem", "method", "seed"], COLUMNS)
    wanted = [(p, m, s) for s in range(options.seeds) for p in options.problems for m in METHODS]
    if not options.report:
        for problem, method, seed in file.missing(wanted):
            file.append(list(run(problem, method, seed, options.budget)))
    print(table(file.rows()))


if __name__ == "__main__":
    main()
