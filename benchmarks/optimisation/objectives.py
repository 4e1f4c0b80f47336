"""Compare the hypervolumes of slayr_py and of Optuna's samplers on problems with several objectives.

    python -m benchmarks.optimisation.objectives --seeds 5 --budget 60
    python -m benchmarks.optimisation.objectives --suite designs --seeds 5 --budget 50

Problems of the suite "functions": BraninCurrin, ZDT1 to ZDT3, DTLZ2 with 2 and 3 objectives, WFG4 and WFG9,
VehicleSafety, C2-DTLZ2 (with constraints), error and size of a random forest, and BraninCurrin with noise. Those of
"designs" are in `benchmarks.common.tradeoff_designs`. Samplers: slayr, "slayr:key=value,...", Optuna's GP, TPE and
NSGA-II, and BoTorch's qLogNEHVI. "slayr-reference" and "botorch-reference" are told the reference point of the problem.
All start with the default design of slayr_py, 5 to 7 configurations; Optuna's GP and TPE sampler add their own up to
10. The GP samplers of Optuna and BoTorch need torch and botorch. A run is written to objectives.csv, or to
objectives-designs.csv, when it is finished; run the same command again to resume after an interruption. Runs with fewer
evaluations than --budget are made again. --report only prints the tables: the logarithm of the hypervolume that is
missing, the mean rank over the problems, and the processor time of suggestions.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import optuna
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.objectives_problems import TRADEOFFS, Tradeoff
from benchmarks.common.results import ResultFile, add_result_arguments, append, markdown, mean_cell
from benchmarks.common.tradeoff_designs import DESIGNS
from benchmarks.common.versions import write_versions
from benchmarks.optimisation.peers import initial_design, keywords
from benchmarks.optimisation.report import budgets_up_to
from benchmarks.optimisation.runs import processor_time
from benchmarks.optimisation.tradeoff_peers import BoTorchTradeoff
from slayr_py.acquisition import hypervolume
from slayr_py.study import StanGPSampler
from slayr_py.study.storage.suggesting import suggest_all

KEYS = ["problem", "sampler", "seed"]
COLUMNS = [*KEYS, "number", "values", "violation", "seconds"]
SAMPLERS = ["slayr", "optuna-tpe", "optuna-nsga2", "optuna-gp", "botorch"]


class Suite(NamedTuple):
    """Problems, the file of their runs, and the numbers of evaluations to compare at."""

    problems: Mapping[str, Tradeoff]
    file: str
    budgets: tuple[int, ...]


SUITES = {
    "functions": Suite(TRADEOFFS, "objectives.csv", (25, 60)),
    "designs": Suite(DESIGNS, "objectives-designs.csv", (25, 50)),
}
PROBLEMS = {name: problem for suite in SUITES.values() for name, problem in suite.problems.items()}
TOLD_REFERENCE = ("slayr-reference", "botorch-reference")

OTHERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "optuna-gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "optuna-tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "optuna-nsga2": lambda seed: optuna.samplers.NSGAIISampler(seed=seed, population_size=10),
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def sampler_of(name: str, problem: Tradeoff, seed: int) -> optuna.samplers.BaseSampler:
    """Return a sampler by its name.

    Raises
    ------
    SystemExit
        For an unknown name.
    """
    if name in OTHERS:
        return OTHERS[name](seed)
    first, _, text = name.partition(":")
    if first not in ("slayr", "slayr-reference"):
        known = ", ".join(["slayr", "slayr:key=value", *TOLD_REFERENCE, "botorch", *OTHERS])
        raise SystemExit(f"no sampler {name!r}; available: {known}")
    options = {"initial_configs": initial_design(problem.space, seed), "noisy": problem.noise is not None}
    if first in TOLD_REFERENCE:
        options["reference_point"] = problem.reference
    return StanGPSampler(problem.space, seed=seed, **options, **keywords(text))


class Botorch:
    """A run of BoTorch."""

    def __init__(self, problem: Tradeoff, name: str, seed: int) -> None:
        reference = problem.reference if name in TOLD_REFERENCE else None
        self.design = initial_design(problem.space, seed)
        self.optimiser = BoTorchTradeoff(problem.space, seed, reference)

    def ask(self) -> dict[str, Any]:
        """Return the parameters to evaluate next."""
        told = len(self.optimiser.rows)
        self.params = self.design[told] if told < len(self.design) else self.optimiser.ask()
        return self.params

    def tell(self, values: Sequence[float], constraints: Mapping[str, float]) -> None:
        """Report the values and the constraints of the last suggestion."""
        self.optimiser.tell(self.params, tuple(values), constraints)


class Optuna:
    """A run of a sampler of Optuna, of which slayr is one."""

    def __init__(self, problem: Tradeoff, name: str, seed: int) -> None:
        directions = ["minimize"] * len(problem.reference)
        self.space = problem.space
        self.study = optuna.create_study(directions=directions, sampler=sampler_of(name, problem, seed))
        if name in OTHERS:
            for params in initial_design(problem.space, seed):
                self.study.enqueue_trial(params)

    def ask(self) -> dict[str, Any]:
        """Return the parameters to evaluate next."""
        self.trial = self.study.ask()
        return suggest_all(self.trial, self.space)

    def tell(self, values: Sequence[float], constraints: Mapping[str, float]) -> None:
        """Report the values and the constraints of the last suggestion."""
        for name, excess in constraints.items():
            self.trial.set_constraint(name, excess)
        self.study.tell(self.trial, list(values))


def run(problem: Tradeoff, name: str, seed: int, budget: int) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each evaluation; the values are those without noise."""
    optimiser = (Botorch if name.startswith("botorch") else Optuna)(problem, name, seed)
    noise = np.random.default_rng([seed, 1])
    for number in range(budget):
        start = processor_time()
        params = optimiser.ask()
        seconds = processor_time() - start
        values = problem.objective(params)
        told = np.array(values)
        if problem.noise is not None:
            told = told + np.array(problem.noise) * noise.standard_normal(len(values))
        constraints = {} if problem.constraints is None else problem.constraints(params)
        optimiser.tell(told.tolist(), constraints)
        yield {
            "number": number,
            "values": json.dumps(values),
            "violation": max(constraints.values(), default=None),
            "seconds": round(seconds, 4),
        }


