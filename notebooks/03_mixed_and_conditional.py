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
# # Mixed and conditional spaces
#
# Much of what is tuned is not a number: a category, an order of levels, a parameter that exists only if another one
# says so. The calls stay the same; what changes is when two configurations count as alike. That is the kernel's
# business, and this notebook shows what each kernel assumes and how to find out whether it is right. (The text speaks
# of the full run.)

# %%
import os

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slayr_py as sl

quick = bool(os.environ.get("SLAYR_QUICK"))  # fewer evaluations and draws: enough to see that everything runs
sampling = {"chains": 2, "warmup": 150, "draws": 120} if quick else {}

# %% [markdown]
# ## A mixed space
#
# A solar panel in the southern hemisphere: its tilt is a number, how often it is cleaned has an order, the colour of
# its frame is a mere name. The direction it faces is something else again: eight names that lie on a circle.

# %%
directions = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]

space = ConfigurationSpace()
space.add(
    Float("tilt", (0.0, 90.0)),
    OrdinalHyperparameter("cleaning", ["never", "yearly", "monthly", "weekly"]),
    Categorical("frame", ["black", "silver", "white"]),
    Categorical("facing", directions),
)


def loss(config):
    """Percent of the sunlight that is lost, on a site where afternoons are brighter; the frame plays no part."""
    tilt, off = np.radians(config["tilt"]), np.radians(45 * directions.index(config["facing"]) + 20)
    sun = np.radians(52)
    direct = np.cos(tilt) * np.cos(sun) + np.sin(tilt) * np.sin(sun) * np.cos(off)
    clean = {"never": 0.78, "yearly": 0.9, "monthly": 0.97, "weekly": 0.99}[config["cleaning"]]
    return 100 * (1 - clean * (0.25 + 0.75 * max(direct, 0.0)))


# %% [markdown]
# ## Graphs: what categories have in common
#
# Every discrete parameter is a graph, and its levels are the vertices. Levels that are joined are expected to behave
# alike, and the more so the fewer steps there are between them. By default an ordinal is a path, each level beside the
# next, and a category a complete graph: every level is as near to every other.
#
# For the directions neither is true. A path would have its ends, N and NW, farthest apart; a complete graph forgets
# that NE lies between N and E. What we know is a circle, so say that.

# %%
circle = nx.cycle_graph(directions)
encoders = {
    "complete": sl.space.Encoder(space),
    "path": sl.space.Encoder(space, graphs={"facing": "path"}),
    "circle": sl.space.Encoder(space, graphs={"facing": circle}),
}

compass = {name: (np.sin(i * np.pi / 4), np.cos(i * np.pi / 4)) for i, name in enumerate(directions)}
figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, (name, encoder) in zip(axes, encoders.items(), strict=True):
    nx.draw(encoder.graphs["facing"], compass, ax, with_labels=True, node_size=450, node_color="0.85", font_size=9)
    ax.set(title=name, aspect="equal")
    ax.margins(0.15)
plt.show()

# %% [markdown]
# ## Which kernel, and why
#
# `kernel="auto"` looks at the space and tells its reason. The frequency-modulated kernel (Oh, Gavves & Welling 2021)
# has a length-scale for each number and, for each graph, `beta`, how alike its levels are, and `alpha`, how much moving
# in the numbers changes that.

# %%
gp = sl.GaussianProcess(encoders["circle"])
print(gp.kernel.description)
print("because", sl.kernels.auto_reason(gp.encoder))
gp.kernel.labels(gp.encoder)

# %% [markdown]
# ## A direction that was never tried
#
# 28 measurements, and none of a panel facing NW, which happens to be the best direction but one. Can the model know? It
# depends on what it was told about directions. The same kernel, the same data, three graphs.

# %%
configs = [config for config in encoders["circle"].sobol(48, seed=2) if config["facing"] != "NW"][:28]
y = np.array([loss(config) for config in configs]) + np.random.default_rng(1).normal(0, 1, len(configs))
graphs = {name: sl.GaussianProcess(encoder).fit(configs, y, seed=1, **sampling) for name, encoder in encoders.items()}
pd.DataFrame({name: {"R-hat": fit.check().rhat_max, "ok": fit.check().ok} for name, fit in graphs.items()}).T

