"""Compare covariance functions learned from related data with kernels that are not, on new problems.

    python -m benchmarks.optimisation.pretraining --problems ring --kernels pretrained matern se --repeats 10
    python -m benchmarks.optimisation.pretraining --problems ring --misleading --kernels pretrained matern --budget 50

Problems: see benchmarks.common.related_problems; repetition i has related data and a study of its own. Kernels:

matern, se        Matérn-5/2 and squared exponential, no related data
mixture           squared exponential, Matérn-1/2 and -3/2, tuned on the related data and fixed (eq. 13 of the document)
prediction        a smooth function of the machine's prediction beside a Matérn-5/2 kernel
start             the same, and the first evaluation where the machine predicts the best value
all               the prediction, both layers and a Matérn-5/2 kernel
pretrained        the defaults of slayr_py.svm.pretrain and of its kernel
corner            the same about the document's origin, two layers and no base kernel
centre            two layers and no base kernel, about the centre
se-source         squared exponential with the length-scale of the machine
se-of-g           squared exponential of the machine's prediction g(x)

Every finished run is appended to pretraining.csv; run the same command again to resume. --report only prints the table.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

import slayr_py as sl
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.mixture import tuned_mixture
from benchmarks.common.related_problems import NAMES, Related, related
from benchmarks.common.results import ResultFile, add_result_arguments, markdown, mean_cell
from slayr_py.kernels import Hyperparameter, LogNormal, Planned
from slayr_py.kernels.expressions import Leaf
from slayr_py.kernels.expressions.leaf_kernels import GIVEN_LEAVES
from slayr_py.kernels.expressions.pairs import Given
from slayr_py.kernels.expressions.plan import Plan
from slayr_py.space import Encoder
from slayr_py.study.model.options import SamplerOptions

KERNELS = (
    "matern", "se", "mixture", "pretrained", "prediction", "start", "all", "corner", "centre", "se-source", "se-of-g"
)  # fmt: skip
AT = (10, 20, 30, 50)
KEYS = ["problem", "kernel", "acquisition", "seed", "misleading"]
COLUMNS = [*KEYS, "minimum", "seconds", "share_base", "first", *(f"at {k}" for k in AT)]
NEAR = 0.01
_STEP = 1e-6


class Frozen(Given):
    """A correlation or squared distance given as a function of unit coordinates, with numerical derivatives."""

    kind: ClassVar[Any] = "correlation"

    def __init__(self, function: Any, kind: str) -> None:
        self.function = function
        self.kind = kind  # type: ignore[misc]

    def between(self, a, b):
        return self.function(a.columns, b.columns)

    def gradient(self, a, b):
        slopes = []
        for column in a.encoder.column_of.values():
            step = np.zeros(a.columns.shape[1])
            step[column] = _STEP
            up = self.function(a.columns + step, b.columns)
            down = self.function(a.columns - step, b.columns)
            slopes.append((up - down) / (2 * _STEP))
        return self.between(a, b), np.stack(slopes, axis=-1)


class FrozenKernel(Planned):
    """A kernel whose only leaf is a frozen function."""

    name: ClassVar[str] = "frozen"

    def __init__(self, part: Frozen) -> None:
        self.part = part

    @property
    def description(self):
        return "frozen kernel"

    def options(self):
        return {}

    def plan(self, encoder):
        leaf = GIVEN_LEAVES[self.part.kind]
        places = {name: slice(0, 1) for name in leaf.priors(0)}
        return Plan((leaf("1", (), places, 0),), (1,), (self.part,))

    def hyperparameters(self, encoder):
        if self.part.kind == "correlation":
            return ()
        return (Hyperparameter("feature_lengthscale", LogNormal(0.0, 1.0), ("g",), "feature_part"),)

    def component_names(self, encoder):
        return ("frozen",)

    def as_node(self):
        return Leaf("FROZEN"), {"FROZEN": self}


def kernel_of(name: str, data: Related, seed: int) -> tuple[Any, dict[str, Any]]:
    """Return the kernel of a method and its other options of `minimize`."""
    space = data.problem.space
    if name == "matern":
        return sl.kernels.Matern(p=2), {}
    if name == "se":
        return sl.kernels.Composite("SE"), {}
    if name == "mixture":
        train = Encoder(space).encode(data.configs).columns
        tuned = tuned_mixture(train, (data.y - data.y.mean()) / data.y.std(ddof=1))
        return FrozenKernel(Frozen(tuned.gram, "correlation")), {}
    origin = "corner" if name == "corner" else "centre"
    machine = "ridge" if len(data.y) > 150 else "svr"
    pre = sl.svm.pretrain(space, data.configs, data.y, origin=origin, machine=machine, seed=seed + 1)
    if name == "pretrained":
        return pre.kernel(), {}
    if name in ("prediction", "all"):
        return pre.kernel(layers=0 if name == "prediction" else (0, 1, 2)), {}
    if name == "start":
        size = SamplerOptions().design_size(len(space))
        return pre.kernel(layers=0), {"initial_configs": pre.initial_configs(size, seed)}
    if name in ("corner", "centre"):
        return pre.kernel(layers=2, base=None), {}
    if name == "se-source":
        return sl.kernels.Composite("SE"), {"priors": {"lengthscale": pre.lengthscale}}
    o = 0.5 if isinstance(pre.origin, str) and pre.origin == "centre" else 0.0

    def g(columns: np.ndarray) -> np.ndarray:
        return pre.free_kernel.evaluate(columns - o, pre.support - o) @ pre.alpha

    if name == "se-of-g":
        points = g(Encoder(space).encode(Encoder(space).sobol(256, 1)).columns)
        scale = float(np.median(np.square(points[:, None] - points)[np.triu_indices(256, 1)]))
        return FrozenKernel(Frozen(lambda a, b: np.square(g(a)[:, None] - g(b)) / scale, "squared distance")), {}
    raise SystemExit(f"unknown kernel {name!r}; known: {', '.join(KERNELS)}")


def run(
    problem: str, kernel: str, acquisition: str, seed: int, budget: int, misleading: bool, data: Path | None
) -> dict:
    """Return one row: the best values after each evaluation, and the seconds of processor time."""
    task = related(problem, seed, data)
    task = task.misleading(seed) if misleading else task
    started = time.process_time()
    chosen, options = kernel_of(kernel, task, seed)
    result = sl.minimize(
        task.problem.objective,
        task.problem.space,
        budget=budget,
        kernel=chosen,
        acquisition=acquisition,
        seed=seed,
        progress=False,
        **options,
    )
    values = np.array([trial.value for trial in result.study.trials])
    share = np.nan
    if kernel in ("pretrained", "prediction", "start", "all"):
        trials = [trial for trial in result.study.trials if trial.value is not None]
        post = sl.GaussianProcess(task.problem.space, chosen, warp="log").fit(
            [trial.user_attrs.get("config", trial.params) for trial in trials], values, chains=2, pointwise=False
        )
        share = float(post.draws["share"][:, -1].mean())
    row = {"problem": problem, "kernel": kernel, "acquisition": acquisition, "seed": seed, "misleading": misleading}
    row |= {"minimum": task.problem.minimum, "seconds": round(time.process_time() - started, 1), "share_base": share}
    best = np.minimum.accumulate(values)
    near = np.flatnonzero(best - task.problem.minimum < NEAR)
    row["first"] = int(near[0]) + 1 if len(near) else np.nan
    return row | {f"at {k}": best[k - 1] - task.problem.minimum if k <= budget else np.nan for k in AT}


def _regrets(values: pd.Series) -> str:
    return "" if values.empty else f"{mean_cell(values, digits=2)} ({values.median():.2g})"


def table(rows: pd.DataFrame) -> str:
    """Return regrets with standard errors, and how soon a run is near the minimum, in Markdown."""
    at = [f"at {k}" for k in AT if f"at {k}" in rows and rows[f"at {k}"].notna().any()]
    heads = ["problem", "acquisition", "kernel", *at, f"first below {NEAR}: median", "runs", "share of the base", "s"]
    lines = []
    groups = ["problem", "misleading", "acquisition", "kernel"]
    for (problem, misleading, acquisition, kernel), some in rows.groupby(groups, sort=False):
        cells = [_regrets(some[k].dropna()) for k in at]
        found = some["first"].fillna(np.inf).median()
        share = "" if some["share_base"].isna().all() else f"{some['share_base'].mean():.2f}"
        first = "never" if np.isinf(found) else f"{found:g}"
        name = f"{problem}, misleading" if misleading else problem
        cells += [first, f"{int(some['first'].notna().sum())}/{len(some)}", share, f"{some['seconds'].mean():.0f}"]
        lines.append([name, acquisition, kernel, *cells])
    return markdown(heads, lines) + "\n\nRegrets: mean ± standard error (median)."


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--problems", nargs="+", choices=NAMES, default=["ring"])
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--acquisitions", nargs="+", choices=["ei", "lcb"], default=["ei", "lcb"])
    parser.add_argument("--repeats", type=int, default=10, help="runs per problem, kernel and acquisition")
    parser.add_argument("--budget", type=int, default=30, help="evaluations per run")
    parser.add_argument("--misleading", action="store_true", help="permute the values of the related data")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    add_result_arguments(parser, __file__)
    options = begin(parser, arguments)
    file = ResultFile(options.output / "pretraining.csv", KEYS, COLUMNS)
    runs = product(range(options.repeats), options.problems, options.acquisitions, options.kernels)
    keys = ((problem, kernel, acquisition, seed, options.misleading) for seed, problem, acquisition, kernel in runs)
    for problem, kernel, acquisition, seed, misleading in [] if options.report else file.missing(keys):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file.append([run(problem, kernel, acquisition, seed, options.budget, misleading, options.data)])
    print(table(file.rows()))


if __name__ == "__main__":
    main()
