"""Fit a sparse Gaussian process to thousands of observations, with draws of its hyperparameters around the mode."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from slayr_py.errors import DataError
from slayr_py.inference.diagnostics.checks import APPROXIMATION_CHECKS, importance_limits
from slayr_py.inference.model import Likelihood, Warp
from slayr_py.inference.modes.laplace import find_mode, laplace_draws
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.modes.sparse_bound import SparseMarginal, inducing_points
from slayr_py.inference.observed import Observed
from slayr_py.inference.part import Part
from slayr_py.inference.prediction.factorisation import SparseFactorisation
from slayr_py.inference.records.contents import Contents
from slayr_py.inference.sampling.methods import METHODS, diagnose_run
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.population import improve
from slayr_py.kernels import Composable, Composite, Kernel, Matern, from_name
from slayr_py.space import Encoder, FloatArray
from slayr_py.threads import one_thread

MOST_DRAWS = 100
"""Largest number of draws. Each draw costs O(n m^2) for the bound, and a prediction averages over all draws."""

STARTS = 3  # of the search for the mode, 0 and two random ones; a mode may be local

PROPOSALS = 300
"""Proposals of a step of importance sampling for every ten hyperparameters; each needs one bound."""


def sparse_kernel(kernel: Kernel | str, encoder: Encoder, warp: Warp, likelihood: Likelihood) -> Composite:
    """Return the kernel of a sparse fit as an expression.

    Raises
    ------
    DataError
        For a warp, binary observations, or a kernel that a sparse fit cannot have.
    """
    if warp != "none":
        raise DataError(f"warp={warp!r} is not supported with inducing=; use warp='none', or leave inducing= out")
    if likelihood == "probit":
        raise DataError("likelihood='probit' is not supported with inducing=; leave inducing= out")
    chosen = from_name(kernel, encoder)
    if isinstance(chosen, Matern) and chosen.p > 2:
        raise DataError(f"inducing= supports Matérn kernels up to p = 2, not p = {chosen.p}; use a smaller p")
    if not isinstance(chosen, Composable) or chosen.as_composite().given:
        raise DataError(
            f"kernel {chosen.name!r} is not supported with inducing=; use an expression such as 'MAT52' without given "
            "leaves, or leave inducing= out"
        )
    return chosen.as_composite()


def fit_sparse(observed: Observed, inducing: int, options: FitOptions, seed: int) -> Part:
    """Fit a sparse Gaussian process: the mode, or draws by importance sampling around it.

    The variational bound of m inducing points approximates the function (Titsias 2009). At most 100 draws approximate
    the posterior of the hyperparameters, by importance sampling from a mixture fitted to Laplace's approximation. The
    diagnostics check the draws, not the bound. To check the bound, compare predictions with more inducing points.

    Parameters
    ----------
    observed : Observed
        Observations of a model with a composite kernel.
    inducing : int
        Number of inducing points.
    options : FitOptions
        Method "map" gives the mode; every other method gives draws by importance sampling around the mode.
    seed : int
    """
    clock = time.perf_counter()
    data = observed.data
    if np.any(data["y_sd"] > 0):
        raise DataError(
            "y_sd is not supported with inducing=, since all observations of a sparse fit have the same noise; leave "
            "y_sd out, or fit fewer observations without inducing="
        )
    method: Literal["map", "laplace"] = "map" if METHODS[options.method].point_estimate else "laplace"
    with one_thread():
        y = np.asarray(data["y"], dtype=np.float64)
        points = inducing_points(observed.train, inducing, seed)
        marginal = SparseMarginal(observed.model, observed.train, y, points)
        rng = np.random.default_rng(seed)
        size = marginal.coordinates.size
        mode = find_mode(marginal, [np.zeros(size), *rng.standard_normal((STARTS - 1, size))])
        draws = mode.z[None]
        pareto_k = float("nan")
        ess = float("nan")
        if method == "laplace":
            n_draws = min(options.chains * options.draws, MOST_DRAWS)
            start = laplace_draws(marginal, mode.z, PROPOSALS, rng, mode.density.gradient)

            def log_density(points: FloatArray) -> FloatArray:
                return np.array([marginal.log_density(z) for z in points])

            good = importance_limits(APPROXIMATION_CHECKS, n_draws)
            improved = improve(log_density, start, n_draws, good, rng, PROPOSALS * max(1, size // 10))
            draws = improved.draws
            pareto_k = improved.pareto_k
            ess = improved.ess
    theta = marginal.coordinates.theta(draws)
    variables = {name: values.reshape(1, len(draws), -1) for name, values in theta.items()}
    for h in observed.model.hyperparameters:
        variables[f"z_{h.name}"] = draws[None, :, marginal.coordinates.place(h.name)]
    arguments = {"method": method, "seed": seed, "draws": len(draws), "inducing": len(marginal.inducing)}
    run = Run(variables, {}, arguments, {}, pareto_k, ess, seconds=time.perf_counter() - clock)
    return _part(observed, marginal, run)


def _part(observed: Observed, marginal: SparseMarginal, run: Run) -> Part:
    """Label the draws of a run and factorise their covariances."""
    model = observed.model
    y = np.asarray(observed.data["y"], dtype=np.float64)
    contents = Contents.of_run(observed, run)
    diagnostics = diagnose_run(run, {})
    kind = "a point estimate" if METHODS[run.arguments["method"]].point_estimate else "draws by importance sampling"
    note = (
        f"sparse: {len(marginal.inducing)} inducing points represent {len(observed.train)} observations, and the "
        f"hyperparameters are {kind}"
    )
    draws = contents.draws
    diagnostics = replace(diagnostics, kernel_notes=(note, *model.notes(draws, observed.train)))
    record = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        **model.asdict(),
        "arguments": run.arguments,
        "abandoned": [],
        "diagnostics": diagnostics.asdict(),
    }
    factors = [marginal.pseudo_factor({k: v[i : i + 1] for k, v in draws.items()}) for i in range(len(draws["mu"]))]
    sparse = SparseFactorisation(
        model.kernel,
        marginal.inducing,
        Targets(y, np.zeros(len(y)), model.noise_floor),
        np.stack([lower for lower, _ in factors]),
        np.stack([weights for _, weights in factors]),
    )
    return Part(model, observed.train, {"y": y}, contents, record, diagnostics, sparse)
