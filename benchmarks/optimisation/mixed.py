"""Compare the best values after 25, 50, 100 and 200 evaluations on mixed spaces with published results.

    python -m benchmarks.optimisation.mixed --data DIR --seeds 5 --budget 200

The problems are those of Oh et al. (2021), "Mixed Variable Bayesian Optimization with Frequency Modulated Kernels",
tables 1 and 2. NuSVR needs ``boston_housing.csv`` in the folder of ``--data`` and is skipped without it. The paper uses
point estimates of the hyperparameters; slayr_py samples them. Optuna's GP sampler needs ``pip install torch``. Each
trial is appended to ``mixed.csv``; run the same command again to resume after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.common.command_line import command_parser
from benchmarks.common.data_problems import nusvr
from benchmarks.common.problems import PROBLEMS, Problem
from benchmarks.common.studies import (
    add_fit_arguments,
    add_study_arguments,
    best_after,
    cost,
    run_command,
    standard_error,
)

PAPER = {
    "func2c": {
        "ModLap": (-0.2063, 0.0000),
        "ProdLap": (-0.2060, 0.0001),
        "AddLap": (-0.1669, 0.0127),
        "ModDif": (-0.0662, 0.0463),
        "CoCaBO-0.5": (-0.2025, 0.0018),
        "TPE": (-0.1917, 0.0053),
        "SMAC": (0.0060, 0.0387),
    },
    "func3c": {
        "ModLap": (-0.7215, 0.0004),
        "ProdLap": (-0.7213, 0.0005),
        "AddLap": (-0.3156, 0.1125),
        "ModDif": (-0.0977, 0.0742),
        "CoCaBO-0.5": (-0.7202, 0.0016),
        "TPE": (-0.4068, 0.1204),
        "SMAC": (0.1194, 0.0723),
    },
    "ackley5c": {
        "ModLap": (0.0186, 0.0057),
        "ProdLap": (0.0177, 0.0038),
        "AddLap": (0.0042, 0.0018),
        "ModDif": (0.0008, 0.0003),
        "CoCaBO-0.5": (1.3720, 0.2110),
        "TPE": (1.8601, 0.1248),
        "SMAC": (2.3809, 0.1648),
    },
    "nusvr": {
        "ModLap": (4.1864, 0.0015),
        "ProdLap": (4.1856, 0.0012),
        "AddLap": (4.5600, 0.2014),
        "ModDif": (4.1876, 0.0012),
        "CoCaBO-0.5": (4.1957, 0.0040),
        "TPE": (4.3986, 0.1632),
        "SMAC": (4.7588, 0.1414),
    },
}
"""Final mean and standard error over five runs of the paper (its supplement, sections 5.1 to 5.4)."""


def problems_of(data: Path | None) -> dict[str, Problem]:
    synthetic = {name: PROBLEMS[name] for name in ("func2c", "func3c", "ackley5c")}
    return synthetic | ({"nusvr": nusvr(data)} if data else {})


def report(trials: pd.DataFrame, budgets: Sequence[int]) -> str:
    """Return a Markdown table of mean best values and their standard errors."""
    lines = ["| problem | sampler | " + " | ".join(f"at {b}" for b in budgets) + " | seconds per suggestion | R-hat |"]
    lines.append("|---" * (len(budgets) + 4) + "|")
    best = pd.DataFrame({budget: best_after(trials, budget) for budget in budgets})
    for problem, own in trials.groupby("problem", observed=True):
        for sampler, group in own.groupby("sampler", observed=True):
            values = [best[budget][problem, sampler].dropna() for budget in budgets]
            cells = [f"{v.mean():.4f} ± {standard_error(v):.4f}" if len(v) else "" for v in values]
            lines.append(f"| {problem} | {sampler} | " + " | ".join(cells) + f" | {cost(group)} |")
        for method, (mean, error) in PAPER[str(problem)].items():
            blank = " | " * (len(budgets) - 1)
            lines.append(f"| {problem} | paper: {method} | {blank}{mean:.4f} ± {error:.4f} | | |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, help="folder with boston_housing.csv")
    add_study_arguments(parser, 100, ["fm"], ["optuna-gp", "optuna-tpe", "random"], Path(__file__).parent / "results")
    add_fit_arguments(parser, chains=2, warmup=100, draws=75)
    options = parser.parse_args(arguments)
    trials = run_command(options, problems_of(options.data), "mixed.csv")
    print(report(trials, sorted({min(b, options.budget) for b in (25, 50, 100, 200)})))


if __name__ == "__main__":
    main()
