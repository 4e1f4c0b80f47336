"""The optimisers that the suite compares: one class with `ask` and `tell` for each package.

An optimiser is told the initial evaluations before it is asked for the first time, unless it makes its own design. All
other settings are the defaults of its package. Packages are imported where they are used, so that a benchmark of one
optimiser does not need the others.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace, Integer
from ConfigSpace.hyperparameters import FloatHyperparameter, OrdinalHyperparameter

import slayr_py as sl
from benchmarks.common.peers import fit_saas
from benchmarks.common.problems import Problem
from benchmarks.common.studies import KERNELS
from benchmarks.optimisation.ax_peer import Ax
from benchmarks.optimisation.evolution import Evolution
from benchmarks.optimisation.inside_peers import BayBE, RandomInside, linear_constraints
from benchmarks.optimisation.told import Told, with_indices
from benchmarks.optimisation.turbo_peer import Turbo
from slayr_py.space import Encoder
from slayr_py.study import StanGPSampler, space_to_distributions
from slayr_py.study.model.options import SamplerOptions
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.distributions import to_configuration, to_params
from slayr_py.study.storage.suggesting import suggest_all


class Optimiser(Protocol):
    """One run of an optimiser."""

    packages: ClassVar[tuple[str, ...]]
    """Packages whose versions belong to the results."""
    own_design: ClassVar[bool]
    """Whether the optimiser suggests its initial evaluations."""
    resumes: ClassVar[bool]
    """Whether a run that is told its earlier trials continues as if it had not been interrupted."""
    conditional: ClassVar[bool]
    """Whether parameters may have conditions."""
    rhat: float | None
    """Largest R-hat of the fit behind the last suggestion, if there was one."""

    def ask(self) -> dict[str, Any]:
        """Return the parameters to evaluate next."""

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        """Report a value, of the last suggestion or of parameters that were not suggested.

        `Optuna` also has an argument ``constraints``, and several suggestions may be open at once.
        """


def initial_design(space: ConfigurationSpace, seed: int, within: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the initial design of a seed for all samplers: the default design of slayr_py, without repetitions."""
    encoder = Encoder(space, within=within or None)
    size = SamplerOptions().design_size(len(encoder.names))
    distinct = {repr(to_params(config)): to_params(config) for config in encoder.sobol(size, seed)}
    return list(distinct.values())


def ordinals_of(space: ConfigurationSpace) -> dict[str, list[Any]]:
    """Return the levels of the ordinals by name."""
    return {name: list(p.sequence) for name, p in space.items() if isinstance(p, OrdinalHyperparameter)}


def with_ranks(space: ConfigurationSpace, ordinals: Mapping[str, Sequence[Any]]) -> ConfigurationSpace:
    """Return the space with the rank of each ordinal, an integer from 0.

    Raises
    ------
    ValueError
        The space has conditions or forbidden clauses.
    """
    if space.conditions or space.forbidden_clauses:
        raise ValueError(f"a space with ordinals ({', '.join(ordinals)}) must have no conditions or forbidden clauses")
    ranks = {name: Integer(name, (0, len(levels) - 1)) for name, levels in ordinals.items()}
    return ConfigurationSpace([ranks.get(name, parameter) for name, parameter in space.items()])


class Optuna:
    """A study with one of Optuna's samplers, to which an ordinal is the integer of its rank."""

    packages = ("optuna", "torch")
    own_design = False
    resumes = False
    conditional = True

    def __init__(self, sampler: optuna.samplers.BaseSampler, space: ConfigurationSpace) -> None:
        self.ordinals = {} if isinstance(sampler, StanGPSampler) else ordinals_of(space)
        self.space = with_ranks(space, self.ordinals) if self.ordinals else space
        self.study = optuna.create_study(sampler=sampler)
        self.open: list[optuna.Trial] = []
        self.rhat: float | None = None

    def ask(self) -> dict[str, Any]:
        self.open.append(self.study.ask())
        params = suggest_all(self.open[-1], self.space)
        return params | {name: levels[params[name]] for name, levels in self.ordinals.items()}

    def tell(self, params: Mapping[str, Any], value: float, constraints: Mapping[str, float] | None = None) -> None:
        params = {**params, **{name: levels.index(params[name]) for name, levels in self.ordinals.items()}}
        trial = next((trial for trial in self.open if trial.params == params), None)
        if trial is None:
            distributions = space_to_distributions(self.space)
            own = {name: distributions[name] for name in params}
            told = optuna.trial.create_trial(
                params=params, distributions=own, value=value, constraints=dict(constraints or {})
            )
            self.study.add_trial(told)
        else:
            for name, excess in (constraints or {}).items():
                trial.set_constraint(name, excess)
            self.open.remove(trial)
            told = self.study.tell(trial, value)
            self.rhat = suggestion_record(told).get("diagnostics", {}).get("rhat_max")


