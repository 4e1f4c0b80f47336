"""Time the covariances of candidates with observed points under a pre-trained kernel.

    python -m benchmarks.speed.pretrained

10,000 candidates, 60 points, 100 related observations that are all support vectors; origin at the centre. "first" is
the first call; "again" is a call with other candidates, as in a search. Choosing the features is not included.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.peers import cpu_seconds, one_core
from slayr_py.space import Encoded, Encoder


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--lengthscale", type=float, default=0.5, help="of the machine's kernel")
    parser.add_argument("--repeats", type=int, default=3, help="measurements per case")
    options = begin(parser, arguments)
    one_core()
    rows = []
    for d in (2, 3, 4, 5):
        encoder = Encoder(ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(d)}))
        rng = np.random.default_rng(d)
        alpha = rng.normal(size=100)
        support = rng.random((100, d))
        columns = encoder.column_names
        for _ in range(options.repeats):
            kernel = sl.kernels.Pretrained(support, alpha - alpha.mean(), options.lengthscale, columns=columns)
            features = kernel.features(encoder)
            seconds = {}
            observed = Encoded(rng.random((60, d)), np.ones((60, d), dtype=bool), encoder)
            for name in ("first", "again"):
                candidates = Encoded(rng.random((10_000, d)), np.ones((10_000, d), dtype=bool), encoder)
                started = cpu_seconds()
                features.values(candidates, observed)
                seconds[name] = cpu_seconds() - started
            rows.append({"d": d, "engine": features.engine, **seconds})
    table = pd.DataFrame(rows).groupby(["d", "engine"])[["first", "again"]].median()
    print("seconds of processor time (medians)")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
