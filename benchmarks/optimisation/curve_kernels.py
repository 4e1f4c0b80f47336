"""Compare expressions of the joint kernel of configuration and step by the log density of final values.

    python -m benchmarks.optimisation.curve_kernels --problems boosting-diabetes boosting-cancer boosting-friedman

A model is fitted to 10 or 25 recorded curves of `benchmarks.common.curve_problems`, in two random orders. It predicts
the transformed final values of 40 others from their first 3, 9 and 15 steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.curve_problems import FOLDER, PROBLEMS, STEPS
from benchmarks.common.results import markdown
from slayr_py.inference import Model
from slayr_py.kernels import Composite
from slayr_py.space import Encoded, Encoder
from slayr_py.study.model.curve_model import CurveFit
from slayr_py.study.model.curve_points import STEP, JointSpace, Points
from slayr_py.study.storage.curves import thinned

EXPRESSIONS = [
    "MAT52[x] * (MAT52[step] + C)",
    "MAT52[x] * MAT52[step] + MAT52[x]",
    "MAT52[x] * MAT52[step]",
    "MAT52[x] * (MAT52[step] + C) + MAT52[step]",
    "MAT52[x] * (MAT32[step] + C) + MAT32[step]",
    "MAT52[x] * (SE[step] + C) + SE[step]",
    "MAT52[x] * (MAT12[step] + C) + MAT12[step]",
]
SEEN = (3, 9, 15)
TESTED = 40


def densities(space: JointSpace, configs: Encoded, curves: np.ndarray, train: int, order: np.ndarray) -> list[float]:
    """Return the mean log density of final values after each number of steps in `SEEN`."""
    steps = np.arange(1.0, STEPS + 1)

    def points(row: int, seen: int, most: int) -> Points:
        kept = thinned(steps[:seen], most)
        u = np.log1p(steps[kept]) / np.log1p(STEPS)
        return space.points(configs[[row]], u, curves[row, kept], row)

    fitted = order[:train]
    few = min(8, max(2, 192 // train))
    together = Points.together([points(i, STEPS, few) for i in fitted])
    fit = CurveFit.to(space, together, curves[fitted, -1], seed=1)
    conditioned = fit.condition(Points.together([points(i, STEPS, 8) for i in fitted]))
    means = []
    for seen in SEEN:
        logs = []
        for i in order[train : train + TESTED]:
            moments = conditioned.final(configs[[i]], [points(i, seen, 8)])
            sd = np.sqrt(moments.variance + conditioned.noise)
            logs.append(np.log(np.mean(norm.pdf(fit.scale.transform(curves[i, -1:]), moments.mean, sd))))
        means.append(float(np.mean(logs)))
    return means


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    recorded = [name for name in PROBLEMS if (FOLDER / f"{name}.csv").exists()]
    parser.add_argument("--problems", nargs="+", choices=recorded, default=recorded[:3], metavar="PROBLEM")
    options = begin(parser, arguments)
    lines = []
    for text in EXPRESSIONS:
        rows = []
        for name in options.problems:
            encoder = Encoder(PROBLEMS[name].space)
            data = np.loadtxt(FOLDER / f"{name}.csv", delimiter=",")
            configs, _ = encoder.resolve(encoder.from_uniform(data[:, : len(encoder.names)]))
            space = JointSpace(encoder)
            written = text.replace("[x]", f"[{','.join(encoder.names)}]").replace("[step]", f"[{STEP}]")
            space.model = Model(space.joint, Composite(written), {"sigma_n": space.model.priors["sigma_n"]})
            for seed in range(2):
                order = np.random.default_rng(seed).permutation(len(data))
                curves = data[:, len(encoder.names) :]
                rows += [densities(space, configs, curves, train, order) for train in (10, 25)]
        lines.append([f"`{text}`", *(f"{mean:.2f}" for mean in np.mean(rows, axis=0))])
    print(markdown(["expression", *(f"after {seen} steps" for seen in SEEN)], lines))


if __name__ == "__main__":
    main()
