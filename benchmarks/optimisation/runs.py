"""Run optimisers on problems and store their trials in CSV files, from which an interrupted command resumes.

A run is a problem, an optimiser and a seed. Each trial is appended to the file of its optimiser when it finishes. A run
of an optimiser whose suggestions depend only on the seed and its earlier trials resumes with the suggestions that it
would have made; a run of another optimiser starts again. Only one command at a time may write to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import optuna
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.common.problems import Problem
from benchmarks.common.results import add_result_arguments, append, read
from benchmarks.common.versions import write_versions
from benchmarks.optimisation.inside_peers import linear_constraints
from benchmarks.optimisation.peers import initial_design, peer

COLUMNS = ["problem", "sampler", "seed", "number", "value", "exact", "seconds", "rhat", "params", "violation"]
"""``value`` is the observation, ``exact`` the value without noise, ``seconds`` the processor time of the suggestion and
``violation`` the largest value of a constraint, which is feasible up to 0, or violation of a constraint on inputs."""

_PROGRESS_INTERVAL = 60.0  # seconds
_TOLERANCE = 1e-9  # of constraints on inputs


def file_of(folder: Path, sampler: str, name: str = "suite") -> Path:
    """Return the file of an optimiser's trials in the benchmark of this name."""
    return folder / f"{name}-{re.sub(r'[^A-Za-z0-9.=,+-]+', '_', sampler)}.csv"


def read_trials(folder: Path, samplers: Iterable[str], name: str = "suite") -> pd.DataFrame:
    """Return the stored trials of these optimisers."""
    files = [read(file_of(folder, sampler, name), COLUMNS) for sampler in samplers]
    return pd.concat([rows for rows in files if len(rows)] or files, ignore_index=True)