# %%
panels = [{"tilt": 40.0, "cleaning": "monthly", "frame": "black", "facing": facing} for facing in directions]
truth = np.array([loss(panel) for panel in panels])

figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True, layout="constrained")
unseen = {}
for ax, (name, fit) in zip(axes, graphs.items(), strict=True):
    prediction = fit.predict(panels)
    ax.errorbar(directions, prediction.mean, 2 * prediction.sd, fmt="o", capsize=3, label="prediction, 2 sd")
    ax.plot(directions, truth, "k_", markersize=12, label="truth")
    ax.axvspan(6.5, 7.5, color="0.92", zorder=0)
    ax.set(title=name, xlabel="facing")
    unseen[name] = {"mean": prediction.mean[-1], "sd": prediction.sd[-1], "truth": truth[-1]}
axes[0].set_ylabel("loss, %")
axes[0].legend(frameon=False, fontsize="small")
plt.show()

# %% [markdown]
# On the complete graph NW is one more name: the model answers with something like the average of all directions, and
# knows little. On the path it has one neighbour, W. On the circle it has two, W and N; the guess is nearest to the
# truth, and the least uncertain one. In a study it is such a guess that decides whether NW is tried at all.

# %%
guesses = pd.DataFrame(unseen).T
error = (guesses["mean"] - guesses["truth"]).abs()
assert error["circle"] < error["path"] < error["complete"]
assert guesses["sd"].idxmin() == "circle" and (error < 3 * guesses["sd"]).all()
guesses.round(1)

# %% [markdown]
# The reason is in the correlations between panels that differ in direction only, averaged over the draws. The complete
# graph has one number for all pairs; the others let it fall with the distance, and the circle closes.


# %%
def correlations(fit, configs, n_draws=40):
    """Average correlation of the function at given configurations over evenly spaced draws."""
    points = fit.encoder.encode(configs)
    matrices = []
    for i in np.linspace(0, fit.n_draws - 1, n_draws).astype(int):
        covariance = fit.kernel.gram(points, points, {name: values[i] for name, values in fit.draws.items()})
        scale = np.sqrt(np.diag(covariance))
        matrices.append(covariance / np.outer(scale, scale))
    return np.mean(matrices, axis=0)


figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for ax, (name, fit) in zip(axes, graphs.items(), strict=True):
    image = ax.imshow(correlations(fit, panels), vmin=0, vmax=1, cmap="viridis")
    ax.set(title=name, xticks=range(8), yticks=range(8), xticklabels=directions, yticklabels=directions)
figure.colorbar(image, ax=axes, label="correlation")
plt.show()

# %% [markdown]
# ## What matters
#
# The larger `beta`, the more alike the levels of a graph. What that means depends on the graph: the same `beta` joins
# the ends of a long path less than those of a short one. So compare correlations, between the two levels that are
# farthest apart: black and white frames behave alike, N and S do not.

# %%
fit = graphs["circle"]
far_apart = {"cleaning": ("never", "weekly"), "frame": ("black", "white"), "facing": ("N", "S")}
alike = {
    name: correlations(fit, [panels[0] | {name: first}, panels[0] | {name: last}])[0, 1]
    for name, (first, last) in far_apart.items()
}
summary = pd.DataFrame({"beta, median": np.median(fit.draws["beta"], axis=0)}, fit.encoder.graph_names)
summary["correlation, farthest levels"] = pd.Series(alike)
assert alike["facing"] < alike["cleaning"] < alike["frame"]
summary.round(2)

# %%
import arviz as az

# How sure is that? Each interval spans a factor of ten or more: 28 observations say no more.
idata = fit.to_arviz().copy()
idata.posterior["log10_beta"] = np.log10(idata.posterior["beta"])
az.plot_forest(idata, var_names=["log10_beta"], combined=True)
plt.show()

# %% [markdown]
# ## Comparing kernels
#
# Which assumption predicts better? `loo()` answers with the log predictive density of every observation from all
# others. Two kernels are compared observation by observation, since what is hard for one is mostly hard for the other:
# the standard error is that of the differences. Fewer than two of them are no difference.


