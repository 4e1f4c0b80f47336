"""Measure the processor time of decisions of sl.Prune.

    python -m benchmarks.speed.decisions

The recorded curves of a model of scikit-learn are complete trials of a study in memory; another trial reports one step
after the other. ``first`` is the first decision of a process: it encodes all trials, fits and conditions. ``fit`` is a
decision at which a fit of the hyperparameters is due, ``finished`` the first one after another trial has finished,
``between`` the median of the others. Medians of the repeats in milliseconds, of one thread. --densities instead times
one log density with its gradient: of the rows that a fit uses, of all rows, and by the Kronecker form of the covariance
of complete curves at the same steps (eigenvalues of both factors, and a quadratic form for each length-scale).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import optuna

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.curve_problems import FOLDER, PROBLEMS, STEPS, recorded
from benchmarks.common.results import markdown
from slayr_py.inference import ExactMarginal
from slayr_py.space import Encoder
from slayr_py.study import space_to_distributions
from slayr_py.study.model.curve_model import CurveScale
from slayr_py.study.model.curve_points import EncodedTrials, PointsOfCurves, Rows
from slayr_py.study.model.forecasts import FITTED
from slayr_py.study.storage.curves import MOST_POINTS, curve_of
from slayr_py.threads import one_thread


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


def kronecker(X: np.ndarray, u: np.ndarray, Y: np.ndarray) -> float:
    """Return a sum of the log density of curves Y (n, T) at inputs (n, D) and steps (T,), and of its gradient."""
    between = np.sqrt(np.square(X[:, None] - X).sum(axis=2))
    K = (1 + between + np.square(between) / 3) * np.exp(-between)
    S = np.exp(-np.abs(u[:, None] - u))
    values, U = np.linalg.eigh(K)
    weights, V = np.linalg.eigh(S)
    total = np.outer(values, weights) + 0.01
    turned = U.T @ Y @ V
    alpha = U @ (turned / total) @ V.T
    result = -0.5 * float(np.sum(np.square(turned) / total + np.log(total)))
    for j in range(X.shape[1]):
        slope = K * np.square(X[:, None, j] - X[:, j])
        inverse = np.sum(U * (slope @ U), axis=0)[:, None] * weights / total
        result += 0.5 * float(np.sum((alpha @ S) * (slope @ alpha)) - np.sum(inverse))
    return result


def densities(problem: str, n: int, repeats: int) -> list[str]:
    """Return the processor times in milliseconds of the density of n complete curves."""
    study = Decisions(problem, n, 0).study
    encoder = Encoder(PROBLEMS[problem].space)
    trials = EncodedTrials.declared(None, encoder, study)
    curves = [curve_of(trial) for trial in study.trials[:n]]
    points = PointsOfCurves(trials, 1.0, float(STEPS))
    times = []
    for rows in (FITTED, Rows(n * MOST_POINTS, n)):
        told = points.of_all(curves, rows)
        y = CurveScale.of(told.values, told.values).transform(told.values)
        marginal = ExactMarginal(trials.space.model, told.rows, y)
        z = np.zeros(marginal.coordinates.size)
        times.append(_time(lambda marginal=marginal, z=z: marginal(z), repeats))
    X = encoder.encode([trial.params for trial in study.trials[:n]]).columns
    Y = y.reshape(n, MOST_POINTS)
    times.append(_time(lambda: kronecker(X, told.u[:MOST_POINTS], Y), repeats))
    return [problem, f"{n}", *(f"{1000 * seconds:.2f}" for seconds in times)]


def _time(call: Callable[[], object], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        clock = time.process_time()
        call()
        seconds.append(time.process_time() - clock)
    return float(np.median(seconds))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    problems = sorted(path.stem for path in FOLDER.glob("*.csv"))
    parser.add_argument("--problems", nargs="+", choices=problems, default=problems, metavar="PROBLEM")
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100], help="numbers of complete trials")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--densities", action="store_true", help="time densities instead of decisions")
    options = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    lines = []
    if options.densities:
        with one_thread():
            lines = [densities(problem, n, options.repeats) for problem in options.problems for n in options.sizes]
        print(markdown(["problem", "curves", "rows of a fit", "all rows", "Kronecker"], lines))
        return
    Decisions(options.problems[0], 5, 0).times()  # imports
    for problem in options.problems:
        for n in options.sizes:
            times = np.median([Decisions(problem, n, seed).times() for seed in range(options.repeats)], axis=0)
            lines.append([problem, f"{n}", *(f"{1000 * seconds:.0f}" for seconds in times)])
    print(markdown(["problem", "trials", "first", "fit", "finished", "between"], lines))


if __name__ == "__main__":
    main()
