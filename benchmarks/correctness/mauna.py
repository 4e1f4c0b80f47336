"""Fit an expression with a period to the carbon dioxide of Mauna Loa, and check the fit.

    python -m benchmarks.correctness.mauna --data DIR

DIR has the monthly means, co2_mauna_loa_monthly_1958_2001_from_weekly.csv. The exit status is 1 if the diagnostics
fail.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser

YEARS = (1958.0, 2002.0)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--kernel", default="LIN + SE * PER + RQ", help="expression (default: %(default)s)")
    parser.add_argument("--every", type=int, default=3, help="use every k-th month")
    parser.add_argument("--method", default="nuts", choices=["nuts", "map"])
    parser.add_argument("--iterations", type=int, default=400, help="warm-up iterations and draws of each of 4 chains")
    options = begin(parser, arguments)
    months = pd.read_csv(options.data / "co2_mauna_loa_monthly_1958_2001_from_weekly.csv").iloc[:: options.every]
    gp = sl.GaussianProcess(ConfigurationSpace({"t": YEARS}), options.kernel)
    post = gp.fit(
        months.rename(columns={"decimal_year_midmonth": "t"})[["t"]],
        months["co2_ppm_mean"],
        method=options.method,
        warmup=options.iterations,
        draws=options.iterations,
        pointwise=False,
        retries=0,
    )
    print(post)
    years = (YEARS[1] - YEARS[0]) * np.quantile(post.draws["period"], [0.05, 0.5, 0.95], axis=0)
    print(f"periods in years (5%, 50%, 95%): {years.round(4).T.tolist()}")
    sys.exit(not post.check().ok)


if __name__ == "__main__":
    main()
