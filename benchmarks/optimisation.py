"""Best value after 25 and 50 evaluations against Optuna's TPE, GP and random samplers, in one run.

    python benchmarks/optimisation.py --seeds 5 --budget 50 --output benchmarks/results

Needs ``pip install torch`` for Optuna's GP sampler. Prints a Markdown table of medians over seeds of the simple regret
(best value minus the known minimum), the mean seconds a suggestion, and writes every trial to ``optimisation.csv``.
All samplers get the same budget and, by their seeds, their own initial design.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
from ConfigSpace import ConfigurationSpace
from problems import PROBLEMS

from slayr_py.study import StanGPSampler, space_to_distributions

SAMPLERS: dict[str, Callable[[ConfigurationSpace, int], optuna.samplers.BaseSampler]] = {
    "slayr": lambda space, seed: StanGPSampler(space, seed=seed),
    "optuna-gp": lambda space, seed: optuna.samplers.GPSampler(seed=seed, n_startup_trials=10),
    "optuna-tpe": lambda space, seed: optuna.samplers.TPESampler(seed=seed),
    "random": lambda space, seed: optuna.samplers.RandomSampler(seed=seed),
}


def run(sampler: str, problem: str, seed: int, budget: int) -> pd.DataFrame:
    """One study; a row a trial with its value and the seconds its suggestion took."""
    space, objective, _ = PROBLEMS[problem]
    distributions = space_to_distributions(space)
    study = optuna.create_study(sampler=SAMPLERS[sampler](space, seed))
    rows = []
    for number in range(budget):
        start = time.perf_counter()
        trial = study.ask(distributions)
        seconds = time.perf_counter() - start
        value = objective(trial.params)
        study.tell(trial, value)
        rows.append((sampler, problem, seed, number, value, seconds))
    return pd.DataFrame(rows, columns=["sampler", "problem", "seed", "number", "value", "seconds"])


def report(trials: pd.DataFrame, budgets: list[int]) -> str:
    """Markdown table of median regrets."""
    lines = ["| problem | sampler | " + " | ".join(f"regret at {b}" for b in budgets) + " | seconds a suggestion |"]
    lines.append("|---" * (len(budgets) + 3) + "|")
    for (problem, sampler), group in trials.groupby(["problem", "sampler"], sort=False):
        minimum = PROBLEMS[str(problem)][2]
        cells = []
        for budget in budgets:
            best = group[group["number"] < budget].groupby("seed")["value"].min() - minimum
            cells.append(f"{best.median():.3g} ({best.min():.2g} to {best.max():.2g})")
        seconds = group[group["number"] >= 10]["seconds"].mean()
        lines.append(f"| {problem} | {sampler} | " + " | ".join(cells) + f" | {seconds:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=50)
    parser.add_argument("--problems", nargs="+", default=["branin", "hartmann6"], choices=sorted(PROBLEMS))
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=sorted(SAMPLERS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    frames = []
    for seed in range(arguments.seeds):
        for problem in arguments.problems:
            for sampler in arguments.samplers:
                frames.append(run(sampler, problem, seed, arguments.budget))
                best = frames[-1]["value"].min() - PROBLEMS[problem][2]
                print(f"{problem} {sampler} seed {seed}: regret {best:.4g}", flush=True)
    trials = pd.concat(frames)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        trials.to_csv(arguments.output / "optimisation.csv", index=False, float_format="%.10g")
    print(report(trials, sorted({min(25, arguments.budget), arguments.budget})))


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
