"""Many studies, and their trials in one CSV file: a command that was stopped goes on where it was.

A run is one study: a problem, a sampler, a seed. Its trials are appended to the file as they are made. Our sampler
derives trial t from (seed, t), so a run that was cut short is continued, with the suggestions it would have made; a
sampler of Optuna's starts its run again. One command at a time may write to a file.
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
from problems import Problem
from threadpoolctl import threadpool_limits

import slayr_py as sl
from slayr_py.study import StanGPSampler, space_to_distributions
from slayr_py.study.asktell import suggest_all
from slayr_py.study.storage.attributes import suggestion_record

Sampler = Callable[[ConfigurationSpace, int], optuna.samplers.BaseSampler]

COLUMNS = ["problem", "sampler", "seed", "number", "value", "seconds", "rhat", "params"]
N_INITIAL = 10  # of every sampler's own design
_TELL_EVERY = 30.0  # seconds

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
"""In Oh et al. (2021) "fm" is ModLap, "fm-diffusion" ModDif, "product-laplacian" ProdLap, "sum-diffusion" AddDif."""

BASELINES: dict[str, Sampler] = {
    "optuna-gp": lambda space, seed: optuna.samplers.GPSampler(seed=seed, n_startup_trials=N_INITIAL),
    "optuna-tpe": lambda space, seed: optuna.samplers.TPESampler(seed=seed, n_startup_trials=N_INITIAL),
    "random": lambda space, seed: optuna.samplers.RandomSampler(seed=seed),
}


def add_fit_arguments(parser: argparse.ArgumentParser, chains: int, warmup: int, draws: int) -> None:
    """Options of our fits, with these defaults."""
    parser.add_argument("--method", default="nuts", choices=["nuts", "pathfinder", "laplace", "map"])
    parser.add_argument("--chains", type=int, default=chains)
    parser.add_argument("--warmup", type=int, default=warmup, help="iterations a chain that are thrown away")
    parser.add_argument("--draws", type=int, default=draws, help="iterations a chain that are kept")


def add_study_arguments(
    parser: argparse.ArgumentParser, budget: int, kernels: Sequence[str], baselines: Sequence[str]
) -> None:
    """Options of :func:`carry_out`, with these defaults."""
    parser.add_argument("--problems", nargs="+", help="names as in the table; all by default")
    parser.add_argument("--budget", type=int, default=budget)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kernels", nargs="*", default=kernels, choices=sorted(KERNELS), help="of our samplers")
    parser.add_argument("--baselines", nargs="*", default=baselines, choices=sorted(BASELINES))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results", help="folder of the trials")
    parser.add_argument("--report", action="store_true", help="run nothing, print the tables of what there is")
    parser.add_argument("--figure", type=Path, help="also draw the convergence into this file")


def fit_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("method", "chains", "warmup", "draws")}


def fit_label(method: str, chains: int, warmup: int, draws: int) -> str:
    return method if method == "map" else f"{method} {chains}x({warmup}+{draws})"


def samplers_of(arguments: argparse.Namespace) -> dict[str, Sampler]:
    """Samplers that the command line asks for, by the names they have in files and tables."""
    options = fit_options(arguments)
    ours = {f"{kernel}, {fit_label(**options)}": partial(_ours, kernel, options) for kernel in arguments.kernels}
    return ours | {name: BASELINES[name] for name in arguments.baselines}


def _ours(kernel: str, options: Mapping[str, Any], space: ConfigurationSpace, seed: int) -> StanGPSampler:
    return StanGPSampler(space, kernel=KERNELS[kernel](), n_initial=N_INITIAL, seed=seed, **options)


def carry_out(options: argparse.Namespace, problems: Mapping[str, Problem], file: str) -> pd.DataFrame:
    """Run (or only read) what the command line asks for, draw the figure, and give the trials."""
    if missing := set(options.problems or ()) - set(problems):
        raise SystemExit(f"no problem {sorted(missing)}; there are {list(problems)}, more with --data")
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
    """Rows of a file, none if there is no such file; a converter, since pandas' own may miss the last digit."""
    rows = pd.read_csv(path, converters={"value": float}) if path.exists() else pd.DataFrame()
    return rows.reindex(columns=list(columns))


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add one row, in one write, so that processes can share the file."""
    pd.DataFrame([row]).to_csv(path, mode="a", header=False, index=False)


def run_all(
    problems: Mapping[str, Problem],
    samplers: Mapping[str, Sampler],
    seeds: int,
    budget: int,
    path: Path,
    jobs: int = 1,
) -> pd.DataFrame:
    """Bring every run up to its budget, and give all trials of these problems, samplers and seeds.

    Returns
    -------
    DataFrame
        ``COLUMNS``; ``seconds`` is what the suggestion took, ``rhat`` the largest R-hat of its fit.
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
    print(f"{len(runs)} runs to do; trials go to {path}", flush=True)
    joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(_run)(problem, problems[problem], sampler, samplers[sampler], seed, budget, earlier, path)
        for problem, sampler, seed, earlier in runs
    )
    return select(read(path, COLUMNS), problems, samplers, seeds)


