"""Calibration of the stopping rule: coverage of every estimate, and the true regret where the rule stops.

    python -m benchmarks.optimisation.stopping --data DIR --seeds 2 --budget 60

`slayr_py.Regret` estimates the 95% quantile of the regret after every trial. The rule with epsilon would stop at the
first trial whose quantile is at most epsilon, so one run serves every epsilon. Epsilon is a share of the standard
deviation of the objective over the space, by 4,096 points. Problems: those of benchmarks.optimisation.suite with a
known minimum, and those of benchmarks.optimisation.constrained. The coverage is the share of estimates whose quantile
is at least the true regret, without those whose true regret is at most 1e-4 standard deviations.

    python -m benchmarks.optimisation.stopping --suite objectives --seeds 2 --budget 40

does the same with the problems of benchmarks.optimisation.objectives, whose regret is the hypervolume that is missing
within the reference point of the problem; the largest hypervolume takes the place of the standard deviation.

Each run is appended to stopping.csv or stopping-objectives.csv when it ends; run the same command again to resume after
an interruption. --report only prints the tables.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from ConfigSpace import Configuration
from optuna import Study

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.constrained_problems import CONSTRAINED
from benchmarks.common.data_problems import svm_table
from benchmarks.common.objectives_problems import TRADEOFFS, Tradeoff
from benchmarks.common.problems import PROBLEMS, Problem
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from benchmarks.common.versions import write_versions
from slayr_py.acquisition import hypervolume
from slayr_py.space import Encoder

COLUMNS = ["problem", "seed", "number", "sd", "upper", "regret", "seconds"]
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)
TARGET = 0.95
SMALLEST = 1e-4  # true regret, in standard deviations, from which an estimate counts
NEVER = 1e-300  # an epsilon for which no study stops


def tasks(suite: str, data: Path | None) -> dict[str, One | Several]:
    """Return the problems with a known optimum by name."""
    if suite == "objectives":
        return {name: Several(problem) for name, problem in TRADEOFFS.items()}
    found = {**PROBLEMS, **CONSTRAINED}
    if data is not None:
        found |= {f"svm {dataset}": svm_table(data, dataset) for dataset in ("A9A", "phoneme")}
    return {name: One(problem) for name, problem in found.items()}


@dataclass(frozen=True)
class One:
    """A problem with one objective."""

    problem: Problem

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `slayr_py.minimize`."""
        return {"noisy": self.problem.noise > 0}

    def unit(self) -> float:
        """Return the standard deviation of the objective over the space."""
        return float(np.std([self.problem.objective(config) for config in Encoder(self.problem.space).sobol(4096, 0)]))

    def regret(self, study: Study, found: sl.study.RegretEstimate) -> float:
        """Return the true regret of the best configuration."""
        config = Configuration(self.problem.space, study.trials[found.incumbent].params)
        return self.problem.objective(config) - self.problem.minimum


