"""Compare the regret of kernels with and without knowledge of which parameters are active.

    python -m benchmarks.optimisation.conditional --data DIR --seeds 10 --budget 50

The hierarchical kernel, alone and as a modulator, is compared at equal budgets with a Matérn kernel that places an
inactive parameter at the middle of its range. Problems: the decision tree of Jenatton et al. (2017), the same tree one
level deeper, and tabulated support vector machines on real data sets (Wistuba et al. 2016). The tables need
``hpo/svm_conditional_wistuba.csv`` in the folder of ``--data`` and are skipped without it. Two Markdown tables are
printed: regrets, and their differences from the Matérn kernel paired by seed (equal seeds have equal initial designs).
Each trial is appended to ``conditional.csv``; run the same command again to resume after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.command_line import command_parser
from benchmarks.common.data_problems import svm_table
from benchmarks.common.problems import Problem, tree
from benchmarks.common.studies import (
    add_fit_arguments,
    add_study_arguments,
    best_after,
    cost,
    run_command,
    standard_error,
)

REFERENCE = "matern"
DATASETS = ["A9A", "german-numer", "led7digit", "phoneme", "usps", "yeast"]
"""Best SVM kernel of each: polynomial, polynomial, linear, rbf, polynomial, rbf."""


def problems_of(data: Path | None, datasets: Sequence[str]) -> dict[str, Problem]:
    trees = {"jenatton": tree(2), "deeper tree": tree(3)}
    return trees | ({f"svm {name}": svm_table(data, name) for name in datasets} if data else {})


def regrets(trials: pd.DataFrame, problems: dict[str, Problem], budgets: Sequence[int]) -> pd.DataFrame:
    """Return simple regrets, one row per run and one column per budget."""
    minimum = {name: problem.minimum for name, problem in problems.items()}
    best = pd.DataFrame({budget: best_after(trials, budget) for budget in budgets})
    return best.sub(best.index.get_level_values("problem").map(minimum).astype(float), axis=0)


def regret_table(trials: pd.DataFrame, table: pd.DataFrame) -> str:
    heads = [f"at {budget}: median, mean" for budget in table.columns]
    lines = ["| problem | sampler | " + " | ".join(heads) + " | seconds per suggestion | R-hat |"]
    lines.append("|---" * (len(heads) + 4) + "|")
    for (problem, sampler), group in trials.groupby(["problem", "sampler"], observed=True):
        own = [table[budget][problem, sampler].dropna() for budget in table.columns]
        cells = [f"{r.median():.3g}, {r.mean():.3g} ± {standard_error(r):.2g}" if len(r) else "" for r in own]
        lines.append(f"| {problem} | {sampler} | " + " | ".join(cells) + f" | {cost(group)} |")
    return "\n".join(lines)


def difference_table(table: pd.DataFrame) -> str:
    """Return a Markdown table of differences from the reference kernel, paired by seed, with win counts over all."""
    reference = next(name for name in table.index.unique("sampler") if name.startswith(f"{REFERENCE}, "))
    wide = [table[budget].unstack("sampler") for budget in table.columns]
    heads = [f"at {budget}: difference, better/equal/worse, ratio" for budget in table.columns]
    lines = [f"| problem | sampler, against {reference} | " + " | ".join(heads) + " |"]
    lines.append("|---" * (len(heads) + 2) + "|")
    samplers = [name for name in table.index.unique("sampler") if name != reference]
    for problem in table.index.unique("problem"):
        for sampler in samplers:
            cells = [difference(runs.loc[problem], sampler, reference) for runs in wide]
            lines.append(f"| {problem} | {sampler} | " + " | ".join(cells) + " |")
    for sampler in samplers:
        cells = [seeds_better(runs[sampler] - runs[reference]) for runs in wide]
        lines.append(f"| all | {sampler} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def difference(runs: pd.DataFrame, sampler: str, reference: str) -> str:
    """Return a cell: mean difference ± standard error, seeds better/equal/worse, ratio of the means."""
    pairs = runs[[sampler, reference]].dropna()
    change, mean = pairs[sampler] - pairs[reference], pairs.mean()
    ratio = f"{mean[sampler] / mean[reference]:.2g}" if mean[reference] > 0 else ""
    return f"{change.mean():+.3g} ± {standard_error(change):.2g}, {seeds_better(change)}, {ratio}"


def seeds_better(change: pd.Series) -> str:
    return "/".join(str((np.sign(change) == sign).sum()) for sign in (-1, 0, 1))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, help="folder with hpo/svm_conditional_wistuba.csv")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, help="data sets of the support vector machines")
    kernels = [REFERENCE, "hierarchical", "fm-hierarchical"]
    add_study_arguments(parser, 50, kernels, ["optuna-tpe", "random"], Path(__file__).parent / "results")
    add_fit_arguments(parser, chains=2, warmup=100, draws=75)
    options = parser.parse_args(arguments)
    problems = problems_of(options.data, options.datasets)
    trials = run_command(options, problems, "conditional.csv")
    table = regrets(trials, problems, sorted({min(b, options.budget) for b in (15, 25, 50, 100)}))
    print(regret_table(trials, table))
    if REFERENCE in options.kernels:
        print("\n" + difference_table(table))


if __name__ == "__main__":
    main()
