"""Tune a support vector machine's kernel, its parameters and C in one conditional space.

Unlike ``tune_svm_conditional.py``, this example uses the kernels of ``slayr_py.svm``, which factor into features for a
linear machine. The parameters of the space have the names of the kernels' arguments, so a configuration can be passed
directly as arguments. The objective is the cross-validated error on the breast cancer data that scikit-learn ships.

    python tune_kernel_svm.py --budget 30
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, InCondition, Integer
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slayr_py as sl
from slayr_py import svm

X, y = load_breast_cancer(return_X_y=True)
FOLDS = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)


def make_space() -> ConfigurationSpace:
    """Build the space: ``kernel`` and ``C``, and the conditional ``gamma``, ``degree``, ``lengthscale`` and ``p``."""
    kernel = Categorical("kernel", ["linear", "polynomial", "rbf", "laplacian", "matern"])
    gamma = Float("gamma", (1e-4, 1.0), log=True)
    degree = Integer("degree", (2, 4))
    lengthscale = Float("lengthscale", (0.5, 200.0), log=True)
    p = Integer("p", (0, 3))
    space = ConfigurationSpace()
    space.add(kernel, Float("C", (1e-2, 1e3), log=True), gamma, degree, lengthscale, p)
    space.add(
        InCondition(gamma, kernel, ["polynomial", "rbf", "laplacian"]),
        EqualsCondition(degree, kernel, "polynomial"),
        EqualsCondition(lengthscale, kernel, "matern"),
        EqualsCondition(p, kernel, "matern"),
    )
    return space


def machine(C: float, kernel: str, **options: Any) -> Any:
    """Build the machine of a configuration."""
    return make_pipeline(StandardScaler(), svm.KernelSVC(svm.from_name(kernel, **options), C=C))


def error(config: Mapping[str, Any]) -> float:
    """Compute the share of misclassified patients over five folds; ``config`` has only the active parameters."""
    return 1 - float(cross_val_score(machine(**config), X, y, cv=FOLDS).mean())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print the best configuration."""
    parser = argparse.ArgumentParser(description="Choose kernel, parameters and C of a support vector machine.")
    parser.add_argument("--budget", type=int, default=30, help="number of evaluations, including ten initial ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", default="carried", help='fit method; "map" is fast but only a point estimate')
    options = parser.parse_args(arguments)

    result = sl.minimize(error, make_space(), budget=options.budget, seed=options.seed, method=options.method)
    print(f"smallest error: {result.best_value:.2%} with {result.best_config}")
    print(machine(**result.best_config).fit(X, y)[-1])
    print(result.trials.groupby("params_kernel")["value"].agg(evaluations="size", best="min").to_string())


if __name__ == "__main__":
    main()
