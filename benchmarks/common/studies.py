"""Run many studies and store their trials in one CSV file, from which an interrupted command resumes.

A run is one study: a problem, a sampler and a seed. Each trial is appended to the file when it finishes. slayr_py
derives trial t from (seed, t), so an interrupted run resumes with the suggestions that it would have made; a run of an
Optuna sampler starts again. Only one command at a time may write to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
import optuna
import pandas as pd
from ConfigSpace import ConfigurationSpace
from threadpoolctl import threadpool_limits

import slayr_py as sl
from benchmarks.common.problems import Problem
from slayr_py.study import StanGPSampler, space_to_distributions
from slayr_py.study.asktell import suggest_all
from slayr_py.study.storage.attributes import suggestion_record

Sampler = Callable[[ConfigurationSpace, int], optuna.samplers.BaseSampler]

COLUMNS = ["problem", "sampler", "seed", "number", "value", "seconds", "rhat", "params"]
N_INITIAL = 10  # initial evaluations; every sampler uses its own design
_PROGRESS_INTERVAL = 30.0  # seconds

KERNELS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "matern": lambda: sl.kernels.Matern(),
    "hierarchical": lambda: sl.kernels.Hierarchical(),
    "fm": lambda: sl.kernels.FrequencyModulated(modulator="laplacian"),
    "fm-power": lambda: sl.kernels.FrequencyModulated(modulator="power"),
    "fm-neural": lambda: sl.kernels.FrequencyModulated(modulator="neural"),
    "fm-diffusion": lambda: sl.kernels.FrequencyModulated(modulator="diffusion"),
    "fm-hierarchical": lambda: sl.kernels.FrequencyModulated(modulator=sl.kernels.Hierarchical()),
    "product-laplacian": lambda: sl.kernels.Separable(graph="laplacian", combine="product"),
    "sum-laplacian": lambda: sl.kernels.Separable(graph="laplacian", combine="sum"),
    "product-diffusion": lambda: sl.kernels.Separable(graph="diffusion", combine="product"),
    "sum-diffusion": lambda: sl.kernels.Separable(graph="diffusion", combine="sum"),
}
"""Names in Oh et al. (2021): fm is ModLap, fm-diffusion ModDif, product-laplacian ProdLap, sum-diffusion AddDif."""

BASELINES: dict[str, Sampler] = {
    "optuna-gp": lambda space, seed: optuna.samplers.GPSampler(seed=seed, n_startup_trials=N_INITIAL),
    "optuna-tpe": lambda space, seed: optuna.samplers.TPESampler(seed=seed, n_startup_trials=N_INITIAL),
    "random": lambda space, seed: optuna.samplers.RandomSampler(seed=seed),
}


def add_fit_arguments(parser: argparse.ArgumentParser, chains: int, warmup: int, draws: int) -> None:
    """Add the options of a slayr_py fit with the given defaults."""
    parser.add_argument("--method", default="nuts", choices=["nuts", "pathfinder", "laplace", "map"])
    parser.add_argument("--chains", type=int, default=chains)
    parser.add_argument("--warmup", type=int, default=warmup, help="warm-up iterations per chain")
    parser.add_argument("--draws", type=int, default=draws, help="draws per chain")


def add_study_arguments(
    parser: argparse.ArgumentParser, budget: int, kernels: Sequence[str], baselines: Sequence[str], output: Path
) -> None:
    """Add the options of :func:`run_command` with the given defaults."""
    parser.add_argument("--problems", nargs="+", help="problem names as in the table (default: all)")
    add_run_arguments(parser, budget, output)
    parser.add_argument("--kernels", nargs="*", default=kernels, choices=sorted(KERNELS), help="kernels of slayr_py")
    parser.add_argument("--baselines", nargs="*", default=baselines, choices=sorted(BASELINES), help="other samplers")
    parser.add_argument("--report", action="store_true", help="run nothing; print the tables of the stored trials")
    parser.add_argument("--figure", type=Path, help="file for a figure of the convergence")


def add_run_arguments(parser: argparse.ArgumentParser, budget: int, output: Path) -> None:
    """Add the number and length of the runs and the folder of their trials."""
    parser.add_argument("--seeds", type=int, default=5, help="runs per problem and sampler")
    parser.add_argument("--budget", type=int, default=budget, help="evaluations per run")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs")
    parser.add_argument("--output", type=Path, default=output, help="folder of the CSV file with the trials")


def fit_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("method", "chains", "warmup", "draws")}


def fit_label(method: str, chains: int, warmup: int, draws: int) -> str:
    return method if method == "map" else f"{method} {chains}x({warmup}+{draws})"


def samplers_of(arguments: argparse.Namespace) -> dict[str, Sampler]:
    """Return the requested samplers by their names in files and tables."""
    options = fit_options(arguments)
    slayr = {f"{kernel}, {fit_label(**options)}": partial(_slayr, kernel, options) for kernel in arguments.kernels}
    return slayr | {name: BASELINES[name] for name in arguments.baselines}


def _slayr(kernel: str, options: Mapping[str, Any], space: ConfigurationSpace, seed: int) -> StanGPSampler:
    return StanGPSampler(space, kernel=KERNELS[kernel](), n_initial=N_INITIAL, seed=seed, **options)


def run_command(options: argparse.Namespace, problems: Mapping[str, Problem], file: str) -> pd.DataFrame:
    """Run the requested studies (or only read their trials), draw the figure and return the trials."""
    if missing := set(options.problems or ()) - set(problems):
        raise SystemExit(f"no problem {sorted(missing)}; available: {list(problems)}; --data adds more")
    problems = {name: problems[name] for name in options.problems or problems}
    samplers, path = samplers_of(options), options.output / file
    if options.report:
        trials = select(read(path, COLUMNS), problems, samplers, options.seeds)
    else:
        trials = run_all(problems, samplers, options.seeds, options.budget, path, options.jobs)
    if options.figure:
        draw_convergence(trials, problems, options.figure)
    return trials


def read(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    """Return the rows of a file, or no rows if the file does not exist."""
    # The converter is exact; the default parser of pandas may round the last digit.
    rows = pd.read_csv(path, converters={"value": float}) if path.exists() else pd.DataFrame()
    return rows.reindex(columns=list(columns))


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append one row in a single write, so that several processes can share the file."""
    pd.DataFrame([row]).to_csv(path, mode="a", header=False, index=False)


