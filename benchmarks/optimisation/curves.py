"""Compare samplers and pruners on learning curves, by the best final value against the number of steps.

    python -m benchmarks.optimisation.curves --seeds 3 --steps 540

Problems: models of scikit-learn that are trained live (`benchmarks.common.curve_problems`), and Hartmann functions with
a fidelity. "random-prune" takes 40 of the recorded curves in random order and never runs out of steps. Another method
stops when it has used its steps, or after 100 trials, of Optuna's TPE after 300. Every trial is appended to curves.csv;
run the command again to resume. --report only prints the tables: the best final value, and the calibration of sl.Prune,
for which pruned trials are trained to their end without telling the study. The GP sampler of Optuna needs torch.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.curve_problems import PROBLEMS, STEPS, recorded
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell
from slayr_py.study import create_study, space_to_distributions

SAMPLERS: dict[str, Callable[[int], Any]] = {
    "tpe-hyperband": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe-median": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe-prune": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "random-prune": lambda seed: optuna.samplers.RandomSampler(seed=seed),  # configurations are enqueued
    "optuna-gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
}

PRUNERS: dict[str, Callable[[], Any]] = {
    "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=STEPS, reduction_factor=3),
    "median": lambda: optuna.pruners.MedianPruner(),
    "prune": lambda: sl.Prune(0.05),
}

METHODS = ["slayr-prune", "slayr", "tpe-hyperband", "tpe-median", "optuna-gp", "random-prune", "tpe-prune"]
RECORDED = "random-prune"
"""Method that takes recorded configurations, and is not compared at equal steps."""

COLUMNS = ["problem", "method", "seed", "number", "steps", "state", "final", "full", "probability", "seconds"]


def run(problem: str, method: str, seed: int, steps: int) -> Iterator[dict[str, Any]]:
    """Run a study until its steps are used, and yield a row for each trial."""
    space = PROBLEMS[problem].space
    pruner = next((make() for name, make in PRUNERS.items() if method.endswith(name)), optuna.pruners.NopPruner())
    table = recorded(problem, seed) if method == "random-prune" else []
    if method.startswith("slayr"):
        study = create_study(space, pruner=pruner, seed=seed)
    else:
        study = optuna.create_study(sampler=SAMPLERS[method](seed), pruner=pruner, study_name=f"{problem}-{seed}")
    distributions = space_to_distributions(space)
    used = 0
    most = 300 if method.startswith("tpe") else 40 if table else 100
    if method == "random-prune":
        steps = most * STEPS
    while used < steps and len(study.trials) < most:
        clock = time.process_time()
        if table:
            study.enqueue_trial(table[len(study.trials)][0])
        trial = study.ask(None if method.startswith("slayr") else distributions)
        if method.startswith("slayr"):
            for name, distribution in distributions.items():
                trial._suggest(name, distribution)
        seconds = time.process_time() - clock
        curve = table[trial.number][1] if table else PROBLEMS[problem].curve(trial.params)
        done = 0
        pruned = False
        clock = time.process_time()
        for done, value in enumerate(curve[: steps - used], start=1):
            trial.report(float(value), done)
            if done < STEPS and (pruned := trial.should_prune()):
                break
        seconds += time.process_time() - clock
        used += done
        if done < STEPS:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, float(curve[-1]))
        decisions = study.trials[-1].user_attrs.get("slayr:prune", {}).get("decisions", [])
        yield {
            "problem": problem,
            "method": method,
            "seed": seed,
            "number": trial.number,
            "steps": used,
            "state": "pruned" if pruned else "complete" if done == STEPS else "ended",
            "final": float(curve[-1]) if done == STEPS else np.nan,
            "full": float(curve[-1]),
            "probability": decisions[-1]["probability"] if decisions else np.nan,
            "seconds": round(seconds, 3),
        }


def best_after(rows: pd.DataFrame, steps: int) -> float:
    """Return the best final value of a run within this many steps."""
    return float(rows.loc[rows["steps"] <= steps, "final"].min())


def regrets(rows: pd.DataFrame, marks: Sequence[int]) -> pd.DataFrame:
    """Return the regret of each run (problem, seed, method) after numbers of steps.

    It is relative to the range between the best value of all runs and the median of the first five trials.
    """
    runs = rows.groupby(["problem", "seed", "method"])
    table = pd.DataFrame({mark: runs.apply(best_after, mark, include_groups=False) for mark in marks})
    best = rows.groupby("problem")["full"].min()
    middle = rows[rows["number"] < 5].groupby("problem")["full"].median()
    level = table.index.get_level_values("problem")
    return table.sub(best[level].to_numpy(), axis=0).div((middle - best)[level].to_numpy(), axis=0)


def comparison(rows: pd.DataFrame, steps: int) -> str:
    """Return the mean rank and the mean regret of each method after parts of the steps, in Markdown."""
    marks = [steps // 4, steps // 2, steps]
    regret = regrets(rows, marks)
    loops = regret.drop(index=RECORDED, level="method", errors="ignore")
    whole = set(loops.reset_index().groupby("method").size().loc[lambda n: n == n.max()].index)
    common = regret[regret.index.get_level_values("method").isin(whole)]
    ranks = common.groupby(["problem", "seed"]).rank()
    lines = []
    for method in METHODS:
        if method in regret.index.get_level_values("method"):
            mine = regret.xs(method, level="method")
            rank = [mean_cell(ranks.xs(method, level="method")[m]) if method in whole else "" for m in marks]
            lines.append([method, str(len(mine)), *(mean_cell(mine[m]) for m in marks), *rank])
    heads = ["method", "runs", *(f"regret at {m}" for m in marks), *(f"rank at {m}" for m in marks)]
    return markdown(heads, lines)


def steps_of_the_mean(rows: pd.DataFrame, steps: int) -> str:
    """Return after how many steps the mean regret of slayr-prune is the one of slayr after all of them."""
    loops = rows[rows["method"].isin(["slayr", "slayr-prune"])]
    marks = list(range(5 * STEPS, steps + 1, 5))
    means = regrets(loops, marks).groupby("method").mean()
    if len(means) < 2:
        return ""
    reached = [mark for mark in marks if means.loc["slayr-prune", mark] <= means.loc["slayr", steps]]
    after = f"{reached[0]} ({reached[0] / steps:.2f})" if reached else f"more than {steps}"
    return f"mean regret of slayr after {steps} steps: slayr-prune has it after {after}"


def parts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return for each run of slayr the part of its steps after which its final value is reached.

    By slayr-prune ("reached"; infinite if never), and by an oracle that stops trials of the same suggestions after k
    steps unless they become the best, but none of the first n ("oracle n, k").
    """
    found = []
    for (problem, seed), own in rows[rows["method"] == "slayr"].groupby(["problem", "seed"]):
        is_same = (rows["problem"] == problem) & (rows["seed"] == seed) & (rows["method"] == "slayr-prune")
        if not is_same.any():
            continue
        reached = rows[is_same & (rows["final"] <= own["final"].min())]
        row = {"reached": reached["steps"].min() if len(reached) else np.inf}
        is_best = own["full"] < own["full"].cummin().shift().fillna(np.inf)
        until = own["number"] <= own.loc[is_best, "number"].max()
        for n in (0, 3, 5):
            for k in (1, 3, 5, 9):
                is_whole = is_best | (own["number"] < n)
                row[f"oracle {n}, {k}"] = np.where(is_whole, STEPS, k)[until].sum()
        found.append({name: steps / own["steps"].max() for name, steps in row.items()})
    return pd.DataFrame(found)


