"""Record the learning curves of random configurations.

    python -m benchmarks.optimisation.record_curves

Each model of `benchmarks.common.curve_problems` has a file in `curves_data/`: a row for each configuration with its
unit values (three digits, which were trained) and the loss after each step (four digits). Run it again to resume.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.curve_problems import FOLDER, PROBLEMS, RECORDED
from slayr_py.space import Encoder


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument(
        "--problems",
        nargs="+",
        choices=PROBLEMS,
        default=[name for name in PROBLEMS if "hartmann" not in name],
        metavar="PROBLEM",
    )
    for name in begin(parser, arguments).problems:
        problem = PROBLEMS[name]
        encoder = Encoder(problem.space)
        path = FOLDER / f"{name}.csv"
        done = len(path.read_text().splitlines()) if path.exists() else 0
        genotypes = np.round(np.random.default_rng(0).random((RECORDED, len(encoder.names))), 3)
        for genotype in genotypes[done:]:
            encoded, _ = encoder.resolve(encoder.from_uniform(genotype[None]))
            (config,) = encoder.decode(encoded)
            with threadpool_limits(limits=1):
                curve = problem.curve(config)
            with path.open("a") as file:
                file.write(",".join([*(f"{u:g}" for u in genotype), *(f"{y:.4g}" for y in curve)]) + "\n")
        print(name, len(genotypes), flush=True)


if __name__ == "__main__":
    main()
