"""Compare priors of the noise in studies of exact objectives with exact past experiments.

    python -m benchmarks.optimisation.history

Ten points of a Sobol design are past experiments of a study without ``noisy=True``, which then makes 15 evaluations.
The model's prior of ``sigma_n`` is its default for studies with past experiments, or that of studies without them. Rows
are appended to ``history.csv``; run the same command again to resume after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import PROBLEMS
from benchmarks.common.results import ResultFile, add_result_arguments, markdown
from slayr_py.space import Encoder

PRIORS = {"HalfNormal(1)": sl.HalfNormal(1), "LogNormal(-4, 0.5)": sl.LogNormal(-4, 0.5)}
PAST = 10
BUDGET = 15


def regret(problem_name: str, prior: str, seed: int) -> float:
    """Return the regret of the best value of a study."""
    problem = PROBLEMS[problem_name]
    past = [(dict(config), problem.objective(config)) for config in Encoder(problem.space).sobol(PAST, seed)]
    priors = {"sigma_n": PRIORS[prior]}
    result = sl.minimize(
        problem.objective, problem.space, BUDGET, seed=seed, history=past, priors=priors, progress=False
    )
    return result.best_value - problem.minimum


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=["branin", "hartmann6"])
    parser.add_argument("--seeds", type=int, default=6)
    add_result_arguments(parser, __file__)
    given = begin(parser, arguments)
    keys = ["problem", "prior", "seed"]
    results = ResultFile(given.output / "history.csv", keys, [*keys, "regret"])
    if not given.report:
        for seed, problem, prior in product(range(1, given.seeds + 1), given.problems, PRIORS):
            for run in results.missing([(problem, prior, seed)]):
                results.append([dict(zip(keys, run, strict=True), regret=regret(*run))])
    lines = []
    for (problem, prior), group in results.rows().groupby(["problem", "prior"], sort=False):
        error = group["regret"].std() / np.sqrt(len(group))
        lines.append([problem, prior, str(len(group)), f"{group['regret'].mean():.3g} ± {error:.2g}"])
    print(markdown(["problem", "prior of the noise", "seeds", "regret"], lines))


if __name__ == "__main__":
    main()