def half_steps(rows: pd.DataFrame) -> str:
    """Return in how many runs the final value of slayr is reached with half its steps, see `parts`, in Markdown."""
    lines = []
    for name, values in parts(rows).items():
        reached = f"{np.isfinite(values).sum()} of {len(values)}"
        lines.append([str(name), reached, f"{(values <= 0.5).sum()}", f"{values.median():.2f}"])
    return markdown(["final value of slayr", "runs", "with half the steps", "median part"], lines)


def calibration(rows: pd.DataFrame) -> str:
    """Return how many of the trials that sl.Prune has stopped would have become the best, in Markdown."""
    lines = []
    for method in [m for m in METHODS if m.endswith("-prune")]:
        stopped = wrong = trials = 0
        expected = 0.0
        problems = set()
        for (problem, _), run_rows in rows[rows["method"] == method].groupby(["problem", "seed"]):
            best = run_rows["final"].cummin().shift().ffill()
            pruned = run_rows["state"] == "pruned"
            wrong += int((run_rows["full"] < best)[pruned].sum())
            expected += float(run_rows["probability"][pruned].sum())
            stopped += int(pruned.sum())
            trials += len(run_rows)
            problems.add(problem)
        if stopped:
            share = wrong / stopped
            error = np.sqrt(max(share * (1 - share), 1 / stopped) / stopped)
            cells = [f"{trials}", f"{stopped}", f"{wrong}", f"{share:.1%} ± {error:.1%}", f"{expected / stopped:.1%}"]
            lines.append([method, f"{len(problems)}", *cells])
    heads = ["method", "problems", "trials", "stopped", "would have been the best", "share", "mean probability"]
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="PROBLEM")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=540)
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    file = ResultFile(options.output / "curves.csv", ["problem", "method", "seed"], COLUMNS)
    wanted = [(p, m, s) for s in range(options.seeds) for p in options.problems for m in options.methods]
    if not options.report:
        warnings.simplefilter("ignore")
        for problem, method, seed in file.missing(wanted):
            rows: list[Mapping[str, Any]] = list(run(problem, method, seed, options.steps))
            file.append(rows)
    rows = file.rows()
    rows = rows[rows["seed"] < options.seeds]
    print(comparison(rows, options.steps))
    print(half_steps(rows))
    print(steps_of_the_mean(rows, options.steps))
    print(calibration(rows))


if __name__ == "__main__":
    main()
