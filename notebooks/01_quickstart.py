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
# # Quick start
#
# This notebook minimises a function, inspects the fitted model, and checks whether its fit can be trusted. The function
# is cheap and known (Branin, with three global minima of 0.397887), so the notebook runs in a minute or two. The first
# cell that fits also compiles the Stan program, once per machine.

# %%
import matplotlib.pyplot as plt
import numpy as np
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

budget = 30
sampling = {"chains": 4}
n_grid = 25

# %% [markdown]
# ## A space and an objective
#
# The space is a [ConfigSpace](https://automl.github.io/ConfigSpace/) object. The objective takes a configuration and
# returns a number to be minimised.

# %%
space = ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)})


def branin(config):
    x1 = config["x1"]
    x2 = config["x2"]
    return (x2 - 5.1 * x1**2 / (4 * np.pi**2) + 5 * x1 / np.pi - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10


# %%
result = sl.minimize(branin, space, budget=budget, seed=1, progress=False, **sampling)
result

# %% [markdown]
# Every evaluation is a trial of an ordinary Optuna study, so Optuna's storage, resuming, dashboards and plots work.
# With `storage="sqlite:///study.db"` the study is kept on disk.

# %%
result.trials.tail()

# %%
result.plot_convergence()

# %% [markdown]
# ## The posterior
#
# Before every suggestion the model was fitted: posterior draws of the length-scales, signal and noise instead of point
# estimates. `result.posterior()` fits it once more, to all trials. The loop takes few draws, to be quick; a table or a
# figure of the hyperparameters deserves more, here by Hamiltonian Monte Carlo until the effective sample size is 400.

# %%
posterior = result.posterior(method="nuts", ess=400)
posterior.check()

# %% [markdown]
# Look at `check()` first: R-hat should be near 1 (the chains agree), the effective sample size at least 400, and there
# should be hardly any divergences. `ok` is true if all diagnostics are within their
# limits; otherwise `messages` has advice. ArviZ shows more detail.

# %%
import arviz as az

az.summary(posterior.idata, round_to=2)

# %%
az.plot_trace(posterior.idata)
plt.show()

# %% [markdown]
# ## Predictions
#
# `predict` returns the latent function at any configurations, with its uncertainty. The model of a study has a warp, a
# transformation of the values that compresses large ones, so the distribution of a prediction is skewed. `quantile` and
# `interval` describe it. `centre_and_spread` returns the median and its distance to the 16% quantile; `mean` and `sd`
# are the moments. The warp fits the values near the best one. When a study has converged, predictions far from its
# trials become poor, and `result.posterior(warped=False)` draws the whole space better.

# %%
axis = np.linspace(0, 1, n_grid)
grid = [{"x1": -5 + 15 * a, "x2": 15 * b} for b in axis for a in axis]
median, spread = posterior.predict(grid).centre_and_spread()

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, values, title in zip(axes, (median, spread), ("median", "half the 68% interval"), strict=True):
    mesh = ax.pcolormesh(-5 + 15 * axis, 15 * axis, values.reshape(len(axis), -1), shading="auto")
    figure.colorbar(mesh, ax=ax)
    ax.plot(result.trials["params_x1"], result.trials["params_x2"], "w.", markersize=4)
    ax.set(title=title, xlabel="x1")
axes[0].set_ylabel("x2")
plt.show()

# %% [markdown]
# ## Leave-one-out cross-validation
#
# `loo()` returns the log predictive density of every observation given all others. It is exact in the function and
# importance-sampled in the hyperparameters. A value with a Pareto k above 0.7 should not be trusted.

# %%
loo = posterior.loo()
loo.attrs["elpd"], loo.attrs["se"], float(loo["pareto_k"].max())

# %% [markdown]
# ## Reproducibility
#
# The record contains everything needed to repeat the fit, bit for bit: program, compiler, seeds, and hashes of data and
# draws. The same seed gives the same draws.

# %%
{key: posterior.record[key] for key in ("program", "cmdstan", "arguments", "draws_sha256")}
