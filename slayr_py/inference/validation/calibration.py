r"""Simulation-based calibration: test that a program samples the posterior of its model.

NumPy draws hyperparameters theta from their priors and data y from the model; the program fits y. If the program is
correct, theta is another draw from that posterior, and its rank among L draws of the program is uniform on 0..L (Talts
et al. 2018). A mistake in priors, Jacobians, likelihood or sampler distorts the distribution of ranks. Functions of
theta and y are more sensitive than theta alone, above all the likelihood (Modrák et al. 2023).

Symbols: N replications; L nearly independent draws, among which ranks are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError
from slayr_py.inference.diagnostics.arviz_bridge import convergence
from slayr_py.inference.model import Model
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.modes.triangular import solve_lower
from slayr_py.inference.observed import check_errors
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import run
from slayr_py.inference.validation.uniformity import ecdf_p_value
from slayr_py.inference.warp import counts_in_jacobian, log_slope, unwarped
from slayr_py.space import Encoded, FloatArray
from slayr_py.toolchain import CompiledProgram

PIVOT = -1.5
"""Pivot of the warp "best" of simulated data, where the best of a few standardised values typically is."""

_FIRST_ROUND = 6  # iterations for each of the L draws; sampling continues if the draws are correlated


@dataclass(frozen=True)
class Calibration:
    """Ranks of the true hyperparameters among posterior draws.

    Attributes
    ----------
    ranks : DataFrame of int, N rows
        Ranks from 0 to ``draws``. Columns: each entry of a hyperparameter that is not fixed; "NAME, all", the product
        of the entries of a vector, which detects an error common to them; ``log_likelihood``, for the probit likelihood
        that of expectation propagation; ``f``, the function at the configuration that was not observed.
    draws : int
        L.
    fits : DataFrame, N rows
        ``ess``, the smallest bulk effective sample size of all draws, of which L are taken at even intervals;
        ``divergences``; ``seconds``.
    """

    ranks: pd.DataFrame
    draws: int
    fits: pd.DataFrame

    def p_values(self) -> pd.Series[float]:
        """Return the p-value of every quantity by :func:`ecdf_p_value`."""
        return pd.Series({str(name): ecdf_p_value(ranks, self.draws) for name, ranks in self.ranks.items()})

    def p_value(self) -> float:
        """Return the p-value of all quantities together: the smallest times their number (Bonferroni), at most 1."""
        return min(1.0, float(self.p_values().min()) * self.ranks.shape[1])


class SingleProcess(Protocol):
    """A Gaussian process with one kernel."""

    @property
    def model(self) -> Model:
        """Kernel and priors."""


def calibrate(
    gp: SingleProcess,
    configs: Encoded | Iterable[Mapping[str, Any]] | Any,
    replications: int = 500,
    draws: int = 99,
    seed: int = 1,
    *,
    first: int = 0,
    program: CompiledProgram | None = None,
    data: Mapping[str, Any] | None = None,
    y_sd: ArrayLike | None = None,
    warmup: int = 300,
    target_acceptance: float = 0.9,
    progress: Callable[[int], None] | None = None,
) -> Calibration:
    """Run simulation-based calibration of a model's program under its priors.

    Parameters
    ----------
    gp : GaussianProcess
        Kernel and priors. The simulated data are not standardised, and the pivot of ``warp="best"`` is -1.5: the best
        of simulated data would depend on the hyperparameters.
    configs : iterable of configurations
        At least two; the last one is not observed.
    replications : int
        N. A few hundred detect a posterior with a few percent of its mass in the wrong place.
    draws : int
        L; sampling continues until the effective sample size reaches L, for at most 48 L iterations.
    seed : int
        Replication i depends only on (seed, i).
    first : int
        Number of the first replication, to continue after an earlier call.
    program : CompiledProgram, optional
        Replaces the kernel's program, for example by an edited copy.
    data : mapping, optional
        Replaces entries of the program's data.
    y_sd : float or array_like, optional
        Known standard deviations of the errors of the observations, on the scale of the priors; as for
        :meth:`GaussianProcess.fit`.
    warmup, target_acceptance
        See :meth:`GaussianProcess.fit`; one chain.
    progress : callable, optional
        Called with the number of finished replications.

    Raises
    ------
    DataError
        For fewer than two configurations, a number outside its range, or known errors of binary observations or with
        a warp that is not "auto".
    InferenceError
        If Stan fails.

    References
    ----------
    S. Talts, M. Betancourt, D. Simpson, A. Vehtari, A. Gelman (2018). Validating Bayesian inference algorithms with
    simulation-based calibration. arXiv:1804.06788.

    M. Modrák et al. (2023). Simulation-based calibration checking for Bayesian computation: the choice of test
    quantities shapes sensitivity. Bayesian Analysis.
    """
    model = gp.model
    points = model.encoder.encode(configs)
    if len(points) < 2:
        plural = "" if len(points) == 1 else "s"
        raise DataError(f"{len(points)} configuration{plural} given; calibration needs at least 2")
    check_integer("replications", replications)
    check_integer("draws", draws)
    seed = check_integer("seed", seed, minimum=0)
    program = program or compiled(model.kernel.program)
    train = points[:-1]
    new = points[-1:]
    errors = None if y_sd is None else check_errors(y_sd, len(train))
    model = model.with_errors(errors)
    if model.warp == "best":
        model = model.with_pivot(PIVOT)
    options = FitOptions(
        chains=1, warmup=warmup, draws=_FIRST_ROUND * draws, target_acceptance=target_acceptance, ess=draws
    )
    replication = _Replication(model, program, train, new, errors, data or {}, options, draws)
    ranks = []
    fits = []
    for i in range(first, first + replications):
        ranked, fit = replication.simulate(np.random.default_rng([seed, i]))
        ranks.append(ranked)
        fits.append(fit)
        if progress:
            progress(len(ranks))
    return Calibration(pd.DataFrame(ranks), draws, pd.DataFrame(fits))


@dataclass(frozen=True)
class _Replication:
    """One simulation of data and its fit; `calibrate` describes the attributes."""

    model: Model
    program: CompiledProgram
    train: Encoded
    new: Encoded
    errors: FloatArray | None
    data: Mapping[str, Any]
    options: FitOptions
    draws: int

    def simulate(self, rng: np.random.Generator) -> tuple[dict[str, int], dict[str, float]]:
        """Draw hyperparameters and data, fit the data, and return a row of the ranks and of the fits."""
        truth = draw_from_prior(self.model, rng)
        values = draw_values(self.model, self.train, self.new, truth, rng, self.errors)
        simulated = self.model.stan_data(self.train, values[:-1], self.new, y_sd=self.errors)
        result = run(self.program, {**simulated, **self.data}, self.options, seed=int(rng.integers(2**31)))
        rows = np.linspace(0, len(result.variables["mu"][0]) - 1, self.draws).round().astype(np.intp)
        # CmdStan writes no columns for a vector of length 0.
        chosen = {name: values[0, rows] for name, values in result.variables.items() if values.ndim == 3}
        both = {
            name: np.concatenate([value[None], chosen.get(name, np.zeros(0)).reshape(self.draws, *value.shape)])
            for name, value in truth.items()
        }
        f_new = chosen["f_mean"][:, 0] + chosen["f_sd"][:, 0] * rng.normal(size=self.draws)
        factors = KernelPredictor.factorise(self.model.kernel, self.train, Targets.of(simulated), both)
        quantities = _entries(self.model, both) | {
            "log_likelihood": log_likelihood(factors),
            "f": np.concatenate([values[-1:], f_new]),
        }
        fit = {
            "ess": convergence(result.unconstrained)["ess_bulk_min"],
            "divergences": int(result.sampler["diverging"].sum()),
            "seconds": result.seconds,
        }
        return {name: int(np.sum(q[1:] < q[0])) for name, q in quantities.items()}, fit


def draw_from_prior(model: Model, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Draw every hyperparameter from its prior; the prior of ``sigma_f`` describes the function's standard deviation.

    The draws come from NumPy and not from :meth:`Posterior.with_prior`, whose program calibration tests.
    """
    theta = {h.name: h.prior.draw(h.labels, rng) for h in model.hyperparameters}
    single = {name: value[None] for name, value in theta.items()}
    theta["sigma_f"] = theta["sigma_f"] / np.sqrt(model.kernel.reference_variance(model.encoder, single)[0])
    return theta


