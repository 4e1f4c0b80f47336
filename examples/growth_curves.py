"""Use the accelerated log density of a Gaussian process in a Stan program of your own.

The program, growth_curves.stan, fits a line to each of two groups, with deviations that are Gaussian processes with
common hyperparameters. It is sampled twice: with ``slayr_matern`` and with Stan's own functions.

::

    python growth_curves.py
"""

from __future__ import annotations

import time
from pathlib import Path

import cmdstanpy
import numpy as np

from slayr_py.inference import export_stan
from slayr_py.toolchain import ensure_cmdstan

PROGRAM = Path(__file__).with_name("growth_curves.stan")


def simulate(n: int = 60) -> dict[str, object]:
    """Return sizes at random times: two lines, two smooth deviations and noise."""
    rng = np.random.default_rng(1)
    t = [np.sort(rng.uniform(0, 10, n)) for _ in range(2)]
    size = [1 + 0.5 * t[0] + 0.6 * np.sin(1.1 * t[0]), 2 + 0.3 * t[1] + 0.6 * np.cos(0.9 * t[1])]
    y = np.concatenate(size) + 0.2 * rng.normal(size=2 * n)
    return {"N": [n, n], "t": np.concatenate(t), "y": y, "M": 3, "t_new": [2.5, 5.0, 7.5]}


def main() -> None:
    """Export the functions, compile the program, and sample it with both."""
    cmdstanpy.set_cmdstan_path(str(ensure_cmdstan().path))
    export_stan("slayr_stan")  # or, once: slayr stan --export slayr_stan
    options = {"allow-undefined": True, "include-paths": ["slayr_stan"]}
    model = cmdstanpy.CmdStanModel(stan_file=PROGRAM, stanc_options=options, user_header="slayr_stan/slayr.hpp")

    data = simulate()
    for builtin, name in enumerate(("slayr_matern", "gp_matern52_cov")):
        started = time.perf_counter()
        fit = model.sample(data | {"builtin": builtin}, chains=2, seed=1, show_progress=False)
        seconds = time.perf_counter() - started
        slopes = fit.stan_variable("slope").mean(axis=0)
        print(f"{name:<16} {seconds:5.1f} s, slopes {slopes[0]:.2f} and {slopes[1]:.2f}")
    print("sizes at 2.5, 5 and 7.5, a row for each group:")
    print(fit.stan_variable("size_new").mean(axis=0).T.round(2))


if __name__ == "__main__":
    main()