@dataclass(frozen=True)
class Several:
    """A problem with several objectives."""

    problem: Tradeoff

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of `slayr_py.minimize`."""
        given = {"directions": ["minimize"] * len(self.problem.reference), "noisy": self.problem.noise is not None}
        return given | {"reference_point": self.problem.reference}

    def unit(self) -> float:
        """Return the largest hypervolume."""
        return self.problem.largest

    def regret(self, study: Study, found: sl.study.RegretEstimate) -> float:
        """Return the hypervolume that the evaluated configurations lack, by values without noise."""
        values = []
        for trial in study.get_trials(deepcopy=False):
            config = Configuration(self.problem.space, trial.params)
            excess = {} if self.problem.constraints is None else self.problem.constraints(config)
            if max(excess.values(), default=0.0) <= 0:
                values.append(self.problem.objective(config))
        reached = hypervolume(np.array(values), np.array(self.problem.reference)) if values else 0.0
        return self.problem.largest - reached


def run(name: str, task: One | Several, seed: int, budget: int) -> list[dict[str, Any]]:
    """Return one row per estimate: the quantile of the regret, and the true one."""
    problem = task.problem
    unit = task.unit()
    noise = np.random.default_rng([seed, 1])

    def objective(config: Mapping[str, Any]) -> Any:
        values = problem.objective(config)
        if problem.noise:
            values = np.asarray(values) + np.asarray(problem.noise) * noise.standard_normal(np.shape(values))
        return values if problem.constraints is None else (values, problem.constraints(config))

    rule = sl.Regret(NEVER, TARGET)
    estimates = []

    def estimate(study: Study, trial: Any) -> None:
        clock = time.perf_counter()
        if (found := rule.estimate(study)) is not None:
            elapsed = time.perf_counter() - clock
            estimates.append((found.observations, unit, found.upper, task.regret(study, found), elapsed))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"progress": False, "callbacks": [estimate], **task.options}
        sl.minimize(objective, problem.space, budget=budget, seed=seed, **options)
    return [dict(zip(COLUMNS, (name, seed, *row), strict=True)) for row in estimates]


def stopped(runs: pd.DataFrame, share: float) -> pd.DataFrame:
    """Return the first row of each run at which the rule stops for this epsilon."""
    holds = runs[runs["upper"] <= share * runs["sd"]]
    return holds.sort_values("number").groupby(["problem", "seed"], as_index=False).first()


def calibration(runs: pd.DataFrame) -> str:
    """Return how often the true regret is below epsilon where the rule stops, one line per epsilon, in Markdown."""
    n = len(runs[["problem", "seed"]].drop_duplicates())
    heads = ["epsilon / sd", "runs that stopped", "true regret below epsilon", "evaluations, median"]
    lines = []
    for share in SHARES:
        ends = stopped(runs, share)
        right = int((ends["regret"] <= share * ends["sd"]).sum())
        part = f"{right} ({right / len(ends):.0%})" if len(ends) else "0"
        lines.append([f"{share:g}", f"{len(ends)} of {n}", part, f"{ends['number'].median():.0f}"])
    return markdown(heads, lines)


def coverage(runs: pd.DataFrame) -> str:
    """Return in how many estimates the quantile is at least the true regret, one line per problem, in Markdown."""
    relevant = runs[runs["regret"] > SMALLEST * runs["sd"]]
    lines = []
    for name, group in [*relevant.groupby("problem", sort=False), ("all", relevant)]:
        covered = group["regret"] <= group["upper"]
        lines.append([str(name), f"{int(covered.sum())} of {len(group)}", f"{covered.mean():.0%}"])
    return markdown(["problem", "true regret at most the quantile", "share"], lines)


def by_problem(runs: pd.DataFrame, share: float) -> str:
    """Return where each problem stops for one epsilon, and the true regret there over epsilon, in Markdown."""
    ends = stopped(runs, share)
    lines = []
    for name, group in runs.groupby("problem", sort=False):
        own = ends[ends["problem"] == name]
        numbers = ", ".join(str(number) for number in own["number"])
        ratios = ", ".join(f"{ratio:.2g}" for ratio in own["regret"] / (share * own["sd"]))
        missing = group["seed"].nunique() - len(own)
        never = f"{missing} not by {group['number'].max()}" if missing else ""
        lines.append([name, ", ".join(filter(None, (numbers, never))), ratios])
    return markdown(["problem", "stopped after", "true regret / epsilon"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--suite", choices=["suite", "objectives"], default="suite", help="(default: %(default)s)")
    parser.add_argument("--problems", nargs="+", metavar="PROBLEM", help="names (default: all)")
    parser.add_argument("--data", type=Path, help="folder with the data of the tabulated problems")
    parser.add_argument("--seeds", type=int, default=2, help="runs per problem")
    parser.add_argument("--budget", type=int, default=60, help="evaluations per run")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    name = "stopping" if options.suite == "suite" else f"stopping-{options.suite}"
    file = ResultFile(options.output / f"{name}.csv", ["problem", "seed"], COLUMNS)
    known = tasks(options.suite, options.data)
    names = options.problems or list(known)
    if not options.report:
        if unknown := [name for name in names if name not in known]:
            raise SystemExit(f"unknown problems {unknown}; known: {', '.join(known)}")
        write_versions(file.path)
        todo = file.missing((name, seed) for seed in range(options.seeds) for name in names)
        parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
        for rows in parallel(joblib.delayed(run)(name, known[name], seed, options.budget) for name, seed in todo):
            file.append(rows)
    runs = file.rows()
    runs = runs[runs["seed"] < options.seeds]
    if options.problems:
        runs = runs[runs["problem"].isin(names)]
    print(f"{coverage(runs)}\n\n{calibration(runs)}\n\nepsilon = 0.01 sd:\n\n{by_problem(runs, 0.01)}")


if __name__ == "__main__":
    main()