def draw_values(
    model: Model,
    train: Encoded,
    new: Encoded,
    theta: Mapping[str, FloatArray],
    rng: np.random.Generator,
    errors: FloatArray | None = None,
) -> FloatArray:
    """Draw noisy observations at ``train`` and the transformed function at ``new`` from the model, given ``theta``.

    Binary observations are 1 or -1. ``errors`` (n,) are known standard deviations of the errors of the observations.
    """
    points = train.concatenate(new)
    covariance = model.kernel.gram(points, points, theta)
    f = rng.multivariate_normal(np.full(len(points), theta["mu"]), covariance, method="eigh")
    f[: len(train)] += np.hypot(theta["sigma_n"], model.noise_floor) * rng.normal(size=len(train))
    if "warp" in theta:
        f[: len(train)] = unwarped(f[: len(train)], theta["warp"], model.pivot)
    if errors is not None:
        f[: len(train)] += errors * rng.normal(size=len(train))
    if model.likelihood == "probit":
        f[: len(train)] = np.where(f[: len(train)] < 0, -1.0, 1.0)
    return f


def _entries(model: Model, draws: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the draws of each free entry, and of the product of a vector's entries (the sum for a real vector)."""
    entries: dict[str, FloatArray] = {}
    for h in model.hyperparameters:
        values = draws[h.name]
        free = np.atleast_1d(~model.fixed[h.name]).ravel()
        columns = zip(h.entries, values.reshape(len(values), -1).T, free, strict=True)
        entries |= {name: column for name, column, sampled in columns if sampled}
        if len(h.entries) > 1 and free.any():
            entries[f"{h.name}, all"] = (values if h.prior.support == "real" else np.log(values)).sum(axis=1)
    return entries


def log_likelihood(factors: KernelPredictor) -> FloatArray:
    """Return the log density of the observations, or the log probability if they are binary, of every draw, (s,).

    It is log N(T(y) | mu, K + S) + sum log T'(y), where of several targets at the pivot one counts in the sum, or the
    approximation of expectation propagation (Rasmussen & Williams 2006, eq. 3.65): that of the Gaussian targets, times
    the ratio of the exact and the Gaussian probability of each observation given the others.
    """
    log_diagonal = np.log(np.diagonal(factors.factor, axis1=1, axis2=2))
    density = -0.5 * np.sum(np.square(factors.whitened), axis=1) - log_diagonal.sum(axis=1)
    density = density - 0.5 * len(factors.train) * np.log(2 * np.pi)
    y = factors.targets.y
    if factors.targets.binary:
        inverse = np.stack([solve_lower(lower, np.eye(len(lower))) for lower in factors.factor])
        variance = 1 / np.sum(np.square(inverse), axis=2)
        error = variance * factors.weights  # of the prediction of a target from the others
        covariance = np.sum(np.square(factors.factor), axis=2)
        noise = covariance - factors.kernel.diagonal(factors.train, factors.draws)
        target = factors.draws["mu"][:, None] + np.einsum("sij,sj->si", factors.factor, factors.whitened)
        latent = np.maximum(variance - noise, 0.0)
        exact = log_ndtr(y * (target - error) / np.sqrt(1 + latent))
        gaussian = -0.5 * np.square(error) / variance - 0.5 * np.log(2 * np.pi * variance)
        density = density + np.sum(exact - gaussian, axis=1)
    if "warp" in factors.draws:
        pivot = factors.targets.pivot
        slopes = log_slope(y, factors.draws["warp"][:, None], pivot)
        density = density + np.sum(counts_in_jacobian(y, pivot) * slopes, axis=1)
    return np.asarray(density)
