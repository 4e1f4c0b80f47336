"""Compare the search for the next configuration with a thorough search, and its time with Optuna's GP sampler.

    python -m benchmarks.speed.search --posteriors DIR

A hundred posteriors: Branin, Hartmann6, Ackley5C, Func2C, Func3C and the decision tree of Jenatton et al. (2017), with
15 to 100 observations. Half of the data sets are Sobol designs. In the others ("converged") half of the points perturb
the best point so far, as late in a study. Posteriors and the results of the thorough search are stored in DIR; a
repeated command only searches.

The thorough search scores ten times the candidates, maximises from sixty of them until no step gains 1e-9, and then
from ten maxima under all draws, up to 256. The loss is the difference of both searches in log EI, averaged over all
draws of the posterior; it is negative if the thorough search finds less. Times are processor seconds on one core.
Optuna's sampler is timed for a whole suggestion, fit and search, from the same observations, except on the conditional
space. It needs ``pip install torch``; without it, its column is empty.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import pandas as pd
from threadpoolctl import threadpool_limits

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import one_core
from benchmarks.common.problems import PROBLEMS, Problem, tree
from slayr_py.acquisition import log_expected_improvement, suggest
from slayr_py.acquisition.candidates import perturb
from slayr_py.acquisition.effort import Effort
from slayr_py.space import Encoder
from slayr_py.study import space_to_distributions

SPACES: dict[str, Problem] = {**PROBLEMS, "tree": tree(2)}
SEEDS = {"branin": 1, "hartmann6": 3, "ackley5c": 1, "func2c": 2, "func3c": 1, "tree": 2}
"""Number of data sets of every kind and size."""

SIZES = (15, 25, 40, 60, 100)
THOROUGH = Effort(
    candidates=20_480,
    screens=((4, 4000), (16, 800), (32, 200)),
    climbs=(32, 60),
    finals=(256, 10),
    draws=256,
    gains=(1e-9, 1e-9),
)
FIT = {"chains": 4, "warmup": 300, "draws": 50, "ess": 50, "retries": 0}
SHORT = {"chains": 4, "warmup": 100, "draws": 50, "retries": 0, "max_treedepth": 6}
"""For large data sets and the hierarchical kernel, whose fits to 50 effective draws take minutes."""


class Case(NamedTuple):
    """A data set."""

    problem: str
    n: int
    converged: bool
    seed: int

    @property
    def name(self) -> str:
        return f"{self.problem}-{self.n}-{'converged' if self.converged else 'sobol'}-{self.seed}"

    @property
    def fit_options(self) -> dict[str, Any]:
        real = self.problem in ("branin", "hartmann6")
        return SHORT if self.problem == "tree" or self.n > (60 if real else 40) else FIT


CASES = [
    Case(problem, n, converged, seed)
    for n in SIZES
    for problem, seeds in SEEDS.items()
    for converged in (False, True)
    for seed in range(seeds)
]


def observations(case: Case) -> tuple[Encoder, list[Any], np.ndarray]:
    """Return n configurations and their values."""
    problem = SPACES[case.problem]
    encoder = Encoder(problem.space)
    configs = encoder.sobol(case.n // 2 if case.converged else case.n, case.seed)
    y = [problem.objective(config) for config in configs]
    rng = np.random.default_rng(case.seed)
    while len(configs) < case.n:
        best = encoder.encode([configs[int(np.argmin(y))]])
        genotype = np.where(best.active, best.unit_values, encoder.from_uniform(rng.random(best.unit_values.shape)))
        encoded, allowed = encoder.resolve(perturb(encoder, genotype, rng))
        config = encoder.decode(encoded)[0]
        if allowed[0] and config not in configs:
            configs.append(config)
            y.append(problem.objective(config))
    return encoder, configs, np.array(y)


def posterior_of(case: Case, folder: Path) -> sl.Posterior:
    """Return the posterior of a data set from the folder, or fit it and store it there."""
    path = folder / case.name
    if not (path / "record.json").exists():
        encoder, configs, y = observations(case)
        scales = next(h for h in sl.GaussianProcess(encoder).hyperparameters if h.name == "lengthscale")
        prior = sl.LogNormal(np.sqrt(2) + np.log(len(scales.labels)) / 2 - 3, 1.0)
        gp = sl.GaussianProcess(encoder, priors={"lengthscale": prior})
        gp.fit(configs, y, seed=1 + case.seed, **case.fit_options).save(path)
    return sl.Posterior.load(path)


def found(posterior: sl.Posterior, seed: int, effort: Effort) -> tuple[Mapping[str, Any], float]:
    """Return the suggestion of the search and its processor time."""
    observed = posterior.encoder.decode(posterior.train)
    started = time.process_time()
    suggestion = suggest(
        posterior, best=incumbent(posterior), t=1, rng=np.random.default_rng(seed), exclude=observed, effort=effort
    )
    return suggestion.config, time.process_time() - started


def incumbent(posterior: sl.Posterior) -> float:
    return float(posterior.y_mean + posterior.y_sd * np.min(posterior.data["y"]))


def log_ei(posterior: sl.Posterior, configs: list[Mapping[str, Any]]) -> np.ndarray:
    """Return log EI of configurations, averaged over all draws, for standardised targets."""
    predicted = posterior.predict(configs)
    scale = posterior.y_sd
    best = incumbent(posterior) / scale
    return log_expected_improvement(predicted.draw_mean / scale, predicted.draw_sd / scale, best)


def thorough(case: Case, posterior: sl.Posterior, folder: Path) -> Mapping[str, Any]:
    """Return the configuration of the thorough search, stored in the folder."""
    path = folder / f"{case.name}.json"
    if not path.exists():
        config, _ = found(posterior, 1, THOROUGH)
        path.write_text(json.dumps(dict(config)))
    return json.loads(path.read_text())


def optuna_seconds(case: Case) -> float:
    """Return the processor time of a whole suggestion of Optuna's GP sampler; NaN without torch or with conditions."""
    if find_spec("torch") is None:
        return np.nan
    encoder, configs, y = observations(case)
    if any(encoder.ancestors.values()):
        return np.nan
    distributions = space_to_distributions(encoder.space)
    study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=case.seed, n_startup_trials=1))
    for config, value in zip(configs, y, strict=True):
        study.add_trial(optuna.trial.create_trial(params=dict(config), distributions=distributions, value=value))
    started = time.process_time()
    study.ask(distributions)
    return time.process_time() - started