def run_all(
    problems: Mapping[str, Problem],
    samplers: Mapping[str, Sampler],
    seeds: int,
    budget: int,
    path: Path,
    jobs: int = 1,
) -> pd.DataFrame:
    """Continue every run up to its budget and return all trials of these problems, samplers and seeds.

    Returns
    -------
    DataFrame
        Columns ``COLUMNS``; ``seconds`` is the time of the suggestion, ``rhat`` the largest R-hat of its fit.
    """
    stored = read(path, COLUMNS)
    runs = []
    for seed in range(seeds):
        for problem in problems:
            for sampler in samplers:
                own = (stored["problem"] == problem) & (stored["sampler"] == sampler) & (stored["seed"] == seed)
                earlier = stored[own].sort_values("number")
                if len(earlier) >= budget:
                    continue
                if sampler in BASELINES:
                    stored, earlier = stored[~own], earlier[:0]
                runs.append((problem, sampler, seed, earlier))
    path.parent.mkdir(parents=True, exist_ok=True)
    stored.to_csv(path, index=False)
    print(f"{len(runs)} runs to do; trials are written to {path}", flush=True)
    joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(_run)(problem, problems[problem], sampler, samplers[sampler], seed, budget, earlier, path)
        for problem, sampler, seed, earlier in runs
    )
    return select(read(path, COLUMNS), problems, samplers, seeds)


def select(trials: pd.DataFrame, problems: Iterable[str], samplers: Iterable[str], seeds: int) -> pd.DataFrame:
    """Return the trials of these problems, samplers and seeds, sorted in this order."""
    wanted = trials[
        trials["problem"].isin([*problems]) & trials["sampler"].isin([*samplers]) & (trials["seed"] < seeds)
    ].copy()
    wanted["problem"] = pd.Categorical(wanted["problem"], [*problems])
    wanted["sampler"] = pd.Categorical(wanted["sampler"], [*samplers])
    return wanted.sort_values(["problem", "sampler", "seed", "number"], ignore_index=True)


