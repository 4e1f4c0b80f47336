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
# Tune an expensive function, look at what the model has learnt, and decide whether to believe it. The function here is
# cheap and known (Branin, with three global minima of 0.397887), so that the notebook runs in a minute or two. The
# first cell that fits also compiles the Stan program, once per machine.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

quick = bool(os.environ.get("SLAYR_QUICK"))  # a few evaluations and draws: enough to see that everything runs
budget = 12 if quick else 30
sampling = {"chains": 2, "warmup": 100, "draws": 50} if quick else {}

# %% [markdown]
# ## A space and an objective
#
# The space is a [ConfigSpace](https://automl.github.io/ConfigSpace/); the objective takes a configuration and returns a
# number, the smaller the better.

# %%
space = ConfigurationSpace({"x1": (-5.0, 10.0), "x2": (0.0, 15.0)})


def branin(config):
    x1, x2 = config["x1"], config["x2"]
    return (x2 - 5.1 * x1**2 / (4 * np.pi**2) + 5 * x1 / np.pi - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10


# %%
result = sl.minimize(branin, space, budget=budget, seed=1, progress=False, **sampling)
result

# %% [markdown]
# Every evaluation is a trial of an ordinary Optuna study, and so is everything that Optuna does with one: storage,
# resuming, dashboards, plots. `storage="sqlite:///study.db"` would have kept it on disk.

# %%
result.trials.tail()

# %%
result.plot_convergence()

# %% [markdown]
# ## The posterior
#
# Before every suggestion the model was fitted by Hamiltonian Monte Carlo: the length-scales, signal and noise are not
# point estimates but draws. Fit it once more, to everything that has been evaluated.

# %%
posterior = result.posterior()
posterior.check()

# %% [markdown]
# `check()` is the first thing to look at: R-hat near 1 (the chains agree), an effective sample size in the hundreds, no
# divergences. `ok` says whether all are within their limits, `messages` what to do when not. ArviZ shows the rest.

# %%
import arviz as az

az.summary(posterior.to_arviz(), round_to=2)

# %%
az.plot_trace(posterior.to_arviz())
plt.show()

# %% [markdown]
# ## Predictions
#
# The latent function anywhere, with its uncertainty: `mean` and `sd` of the mixture over draws, and per draw.

# %%
axis = np.linspace(0, 1, 15 if quick else 40)
grid = [{"x1": -5 + 15 * a, "x2": 15 * b} for b in axis for a in axis]
prediction = posterior.predict(grid)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, values, title in zip(axes, (prediction.mean, prediction.sd), ("mean", "standard deviation"), strict=True):
    mesh = ax.pcolormesh(-5 + 15 * axis, 15 * axis, values.reshape(len(axis), -1), shading="auto")
    figure.colorbar(mesh, ax=ax)
    ax.plot(result.trials["params_x1"], result.trials["params_x2"], "w.", markersize=4)
    ax.set(title=title, xlabel="x1")
axes[0].set_ylabel("x2")
plt.show()

# %% [markdown]
# ## How good are these predictions?
#
# `loo()` gives the log predictive density of every observation from all others, exact in the function and importance-
# sampled in the hyperparameters; a Pareto k above 0.7 marks a value that should not be trusted.

# %%
loo = posterior.loo()
loo.attrs["elpd"], loo.attrs["se"], float(loo["pareto_k"].max())

# %% [markdown]
# ## Again, bit for bit
#
# The record says how the fit came about: program, compiler, seeds, data, draws. The same seed gives the same draws.

# %%
{key: posterior.record[key] for key in ("program", "cmdstan", "arguments", "draws_sha256")}