def measure(case: Case, folder: Path, seeds: int) -> list[dict[str, Any]]:
    posterior = posterior_of(case, folder)
    reference = thorough(case, posterior, folder)
    searches = [found(posterior, 2 + seed, Effort()) for seed in range(seeds)]
    best, *values = log_ei(posterior, [reference, *(config for config, _ in searches)])
    row = {"problem": case.problem, "n": case.n, "converged": case.converged, "Optuna": optuna_seconds(case)}
    return [
        row | {"seconds": seconds, "loss": best - value} for value, (_, seconds) in zip(values, searches, strict=True)
    ]


def table(rows: pd.DataFrame, by: list[str]) -> str:
    """Return medians and largest values of groups."""
    groups: dict[str, tuple[str, str | Callable[[pd.Series], float]]] = {
        "searches": ("loss", "size"),
        "median s": ("seconds", "median"),
        "largest s": ("seconds", "max"),
        "Optuna s": ("Optuna", "median"),
        "median loss": ("loss", "median"),
        "largest loss": ("loss", "max"),
        "smallest loss": ("loss", "min"),
    }
    return rows.groupby(by, sort=False).agg(**groups).round(4).to_string()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--posteriors", type=Path, required=True, help="folder of the stored posteriors")
    parser.add_argument("--seeds", type=int, default=1, help="searches per posterior")
    parser.add_argument("--cases", type=int, default=len(CASES), help="number of posteriors, to try the command")
    options = begin(parser, arguments)
    one_core()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options.posteriors.mkdir(parents=True, exist_ok=True)
    rows = []
    with threadpool_limits(limits=1):
        optuna_seconds(CASES[0])  # imports and first calls are not measured
        found(posterior_of(CASES[0], options.posteriors), 0, Effort())
        for case in CASES[: options.cases]:
            rows += measure(case, options.posteriors, options.seeds)
    frame = pd.DataFrame(rows)
    for by in (["n"], ["problem"], ["problem", "n"]):
        print(table(frame, by), end="\n\n")
    print(table(frame.assign(all="all"), ["all"]))


if __name__ == "__main__":
    main()
