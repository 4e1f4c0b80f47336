"""Best value after 25 and 50 evaluations against Optuna's TPE, GP and random samplers, in one run.

    python benchmarks/optimisation.py --seeds 5 --budget 50

Needs ``pip install torch`` for Optuna's GP sampler. Prints a Markdown table of medians over seeds of the simple regret
(best value minus the known minimum) and the mean seconds a suggestion. Every trial is in ``optimisation.csv``; what is
there already is not run again. All samplers get the same budget and, by their seeds, their own initial design.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from problems import PROBLEMS
from studies import BASELINES, Sampler, best_after, cost, run_all

from slayr_py.study import StanGPSampler

SAMPLERS: dict[str, Sampler] = {"slayr": lambda space, seed: StanGPSampler(space, seed=seed)} | BASELINES


def report(trials: pd.DataFrame, budgets: Sequence[int]) -> str:
    """Markdown table of median regrets."""
    lines = [
        "| problem | sampler | " + " | ".join(f"regret at {b}" for b in budgets) + " | seconds a suggestion | R-hat |"
    ]
    lines.append("|---" * (len(budgets) + 4) + "|")
    best = pd.DataFrame({budget: best_after(trials, budget) for budget in budgets})
    for (problem, sampler), group in trials.groupby(["problem", "sampler"], observed=True):
        regrets = [best[budget][problem, sampler] - PROBLEMS[problem].minimum for budget in budgets]
        cells = [f"{r.median():.3g} ({r.min():.2g} to {r.max():.2g})" for r in regrets]
        lines.append(f"| {problem} | {sampler} | " + " | ".join(cells) + f" | {cost(group)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--problems", nargs="+", default=["branin", "hartmann6"], choices=sorted(PROBLEMS))
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=sorted(SAMPLERS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="folder of the trials")
    options = parser.parse_args(arguments)
    problems = {name: PROBLEMS[name] for name in options.problems}
    samplers = {name: SAMPLERS[name] for name in options.samplers}
    path = options.output / "optimisation.csv"
    trials = run_all(problems, samplers, options.seeds, options.budget, path, options.jobs)
    print(report(trials, sorted({min(25, options.budget), options.budget})))


if __name__ == "__main__":
    main()
