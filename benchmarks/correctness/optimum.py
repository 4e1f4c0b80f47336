"""Coverage of the intervals of the optimum's location, on functions drawn from the model's own prior.

Every replication draws hyperparameters and a function of one or two parameters from the prior of ``MAT52``, evaluates
it at a small Sobol design, fits the model (Laplace's approximation on the NumPy engine, which needs no compiler), and
compares the 90% intervals of `Result.optimum` with the true location of the minimum on a fine grid.

    python -m benchmarks.correctness.optimum --replications 50
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from slayr_py.acquisition import sample_optima
from slayr_py.inference.validation.calibration import draw_from_prior, draw_values

RESULTS = Path(__file__).with_name("results") / "optimum.csv"
COLUMNS = ("dimension", "replication", "parameter", "covered", "width")
GRID = {1: 401, 2: 41}
POINTS = {1: 6, 2: 12}


def replicate(dimension: int, replication: int) -> list[dict[str, object]]:
    """Return a row for each parameter."""
    rng = np.random.default_rng([dimension, replication])
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(dimension)})
    encoder = sl.space.Encoder(space)
    n = POINTS[dimension]
    gp = sl.GaussianProcess(encoder, "MAT52", warp="none", inducing=n)
    theta = draw_from_prior(gp.model, rng)
    axis = np.linspace(0, 1, GRID[dimension])
    grid = encoder.encode(np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension))
    design = encoder.encode(encoder.sobol(n, replication))
    drawn = draw_values(gp.model, design, grid, theta, rng)
    y, function = np.split(drawn, [n])
    truth = grid.unit_values[np.argmin(function)]
    posterior = gp.fit(encoder.decode(design), y, method="laplace", seed=replication)
    optima = sample_optima(posterior, posterior.train, np.random.default_rng(replication))
    rows = []
    for j, name in enumerate(encoder.names):
        low, high = np.quantile(optima.encoded.unit_values[:, j], [0.05, 0.95])
        half = 0.5 * (axis[1] - axis[0])  # the truth is known up to the grid
        covered = bool(low - half <= truth[j] <= high + half)
        rows.append(
            {
                "dimension": dimension,
                "replication": replication,
                "parameter": name,
                "covered": covered,
                "width": round(float(high - low), 4),
            }
        )
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run the replications that are missing, and print the coverage."""
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--replications", type=int, default=50, help="functions of each number of parameters")
    wanted = begin(parser, arguments).replications
    RESULTS.parent.mkdir(exist_ok=True)
    known = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    there = {(int(row["dimension"]), int(row["replication"])) for row in known}
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for dimension in (1, 2):
            for replication in range(wanted):
                if (dimension, replication) not in there:
                    writer.writerows(replicate(dimension, replication))
                    file.flush()
    rows = list(csv.DictReader(RESULTS.open()))
    for dimension in ("1", "2"):
        of_dimension = [row for row in rows if row["dimension"] == dimension]
        covered = sum(row["covered"] == "True" for row in of_dimension)
        width = float(np.mean([float(row["width"]) for row in of_dimension]))
        print(f"{dimension} parameters: {covered} of {len(of_dimension)} intervals cover, mean width {width:.2f}")


if __name__ == "__main__":
    main()
