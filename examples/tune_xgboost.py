"""Tune gradient-boosted trees on the handwritten digits that scikit-learn ships.

The space is that of Oh, Gavves & Welling (2021), table 3: one ordinal parameter, three categorical ones and four
numbers. Requires XGBoost:

    pip install xgboost-cpu        # on macOS: pip install xgboost
    python tune_xgboost.py --budget 30
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float, OrdinalHyperparameter
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slayr_py as sl

try:
    import xgboost
except ImportError:
    sys.exit("This example needs XGBoost: pip install xgboost-cpu (on macOS: pip install xgboost)")

SPACE = ConfigurationSpace()
SPACE.add(
    OrdinalHyperparameter("max_depth", list(range(1, 11))),
    Categorical("booster", ["gbtree", "dart"]),
    Categorical("grow_policy", ["depthwise", "lossguide"]),
    Categorical("objective", ["multi:softmax", "multi:softprob"]),
    Float("eta", (1e-6, 1.0), log=True),
    Float("gamma", (1e-4, 10.0), log=True),
    Float("subsample", (1e-3, 1.0), log=True),
    Float("lambda", (0.0, 5.0)),
)

ROUNDS = 50
FIXED = {"num_class": 10, "eval_metric": "merror", "seed": 0, "nthread": 1}  # more threads gain nothing on so few rows


def make_objective() -> Any:
    """Load the data and return the objective."""
    images, digits = load_digits(return_X_y=True)
    parts = train_test_split(images, digits, train_size=0.7, stratify=digits, random_state=0)
    train = xgboost.DMatrix(parts[0], label=parts[2])
    test = xgboost.DMatrix(parts[1], label=parts[3])

    def error(config: Mapping[str, Any]) -> float:
        """Return the share of misclassified test images in the best of 50 rounds."""
        history: dict[str, dict[str, list[float]]] = {}
        xgboost.train(
            {**config, **FIXED}, train, ROUNDS, evals=[(test, "test")], evals_result=history, verbose_eval=False
        )
        return min(history["test"]["merror"])

    return error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print the best configuration."""
    parser = argparse.ArgumentParser(description="Tune gradient-boosted trees on handwritten digits.")
    parser.add_argument("--budget", type=int, default=30, help="number of evaluations, including ten initial ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", default="carried", help='fit method; "map" is fast but only a point estimate')
    options = parser.parse_args(arguments)

    result = sl.minimize(make_objective(), SPACE, budget=options.budget, seed=options.seed, method=options.method)
    print(f"smallest test error: {result.best_value:.2%}")
    for name, value in result.best_config.items():
        print(f"  {name} = {value}")


if __name__ == "__main__":
    main()
