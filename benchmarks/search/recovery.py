"""Search for the kernel of data that were drawn from a known one.

    python -m benchmarks.search.recovery --methods greedy random
    python -m benchmarks.search.recovery --cks-kernels

The three kernels of Hoang & Kingsford (2020) with one and two inputs: 200 inputs from Normal(0, I), rescaled to [0,
1]; hyperparameters from the default priors, a draw for each seed; noise of standard deviation 0.1. With
--cks-kernels, those of Duvenaud et al. (2013), table 1: 300 uniform inputs, and noise whose standard deviation is
that of the function over 10, 1 and 0.1. The method "truth" fits the true expression from ten starts, and shows what
an error is due to the hyperparameters.

Every finished search is appended to recovery.csv; run the same command again to resume. --report only prints the
tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell
from benchmarks.search.fitted_kernels import FittedKernel
from benchmarks.search.kernel_searches import (
    METHODS,
    add_search_arguments,
    fit_expression,
    fits_until_best,
    kernel_search,
    search_options,
)
from slayr_py.inference import Model, NormalCoordinates
from slayr_py.kernels import Composite
from slayr_py.kernels.expressions import Leaf, Node, Product, Sum, canonical, leaves, parse, spell

DOCUMENT = ("RQ * RQ", "PER * RQ * LIN * LIN", "LIN * RQ * LIN + PER * LIN + RQ * SE")
CKS = {
    "SE + RQ": 1,
    "LIN * PER": 1,
    "SE[x1] + RQ[x2]": 2,
    "SE[x1] + SE[x2] * PER[x1] + SE[x3]": 3,
    "SE[x1] * SE[x2]": 4,
    "SE[x1] * SE[x2] + SE[x2] * SE[x3]": 4,
    "(SE[x1] + SE[x2]) * (SE[x3] + SE[x4])": 4,
}
"""Kernels of Duvenaud et al. (2013) with the number of inputs, of which some kernels read a few only."""

TRUTH_RESTARTS = 10

KEYS = ["truth", "inputs", "noise", "seed", "method", "budget"]
ERRORS = ["frobenius", "centred", "hellinger", "bhattacharyya"]
FOUND = ["canonical", "equivalent", "columns", "fits", "fits_to_best", "leaves", "seconds"]
COLUMNS = [*KEYS, *ERRORS, *FOUND, "expression"]


class Problem(NamedTuple):
    """Data from a known kernel.

    Attributes
    ----------
    truth : str
        The kernel's expression.
    inputs : int
        Number of inputs.
    noise : str
        "sd 0.1", or the signal-to-noise ratio, "snr 10".
    seed : int
    """

    truth: str
    inputs: int
    noise: str
    seed: int

    def data(self, n: int) -> Data:
        """Draw inputs, hyperparameters and observations."""
        rng = np.random.default_rng(self.seed)
        scale, _, size = self.noise.partition(" ")
        x = rng.standard_normal((n, self.inputs)) if scale == "sd" else rng.uniform(size=(n, self.inputs))
        x = (x - x.min(axis=0)) / np.ptp(x, axis=0)
        kernel = Composite(self.truth)
        model = Model(ConfigurationSpace({f"x{i + 1}": (0.0, 1.0) for i in range(self.inputs)}), kernel)
        scores = NormalCoordinates(model.hyperparameters)
        theta = scores.theta(rng.standard_normal((1, scores.size)))
        points = model.encoder.encode(x)
        covariance = kernel.cross(points, points, theta)[0]
        jitter = 1e-8 * np.mean(np.diagonal(covariance)) * np.eye(n)
        f = np.linalg.cholesky(covariance + jitter) @ rng.standard_normal(n)
        sd = float(size) if scale == "sd" else float(np.std(f)) / float(size)
        return Data(model.encoder, x, f + sd * rng.standard_normal(n), covariance, sd**2)


class Data(NamedTuple):
    """Observations y (n,) at x (n, d), with the covariance (n, n) of the function and the variance of the noise."""

    encoder: Any
    x: np.ndarray
    y: np.ndarray
    covariance: np.ndarray
    noise: float


def problems(cks_kernels: bool, seeds: int) -> Iterator[Problem]:
    for seed in range(seeds):
        if cks_kernels:
            yield from (Problem(truth, d, f"snr {snr}", seed) for truth, d in CKS.items() for snr in (10, 1, 0.1))
        else:
            yield from (Problem(truth, d, "sd 0.1", seed) for truth in DOCUMENT for d in (1, 2))


def products(node: Node) -> list[tuple[Leaf, ...]]:
    """Return the factors of each term of the expression when it is multiplied out."""
    if isinstance(node, Sum):
        return [factors for term in node.terms for factors in products(term)]
    if isinstance(node, Product):
        return [tuple(chain.from_iterable(parts)) for parts in product(*map(products, node.factors))]
    return [(node,)]


def multiplied_out(expression: str, inputs: int) -> list[str]:
    """Return the products of an expression as sorted texts; SE factors become one on all their columns."""
    everything = tuple(f"x{i + 1}" for i in range(inputs))
    texts = []
    for factors in products(canonical(parse(expression))):
        smooth = {column for leaf in factors if leaf.name == "SE" for column in leaf.columns or everything}
        rest = [leaf for leaf in factors if leaf.name != "SE"]
        merged = [Leaf("SE", tuple(sorted(smooth)))] if smooth else []
        texts.append(" * ".join(sorted(spell(Leaf(leaf.name, leaf.columns or everything)) for leaf in rest + merged)))
    return sorted(texts)


def columns_of(expression: str, inputs: int) -> set[str]:
    """Return the inputs that an expression reads."""
    everything = tuple(f"x{i + 1}" for i in range(inputs))
    return {column for leaf in leaves(parse(expression)) for column in leaf.columns or everything}


def errors(data: Data, covariance: np.ndarray, noise: float) -> dict[str, float]:
    """Return relative Frobenius errors of a covariance, and distances of the distributions of the observations."""
    centre = np.eye(len(data.y)) - 1 / len(data.y)
    difference = covariance - data.covariance
    truth = data.covariance
    first = data.covariance + data.noise * np.eye(len(data.y))
    second = covariance + noise * np.eye(len(data.y))
    half, a, b = (np.linalg.slogdet(one)[1] for one in (0.5 * (first + second), first, second))
    distance = max(0.5 * half - 0.25 * (a + b), 0.0)  # rounding can make it negative
    return {
        "frobenius": float(np.linalg.norm(difference) / np.linalg.norm(truth)),
        "centred": float(np.linalg.norm(centre @ difference @ centre) / np.linalg.norm(centre @ truth @ centre)),
        "hellinger": float(np.sqrt(-np.expm1(-distance))),
        "bhattacharyya": float(distance),
    }


def run(problem: Problem, method: str, n: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the row of one search."""
    data = problem.data(n)
    started = time.perf_counter()
    if method == "truth":
        expression = Composite(problem.truth).canonical
        found = fit_expression(data.encoder, problem.truth, data.x, data.y, TRUTH_RESTARTS, problem.seed)
        fits = until = 1
    else:
        found = kernel_search(data.encoder, method, problem.seed, **settings).run(data.x, data.y, progress=False)
        expression = found.best.expression
        fits = len(found.unique)
        until = fits_until_best(found)
    fitted = FittedKernel(found, expression)
    row = problem._asdict() | {"method": method, "budget": settings["budget"]}
    row |= errors(data, fitted.covariance(), fitted.noise)
    return row | {
        "canonical": expression == Composite(problem.truth).canonical,
        "equivalent": multiplied_out(expression, problem.inputs) == multiplied_out(problem.truth, problem.inputs),
        "columns": columns_of(expression, problem.inputs) == columns_of(problem.truth, problem.inputs),
        "fits": fits,
        "fits_to_best": until,
        "leaves": len(leaves(parse(expression))),
        "seconds": round(time.perf_counter() - started, 1),
        "expression": expression,
    }


