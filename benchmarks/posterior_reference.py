"""Posterior means and standard deviations on Hartmann6 (n = 50, Sobol, seed 0) against a long run.

    python benchmarks/posterior_reference.py --draws 500 --reference-draws 5000

Prints, for every hyperparameter (logarithms of the positive ones), mean and standard deviation of both runs and the
differences in Monte Carlo standard errors of the difference, computed by ArviZ from the effective sample sizes. Exits
with status 1 if one of them is larger than 4.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
import pandas as pd
from problems import PROBLEMS

import slayr_py as sl
from slayr_py.inference.tree import arviz
from slayr_py.space import Encoder

LIMIT = 4.0


def scores(posterior: sl.Posterior) -> dict[str, np.ndarray]:
    """Standard-normal scores (c, s) of every hyperparameter: logarithms up to a shift and a scale."""
    tree = posterior.idata["unconstrained_posterior"].to_dataset()
    named = {}
    for name in map(str, tree.data_vars):
        values = tree[name].values
        if values.ndim == 2:
            named[name.removeprefix("z_")] = values
        else:
            for i in range(values.shape[2]):
                named[f"{name.removeprefix('z_')}[{i + 1}]"] = values[..., i]
    return named


def summary(values: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, standard deviation, and their Monte Carlo standard errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mcse_mean = np.asarray(arviz().mcse(values, method="mean")).item()
        mcse_sd = np.asarray(arviz().mcse(values, method="sd")).item()
    return float(values.mean()), float(values.std(ddof=1)), mcse_mean, mcse_sd


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=500, help="kept iterations a chain of the run that is judged")
    parser.add_argument("--warmup", type=int, default=500)
    parser.add_argument("--reference-draws", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    space, objective, _ = PROBLEMS["hartmann6"]
    configs = Encoder(space).sobol(50, 0)
    y = np.array([objective(config) for config in configs])
    gp = sl.GaussianProcess(space)
    run = gp.fit(configs, y, warmup=arguments.warmup, draws=arguments.draws, seed=arguments.seed)
    long = gp.fit(configs, y, warmup=2000, draws=arguments.reference_draws, seed=arguments.seed + 1000)
    print(f"judged:    {run.record['seconds']:7.1f} s, {run.check()} {'; '.join(run.check().messages)}")
    print(f"reference: {long.record['seconds']:7.1f} s, {long.check()} {'; '.join(long.check().messages)}")
    rows = []
    for name, values in scores(run).items():
        mean, sd, error_mean, error_sd = summary(values)
        other_mean, other_sd, other_error_mean, other_error_sd = summary(scores(long)[name])
        rows.append(
            {
                "score of": name,
                "mean": mean,
                "reference": other_mean,
                "in errors": (mean - other_mean) / np.hypot(error_mean, other_error_mean),
                "sd": sd,
                "reference sd": other_sd,
                "sd in errors": (sd - other_sd) / np.hypot(error_sd, other_error_sd),
            }
        )
    table = pd.DataFrame(rows).set_index("score of")
    print(table.round(3).to_string())
    worst = float(table[["in errors", "sd in errors"]].abs().to_numpy().max())
    print(f"largest difference: {worst:.2f} Monte Carlo standard errors (limit {LIMIT})")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