class Slayr(Optuna):
    """slayr_py, which derives trial t from (seed, t).

    The first fit of a run that resumes has no fit before it to start from: its draws, or its mode if there are several,
    may differ from those of a run without an interruption. Studies in a storage keep the starts of their fits.
    """

    packages = ("optuna",)
    own_design = True
    resumes = True


class BoTorch(Told):
    """A GP with BoTorch's default prior and the expected improvement, on the unit cube.

    Floats are continuous on their scale, integers and ordinals discrete; categoricals have the kernel of
    `MixedSingleTaskGP`. Noisy problems use the noisy expected improvement. Suggestions of a batch have one fit and
    integrate over the values of those before them. Constraints on inputs are linear ones of floats.
    """

    packages = ("botorch", "gpytorch", "torch")

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.noisy = problem.noise > 0
        self.open: list[np.ndarray] = []
        self.model: Any = None
        self.cat_dims = {i: list(range(len(d.levels))) for i, d in enumerate(self.encoder.dimensions) if _nominal(d)}
        self.discrete_dims = {i: _grid(d) for i, d in enumerate(self.encoder.dimensions) if _discrete(d)}
        # Ordinals have indices as unit values; only those of categoricals enter the model unscaled.
        self.scale = np.array([max(len(d.levels) - 1, 1) if not _nominal(d) else 1 for d in self.encoder.dimensions])
        self.within = linear_constraints(problem)

    def ask(self) -> dict[str, Any]:
        import torch

        number = int(np.random.SeedSequence([self.seed, len(self.values), len(self.open)]).generate_state(1)[0])
        torch.manual_seed(number)
        X, Y = self._data()
        if not self.open:  # one fit for a batch
            self.model = self._fit(X, Y, number)
        candidate = self._maximise(self.model, X, Y).detach().numpy()[0]
        encoded, _ = self.encoder.resolve((candidate * self.scale)[None, :])
        self.open.append(encoded.unit_values[0])
        return to_params(self.encoder.decode(encoded)[0])

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        super().tell(params, value)
        self.open = [row for row in self.open if not np.allclose(row, self.rows[-1])]  # up to rounding

    def recommended(self) -> dict[str, Any]:
        """Return the evaluated configuration with the best posterior mean."""
        X, Y = self._data()
        best = int(self._fit(X, Y, 0).posterior(X).mean.argmax())
        encoded, _ = self.encoder.resolve(self.rows[best][None, :])
        return to_params(self.encoder.decode(encoded)[0])

    def _data(self) -> tuple[Any, Any]:
        """Return inputs and negative values."""
        import torch

        X = torch.tensor(np.array(self.rows) / self.scale, dtype=torch.double)
        return X, -torch.tensor(self.values, dtype=torch.double)[:, None]

    def _fit(self, X: Any, Y: Any, number: int) -> Any:
        """Return a model of the data; ``number`` is a seed."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        model = MixedSingleTaskGP(X, Y, cat_dims=list(self.cat_dims)) if self.cat_dims else SingleTaskGP(X, Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _maximise(self, model: Any, X: Any, Y: Any) -> Any:
        import torch
        from botorch.acquisition import (
            LogExpectedImprovement,
            qLogExpectedImprovement,
            qLogNoisyExpectedImprovement,
        )
        from botorch.optim import optimize_acqf, optimize_acqf_mixed_alternating

        pending = torch.tensor(np.array(self.open) / self.scale, dtype=torch.double) if self.open else None
        if self.noisy:
            acquisition = qLogNoisyExpectedImprovement(model, X, X_pending=pending)
        elif pending is None:
            acquisition = LogExpectedImprovement(model, Y.max())
        else:
            acquisition = qLogExpectedImprovement(model, Y.max(), X_pending=pending)
        upper = [float(max(self.cat_dims.get(i, [1]))) for i in range(X.shape[1])]
        bounds = torch.tensor([[0.0] * X.shape[1], upper], dtype=torch.double)
        options = {"q": 1, "num_restarts": 10, "raw_samples": 512} | self._inside()
        if not self.cat_dims and not self.discrete_dims:
            return optimize_acqf(acquisition, bounds, **options)[0]
        return optimize_acqf_mixed_alternating(
            acquisition, bounds, discrete_dims=self.discrete_dims, cat_dims=self.cat_dims, **options
        )[0]

    def _inside(self) -> dict[str, Any]:
        """Return the constraints as arguments of `optimize_acqf`: sum_i a_i u_i >= or = b on the unit cube."""
        import torch

        found: dict[str, Any] = {}
        dimensions = self.encoder.dimensions
        for constraint in self.within:
            sign = 1.0 if constraint.is_equality else -1.0
            factors = np.array([sign * constraint.coefficients.get(d.name, 0.0) for d in dimensions])
            limit = sign * constraint.limit - factors @ [d.lower for d in dimensions]
            factors *= [d.upper - d.lower for d in dimensions]
            key = "equality_constraints" if constraint.is_equality else "inequality_constraints"
            found.setdefault(key, []).append((torch.arange(len(factors)), torch.from_numpy(factors), float(limit)))
        return found


class Saasbo(BoTorch):
    """`BoTorch` with its fully Bayesian model with a sparse prior."""

    packages = ("botorch", "gpytorch", "torch", "numpyro", "jax")

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        if self.cat_dims:
            raise ValueError("SAASBO has no kernel for categories")

    def _fit(self, X: Any, Y: Any, number: int) -> Any:
        import jax

        model = fit_saas(X, Y, number)
        jax.clear_caches()  # each number of rows is compiled anew, and a hundred programs use up the memory
        return model


def _nominal(dimension: Any) -> bool:
    return bool(dimension.kind == "categorical")


def _discrete(dimension: Any) -> bool:
    return dimension.kind in ("integer", "ordinal")


def _grid(dimension: Any) -> list[float]:
    """Return the values of a discrete parameter on the unit interval."""
    if dimension.kind == "ordinal":
        return list(np.linspace(0.0, 1.0, len(dimension.levels)))
    values = np.arange(dimension.lower, dimension.upper + 1)
    values = np.log(values) if dimension.log else values
    return list((values - values[0]) / (values[-1] - values[0]))


class Hebo:
    """HEBO; ordinals are integers, logarithmic floats its type "pow"."""

    packages = ("HEBO", "GPy", "pymoo", "torch")
    own_design = False
    resumes = False
    conditional = False
    rhat = None

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers.hebo import HEBO

        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 (HEBO uses the global generator)
        self.dimensions = Encoder(problem.space).dimensions
        space = DesignSpace().parse([self._parameter(d) for d in self.dimensions])
        self.optimiser = HEBO(space, scramble_seed=seed)

    @staticmethod
    def _parameter(dimension: Any) -> dict[str, Any]:
        if _nominal(dimension):
            return {"name": dimension.name, "type": "cat", "categories": list(range(len(dimension.levels)))}
        kinds = {"float": "pow" if dimension.log else "num", "integer": "int", "ordinal": "int"}
        bounds = {"lb": dimension.lower, "ub": dimension.upper} | ({"base": 10} if dimension.log else {})
        return {"name": dimension.name, "type": kinds[dimension.kind]} | bounds

    def ask(self) -> dict[str, Any]:
        row = self.optimiser.suggest(1).iloc[0]
        return {d.name: self._value(d, row[d.name]) for d in self.dimensions}

    @staticmethod
    def _value(dimension: Any, value: Any) -> Any:
        if dimension.levels:
            return dimension.levels[int(value)]
        number = float(np.clip(value, dimension.lower, dimension.upper))
        return int(number) if dimension.kind == "integer" else number

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        import pandas as pd

        row = with_indices(self.dimensions, params)
        self.optimiser.observe(pd.DataFrame([row]), np.array([[value]]))


class Smac:
    """SMAC3: the black-box facade (a GP) for float parameters, else the one for hyperparameters (a random forest).

    It is given the initial design and asks for it; a noisy problem may repeat a point in between.
    """

    packages = ("smac",)
    own_design = True
    resumes = False
    conditional = True
    rhat = None

    def __init__(self, problem: Problem, seed: int) -> None:
        from smac import BlackBoxFacade, HyperparameterOptimizationFacade, Scenario

        continuous = all(isinstance(p, FloatHyperparameter) for p in problem.space.values())
        facade = BlackBoxFacade if continuous else HyperparameterOptimizationFacade
        self.folder = tempfile.TemporaryDirectory()
        deterministic = problem.noise == 0
        space = problem.space
        scenario = Scenario(space, output_directory=self.folder.name, deterministic=deterministic, seed=seed)
        design = [to_configuration(space, params) for params in initial_design(space, seed)]
        self.optimiser = facade(
            scenario,
            lambda config, seed=0: 0.0,
            initial_design=facade.get_initial_design(scenario, n_configs=0, additional_configs=design),
            logging_level=False,
            overwrite=True,
        )
        self.info: Any = None

    def ask(self) -> dict[str, Any]:
        self.info = self.optimiser.ask()
        return to_params(self.info.config)

    def tell(self, params: Mapping[str, Any], value: float) -> None:
        from smac.runhistory.dataclasses import TrialValue

        self.optimiser.tell(self.info, TrialValue(cost=value), save=False)


class Peer(NamedTuple):
    """An optimiser by its class, and how to start a run of it on a problem with a seed."""

    kind: type[Optimiser]
    start: Callable[[Problem, int], Optimiser]


def _optuna(sampler: Callable[..., optuna.samplers.BaseSampler]) -> Peer:
    return Peer(Optuna, lambda problem, seed: Optuna(sampler(seed=seed), problem.space))


PEERS: dict[str, Peer] = {
    "optuna-gp": _optuna(optuna.samplers.GPSampler),
    "optuna-tpe": _optuna(optuna.samplers.TPESampler),
    "random": _optuna(optuna.samplers.RandomSampler),
    "evolution": Peer(Evolution, Evolution),
    "botorch": Peer(BoTorch, BoTorch),
    "ax": Peer(Ax, Ax),
    "baybe": Peer(BayBE, BayBE),
    "random-inside": Peer(RandomInside, RandomInside),
    "hebo": Peer(Hebo, Hebo),
    "smac": Peer(Smac, Smac),
    "saasbo": Peer(Saasbo, Saasbo),
    "turbo": Peer(Turbo, Turbo),
}


def peer(name: str) -> Peer:
    """Return an optimiser by its name.

    Parameters
    ----------
    name : str
        A key of `PEERS`, "slayr", or "slayr:" and keyword arguments of `StanGPSampler`, such as
        "slayr:kernel=fm,n_initial=20,lengthscale=-0.5/0.7", in which LOCATION/SCALE is a log-normal prior.

    Raises
    ------
    ValueError
        For another name.
    """
    if name in PEERS:
        return PEERS[name]
    first, _, text = name.partition(":")
    if first != "slayr":
        raise ValueError(f"no sampler {name!r}; available: slayr, slayr:key=value,..., {', '.join(PEERS)}")
    options = keywords(text)

    def start(problem: Problem, seed: int) -> Slayr:
        noisy = {"noisy": True} if problem.noise > 0 else {}
        inside = {"within": list(problem.within)} if problem.within else {}
        encoder = Encoder(problem.space, problem.graphs)
        return Slayr(StanGPSampler(encoder, seed=seed, **(noisy | inside | options)), problem.space)

    return Peer(Slayr, start)


def keywords(text: str) -> dict[str, Any]:
    """Return the keyword arguments of `StanGPSampler` from "key=value,..."."""
    options: dict[str, Any] = {}
    priors: dict[str, sl.LogNormal] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"{item!r} is not of the form key=value")
        location, slash, scale = value.partition("/")
        if slash:
            priors[key] = sl.LogNormal(float(location), float(scale))
        elif key == "kernel":
            options[key] = KERNELS[value]() if value in KERNELS else value
        else:
            options[key] = value if key == "warp" else _literal(value)
    return options | ({"priors": priors} if priors else {})


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.capitalize() if text in ("true", "false", "none") else text)
    except (ValueError, SyntaxError):
        return text