def report(rows: pd.DataFrame) -> str:
    """Return a Markdown table of means and standard errors over seeds."""
    heads = ["kernel", "inputs", "noise", "method", "seeds", "Frobenius", "centred", "Hellinger", "Bhattacharyya"]
    heads += ["exact", "equivalent", "inputs right", "leaves", "fits", "fits to the best", "s"]
    lines = []
    for (truth, inputs, noise, method, budget), some in rows.groupby([k for k in KEYS if k != "seed"], sort=False):
        cells = [truth, str(inputs), noise, f"{method}, {budget}", str(len(some))]
        cells += [mean_cell(some[name]) for name in ERRORS]
        cells += [f"{some[name].astype(float).mean():.2f}" for name in ("canonical", "equivalent", "columns")]
        cells += [f"{some[name].mean():.1f}" for name in ("leaves", "fits", "fits_to_best", "seconds")]
        lines.append(cells)
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    choices = ("truth", *METHODS)
    default = ["truth", "SE", "greedy", "random", "model", "generative", "printed"]
    parser.add_argument("--methods", nargs="+", choices=choices, default=default)
    parser.add_argument("--cks-kernels", action="store_true", help="the seven kernels of Duvenaud et al. (2013)")
    parser.add_argument("--seeds", type=int, default=10, help="draws of each kernel (default: %(default)s)")
    parser.add_argument("--size", type=int, help="observations (default: 200, with --cks-kernels 300)")
    add_search_arguments(parser, budget=100, base=("SE", "RQ", "PER", "LIN"), single=False)
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    file = ResultFile(options.output / "recovery.csv", KEYS, COLUMNS)
    settings = search_options(options)
    if options.cks_kernels:
        settings["single"] = True
    size = options.size or (300 if options.cks_kernels else 200)
    runs = product(problems(options.cks_kernels, options.seeds), options.methods)
    keys = ((*problem, method, options.budget) for problem, method in runs)
    for *problem, method, _ in [] if options.report else file.missing(keys):
        file.append([run(Problem(*problem), method, size, settings)])
    rows = file.rows()
    kernels = CKS if options.cks_kernels else DOCUMENT
    print(report(rows[rows["truth"].isin(list(kernels)) & rows["method"].isin(options.methods)]))


if __name__ == "__main__":
    main()
