"""Compare the regret after 25 and 50 evaluations on Branin and Hartmann6 with Optuna's samplers.

    python -m benchmarks.optimisation.standard --seeds 5 --budget 50

Optuna's GP sampler needs ``pip install torch``. The Markdown table has the simple regret (best value minus the known
minimum), median and range over seeds, and the mean seconds per suggestion. All samplers have the same budget; each
draws its own initial design from its seed. Trials are stored in ``standard.csv``; stored trials are not repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.common.command_line import command_parser
from benchmarks.common.problems import PROBLEMS
from benchmarks.common.studies import BASELINES, Sampler, add_run_arguments, best_after, cost, run_all
from slayr_py.study import StanGPSampler

SAMPLERS: dict[str, Sampler] = {"slayr": lambda space, seed: StanGPSampler(space, seed=seed)} | BASELINES


def report(trials: pd.DataFrame, budgets: Sequence[int]) -> str:
    """Return a Markdown table of median regrets."""
    lines = [
        "| problem | sampler | " + " | ".join(f"regret at {b}" for b in budgets) + " | seconds per suggestion | R-hat |"
    ]
    lines.append("|---" * (len(budgets) + 4) + "|")
    best = pd.DataFrame({budget: best_after(trials, budget) for budget in budgets})
    for (problem, sampler), group in trials.groupby(["problem", "sampler"], observed=True):
        regrets = [best[budget][problem, sampler] - PROBLEMS[problem].minimum for budget in budgets]
        cells = [f"{r.median():.3g} ({r.min():.2g} to {r.max():.2g})" for r in regrets]
        lines.append(f"| {problem} | {sampler} | " + " | ".join(cells) + f" | {cost(group)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", default=["branin", "hartmann6"], choices=sorted(PROBLEMS))
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=sorted(SAMPLERS))
    add_run_arguments(parser, 50, Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    problems = {name: PROBLEMS[name] for name in options.problems}
    samplers = {name: SAMPLERS[name] for name in options.samplers}
    path = options.output / "standard.csv"
    trials = run_all(problems, samplers, options.seeds, options.budget, path, options.jobs)
    print(report(trials, sorted({min(25, options.budget), options.budget})))


if __name__ == "__main__":
    main()
