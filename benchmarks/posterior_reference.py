"""Whether fits have the right posterior: means and standard deviations against long runs.

    python benchmarks/posterior_reference.py

Branin, Hartmann6 and the mixed Func2C, Sobol designs. Judged are a cold fit with the defaults of
``GaussianProcess.fit``; warm fits as the loop makes them, eight in a row, each from where the last one ended; and, to
see that the comparison tells right from wrong, as many cold fits with a warm-up as short as a warm start's. The
reference has 4 chains of 2000 + 5000. Differences are those of means and standard deviations of what the program
samples, in Monte Carlo standard errors by ArviZ, which are themselves wrong where chains have not arrived, and in
standard deviations of the posterior. Exits with status 1 if a fit that should be right is more than 4 errors or 0.15
deviations away.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
from problems import PROBLEMS

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import convergence, standard_error
from slayr_py.inference.sampling.nuts import SHORT_WARMUP
from slayr_py.study import StanGPSampler

ERRORS, DEVIATIONS = 4.0, 0.15
FITS = 8
SIZES = {"branin": 30, "hartmann6": 50, "func2c": 40}


def coordinates(posterior: sl.Posterior) -> np.ndarray:
    """What the program samples, (c, s, P)."""
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
    errors, sds = [0.0], [0.0]
    for a, b in zip(np.moveaxis(draws, -1, 0), np.moveaxis(reference, -1, 0), strict=True):
        centre, sd = b.mean(), b.std()
        for x, y in ((a, b), (np.square(a - centre), np.square(b - centre))):
            errors.append(abs(x.mean() - y.mean()) / np.hypot(standard_error(x), standard_error(y)))
        sds += [abs(a.mean() - centre) / sd, abs(a.std() / sd - 1)]
    right = max(errors) <= ERRORS and max(sds) <= DEVIATIONS
    return row | {"errors": max(errors), "deviations": max(sds), "right": right}


def judge(problem: str) -> tuple[list[dict[str, Any]], bool]:
    space, objective, _ = PROBLEMS[problem]
    sampler = StanGPSampler(space)
    gp, options = sampler.gp, sampler.fit_options
    configs = gp.encoder.sobol(SIZES[problem], 0)
    y = np.array([objective(config) for config in configs])
    reference = coordinates(gp.fit(configs, y, warmup=2000, draws=5000, seed=1000))
    rows = [compare("cold, 500 + 500", coordinates(gp.fit(configs, y, seed=1)), reference)]
    last = gp.fit(configs[:-1], y[:-1], seed=1, **options)
    warm, short = [], []
    for seed in range(FITS):
        last = gp.fit(configs, y, seed=seed, start=last.warm_start(), **options)
        warm.append(coordinates(last))
        plain = {"chains": options["chains"], "warmup": SHORT_WARMUP, "draws": warm[-1].shape[1]}
        short.append(coordinates(gp.fit(configs, y, seed=seed, **plain)))
    rows.append(compare("warm, as in the loop", np.concatenate(warm, axis=1), reference))
    # These are chains of their own: side by side, as the warm ones would be if each did not go on from the last.
    rows.append(compare(f"cold, {SHORT_WARMUP} + as many", np.concatenate(short, axis=1), reference))
    return [{"problem": problem} | row for row in rows], all(row["right"] for row in rows[:2])


def main() -> int:
    warnings.simplefilter("ignore")
    rows, right = [], True
    for problem in SIZES:
        judged, passed = judge(problem)
        rows += judged
        right &= passed
    print(pd.DataFrame(rows).round(3).to_string(index=False))
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
