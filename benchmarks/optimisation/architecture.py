"""Search for a network and the settings of its training, as section 5.3 of Oh et al. (2021).

    python -m benchmarks.optimisation.architecture --seeds 4 --budget 100
    python -m benchmarks.optimisation.architecture --report

The space, its graphs and the training are those of examples/architecture_search.py (pip install torch), which trains
small networks on the 8 x 8 digits of scikit-learn, or on those of --data. All samplers start from the ten
configurations of the default design of slayr_py and are told log f, where f = error + 0.02 FLOPs / largest FLOPs.
Training is seeded and has one thread, so that equal configurations have equal values on one machine. --graphs complete
replaces the graphs of the inputs, for slayr_py alone, since the others know of no graphs. Regularised evolution has a
population of 50 and starts to evolve after 50 evaluations: until then it is random search.

Each trial is appended to architecture-SAMPLER.csv; run the same command again to resume, and with a larger --budget to
extend the runs of slayr and evolution (Optuna's own samplers start again). The table has the mean best f and its
standard error. --report only prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import Problem
from benchmarks.common.results import markdown, mean_cell
from benchmarks.optimisation.peers import Slayr, peer
from benchmarks.optimisation.report import START, best_values
from benchmarks.optimisation.runs import add_run_arguments, read_trials, run_all
from examples.architecture_search import make_error, make_graphs, make_objective, make_space

NAME = "architecture"
GRAPHS = ("paper", "complete")
"""Problems, by the graphs of the inputs of states. The second one is for slayr_py: the others know of no graphs."""
SAMPLERS = ["slayr", "optuna-tpe", "random", "evolution", "optuna-gp"]
BUDGETS = (25, 50, 100, 200, 300)


def architecture_problems(data: Path | None) -> dict[str, Problem]:
    """Return the problem with the graphs of the paper, and with complete graphs of the inputs."""
    complete = Problem(make_space(), make_objective(make_error(data)), float("nan"))
    return {"paper": complete._replace(graphs=make_graphs()), "complete": complete}


def table(trials: pd.DataFrame, samplers: Sequence[str]) -> str:
    """Return the mean best f of each sampler, and the processor time of its suggestions, in Markdown."""
    best = np.exp(best_values(trials, BUDGETS))
    seconds = trials[trials["number"] >= START].groupby(["problem", "sampler"])["seconds"].mean()
    lines = []
    for problem in GRAPHS:
        for sampler in samplers:
            runs = best[best.index.isin([problem], level="problem") & best.index.isin([sampler], level="sampler")]
            if len(runs):
                label = sampler if problem == "paper" else f"{sampler}, {problem} graphs"
                cells = [_cell(runs[b].dropna()) for b in BUDGETS]
                lines.append([label, *cells, f"{seconds.get((problem, sampler), np.nan):.2f}"])
    return markdown(["sampler", *(f"at {b}" for b in BUDGETS), "seconds per suggestion"], lines)


def _cell(values: pd.Series) -> str:
    return f"{mean_cell(values)}, {len(values)} runs" if len(values) else "not run"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, help="CSV file with 64 pixels and a digit in each row")
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=list(GRAPHS), help="(default: both)")
    add_run_arguments(parser, __file__, SAMPLERS, seeds=4)
    parser.set_defaults(budget=100)
    options = begin(parser, arguments)
    if not options.report:
        problems = architecture_problems(options.data)
        for graphs in options.graphs:
            for sampler in options.samplers:
                if graphs == "paper" or peer(sampler).kind is Slayr:
                    limits = (options.seeds, options.budget, options.output, options.jobs)
                    run_all({graphs: problems[graphs]}, sampler, *limits, name=NAME)
    trials = read_trials(options.output, options.samplers, NAME)
    print(table(trials[trials["seed"] < options.seeds], options.samplers))


if __name__ == "__main__":
    main()
