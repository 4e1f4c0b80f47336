# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Learning curves
#
# Gradient boosting reports its error after every few trees. A Gaussian process of configuration and step predicts where
# each curve will end, and `sl.Prune` stops those that will probably not be the best.
# [Learning curves](../docs/learning-curves.md) describes model and limits.

# %%
import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace, Float, Integer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.model_selection import train_test_split

import slayr_py as sl

options = {"budget": 30, "n_initial": 8}

# %% [markdown]
# ## An objective that reports
#
# The second argument of the objective is Optuna's trial. `trial.report` gives a value to the model, and
# `trial.should_prune` returns its decision.

# %%
X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.33, random_state=0)

space = ConfigurationSpace(
    space=[
        Float("learning_rate", (0.01, 1.0), log=True),
        Integer("max_depth", (1, 8)),
        Float("subsample", (0.3, 1.0)),
        Integer("min_samples_leaf", (1, 40), log=True),
    ]
)


def objective(config, trial):
    model = GradientBoostingRegressor(warm_start=True, random_state=0, **config)
    for trees in range(3, 82, 3):
        model.set_params(n_estimators=trees).fit(X_train, y_train)
        error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        trial.report(error, trees)
        if trial.should_prune():
            raise optuna.TrialPruned
    return error


result = sl.minimize(objective, space, pruner=sl.Prune(0.05), seed=1, progress=False, **options)
result.best_value, result.best_config

# %% [markdown]
# ## Curves and decisions
#
# Each row of the table has the last decision about a trial: the probability of a better final value than `best`, the
# best value at that time, and the predicted final value. An error bar at the right of the figure is such a prediction
# for a stopped trial.

# %%
table = sl.study.curve_table(result.study)
table[["number", "state", "steps", "probability", "best", "mean", "sd", "value"]].round(3)

# %%
sl.study.curves_figure(result.study)

# %% [markdown]
# ## Were the decisions right?
#
# The objective is cheap enough to train the stopped configurations to the end.

# %%
stopped = table[table["state"] == "PRUNED"]
silent = optuna.trial.FixedTrial({})  # never pruned
finals = np.array([objective(result.study.trials[number].params, silent) for number in stopped["number"]])
inside = np.abs(finals - stopped["mean"]) < 2 * stopped["sd"]
steps = table["steps"].sum()
print(f"{len(stopped)} of {len(table)} trials were stopped, {(finals < stopped['best']).sum()} of them wrongly")
print(f"{inside.sum()} final values lie within two standard deviations of their prediction")
print(f"{steps} of {81 * len(table)} trees were fitted")

# %% [markdown]
# ## What the model of the objective learns
#
# A stopped trial is an observation of its final value with a known error: `evidence` and `evidence_sd`. Both are what
# the curve itself says, without the curves of other trials, which the model has anyway.

# %%
stopped[["number", "steps", "evidence", "evidence_sd"]].assign(final=finals).round(2)
