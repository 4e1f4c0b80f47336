"""Measure the processor time of decisions of sl.Prune.

    python -m benchmarks.speed.decisions

The recorded curves of a model of scikit-learn are complete trials of a study in memory; another trial reports one step
after the other. ``first`` is the first decision of a process: it encodes all trials, fits and conditions. ``fit`` is a
decision at which a fit of the hyperparameters is due, ``finished`` the first one after another trial has finished,
``between`` the median of the others. Medians of the repeats in milliseconds, of one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np
import optuna

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.curve_problems import FOLDER, PROBLEMS, STEPS, recorded
from benchmarks.common.results import markdown
from slayr_py.study import space_to_distributions


class Decisions:
    """A study with complete trials and one that runs."""

    def __init__(self, problem: str, n: int, seed: int) -> None:
        self.distributions = space_to_distributions(PROBLEMS[problem].space)
        self.curves = recorded(problem, seed)
        self.study = optuna.create_study(pruner=sl.Prune(1e-300), study_name=problem)
        for _ in range(n):
            self.finish()
        config, self.curve = self.curves[-1]
        self.study.enqueue_trial(config)
        self.trial = self.study.ask(self.distributions)

    def finish(self) -> None:
        """Add the next recorded curve as a complete trial."""
        config, curve = self.curves[len(self.study.trials)]
        values = {step: float(value) for step, value in enumerate(curve, start=1)}
        self.study.add_trial(optuna.trial.create_trial(
            params=config, distributions=self.distributions, value=values[STEPS], intermediate_values=values
        ))  # fmt: skip

    def decide(self, step: int) -> float:
        """Return the processor time of the decision at a step."""
        self.trial.report(float(self.curve[step - 1]), step)
        clock = time.process_time()
        self.trial.should_prune()
        return time.process_time() - clock

    def times(self) -> list[float]:
        """Return the processor times of all kinds of decisions."""
        first = self.decide(1)
        between = float(np.median([self.decide(step) for step in (2, 3, 4)]))
        model = self.study.pruner.forecasts_of(self.study)
        model._fit = None
        model._conditioned = None
        fit = self.decide(5)
        self.finish()
        return [first, fit, self.decide(6), between]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    problems = sorted(path.stem for path in FOLDER.glob("*.csv"))
    parser.add_argument("--problems", nargs="+", choices=problems, default=problems, metavar="PROBLEM")
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100], help="numbers of complete trials")
    parser.add_argument("--repeats", type=int, default=5)
    options = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    lines = []
    Decisions(options.problems[0], 5, 0).times()  # imports
    for problem in options.problems:
        for n in options.sizes:
            times = np.median([Decisions(problem, n, seed).times() for seed in range(options.repeats)], axis=0)
            lines.append([problem, f"{n}", *(f"{1000 * seconds:.0f}" for seconds in times)])
    print(markdown(["problem", "trials", "first", "fit", "finished", "between"], lines))


if __name__ == "__main__":
    main()
