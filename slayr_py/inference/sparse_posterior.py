"""Fits of thousands of observations: a sparse Gaussian process, and draws of its hyperparameters around the mode."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.inference.components import Components
from slayr_py.inference.diagnostics.arviz_tree import arviz_tree
from slayr_py.inference.diagnostics.checks import APPROXIMATION_CHECKS, importance_limits
from slayr_py.inference.likelihood import Targets
from slayr_py.inference.modes import find_mode, laplace_draws
from slayr_py.inference.observed import Observed
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction import Prediction, Predictor
from slayr_py.inference.records.data_tree import posterior_groups
from slayr_py.inference.records.saved import Format
from slayr_py.inference.sampling.methods import METHODS, diagnose_run
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import improve
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.sparse import SparseMarginal
from slayr_py.space import Encoded, FloatArray

MOST_DRAWS = 100
"""Largest number of draws: each costs the O(n m^2) of a bound, and a prediction averages over all."""

STARTS = 3

PROPOSALS = 300
"""Proposals of a step of importance sampling for every ten hyperparameters; each costs a bound."""


def fit_sparse(observed: Observed, inducing: int, options: FitOptions, seed: int) -> SparsePosterior:
    """Fit a sparse Gaussian process: the mode, or draws by importance sampling around it.

    Parameters
    ----------
    observed : Observed
        Of a model with a composite kernel.
    inducing : int
        Number of inducing points.
    options : FitOptions
        Method "map" gives the mode; every other method draws by importance sampling around it.
    seed : int
    """
    clock = time.perf_counter()
    data = observed.data
    if np.any(data["y_sd"] > 0):
        raise DataError(
            "a sparse fit has one noise for all observations; leave y_sd out, or fit fewer without inducing"
        )
    method: Literal["map", "laplace"] = "map" if METHODS[options.method].point_estimate else "laplace"
    with threadpool_limits(limits=1, user_api="blas"):  # the same bits on every machine with the same library
        y = np.asarray(data["y"], dtype=np.float64)
        marginal = SparseMarginal(observed.model, observed.train, y, inducing, seed)
        rng = np.random.default_rng(seed)
        size = marginal.scores.size
        mode = find_mode(marginal, [np.zeros(size), *rng.standard_normal((STARTS - 1, size))])
        draws = mode.z[None]
        pareto_k = float("nan")
        ess = float("nan")
        if method == "laplace":
            wanted = min(options.chains * options.draws, MOST_DRAWS)
            start = laplace_draws(marginal, mode.z, PROPOSALS, rng)

            def log_density(points: FloatArray) -> FloatArray:
                return np.array([marginal.log_density(z) for z in points])

            good = importance_limits(APPROXIMATION_CHECKS, wanted)
            found = improve(log_density, start, wanted, good, rng, PROPOSALS * max(1, size // 10))
            draws = found.draws
            pareto_k = found.pareto_k
            ess = found.ess
    theta = marginal.scores.theta(draws)
    variables = {name: values.reshape(1, len(draws), -1) for name, values in theta.items()}
    for h in observed.model.hyperparameters:
        variables[f"z_{h.name}"] = draws[None, :, marginal.scores.place(h.name)]
    arguments = {"method": method, "seed": seed, "draws": len(draws), "inducing": len(marginal.inducing)}
    run = Run(variables, {}, arguments, {}, pareto_k, ess, seconds=time.perf_counter() - clock)
    return SparsePosterior.from_marginal(observed, marginal, run)


class SparsePosterior(Posterior):
    """Posterior of a sparse fit, from ``GaussianProcess(..., inducing=m).fit``.

    It predicts, draws functions and serves acquisitions as every posterior. The function is approximated by the
    variational bound of m inducing points (Titsias 2009), the posterior of the hyperparameters by at most 100 draws, by
    importance sampling from a mixture fitted to Laplace's approximation. `check` judges the draws. Nothing judges the
    bound: compare predictions with more inducing points.

    Attributes
    ----------
    inducing : Encoded
        The inducing points, a random subset of the configurations.
    """

    inducing: Encoded
    _factors: FloatArray
    _weights: FloatArray

    @classmethod
    def from_marginal(cls, observed: Observed, marginal: SparseMarginal, run: Run) -> SparsePosterior:
        """Label the draws of a run and factorise their covariances."""
        model = observed.model
        y = np.asarray(observed.data["y"], dtype=np.float64)
        idata = arviz_tree(posterior_groups(model, observed.train, y, run, observed.y_mean, observed.y_sd))
        diagnostics = diagnose_run(run, {})
        kind = "a point estimate" if METHODS[run.arguments["method"]].point_estimate else "draws by importance sampling"
        note = (
            f"sparse: {len(marginal.inducing)} inducing points represent {len(observed.train)} observations, and the "
            f"hyperparameters are {kind}"
        )
        diagnostics = replace(diagnostics, kernel_notes=(note, *diagnostics.kernel_notes))
        record = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(run.seconds, 3),
            **model.asdict(),
            "arguments": run.arguments,
            "abandoned": [],
            "diagnostics": diagnostics.asdict(),
        }
        posterior = cls(model, observed.train, {"y": y}, idata, record, diagnostics)
        posterior.inducing = marginal.inducing
        draws = posterior.draws
        each = [marginal.pseudo_factor({k: v[i : i + 1] for k, v in draws.items()}) for i in range(len(draws["mu"]))]
        posterior._factors, posterior._weights = (np.stack(part) for part in zip(*each, strict=True))
        return posterior

    @property
    @override
    def targets(self) -> Targets:
        y = np.asarray(self.data["y"], dtype=np.float64)
        return Targets(y, np.zeros(len(y)), self.model.noise_floor)

    @property
    @override
    def support(self) -> Encoded:
        return self.inducing

    @override
    def predict(
        self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, engine: Literal["numpy", "stan"] = "numpy"
    ) -> Prediction:
        if engine != "numpy":
            raise DataError(f"a sparse fit predicts in NumPy only, got engine={engine!r}")
        return super().predict(configs)

    @override
    def predictor_of_rows(self, rows: NDArray[np.intp]) -> Predictor:
        draws = {name: values[rows] for name, values in self.draws.items()}
        factors = self._factors[rows]
        weights = self._weights[rows]
        return Predictor.from_factors(self.kernel, self.inducing, self.targets, draws, factors, weights)

    @override
    def loo(self) -> xr.DataArray:
        self._refuse("no leave-one-out densities")

    @override
    def components(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any) -> Components:
        self._refuse("no components")

    @override
    def warm_start(self) -> WarmStart:
        self._refuse("no warm start")

    @override
    def with_prior(self, draws: int = 500, chains: int = 4, warmup: int = 500, seed: int = 1) -> Posterior:
        self._refuse("no draws from the prior")

    @override
    def with_pointwise(self) -> Posterior:
        self._refuse("no pointwise densities")

    @override
    def save(self, folder: str | Path, format: Format = "netcdf") -> Path:
        self._refuse("no saved form; keep data, options and seed: the fit repeats itself")

    def _refuse(self, what: str) -> NoReturn:
        raise DataError(f"a sparse fit has {what}; fit at most a few thousand observations without inducing=")