def unfinished(stored: ResultFile, runs: Sequence[tuple[str, str, int]], budget: int) -> list[tuple[str, str, int]]:
    """Return the runs that have fewer evaluations than the budget."""
    lengths = stored.rows().groupby(KEYS).size()
    return [run for run in runs if lengths.get(run, 0) < budget]


def replace_run(stored: ResultFile, made: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a run, in place of shorter ones."""
    rows = stored.rows()
    shorter = np.logical_and.reduce([rows[key] == made[0][key] for key in KEYS])
    if shorter.any():
        rows[~shorter].to_csv(stored.path, index=False)
    for row in made:
        append(stored.path, row)


def log_difference(rows: pd.DataFrame, problem: Tradeoff, budget: int) -> float:
    """Return the decimal logarithm of the hypervolume that the first evaluations of a run lack."""
    rows = rows[rows["number"] < budget]
    feasible = rows[~(rows["violation"].astype(float) > 0)]
    values = np.array([json.loads(text) for text in feasible["values"]]).reshape(-1, len(problem.reference))
    missing = problem.largest - hypervolume(values, np.array(problem.reference))
    return float(np.log10(max(missing, 1e-12)))


def differences(rows: pd.DataFrame, budgets: Sequence[int]) -> pd.DataFrame:
    """Return the logarithms of the missing hypervolume by problem, sampler, seed (rows) and budget (columns)."""
    found = {}
    for key, own in rows.groupby(KEYS):
        problem = PROBLEMS[str(key[0])]
        found[key] = [log_difference(own, problem, b) if len(own) >= b else np.nan for b in budgets]
    index = pd.MultiIndex.from_tuples(list(found), names=KEYS)
    return pd.DataFrame(list(found.values()), index=index, columns=list(budgets))


def report(rows: pd.DataFrame, samplers: Sequence[str], budgets: Sequence[int]) -> str:
    """Return the tables in Markdown: means with standard errors, and mean ranks of the runs that all samplers have."""
    table = differences(rows, budgets)
    lines = []
    for problem in [name for name in PROBLEMS if name in table.index.unique("problem")]:
        for sampler in [name for name in samplers if (problem, name) in table.index.droplevel("seed")]:
            own = table.loc[problem, sampler]
            mine = rows[(rows["problem"] == problem) & (rows["sampler"] == sampler) & (rows["number"] >= 10)]
            cells = [mean_cell(own[b].dropna()) if own[b].notna().any() else "–" for b in budgets]
            lines.append([problem, sampler, *cells, str(len(own)), f"{mine['seconds'].mean():.2f}"])
    heads = ["problem", "sampler", *(f"at {b}" for b in budgets), "runs", "seconds per suggestion"]
    ranks = []
    for b in budgets:
        wide = table[b].unstack("sampler").reindex(columns=list(samplers)).dropna()  # seeds that all samplers have
        ranks += [wide.groupby("problem").mean().rank(axis=1).mean(), wide.rank(axis=1).mean()]
    rows_of_ranks = [[name, *(f"{rank[name]:.2f}" for rank in ranks)] for name in samplers]
    titles = [title for b in budgets for title in (f"of the means at {b}", f"of each run at {b}")]
    second = markdown(["mean rank", *titles], rows_of_ranks)
    return f"{markdown(heads, lines)}\n\n{second}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--suite", choices=SUITES, default="functions", help="problems to run (default: %(default)s)")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, metavar="PROBLEM", help="default: all of the suite")
    parser.add_argument("--samplers", nargs="+", default=SAMPLERS, help="sampler names (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="runs per problem and sampler")
    parser.add_argument("--budget", type=int, help="evaluations per run (default: 60, designs: 50)")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    suite = SUITES[options.suite]
    problems = options.problems or list(suite.problems)
    if unknown := [name for name in problems if name not in suite.problems]:
        parser.error(f"not in --suite {options.suite}: {', '.join(unknown)}")
    budget = options.budget or suite.budgets[-1]
    stored = ResultFile(options.output / suite.file, [*KEYS], COLUMNS)
    if not options.report:
        write_versions(stored.path, ("optuna", "torch", "gpytorch", "botorch"))
        runs = [(p, s, seed) for seed in range(options.seeds) for s in options.samplers for p in problems]
        for problem, sampler, seed in unfinished(stored, runs, budget):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                key = {"problem": problem, "sampler": sampler, "seed": seed}
                made = [key | row for row in run(PROBLEMS[problem], sampler, seed, budget)]
            replace_run(stored, made)
            print(f"{problem}, {sampler}, seed {seed}: {len(made)} evaluations", flush=True)
    rows = stored.rows()
    chosen = rows["problem"].isin(problems) & rows["sampler"].isin(options.samplers)
    budgets = budgets_up_to(budget, suite.budgets)
    print(report(rows[chosen], options.samplers, budgets))


if __name__ == "__main__":
    main()
