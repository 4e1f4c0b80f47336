"""Tune a support vector machine whose parameters depend on its kernel.

``degree`` applies only to the polynomial kernel, ``gamma`` only to the polynomial and the radial one. The space
declares these conditions, and the model uses them: parameters that are inactive in two configurations do not affect the
distance between them. The objective is the cross-validated error on the breast cancer data that scikit-learn ships.

    python tune_svm_conditional.py --budget 30
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
from sklearn.svm import SVC

import slayr_py as sl

X, y = load_breast_cancer(return_X_y=True)
FOLDS = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)


def make_space() -> ConfigurationSpace:
    """Build a space of four parameters, two of them conditional."""
    kernel = Categorical("kernel", ["linear", "poly", "rbf"])
    degree = Integer("degree", (2, 6))
    gamma = Float("gamma", (1e-4, 1.0), log=True)
    space = ConfigurationSpace()
    space.add(kernel, Float("C", (1e-3, 1e3), log=True), degree, gamma)
    space.add(EqualsCondition(degree, kernel, "poly"), InCondition(gamma, kernel, ["poly", "rbf"]))
    return space


def error(config: Mapping[str, Any]) -> float:
    """Compute the share of misclassified patients over five folds; ``config`` has only the active parameters."""
    model = make_pipeline(StandardScaler(), SVC(**config))
    return 1 - float(cross_val_score(model, X, y, cv=FOLDS).mean())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print the best configuration."""
    parser = argparse.ArgumentParser(description="Tune a support vector machine on the breast cancer data.")
    parser.add_argument("--budget", type=int, default=30, help="number of evaluations, including ten initial ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", default="carried", help='fit method; "map" is fast but only a point estimate')
    options = parser.parse_args(arguments)

    space = make_space()
    encoder = sl.space.Encoder(space)
    kernel = sl.kernels.from_name("auto", encoder)
    print(f'kernel "auto": {kernel.description}, because {sl.kernels.auto_reason(encoder)}')

    result = sl.minimize(error, space, budget=options.budget, seed=options.seed, method=options.method)
    print(f"smallest error: {result.best_value:.2%} with {result.best_config}")
    print(result.trials.groupby("params_kernel")["value"].agg(evaluations="size", best="min").to_string())


if __name__ == "__main__":
    main()
