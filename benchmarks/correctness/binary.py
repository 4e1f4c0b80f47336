"""Compare fits of binary observations with the exact posterior.

    python -m benchmarks.correctness.binary
    python -m benchmarks.correctness.binary --predictions

The reference integrates the latent function out without an approximation of the likelihood. The probability of the
observed signs is an orthant probability of a normal distribution with covariance K + I. The simulator of Geweke,
Hajivassiliou & Keane (Genz & Bretz 2009, "Computation of multivariate normal and t probabilities", section 4.1)
estimates it without bias for hyperparameters drawn from the prior, and the estimates are their importance weights. The
simulator's further point gives the probability of success there.

The table has, for every method, the largest difference of a mean of mu, log sigma_f and the log length-scales in
posterior standard deviations, the mean of these differences over the length-scales, and the probabilities of success
at a failure, at a success, between them and far from them. ``--predictions`` compares only these probabilities, under
the hyperparameters and weights of the reference: of the skewed distributions, and of the normal distributions with the
moments of expectation propagation.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from ConfigSpace import ConfigurationSpace
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import markdown
from slayr_py.inference import Targets
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.space import FloatArray

METHODS = ("nuts", "carried", "pathfinder", "laplace")
_BLOCK = 500  # draws whose factors are kept together


class Case(NamedTuple):
    """Binary observations, and the points at which the probability of success is predicted."""

    X: FloatArray
    success: np.ndarray
    new: FloatArray

    @property
    def space(self) -> ConfigurationSpace:
        return ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(self.X.shape[1])})


def cases() -> dict[str, Case]:
    """Return the cases: one failure of 12 points, and failures in a corner of 25 points."""
    plane = qmc.Sobol(2, rng=0).random(16)[:12]
    alone = np.argmax(plane.sum(axis=1))
    nearest = np.argsort(np.linalg.norm(plane - plane[alone], axis=1))[1]
    between = (plane[alone] + plane[nearest]) / 2
    one = Case(plane, np.arange(12) != alone, np.array([plane[alone], plane[nearest], between, [0.0, 1.0]]))
    many = qmc.Sobol(2, rng=1).random(32)[:25]
    corner = many.sum(axis=1) < 1.3
    new = np.array([[0.9, 0.9], [0.2, 0.2], [0.65, 0.65], [0.0, 1.0]])
    return {"one failure of 12": one, "a corner of 25": Case(many, corner, new)}


def designs() -> dict[str, Case]:
    """Return further cases, with observations that are close to each other."""
    rng = np.random.default_rng(8)
    few = qmc.Sobol(2, rng=3).random(8)
    cluster = [0.6, 0.6] + 0.02 * rng.normal(size=(20, 2))
    new = np.array([[0.6, 0.6], [0.7, 0.7], [0.9, 0.9], [0.0, 1.0]])
    border = np.column_stack([rng.random(15), 0.6 + 0.05 * rng.normal(size=15)])
    late = np.vstack([rng.random((20, 2)), border])
    return {
        "20 successes within 0.02": Case(np.vstack([few, cluster]), np.ones(28, dtype=np.bool_), new),
        "6 failures within 0.02": Case(np.vstack([few, cluster[:6]]), np.arange(14) < 8, new),
        "15 of 35 along a border": Case(late, late[:, 1] < 0.6, np.vstack([border[:2], new])),
    }


class Summary(NamedTuple):
    """Means and standard deviations (P,) of hyperparameters, and probabilities of success at the new points."""

    mean: FloatArray
    sd: FloatArray
    probability: FloatArray


def hyperparameters(draws: dict[str, FloatArray]) -> FloatArray:
    """Return mu, log sigma_f and the log length-scales, (s, P)."""
    columns = [draws["mu"], np.log(draws["sigma_f"]), *np.log(draws["lengthscale"]).T]
    return np.column_stack(columns)


def signs_and_predictions(case: Case, K: FloatArray, mu: float, uniform: FloatArray) -> FloatArray:
    """Return estimates of the probability of the signs, and of it together with a success at every new point.

    Parameters
    ----------
    K : (n + m, n + m) float64
        Covariance of the function at the observed and the new points.
    mu : float
    uniform : (q, n) float64
        Uniform numbers of the simulator.
    """
    n = len(case.X)
    sign = np.where(case.success, 1.0, -1.0)
    covariance = sign[:, None] * K[:n, :n] * sign + np.eye(n)
    root = np.linalg.cholesky(covariance)
    eta = np.zeros((len(uniform), n))
    weight = np.ones(len(uniform))
    for i in range(n):
        limit = -(sign[i] * mu + eta[:, :i] @ root[i, :i]) / root[i, i]
        probability = ndtr(-limit)
        weight *= probability
        # -ndtri(1 - u) of the upper tail, by symmetry: exact where the probability is small
        eta[:, i] = -ndtri(np.maximum(uniform[:, i] * probability, 1e-300))
    cross = np.linalg.solve(root, sign[:, None] * K[:n, n:])
    spread = np.sqrt(1 + np.diag(K)[n:] - np.square(cross).sum(axis=0))
    success = ndtr((mu + eta @ cross) / spread)
    return np.append(weight.mean(), weight @ success / len(weight))


class Reference(NamedTuple):
    """The exact posterior, the effective number of draws, and probabilities by two distributions of the function."""

    exact: Summary
    effective: float
    skewed: FloatArray
    normal: FloatArray


def reference(case: Case, draws: int, points: int, seed: int = 0) -> Reference:
    """Return the exact posterior by importance sampling from the prior."""
    kernel = sl.kernels.Matern()
    gp = sl.GaussianProcess(case.space, kernel, likelihood="probit")
    rng = np.random.default_rng(seed)
    both = gp.encoder.encode(np.vstack([case.X, case.new]))
    theta = {
        "mu": np.array([float(gp.priors["mu"].draw(None, rng)) for _ in range(draws)]),
        "sigma_f": np.array([float(gp.priors["sigma_f"].draw(None, rng)) for _ in range(draws)]),
        "lengthscale": np.array([gp.priors["lengthscale"].draw(gp.encoder.column_names, rng) for _ in range(draws)]),
    }
    n = len(case.X)
    targets = Targets(np.where(case.success, 1.0, -1.0), np.zeros(n), binary=True)
    values = np.empty((draws, 1 + len(case.new)))
    skewed = np.empty((draws, len(case.new)))
    normal = np.empty((draws, len(case.new)))
    for first in range(0, draws, _BLOCK):
        rows = slice(first, first + _BLOCK)
        some = {name: column[rows] for name, column in theta.items()}
        K = kernel.cross(both, both, some)
        for row, covariance in enumerate(K):
            uniform = rng.random((points, n))
            values[first + row] = signs_and_predictions(case, covariance, some["mu"][row], uniform)
        some["sigma_n"] = np.ones(len(K))
        predictor = KernelPredictor.factorise(kernel, both[:n], targets, some)
        skewed[rows] = np.exp(predictor.log_success(both[n:]))
        mean, variance = predictor.moments(both[n:])
        normal[rows] = ndtr(mean / np.sqrt(1 + variance))
    weights = values[:, 0] / values[:, 0].sum()
    z = hyperparameters(theta)
    mean = weights @ z
    sd = np.sqrt(weights @ np.square(z - mean))
    exact = Summary(mean, sd, values[:, 1:].sum(axis=0) / values[:, 0].sum())
    return Reference(exact, float(1 / np.sum(np.square(weights))), weights @ skewed, weights @ normal)


def fits(case: Case, draws: int) -> Iterator[tuple[str, Summary, sl.Posterior]]:
    """Fit by every method."""
    gp = sl.GaussianProcess(case.space, sl.kernels.Matern(), likelihood="probit")
    start = None
    for method in METHODS:
        size = draws if method == "nuts" else max(draws // 4, 500)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = gp.fit(case.X, case.success, method=method, draws=size, start=start, retries=0)
        if method == "nuts":
            start = posterior.warm_start()
        else:
            start = None
        z = hyperparameters(posterior.draws)
        yield method, Summary(z.mean(axis=0), z.std(axis=0), posterior.probability(case.new)), posterior


def row(name: str, found: Summary, exact: Summary, about: str) -> list[str]:
    apart = (found.mean - exact.mean) / exact.sd
    probabilities = _probabilities(found.probability)
    return [name, f"{np.abs(apart).max():.2f}", f"{apart[2:].mean():+.2f}", probabilities, about]


def _probabilities(values: FloatArray) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--prior-draws", type=int, default=60_000, help="draws of the reference")
    parser.add_argument("--points", type=int, default=64, help="points of the simulator for each draw")
    parser.add_argument("--draws", type=int, default=2000, help="draws of each of the 4 chains")
    parser.add_argument("--predictions", action="store_true", help="compare only probabilities, of more designs")
    options = begin(parser, arguments)
    if options.predictions:
        heads = ["design", "exact", "skewed", "moments of expectation propagation"]
        rows = []
        for name, case in {**cases(), **designs()}.items():
            known = reference(case, options.prior_draws, options.points)
            rows.append([name, *map(_probabilities, (known.exact.probability, known.skewed, known.normal))])
        print(markdown(heads, rows), flush=True)
        return
    heads = ["method", "largest difference / sd", "length-scales / sd", "P(success)", "fit"]
    for name, case in cases().items():
        exact, effective, *_ = reference(case, options.prior_draws, options.points)
        print(f"\n{name}: mean {np.round(exact.mean, 4).tolist()}, sd {np.round(exact.sd, 4).tolist()}\n")
        rows = [row("exact", exact, exact, f"{effective:.0f} effective draws")]
        for method, found, posterior in fits(case, options.draws):
            used = posterior.record["arguments"]["method"]
            check = posterior.check()
            about = f"{used}, k {check.pareto_k:.2f}, {check.ess_bulk_min:.0f} effective draws"
            rows.append(row(method, found, exact, about))
        print(markdown(heads, rows), flush=True)


if __name__ == "__main__":
    main()
