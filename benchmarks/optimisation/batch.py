"""Compare batches of suggestions, which are evaluated in parallel, in slayr_py and other packages.

    python -m benchmarks.optimisation.batch --samplers slayr optuna-gp optuna-tpe botorch --batches 5 --seeds 3
    python -m benchmarks.optimisation.batch --problems branin hartmann6 --batches 1 5 --samplers slayr optuna-gp
    python -m benchmarks.optimisation.batch --times 30 60

A batch is suggested before one of its values is reported; a batch of 1 is an ordinary study. Problems: ten of
benchmarks.optimisation.suite without noise. Samplers: slayr, "slayr:key=value,...", Optuna's, and botorch, which skips
the tree. Printed are mean regrets and times, and for each size of the batch the ranks of the samplers. Each trial is
appended to batchB-SAMPLER.csv for a batch of B; run the same command again to resume after an interruption. --report
only prints the tables.

--times measures a batch instead: processor seconds of five suggestions in a row after n evaluations of Hartmann6, and
of the first of them. Earlier fits are known, as in a study: one suggestion is made and reported at n - 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import optuna
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import hartmann6, one_core
from benchmarks.common.problems import PROBLEMS
from benchmarks.common.results import markdown, mean_cell
from benchmarks.optimisation.peers import BoTorch, Optuna, peer
from benchmarks.optimisation.report import START, best_values, budgets_up_to, complete_samplers, rank_table
from benchmarks.optimisation.runs import add_run_arguments, processor_time, require_kind, trials_of

NAMES = (
    "branin",
    "hartmann6",
    "ackley5",
    "styblinski-tang5",
    "dixon-price4",
    "powell8",
    "func2c",
    "func3c",
    "ackley5c",
    "jenatton",
)
SAMPLERS = ["slayr", "optuna-gp", "optuna-tpe", "botorch"]
TIMED = 5


def table(trials: Mapping[int, pd.DataFrame], samplers: Sequence[str], budget: int) -> str:
    """Return mean regrets with standard errors, and mean times of a suggestion, by size of the batch in Markdown."""
    budgets = budgets_up_to(budget)
    heads = ["problem", "sampler", "batch", *(f"at {b}" for b in budgets), "seconds per suggestion", "runs"]
    lines = []
    for name in NAMES:
        for sampler in samplers:
            for batch, stored in trials.items():
                own = stored[(stored["problem"] == name) & (stored["sampler"] == sampler)]
                if own.empty:
                    continue
                regret = best_values(own, budgets) - PROBLEMS[name].minimum
                cells = [mean_cell(regret[b].dropna()) for b in budgets]
                seconds = own.loc[own["number"].between(START, budget - 1), "seconds"].mean()
                lines.append([name, sampler, str(batch), *cells, f"{seconds:.2f}", str(regret[budgets[-1]].count())])
    return markdown(heads, lines)


def ranks(trials: Mapping[int, pd.DataFrame], samplers: Sequence[str], budget: int) -> str:
    """Return the average ranks of the samplers for each size of the batch in Markdown, if there are several."""
    budgets = budgets_up_to(budget)
    tables = []
    for batch, stored in trials.items():
        best = best_values(stored, budgets)
        present = [name for name in samplers if name in best.index.unique("sampler")]
        for compared in dict.fromkeys((tuple(present), tuple(complete_samplers(best, present)))):
            if len(compared) > 1:
                tables.append(f"Batches of {batch}:\n\n{rank_table(best, compared)}")
    return "\n\n".join(tables)


def times(sampler: str, n: int, seed: int) -> list[float]:
    """Return the processor seconds of each of five suggestions after n evaluations of Hartmann6."""
    problem = PROBLEMS["hartmann6"]
    configs, values = hartmann6(n - 1, seed)
    optimiser = peer(sampler).start(problem, seed)
    for config, value in zip(configs, values, strict=True):
        optimiser.tell(dict(config), float(value))
    params = optimiser.ask()
    optimiser.tell(params, problem.objective(params))
    seconds = []
    for _ in range(TIMED):
        start = processor_time()
        optimiser.ask()
        seconds.append(processor_time() - start)
    return seconds


def times_table(samplers: Sequence[str], sizes: Sequence[int], repeats: int) -> str:
    """Return the medians over repeats of the first suggestion and of all five, in Markdown."""
    lines = []
    for sampler in samplers:
        times(sampler, START + 1, repeats)  # imports and first calls are not measured
    for n in sizes:
        for sampler in samplers:
            measured = pd.DataFrame([times(sampler, n, seed) for seed in range(repeats)])
            first = measured[0].median()
            total = measured.sum(axis=1).median()
            lines.append([str(n), sampler, f"{first:.2f}", f"{total:.2f}", f"{total / first:.1f}"])
    return markdown(["n", "sampler", "first suggestion", f"all {TIMED}", "ratio"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--batches", type=int, nargs="+", default=[5], help="sizes of the batches")
    add_run_arguments(parser, __file__, SAMPLERS, seeds=3)
    parser.add_argument("--times", type=int, nargs="+", metavar="N", help="only measure the times at these sizes")
    options = begin(parser, arguments)
    require_kind(options.samplers, (Optuna, BoTorch), "asked for a batch", SAMPLERS)
    if options.times:
        one_core()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore")
            print(times_table(options.samplers, options.times, options.seeds))
        return
    problems = {name: PROBLEMS[name] for name in options.problems}
    trials = {batch: trials_of(problems, options, f"batch{batch}", batch) for batch in options.batches}
    print(table(trials, options.samplers, options.budget))
    print(ranks(trials, options.samplers, options.budget))


if __name__ == "__main__":
    main()