def add_run_arguments(parser: argparse.ArgumentParser, file: str, samplers: Sequence[str], seeds: int) -> None:
    """Add the samplers, the number and length of the runs, and the folder of their files."""
    parser.add_argument("--samplers", nargs="+", default=list(samplers), help="sampler names (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=seeds, help="runs per problem and sampler")
    parser.add_argument("--budget", type=int, default=50, help="evaluations per run")
    parser.add_argument("--jobs", type=int, default=1, help="number of parallel runs")
    add_result_arguments(parser, file)


def require_kind(samplers: Iterable[str], kinds: tuple[type, ...], what: str, known: Iterable[str]) -> None:
    """End the command unless the class of every sampler is one of these."""
    if without := [sampler for sampler in samplers if not issubclass(peer(sampler).kind, kinds)]:
        raise SystemExit(f"{', '.join(without)} cannot be {what}; available: {', '.join(known)}")


def trials_of(
    problems: Mapping[str, Problem], options: argparse.Namespace, name: str = "suite", batch: int = 1
) -> pd.DataFrame:
    """Complete the runs, unless stored results are only reported, and return their trials."""
    if not options.report:
        for sampler in options.samplers:
            limits = (options.seeds, options.budget, options.output, options.jobs)
            run_all(problems, sampler, *limits, name=name, batch=batch)
    trials = read_trials(options.output, options.samplers, name)
    return trials[trials["problem"].isin([*problems]) & (trials["seed"] < options.seeds)]


def run_all(
    problems: Mapping[str, Problem],
    sampler: str,
    seeds: int,
    budget: int,
    folder: Path,
    jobs: int = 1,
    *,
    name: str = "suite",
    batch: int = 1,
) -> None:
    """Resume every run of an optimiser up to its budget, and record the versions of its packages.

    ``name`` is the name of the benchmark in the file names. A batch of suggestions is made before one of its values is
    reported.
    """
    kind = peer(sampler).kind
    path = file_of(folder, sampler, name)
    trials = read(path, COLUMNS)
    runs = []
    skipped = [name for name, problem in problems.items() if problem.space.conditions and not kind.conditional]
    for seed in range(seeds):
        for problem in problems:
            own = (trials["problem"] == problem) & (trials["seed"] == seed)
            earlier = trials[own].sort_values("number")
            if len(earlier) >= budget or problem in skipped:
                continue
            resumes = kind.resumes and bool(earlier["params"].notna().all())  # stored without their configurations
            kept = len(earlier) // batch * batch if resumes else 0
            trials = trials.drop(earlier.index[kept:])
            earlier = earlier[:kept]
            runs.append((problem, seed, earlier))
    folder.mkdir(parents=True, exist_ok=True)
    trials.to_csv(path, index=False)
    write_versions(path, (*kind.packages, "torch", "xgboost", "xgboost-cpu", "coco-experiment"))
    if skipped:
        print(f"{sampler} has no conditional parameters: {', '.join(skipped)} skipped")
    print(f"{len(runs)} runs of {sampler} to do; trials are written to {path}", flush=True)
    joblib.Parallel(n_jobs=jobs)(
        joblib.delayed(_run_or_report)(problem, problems[problem], sampler, seed, budget, earlier, path, batch)
        for problem, seed, earlier in runs
    )


def processor_time() -> float:
    """Return the processor seconds of this process and of its finished children, such as Stan's chains."""
    return sum(os.times()[:4])


def _run_or_report(problem_name: str, problem: Problem, sampler: str, seed: int, *rest: Any) -> None:
    """Run, but print an error of the optimiser instead of raising it, so that the other runs continue."""
    try:
        _run(problem_name, problem, sampler, seed, *rest)
    except Exception:
        print(f"{problem_name}, {sampler}, seed {seed} failed:\n{traceback.format_exc()}", flush=True)


def _run(
    problem_name: str,
    problem: Problem,
    sampler: str,
    seed: int,
    budget: int,
    earlier: pd.DataFrame,
    path: Path,
    batch: int,
) -> None:
    # For torch, which may be loaded later; threadpool_limits covers the libraries loaded so far.
    os.environ["OMP_NUM_THREADS"] = "1"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kind, start_run = peer(sampler)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        optimiser = start_run(problem, seed)
        if problem.design is not None:
            design = problem.design(seed)
        else:
            design = [] if kind.own_design else initial_design(problem.space, seed, problem.within)
        for text, value in zip(earlier["params"], earlier["value"], strict=True):
            params = json.loads(text)
            optimiser.tell(params, value, *_constraints(problem, params))
        inside = linear_constraints(problem)
        best = np.inf
        last_report = time.perf_counter()
        for first in range(len(earlier), budget, batch):
            suggested = []
            for number in range(first, min(first + batch, budget)):
                start = processor_time()
                params = design[number] if number < len(design) else optimiser.ask()
                suggested.append((number, params, round(processor_time() - start, 4)))
            for number, params, seconds in suggested:
                exact = problem.objective(params)
                constraints = _constraints(problem, params)
                value = exact + problem.noise * float(np.random.default_rng([seed, number]).normal())
                optimiser.tell(params, value, *constraints)
                excesses = [excess for values in constraints for excess in values.values()]
                excesses += [constraint.excess(params) for constraint in inside]
                violation = max(excesses, default=None)
                # Configurations would be most of the file, and only runs that resume need them.
                text = json.dumps(params) if kind.resumes else None
                row = (problem_name, sampler, seed, number, value, exact, seconds, optimiser.rhat, text, violation)
                append(path, dict(zip(COLUMNS, row, strict=True)))
                best = min(best, exact) if violation is None or violation <= _TOLERANCE else best
            if number + 1 == budget or time.perf_counter() - last_report > _PROGRESS_INTERVAL:
                last_report = time.perf_counter()
                print(f"{problem_name}, {sampler}, seed {seed}: {best:.5g} at {number + 1}", flush=True)


def _constraints(problem: Problem, params: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return the further arguments of `tell`, which few optimisers have: the values of the constraints, if any."""
    return [] if problem.constraints is None else [problem.constraints(params)]
