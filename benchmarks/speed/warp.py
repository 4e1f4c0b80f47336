"""Compare expected improvement under a warp with that of the tangent: its values, its order, the time of a search.

    python -m benchmarks.speed.warp

Hartmann6 with 25 and 100 observations of a Sobol design, fitted with a warp by Laplace's approximation. The search
maximises either the expected improvement of the function or that of the tangent of T^-1 at the incumbent. Ratios are
of processor time in one process; values are at 2,000 configurations. The first line has a single draw whose mean is the
incumbent, for several standard deviations of the tangent times the warp.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import one_core
from benchmarks.common.problems import PROBLEMS
from slayr_py.acquisition import ExpectedImprovement, suggest
from slayr_py.acquisition.criteria import State
from slayr_py.acquisition.merit import OneObjective
from slayr_py.space import Encoder

TANGENT = patch.object(OneObjective, "drawn_state", property(lambda merit: merit.state))


def seconds(posterior: sl.Posterior, best: float, seed: int) -> float:
    """Return the processor time of a search."""
    started = time.process_time()
    suggest(posterior, best=best, t=1, rng=np.random.default_rng(seed))
    return time.process_time() - started


def compare(n: int, searches: int) -> str:
    """Return a line of the ratios for n observations."""
    problem = PROBLEMS["hartmann6"]
    encoder = Encoder(problem.space)
    configs = encoder.sobol(n, 1)
    y = np.array([problem.objective(config) for config in configs])
    # Warps at 0.4 to 2.5: those of an objective with a long tail.
    priors = {"warp": sl.LogNormal(0.0, 0.5)}
    posterior = sl.GaussianProcess(encoder, priors=priors, warp="log").fit(configs, y, method="laplace", seed=1)
    best = float(y.min())
    times = np.zeros((searches, 2))
    for seed in range(searches):
        times[seed, 0] = seconds(posterior, best, seed)
        with TANGENT:
            times[seed, 1] = seconds(posterior, best, seed)
    state = State((best - posterior.y_mean) / posterior.y_sd, 1, 6)
    predictor = posterior.predictor(64).linearised(state.best)
    mean, variance = predictor.moments(encoder.encode(encoder.sobol(2000, 9)))
    criterion = ExpectedImprovement()
    exact = criterion.value(mean, np.sqrt(variance), state._replace(warp=predictor.warp))
    tangent = criterion.value(mean, np.sqrt(variance), state)
    low, middle, high = np.quantile(tangent / exact, [0.05, 0.5, 0.95])
    order = kendalltau(tangent, exact).statistic
    return (
        f"n = {n}: EI of the tangent / EI {middle:.3f} ({low:.3f} to {high:.3f}), Kendall's tau {order:.4f}; "
        f"time of the search / with the tangent {np.median(times[:, 0] / times[:, 1]):.3f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--searches", type=int, default=5, help="searches of each kind")
    options = begin(parser, arguments)
    one_core()
    spread = np.array([[0.04, 0.3, 1.0, 3.0, 10.0]])
    state = State(0.0, 1, 1)
    exact = ExpectedImprovement().value(0 * spread, spread, state._replace(warp=np.ones((1, 1))))
    print(pd.Series(ExpectedImprovement().value(0 * spread, spread, state) / exact, spread[0]).round(3).to_dict())
    with threadpool_limits(limits=1):
        for n in (25, 100):
            print(compare(n, options.searches), flush=True)


if __name__ == "__main__":
    main()