def _run(
    problem_name: str,
    problem: Problem,
    sampler_name: str,
    sampler: Sampler,
    seed: int,
    budget: int,
    earlier: pd.DataFrame,
    path: Path,
) -> None:
    # For torch, which Optuna's GP sampler loads later; threadpool_limits covers the libraries loaded so far.
    os.environ["OMP_NUM_THREADS"] = "1"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(sampler=sampler(problem.space, seed))
        study.add_trials(_finished(problem.space, earlier))
        last_report = time.perf_counter()
        for number in range(len(earlier), budget):
            start = time.perf_counter()
            trial = study.ask()
            params = suggest_all(trial, problem.space)
            seconds = time.perf_counter() - start
            value = problem.objective(params)
            frozen = study.tell(trial, value)
            rhat = suggestion_record(frozen).get("diagnostics", {}).get("rhat_max")
            # Runs of Optuna samplers never resume, and their configurations would be most of the file.
            stored_params = None if sampler_name in BASELINES else json.dumps(params)
            row = (problem_name, sampler_name, seed, number, value, round(seconds, 4), rhat, stored_params)
            append(path, dict(zip(COLUMNS, row, strict=True)))
            if number + 1 == budget or time.perf_counter() - last_report > _PROGRESS_INTERVAL:
                last_report = time.perf_counter()
                print(
                    f"{problem_name}, {sampler_name}, seed {seed}: {study.best_value:.5g} at {number + 1}", flush=True
                )


def _finished(space: ConfigurationSpace, earlier: pd.DataFrame) -> list[optuna.trial.FrozenTrial]:
    """Return the stored trials of an interrupted run."""
    distributions = space_to_distributions(space)
    rows = [(json.loads(params), value) for params, value in zip(earlier["params"], earlier["value"], strict=True)]
    return [
        optuna.trial.create_trial(params=params, distributions={n: distributions[n] for n in params}, value=value)
        for params, value in rows
    ]


def best_after(trials: pd.DataFrame, budget: int) -> pd.Series:
    """Return the best value of the first ``budget`` trials of every run that has that many."""
    groups = trials[trials["number"] < budget].groupby(["problem", "sampler", "seed"], observed=True)["value"]
    return groups.min()[groups.size() == budget]


def cost(trials: pd.DataFrame) -> str:
    """Return two cells: mean seconds per suggestion after the initial design, and the median R-hat of the fits."""
    modelled = trials[trials["number"] >= N_INITIAL]
    return f"{modelled['seconds'].mean():.2f} | {median_rhat(modelled)}"


def median_rhat(rows: pd.DataFrame) -> str:
    """Return the median of the column ``rhat``, or an empty cell if there is none (point estimates)."""
    values = rows["rhat"].dropna()
    return f"{values.median():.3f}" if len(values) else ""


def standard_error(values: pd.Series) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def draw_convergence(trials: pd.DataFrame, problems: Mapping[str, Problem], path: Path) -> None:
    """Draw the mean best value so far (the regret if the minimum is known) over seeds, one panel per problem."""
    names = list(trials["problem"].unique())
    columns = min(len(names), 4)
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.5 * columns, 3.5 * rows), squeeze=False, layout="constrained")
    for axis, name in zip(axes.flat, names, strict=False):
        own = trials[trials["problem"] == name]
        known = not np.isnan(problems[name].minimum)
        for sampler, group in own.groupby("sampler", observed=True):
            best = group.pivot(index="number", columns="seed", values="value").cummin()
            mean = best.mean(axis=1) - (problems[name].minimum if known else 0.0)
            error = best.std(axis=1) / np.sqrt(best.shape[1])
            (line,) = axis.plot(best.index + 1, mean, label=sampler)
            # On a logarithmic axis a band down to zero would hide the other lines.
            lower = np.maximum(mean - error, 0.1 * mean) if known else mean - error
            axis.fill_between(best.index + 1, lower, mean + error, color=line.get_color(), alpha=0.15)
        axis.set(title=name, xlabel="evaluations", ylabel="simple regret" if known else "best value")
        axis.set_yscale("log" if known else "linear")
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path)
    plt.close(figure)