# %%
def compare(fits):
    """Leave-one-out densities, their differences to the best, and the standard errors of these."""
    loo = {name: fit.loo() for name, fit in fits.items()}
    best = max(loo, key=lambda name: loo[name].attrs["elpd"])
    rows = {}
    for name, each in loo.items():
        difference = each.values - loo[best].values
        rows[name] = {
            "elpd": each.attrs["elpd"],
            "difference": difference.sum(),
            "its standard error": np.sqrt(len(difference) * difference.var()),
            "k above 0.7": int((each["pareto_k"] > 0.7).sum()),
        }
    return pd.DataFrame(rows).T.sort_values("elpd", ascending=False).round(1)


fits = {f"frequency-modulated, {name}": fit for name, fit in graphs.items()}
for name, kernel in {"product, circle": sl.kernels.Separable(), "Matérn": sl.kernels.Matern(p=2)}.items():
    fits[name] = sl.GaussianProcess(encoders["circle"], kernel=kernel).fit(configs, y, seed=1, **sampling)
table = compare(fits)
assert table.loc["frequency-modulated, circle", "elpd"] > table.loc["frequency-modulated, complete", "elpd"]
table

# %% [markdown]
# The circle beats the complete graph by seven, several standard errors. Between a modulated kernel and a plain product
# of the two parts there is less to choose. The Matérn kernel has a column for each level of a category and takes an
# ordinal for a number; it knows of no graph, and cannot be told from the best here, with a standard error as large as
# the difference. Such a table is about these 28 observations. Where k is above 0.7 its entry is a rough one.

# %% [markdown]
# ## A conditional space
#
# Now the parameters of a regression machine, whose kernel is a parameter itself:
#
#     alpha
#     kernel (linear, polynomial, rbf)
#     ├── gamma, if kernel is polynomial or rbf
#     └── degree, if kernel is polynomial
#
# The objective is called with the active parameters only.

# %%
X, target = make_friedman1(n_samples=150, n_features=8, noise=0.5, random_state=0)
target = (target - target.mean()) / target.std()


def error_of(config):
    """Logarithm of the cross-validated share of the variance that is left: errors differ by orders of magnitude."""
    machine = make_pipeline(StandardScaler(), KernelRidge(**config))
    return np.log10(-cross_val_score(machine, X, target, cv=5, scoring="neg_mean_squared_error").mean())


machines = ConfigurationSpace()
kernel = Categorical("kernel", ["linear", "polynomial", "rbf"])
gamma, degree = Float("gamma", (1e-4, 1.0), log=True), Integer("degree", (2, 5))
machines.add(Float("alpha", (1e-3, 1e2), log=True), kernel, gamma, degree)
machines.add(InCondition(gamma, kernel, ["polynomial", "rbf"]), EqualsCondition(degree, kernel, "polynomial"))

encoder = sl.space.Encoder(machines)
automatic = sl.GaussianProcess(encoder).kernel
print(automatic.description, "because", sl.kernels.auto_reason(encoder))
print("conditional parameters:", *encoder.conditional)

# %% [markdown]
# ## A short study
#
# A design of eight or ten points, then suggestions. (`storage="sqlite:///study.db"` would keep the study on disk.)

# %%
budget = {"budget": 9, "n_initial": 8, "chains": 2, "warmup": 150} if quick else {"budget": 24, "n_initial": 10}
result = sl.minimize(error_of, machines, seed=1, study_name="ridge", progress=False, **budget)
result

# %% [markdown]
# `result.trials` has a row for each trial. A parameter that was not active has no value.

# %%
result.trials.sort_values("value").head(8)

# %%
result.trials.groupby("params_kernel")["value"].agg(trials="size", best="min").round(3)

# %%
colours = {"linear": "tab:gray", "polynomial": "tab:orange", "rbf": "tab:blue"}
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for name, group in result.trials.groupby("params_kernel"):
    ax.plot(group["number"], group["value"], "o", color=colours[name], label=name)
ax.plot(result.trials["value"].cummin(), color="k", drawstyle="steps-post", linewidth=1, label="best so far")
ax.axvspan(-0.5, budget["n_initial"] - 0.5, color="0.93", zorder=0, label="design")
ax.set(xlabel="trial", ylabel="log10 error")
ax.legend(frameon=False, fontsize="small", ncols=2)
plt.show()

