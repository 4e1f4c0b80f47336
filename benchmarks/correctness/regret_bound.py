"""Count how often the regret of the confidence bound exceeds the bound of Srinivas et al. (2010), theorem 1.

    python -m benchmarks.correctness.regret_bound --functions 200

Functions are drawn from a Gaussian process with a known kernel, k = exp(-r^2 / (2 * 0.2^2)), on a grid of 20 x 20
points in the unit square. Each is minimised for 50 evaluations with normal noise of standard deviation 0.1 by the lower
confidence bound with beta_t = 2 log(D t^2 pi^2 / (6 delta)). The theorem says that with probability 1 - delta

    R_T <= sqrt(8 / log(1 + 1 / 0.01) T beta_T gamma_T)   for all T,

where D is the number of candidates, 400; the slayR notes have the dimensionality, 2. In place of gamma_T, the largest
information gain of T points, stands the gain of the run's own points, which is smaller: the proof shows this sharper
bound. It does so for functions that are within sqrt(beta_t) standard deviations of the mean at all candidates and
times; the table counts the others too. NumPy only; seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import markdown
from slayr_py.acquisition import beta_schedule, lower_confidence_bound

SIDE = 20
LENGTHSCALE = 0.2
NOISE = 0.1
EVALUATIONS = 50
DELTAS = (0.1, 0.5)
SIZES = {"candidates, 400 (theorem)": SIDE**2, "dimensions, 2 (notes)": 2}


class Run(NamedTuple):
    """Result of minimising one function."""

    share: float
    """Largest R_T divided by its bound."""
    is_inside: bool
    """Whether the function was within the confidence bounds at all candidates and times."""


def prior_covariance() -> np.ndarray:
    """Return the covariance of the function at the points of the grid, (n, n)."""
    axis = np.linspace(0.0, 1.0, SIDE)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    squares = np.square(points[:, None] - points[None]).sum(axis=-1)
    return np.exp(-squares / (2 * LENGTHSCALE**2))


def minimise(f: np.ndarray, covariance: np.ndarray, size: int, delta: float, rng: np.random.Generator) -> Run:
    """Minimise a function, given by its values at the n candidates, and compare its regret with the bound."""
    mean = np.zeros_like(f)
    covariance = covariance.copy()
    regret = 0.0
    information = 0.0
    largest_share = 0.0
    is_inside = True
    for t in range(1, EVALUATIONS + 1):
        beta = beta_schedule(t, size, delta)
        sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        # Rounding of the covariance makes the deviation of an observed point uncertain by about 1e-8.
        is_inside = is_inside and bool(np.all(np.abs(f - mean) <= np.sqrt(beta) * sd + 1e-6))
        chosen = int(np.argmax(lower_confidence_bound(mean, sd, beta)))
        regret += f[chosen] - f.min()
        information += 0.5 * np.log1p(sd[chosen] ** 2 / NOISE**2)
        bound = np.sqrt(8 / np.log1p(NOISE**-2) * t * beta * information)
        largest_share = max(largest_share, regret / bound)
        y = f[chosen] + NOISE * rng.normal()
        gain = covariance[:, chosen] / (covariance[chosen, chosen] + NOISE**2)
        mean = mean + gain * (y - mean[chosen])
        covariance = covariance - np.outer(gain, covariance[chosen])
    return Run(float(largest_share), is_inside)


def runs(functions: int, size: int, delta: float) -> list[Run]:
    """Return the runs on the first functions; run i has the same function for every schedule."""
    covariance = prior_covariance()
    factor = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(covariance)))
    found = []
    for i in range(functions):
        rng = np.random.default_rng(i)
        f = factor @ rng.normal(size=len(covariance))
        found.append(minimise(f, covariance, size, delta, rng))
    return found


def table(functions: int) -> str:
    """Return one row for each D and delta, in Markdown."""
    lines = []
    for label, size in SIZES.items():
        for delta in DELTAS:
            made = runs(functions, size, delta)
            above = sum(run.share > 1 for run in made)
            outside = sum(not run.is_inside for run in made)
            shares = [run.share for run in made]
            counts = [f"{above} of {functions}", f"{np.median(shares):.2f}, {max(shares):.2f}"]
            lines.append([label, f"{delta:g}", *counts, f"{outside} of {functions}"])
    heads = ["D", "delta", "regret above its bound", "regret / bound: median, largest", "function outside its bounds"]
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--functions", type=int, default=200)
    print(table(begin(parser, arguments).functions))


if __name__ == "__main__":
    main()
