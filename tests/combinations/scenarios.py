"""A small data set and a small study, which the options of `combinations.options` change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import optuna
import pandas as pd
from combinations import textbook
from combinations.textbook import Mixture
from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float, Integer
from optuna.trial import FrozenTrial, TrialState

import slayr_py as sl
from slayr_py.inference import METHODS
from slayr_py.inference.sampling.density import StanDensity
from slayr_py.inference.sampling.method import FitMethod
from slayr_py.inference.sampling.population import Population
from slayr_py.kernels import Kernel, Stack, program_contracts
from slayr_py.space import Encoder
from slayr_py.study import ask, config_of, create_study, space_to_distributions, tell
from slayr_py.study.model.scales import Scales
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.curves import PRUNE_KEY

METHOD = "given"
DRAWS = 4  # with five or more, the weights of a stack would need the importance ratios of hundreds
POINTS = 8
PRIORS = {"sigma_n": sl.LogNormal(-2.0, 0.5)}  # the default differs between fits and studies
PRIOR_BETA = 90.0
FAILING = (3, 6)  # numbers of the trials that fail
PRUNED = (4, 7)  # numbers of the trials that are pruned
SIZES = ["s", "m", "l", "xl"]
RESCALED = "rescaled"  # name of a space whose studies choose a logarithmic scale
_X = np.append(0.5, np.arange(0.05, 1.0, 0.1)).round(2)
_Z = [-4.2, -1.3, 0.4, 1.5, 2.5, 7.1]
ROWS = pd.DataFrame({"x": np.repeat(_X, len(_Z)), "z": np.tile(_Z, len(_X))})  # what an option with a list allows
PENALISED = 1  # number of the trial with a penalty
PENALTY = 1e7


@contextmanager
def given_draws() -> Iterator[None]:
    """Register a fit method whose draws depend on the prior alone, so that two fits can be compared."""

    class Given(FitMethod):
        name = METHOD
        checks = ()

        def sample(self, job):
            data = json.loads(Path(job.common["data"]).read_text())
            shapes = {}
            for parameter in program_contracts()[job.model.name].parameters:
                entry = next(name for name in parameter.prior_entries if not name.endswith("gamma"))
                if np.shape(data[entry]) != (0,):
                    shapes[parameter.coordinate] = np.shape(data[entry])
            size = sum(int(np.prod(shape)) for shape in shapes.values())
            points = np.random.default_rng(size).standard_normal((DRAWS, size))
            density = StanDensity(job, shapes)
            log_density = density(points)
            run = density.run(Population(points, np.arange(DRAWS), np.nan, np.nan, 0), {}, [])
            run.variables["lp__"] = log_density[None]
            return run

    try:
        yield
    finally:
        del METHODS[METHOD]


def chosen_by_name(
    gp: sl.GaussianProcess, first: Sequence[Any], possible: Sequence[str], last: Sequence[str]
) -> Scales:
    """Choose a logarithmic scale of "x" in the spaces with a name, instead of by the values."""
    names = tuple(name for name in possible if name == "x") if gp.encoder.space.name == RESCALED else ()
    return Scales(names, 1.0, len(first[0].y))


@cache
def space_of(
    name: str | None = None, branches: bool = False, levels: bool = False, counted: bool = False
) -> ConfigurationSpace:
    """Return a space of two numbers, perhaps with a condition, and with a category and an ordinal or its rank."""
    space = ConfigurationSpace(name, space={"x": (0.0, 1.0), "z": (-5.0, 10.0)})
    if branches:
        kind = Categorical("kind", ["a", "b"])
        depth = Float("depth", (0.0, 1.0))
        space.add(kind, depth)
        space.add(EqualsCondition(depth, kind, "b"))
    if levels:
        size = Integer("size", (0, len(SIZES) - 1)) if counted else Categorical("size", SIZES, ordered=True)
        space.add(Categorical("colour", ["red", "green", "blue"]), size)
    return space


def function(config: Mapping[str, Any]) -> float:
    """Return a value near 100, so that centre and scale matter."""
    size = config.get("size", 0)
    rank = SIZES.index(size) if isinstance(size, str) else size
    colour = 1.5 * (config.get("colour") == "blue")
    return 100 + 8 * np.sin(5 * config["x"]) + 0.5 * config["z"] + 3 * config.get("depth", 0.4) - 2 * rank + colour


class Told(NamedTuple):
    """A study after its observations, and the suggestion that follows."""

    study: optuna.Study
    trial: FrozenTrial
    record: dict[str, Any]
    pending: list[dict[str, Any]]
    observed: list[FrozenTrial]
    """Complete and pruned trials, of which the model of an objective knows the values."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """Observations, arguments of a fit and of a study; an option replaces some of them.

    Attributes
    ----------
    order : sequence of int
        Order of the observations.
    levels : bool
        Whether the space has a category and an ordinal.
    counted : bool
        Whether the ordinal is an integer instead, its rank.
    scale, shift : float
        Change of the unit of the values.
    constraint : float
        Factor of the values of a constraint; 0 for no constraint.
    ranged : bool
        Whether the constraint has a second side.
    cost : float
        Factor of the costs of evaluations; 0 for no costs.
    several : bool
        Whether a study has a second objective, which is minimised.
    past : int
        Number of observations that were made before the study, every other one without a constraint.
    rescaled : bool
        Whether the model has a logarithmic scale of "x", which a study chooses.
    as_history : bool
        Whether the study has them as history, or as trials that a user has added by hand.
    pointwise : bool
        Whether a fit has the densities of its observations.
    """

    branches: bool = False
    levels: bool = False
    counted: bool = False
    rescaled: bool = False
    kernel: Kernel | Stack | str = "auto"
    warp: str = "none"
    inducing: int | None = None
    likelihood: str = "gaussian"
    errors: bool = False
    repeated: bool = False
    several: bool = False
    maximize: bool = False
    noisy: bool = False
    constraint: float = 0.0
    ranged: bool = False
    failures: bool = False
    running: bool = False
    pruned: bool = False
    cost: float = 0.0
    past: int = 0
    as_history: bool = True
    penalty: bool = False
    fixed: Mapping[str, Any] | None = None
    within: Sequence[Any] | None = None
    prior: Mapping[str, Any] | None = None
    default: bool = False
    interior: bool | None = None
    order: Sequence[int] = range(POINTS)
    scale: float = 1.0
    shift: float = 0.0
    pointwise: bool = True

    @property
    def space(self) -> ConfigurationSpace:
        name = RESCALED if self.rescaled else None
        return space_of(name, self.branches, self.levels, self.counted)

    @cached_property
    def encoder(self) -> Encoder:
        encoder = Encoder(self.space, within=self.within)
        # A kernel, a belief and constraints of the user refer to the scale of the space.
        chooses = self.rescaled and self.kernel == "auto" and self.prior is None and self.within is None
        return encoder.rescaled(["x"]) if chooses else encoder

    @cached_property
    def configs(self) -> list[Configuration]:
        points = self.encoder.sobol(POINTS, 1)
        if self.repeated:
            points[5] = points[2]
        if self.default:
            points[self.past] = self.default_configuration
        return [points[i] for i in self.order]

    @property
    def default_configuration(self) -> Configuration:
        """The default configuration with the fixed values."""
        return self.encoder.configuration({**self.encoder.space.get_default_configuration(), **(self.fixed or {})})

    @cached_property
    def new(self) -> list[Configuration]:
        """Configurations to predict at; one is observed."""
        return [*self.encoder.sobol(3, 2), self.configs[4]]

    def value(self, number: int, config: Mapping[str, Any]) -> float:
        """Return the value of an observation; the values of repeated configurations differ."""
        if self.penalty and number == PENALISED:
            return -abs(self.scale) * PENALTY if self.maximize else abs(self.scale) * PENALTY
        return float(self.scale * (function(config) + 0.3 * np.cos(number)) + self.shift)

    def values(self, number: int, config: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the values of all objectives of a study."""
        second = float((config["x"] - 0.2) ** 2 + 0.01 * config["z"] + 0.03 * np.sin(number))
        if self.penalty and number == PENALISED:
            second = PENALTY
        return (self.value(number, config), *([second] if self.several else []))

    def errors_of(self, number: int) -> tuple[float, ...]:
        """Return the known errors of all objectives of a study."""
        return (self.error(number), *([0.02 + 0.01 * number] if self.several else []))

    @property
    def maximised(self) -> tuple[bool, ...]:
        """Whether each objective of a study is maximised."""
        return (self.maximize, *([False] if self.several else []))

    def error(self, number: int) -> float:
        return abs(self.scale) * (0.2 + 0.1 * number)

    @cached_property
    def y(self) -> np.ndarray:
        values = [self.value(i, config) for i, config in zip(self.order, self.configs, strict=True)]
        return np.array(values) if self.likelihood == "gaussian" else np.array(values) > np.median(values)

    @property
    def is_noisy(self) -> bool:
        """Whether posterior means replace observed values in a study."""
        return self.noisy or self.errors

    @cached_property
    def y_sd(self) -> np.ndarray | None:
        return np.array([self.error(i) for i in self.order]) if self.errors else None

    @cached_property
    def posterior(self) -> sl.Posterior:
        """The fit to all observations."""
        method = METHOD if self.inducing is None else "map"
        return self.fit(self.configs, self.y, self.y_sd, method=method)

    def fit(self, configs: Any, y: np.ndarray, y_sd: np.ndarray | None, method: str = METHOD) -> sl.Posterior:
        priors = PRIORS if self.likelihood == "gaussian" else {}
        process = sl.GaussianProcess(
            self.encoder, self.kernel, priors, self.warp, self.likelihood, inducing=self.inducing
        )
        return process.fit(configs, y, y_sd=y_sd, maximize=self.maximize, method=method, pointwise=self.pointwise)

    def start(self, **changes: Any) -> optuna.Study:
        """Return a study with all observations, and perhaps an evaluation that is still running."""
        options = {
            "kernel": self.kernel,
            "warp": self.warp,
            "noisy": self.noisy,
            "fixed": self.fixed,
            "prior": self.prior,
            "interior": self.interior,
            "prior_beta": None if self.prior is None else PRIOR_BETA,
            "default": self.default and self.as_history,  # else it is among the first trials
            "priors": PRIORS,
            **self._directions(),
            "initial_configs": self.configs[self.past :] if self.as_history else self.configs,
            "method": METHOD,
            "seed": 1,
        }
        if self.cost:
            options["cost"] = "price"
        if self.pruned:
            options["pruner"] = sl.Prune()
        if self.past and self.as_history:
            options["history"] = self._history()
        study = create_study(self.encoder.rescaled(()), **options | changes)
        if not self.as_history:
            study.add_trials([self._added(i) for i in range(self.past)])
        for _ in range(self.past, POINTS):
            self._tell(study)
        if self.running:
            ask(study)
        return study

    def _directions(self) -> dict[str, Any]:
        directions = ["maximize" if each else "minimize" for each in self.maximised]
        return {"directions": directions} if self.several else {"direction": directions[0]}

    def _history(self) -> pd.DataFrame:
        n = len(self.maximised)
        rows = []
        for i in range(self.past):
            suffixes = [f"s_{j}" for j in range(n)] if self.several else [""]
            outcome = self.outcome(i) or [None] * n
            row = dict(self.configs[i]) | {f"value{end}": y for end, y in zip(suffixes, outcome, strict=True)}
            if self.errors:
                names = [f"y_sd_{j}" for j in range(n)] if self.several else ["y_sd"]
                row |= dict(zip(names, self.errors_of(i), strict=True))
            if self.cost:
                row["price"] = self.price(i)
            excesses = self.excesses(i, self.configs[i])
            rows.append(row | {f"constraints_{name}": excess for name, excess in excesses.items()})
        return pd.DataFrame(rows)

    def outcome(self, number: int) -> tuple[float, ...] | None:
        """Return the values of a trial; None if it fails."""
        return None if self.failures and number in FAILING else self.values(number, self.configs[number])

    def known_error(self, number: int) -> float | list[float] | None:
        """Return what a user tells about the errors of a trial."""
        if not self.errors:
            return None
        return list(self.errors_of(number)) if self.several else self.error(number)

    def _added(self, number: int) -> FrozenTrial:
        outcome = self.outcome(number)
        params = dict(self.configs[number])
        distributions = space_to_distributions(self.encoder.space)
        return optuna.trial.create_trial(
            state=TrialState.COMPLETE if outcome is not None else TrialState.FAIL,
            values=outcome,
            params=params,
            distributions={name: distributions[name] for name in params},
            user_attrs={
                **({"y_sd": self.known_error(number)} if self.errors else {}),
                **({"price": self.price(number)} if self.cost else {}),
            },
            constraints=self.excesses(number, self.configs[number]),
        )

    def _tell(self, study: optuna.Study) -> None:
        trial = ask(study)
        config = config_of(trial)
        for name, excess in self.excesses(trial.number, config).items():
            trial.set_constraint(name, excess)
        cost = self.price(trial.number)
        if self.failures and trial.number in FAILING:
            tell(study, trial, state=TrialState.FAIL, cost=cost)
            return
        if self.pruned and trial.number in PRUNED:
            trial.set_user_attr(PRUNE_KEY, {"evidence": self.evidence(trial.number)})
            tell(study, trial, state=TrialState.PRUNED, cost=cost)
            return
        values = self.values(trial.number, config)
        tell(study, trial, values if self.several else values[0], sd=self.known_error(trial.number), cost=cost)

    def excesses(self, number: int, config: Mapping[str, Any]) -> dict[str, float]:
        """Return what a trial tells about constraints."""
        if not self.constraint or (number < self.past and number % 2):
            return {}
        sides = {"heat": config["x"] - 0.6, "cold": 0.1 - config["x"]} if self.ranged else {"heat": config["x"] - 0.6}
        return {name: self.constraint * excess for name, excess in sides.items()}

    def price(self, number: int) -> float | None:
        """Return the cost of a trial; None without costs."""
        return float(self.cost * np.exp(2 * self.configs[number]["x"])) if self.cost else None

    def evidence(self, number: int) -> tuple[float, float]:
        """Return what the curve of a pruned trial says about its final value."""
        return self.value(number, self.configs[number]) + self.scale, abs(self.scale) * (0.5 + 0.1 * number)

    def observations(self, trials: Sequence[FrozenTrial], objective: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of complete or pruned trials for the model of an objective, and their known errors."""
        y, errors = np.array([self._observation(trial, objective) for trial in trials]).T
        penalised = np.array([self.penalty and trial.number == PENALISED for trial in trials])
        return textbook.compressed(y, errors, penalised, self.maximised[objective])

    def _observation(self, trial: FrozenTrial, objective: int) -> tuple[float, float]:
        if trial.state == TrialState.PRUNED:
            return self.evidence(trial.number)
        return trial.values[objective], self.errors_of(trial.number)[objective] if self.errors else 0.0

    @property
    def is_stack(self) -> bool:
        return isinstance(self.kernel, Stack)

    def is_usable(self, trial: FrozenTrial) -> bool:
        """Return whether a trial is complete and feasible, and has the fixed values."""
        if trial.state != TrialState.COMPLETE:
            return False
        sides = ["heat", "cold"] if self.ranged else ["heat"]
        feasible = not self.constraint or all(trial.constraints.get(name, np.inf) <= 0 for name in sides)
        return feasible and all(trial.params[name] == value for name, value in (self.fixed or {}).items())

    @cached_property
    def told(self) -> Told:
        """A study with all observations and its next suggestion."""
        told = suggested(self.start())
        counts_as_failure = self.penalty and not self.several
        observed = [trial for trial in told.observed if not (counts_as_failure and trial.number == PENALISED)]
        return told._replace(observed=observed)

    @cached_property
    def told_mixtures(self) -> list[Mixture]:
        """Draws of a fit to the values of each objective of the study's complete and pruned trials."""
        observed = self.told.observed
        mixtures = []
        for j, maximize in enumerate(self.maximised):
            y, errors = self.observations(observed, j)
            y_sd = errors if self.errors or self.pruned else None
            posterior = replace(self, maximize=maximize, pointwise=False).fit(
                [trial.params for trial in observed], y, y_sd
            )
            is_complete = [trial.state == TrialState.COMPLETE for trial in observed]
            mixtures.append(Mixture.of(posterior, y, y_sd, maximize, np.median(errors[is_complete][-5:])))
        return mixtures


def suggested(study: optuna.Study) -> Told:
    """Ask for the next suggestion of a study."""
    pending = [trial.params for trial in study.get_trials(states=(TrialState.RUNNING,))]
    number = ask(study).number
    trial = study.trials[number]
    return Told(
        study,
        trial,
        suggestion_record(trial),
        pending,
        study.get_trials(states=(TrialState.COMPLETE, TrialState.PRUNED)),
    )