def select(trials: pd.DataFrame, problems: Iterable[str], samplers: Iterable[str], seeds: int) -> pd.DataFrame:
    """Trials of these problems, samplers and seeds, in this order."""
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
    # For torch, which Optuna's GP sampler loads later; what is loaded already is limited below.
    os.environ["OMP_NUM_THREADS"] = "1"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = optuna.create_study(sampler=sampler(problem.space, seed))
        study.add_trials(_finished(problem.space, earlier))
        told = time.perf_counter()
        for number in range(len(earlier), budget):
            start = time.perf_counter()
            trial = study.ask()
            params = suggest_all(trial, problem.space)
            seconds = time.perf_counter() - start
            value = problem.objective(params)
            frozen = study.tell(trial, value)
            rhat = suggestion_record(frozen).get("diagnostics", {}).get("rhat_max")
            # Runs of Optuna's samplers are never continued, and what they tried would be most of the file.
            tried = None if sampler_name in BASELINES else json.dumps(params)
            row = (problem_name, sampler_name, seed, number, value, round(seconds, 4), rhat, tried)
            append(path, dict(zip(COLUMNS, row, strict=True)))
            if number + 1 == budget or time.perf_counter() - told > _TELL_EVERY:
                told = time.perf_counter()
                print(
                    f"{problem_name}, {sampler_name}, seed {seed}: {study.best_value:.5g} at {number + 1}", flush=True
                )


def _finished(space: ConfigurationSpace, earlier: pd.DataFrame) -> list[optuna.trial.FrozenTrial]:
    """Trials of a run that was cut short."""
    distributions = space_to_distributions(space)
    rows = [(json.loads(params), value) for params, value in zip(earlier["params"], earlier["value"], strict=True)]
    return [
        optuna.trial.create_trial(params=params, distributions={n: distributions[n] for n in params}, value=value)
        for params, value in rows
    ]


def best_after(trials: pd.DataFrame, budget: int) -> pd.Series:
    """Best value of the first ``budget`` trials by problem, sampler and seed, of the runs that are so long."""
    groups = trials[trials["number"] < budget].groupby(["problem", "sampler", "seed"], observed=True)["value"]
    return groups.min()[groups.size() == budget]


def cost(trials: pd.DataFrame) -> str:
    """Mean seconds of a suggestion after the initial design, and the median R-hat of the fits behind them."""
    modelled = trials[trials["number"] >= N_INITIAL]
    return f"{modelled['seconds'].mean():.2f} | {median_rhat(modelled)}"


def median_rhat(rows: pd.DataFrame) -> str:
    """Give the median of the column ``rhat``; nothing where no fit has one, as a point estimate."""
    values = rows["rhat"].dropna()
    return f"{values.median():.3f}" if len(values) else ""


def standard_error(values: pd.Series) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def draw_convergence(trials: pd.DataFrame, problems: Mapping[str, Problem], path: Path) -> None:
    """Draw the mean over seeds of the best value so far (the regret where the minimum is known), a panel a problem."""
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
            # On a logarithmic axis a band that reaches zero would hide everything else.
            lower = np.maximum(mean - error, 0.1 * mean) if known else mean - error
            axis.fill_between(best.index + 1, lower, mean + error, color=line.get_color(), alpha=0.15)
        axis.set(title=name, xlabel="evaluations", ylabel="simple regret" if known else "best value")
        axis.set_yscale("log" if known else "linear")
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path)
    plt.close(figure)