# %% [markdown]
# ## What the hierarchical kernel knows
#
# Two configurations are as far apart as the parameters that they share, and those that only one of them has (Hutter &
# Osborne 2013). So a linear machine is related to all others by `alpha`, and nothing else is asked of it. Below,
# machines with the same `alpha`: the nearer their `gamma` the more they correlate, and the two linear ones are one and
# the same. That polynomial and rbf machines of one `gamma` are so alike, and the linear ones so far from both, has been
# learnt.

# %%
posterior = result.posterior()
alpha = 0.002
shown = {
    "linear": {"kernel": "linear", "alpha": alpha},
    "linear again": {"kernel": "linear", "alpha": alpha},
    "rbf 0.02": {"kernel": "rbf", "gamma": 0.02, "alpha": alpha},
    "rbf 0.05": {"kernel": "rbf", "gamma": 0.05, "alpha": alpha},
    "rbf 1": {"kernel": "rbf", "gamma": 1.0, "alpha": alpha},
    "poly 2, 0.02": {"kernel": "polynomial", "gamma": 0.02, "degree": 2, "alpha": alpha},
    "poly 5, 0.02": {"kernel": "polynomial", "gamma": 0.02, "degree": 5, "alpha": alpha},
}
matrix = pd.DataFrame(correlations(posterior, shown.values()), list(shown), list(shown))
assert np.isclose(matrix.loc["linear", "linear again"], 1)
assert matrix.loc["rbf 0.02", "rbf 0.05"] > matrix.loc["rbf 0.02", "rbf 1"]

figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
image = ax.imshow(matrix, vmin=0, vmax=1)
ax.set_xticks(range(len(shown)), list(shown), rotation=60, ha="right")
ax.set_yticks(range(len(shown)), list(shown))
figure.colorbar(image, label="correlation")
plt.show()

# %% [markdown]
# ## Predictions, branch by branch
#
# A prediction is asked for as an evaluation is: with the active parameters. The linear machine has no `gamma`, so it is
# a horizontal line. Around the minima the model is accurate, for that is where the search has been. Towards `gamma` = 1
# the errors rise more steeply than anything it has seen, and the truth leaves the band: a model made by a search is to
# be trusted where the search has been.

# %%
gammas = np.geomspace(1e-4, 1, 40)
branches = {
    "linear": [{"kernel": "linear", "alpha": alpha} for _ in gammas],
    "polynomial": [{"kernel": "polynomial", "degree": 5, "gamma": value, "alpha": alpha} for value in gammas],
    "rbf": [{"kernel": "rbf", "gamma": value, "alpha": alpha} for value in gammas],
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True, layout="constrained")
for ax, (name, branch) in zip(axes, branches.items(), strict=True):
    prediction = posterior.predict(branch)
    band = prediction.mean - 2 * prediction.sd, prediction.mean + 2 * prediction.sd
    ax.fill_between(gammas, *band, color=colours[name], alpha=0.25)
    ax.plot(gammas, prediction.mean, color=colours[name], label="prediction, 2 sd")
    ax.plot(gammas[::3], [error_of(config) for config in branch[::3]], "k.", markersize=4, label="truth")
    ax.set(title=name + (", degree 5" if name == "polynomial" else ""), xscale="log", xlabel="gamma")
axes[0].set_ylabel("log10 error")
axes[0].legend(frameon=False, fontsize="small")
plt.show()

# %% [markdown]
# ## Is the hierarchy worth it?
#
# The same trials under three kernels. The Matérn kernel puts an inactive parameter at the middle of its range; the
# third one modulates graphs by a hierarchical kernel, so that categories and conditions have both. All three are named
# and used in the same way, `sl.minimize(..., kernel=...)` included.
#
# On these trials the hierarchical kernel predicts best; but it has also chosen them.

# %%
configs = [trial.params for trial in result.study.trials]
values = [trial.value for trial in result.study.trials]
kernels = {
    "hierarchical": sl.kernels.Hierarchical(),
    "frequency-modulated by it": sl.kernels.FrequencyModulated(sl.kernels.Hierarchical()),
    "Matérn": sl.kernels.Matern(p=2),
}
compare(
    {
        name: sl.GaussianProcess(encoder, kernel=kernel).fit(configs, values, seed=1, **sampling)
        for name, kernel in kernels.items()
    }
)

# %% [markdown]
# One study of a few trials decides little; `benchmarks/` has many. What to take away: say what you know in the space
# (conditions, orders, graphs), let "auto" choose, and look at `loo()` before believing anything about kernels.
