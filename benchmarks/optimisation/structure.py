"""Compare kernels in the loop on functions of BBOB in five dimensions.

    python -m benchmarks.optimisation.structure --kernels matern additive --functions 2 8 10 --instances 1 2
    python -m benchmarks.optimisation.structure --predict --instances 1
    python -m benchmarks.optimisation.structure --report

Needs coco-experiment. A run has the seed of its instance, so that all kernels start from the same design of six points.
A run is a row of ``structure.csv``: the distance of the best value from the optimum after 25 and 50 evaluations, and
the processor seconds of the whole run. Run the same command again to resume after an interruption.

--predict fits the kernels to 30 points instead, a third of them anywhere and the others near the optimum, with the warp
of the loop. A row of ``structure-predictions.csv`` has the mean log predictive density of 200 other points near it.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import ResultFile, add_result_arguments, markdown

DIMENSION = 5
SPACE = ConfigurationSpace({f"x{d}": (-5.0, 5.0) for d in range(DIMENSION)})
BUDGETS = (25, 50)
KEYS = ("kernel", "function", "instance")
COLUMNS = (*KEYS, *(f"regret at {budget}" for budget in BUDGETS), "seconds")


def processor_seconds() -> float:
    """Return the processor time of this process and of the processes that have ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run(kernel: str, function: int, instance: int) -> dict[str, object]:
    """Minimise one function; return the row."""
    from cocoex import BareProblem  # not needed for the report

    problem = BareProblem("bbob", function, DIMENSION, instance)
    regrets: list[float] = []

    def objective(config) -> float:
        value = float(problem(np.array([config[name] for name in SPACE])))
        regrets.append(value - problem.best_value())
        return value

    before = processor_seconds()
    sl.minimize(objective, SPACE, budget=BUDGETS[-1], kernel=kernel, seed=instance, progress=False)
    best = {f"regret at {budget}": min(regrets[:budget]) for budget in BUDGETS}
    return {
        "kernel": kernel,
        "function": function,
        "instance": instance,
        **best,
        "seconds": processor_seconds() - before,
    }


def predict(kernel: str, function: int, instance: int) -> dict[str, object]:
    """Fit a kernel to points as a loop has them, and predict others; return the row."""
    from cocoex import BareProblem  # not needed for the report

    problem = BareProblem("bbob", function, DIMENSION, instance)
    rng = np.random.default_rng(100 * function + instance)

    def near_optimum(count: int) -> np.ndarray:
        width = rng.choice([3.0, 1.5, 0.7], size=(count, 1))
        centre = np.array(problem.best_parameter()) + 0.8 * rng.normal(size=(1, DIMENSION))
        return np.clip(centre + width * rng.normal(size=(count, DIMENSION)), -5, 5)

    points = np.vstack([rng.uniform(-5, 5, (10, DIMENSION)), near_optimum(20), near_optimum(200)])
    configs = [{f"x{d}": float(x) for d, x in enumerate(point)} for point in points]
    values = np.array([problem(point) for point in points])
    priors = {"sigma_n": sl.LogNormal(-4.0, 1.5)}
    gp = sl.GaussianProcess(SPACE, kernel, priors, warp="log")
    posterior = gp.fit(configs[:30], values[:30], method="nuts", chains=2, warmup=250, draws=150, seed=1)
    latent = posterior.predict(configs[30:]).latent
    density = latent.log_density(values[30:], latent.sigma_n[:, None]).mean()
    return {"kernel": kernel, "function": function, "instance": instance, "log density": density}


def table(rows: pd.DataFrame) -> str:
    """Return, for each kernel, the mean of log10 of the regret relative to that of the Matérn kernel, in Markdown."""
    lines = []
    plain = rows[rows["kernel"] == "matern"]
    for kernel, own in rows[rows["kernel"] != "matern"].groupby("kernel"):
        pairs = own.merge(plain, on=["function", "instance"], suffixes=("", " matern"))
        cells = []
        for budget in BUDGETS:
            ratio = np.log10(pairs[f"regret at {budget}"] / pairs[f"regret at {budget} matern"])
            error = ratio.std() / np.sqrt(len(ratio))
            cells += [f"{ratio.mean():.2f} ± {error:.2f}", f"{(ratio < 0).sum()} : {(ratio > 0).sum()}"]
        time = (pairs["seconds"] / pairs["seconds matern"]).median()
        lines.append([str(kernel), str(len(pairs)), *cells, f"{time:.1f}"])
    heads = [text for budget in BUDGETS for text in (f"log10 ratio at {budget}", "better : worse")]
    return markdown(["kernel", "runs", *heads, "time"], lines)


def prediction_table(rows: pd.DataFrame) -> str:
    """Return, for each kernel, the mean gain of log density over the Matérn kernel, in Markdown."""
    plain = rows[rows["kernel"] == "matern"]
    lines = []
    for kernel, own in rows[rows["kernel"] != "matern"].groupby("kernel"):
        pairs = own.merge(plain, on=["function", "instance"], suffixes=("", " matern"))
        gain = pairs["log density"] - pairs["log density matern"]
        cells = [f"{gain.mean():.2f} ± {gain.std() / np.sqrt(len(gain)):.2f}", f"{gain.min():.2f}", f"{gain.max():.2f}"]
        lines.append([str(kernel), str(len(gain)), *cells, f"{(gain > 0).sum()} : {(gain < 0).sum()}"])
    return markdown(["kernel", "functions", "gain", "smallest", "largest", "better : worse"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--kernels", nargs="+", default=["matern", "additive"], help="names or expressions")
    parser.add_argument("--functions", nargs="+", type=int, default=[*range(1, 25)], help="numbers of functions")
    parser.add_argument("--instances", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--predict", action="store_true", help="predict instead of optimising")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    loops = ResultFile(options.output / "structure.csv", KEYS, COLUMNS)
    fits = ResultFile(options.output / "structure-predictions.csv", KEYS, (*KEYS, "log density"))
    if not options.report:
        results, measure = (fits, predict) if options.predict else (loops, run)
        runs = [(k, f, i) for i in options.instances for f in options.functions for k in options.kernels]
        for kernel, function, instance in results.missing(runs):
            results.append([measure(kernel, function, instance)])
    print(table(loops.rows()), prediction_table(fits.rows()), sep="\n\n")


if __name__ == "__main__":
    main()
