"""Compare posterior means and standard deviations of short fits with long runs.

    python -m benchmarks.correctness.posterior_reference

Branin, Hartmann6 and the mixed Func2C with Sobol designs. Three kinds of fits are compared with a reference of 4 chains
of 2000 + 5000: a cold fit with the defaults of ``GaussianProcess.fit``; eight successive warm fits as in the
optimisation loop, each started from the previous one; and eight cold fits with the short warm-up of a warm start, which
show that the comparison detects wrong fits.

Differences are those of means and standard deviations of the unconstrained parameters that the program samples. They
are given in Monte Carlo standard errors by ArviZ, which are themselves wrong if the chains have not converged, and in
posterior standard deviations. The exit status is 1 if a fit of the first two kinds is more than 4 standard errors or
0.15 standard deviations away.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.problems import PROBLEMS
from slayr_py.inference import standard_error
from slayr_py.inference.diagnostics.arviz_bridge import convergence
from slayr_py.inference.sampling.nuts import SHORT_WARMUP
from slayr_py.study import StanGPSampler

ERRORS = 4.0
DEVIATIONS = 0.15
FITS = 8
SIZES = {"branin": 30, "hartmann6": 50, "func2c": 40}


def unconstrained(posterior: sl.Posterior) -> np.ndarray:
    """Return the unconstrained parameters that the program samples, (chains, draws, parameters)."""
    tree = posterior.idata["unconstrained_posterior"].to_dataset()
    arrays = (np.asarray(tree[name].values) for name in map(str, tree.data_vars))
    return np.concatenate([a.reshape(*a.shape[:2], -1) for a in arrays], axis=-1)


def compare(name: str, draws: np.ndarray, reference: np.ndarray) -> dict[str, Any]:
    worst = convergence({"z": draws})
    row = {
        "fit": name,
        "draws": draws.shape[0] * draws.shape[1],
        "R-hat": worst["rhat_max"],
        "ESS": worst["ess_bulk_min"],
    }
    errors = [0.0]
    sds = [0.0]
    for a, b in zip(np.moveaxis(draws, -1, 0), np.moveaxis(reference, -1, 0), strict=True):
        centre = b.mean()
        sd = b.std()
        for x, y in ((a, b), (np.square(a - centre), np.square(b - centre))):
            errors.append(abs(x.mean() - y.mean()) / np.hypot(standard_error(x), standard_error(y)))
        sds += [abs(a.mean() - centre) / sd, abs(a.std() / sd - 1)]
    right = max(errors) <= ERRORS and max(sds) <= DEVIATIONS
    return row | {"errors": max(errors), "deviations": max(sds), "right": right}


def compare_fits(problem: str) -> tuple[list[dict[str, Any]], bool]:
    space, objective, *_ = PROBLEMS[problem]
    sampler = StanGPSampler(space)
    gp = sampler.strategy.surrogate.gp
    options = sampler.options.fit.updated(method="nuts")
    configs = gp.encoder.sobol(SIZES[problem], 0)
    y = np.array([objective(config) for config in configs])
    reference = unconstrained(gp.fit(configs, y, warmup=2000, draws=5000, seed=1000))
    rows = [compare("cold, 500 + 500", unconstrained(gp.fit(configs, y, seed=1)), reference)]
    last = gp.fit(configs[:-1], y[:-1], seed=1, options=options)
    warm = []
    short = []
    for seed in range(FITS):
        last = gp.fit(configs, y, seed=seed, start=last.warm_start(), options=options)
        warm.append(unconstrained(last))
        plain = {"chains": options.chains, "warmup": SHORT_WARMUP, "draws": warm[-1].shape[1]}
        short.append(unconstrained(gp.fit(configs, y, seed=seed, **plain)))
    rows.append(compare("warm, as in the loop", np.concatenate(warm, axis=1), reference))
    # These fits are independent, but joined along the draws like the warm fits, so that both rows are compared alike.
    rows.append(compare(f"cold, {SHORT_WARMUP} + as many", np.concatenate(short, axis=1), reference))
    return [{"problem": problem} | row for row in rows], all(row["right"] for row in rows[:2])


def main(arguments: Sequence[str] | None = None) -> int:
    begin(command_parser(__file__, __doc__), arguments)
    warnings.simplefilter("ignore")
    rows = []
    right = True
    for problem in SIZES:
        compared, passed = compare_fits(problem)
        rows += compared
        right &= passed
    print(pd.DataFrame(rows).round(3).to_string(index=False))
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
