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
# Many tuned parameters are not numbers: they are categories, ordered levels, or parameters that exist only for some
# values of another. The calls are the same as for numbers. What changes is the similarity of two configurations, which
# the kernel defines. This notebook shows what each kernel assumes and how to test the assumptions. (The text describes
# the full run.)

# %%
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

sampling = {"chains": 4}

# %% [markdown]
# ## A mixed space
#
# The example is a solar panel in the southern hemisphere. Its tilt is a number, the frequency of cleaning is ordinal,
# and the colour of its frame is categorical. The direction it faces is one of eight names on a circle.

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
    """Compute the percentage of sunlight lost, on a site with brighter afternoons; the frame has no effect."""
    tilt = np.radians(config["tilt"])
    off = np.radians(45 * directions.index(config["facing"]) + 20)
    sun = np.radians(52)
    direct = np.cos(tilt) * np.cos(sun) + np.sin(tilt) * np.sin(sun) * np.cos(off)
    clean = {"never": 0.78, "yearly": 0.9, "monthly": 0.97, "weekly": 0.99}[config["cleaning"]]
    return 100 * (1 - clean * (0.25 + 0.75 * max(direct, 0.0)))


# %% [markdown]
# ## Graphs of categories
#
# Every categorical parameter is a graph whose vertices are its levels. Connected levels are expected to behave alike;
# the fewer steps between two levels, the more alike they are. By default it is a complete graph, in which all levels
# are equally close. An ordinal parameter could be a path, in which each level is connected to the next, but the
# automatic kernel takes it as a number, its rank.
#
# Neither fits the directions. On a path the ends, N and NW, would be farthest apart; a complete graph ignores that NE
# is between N and E. The right graph is a circle.

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
# ## Automatic choice of the kernel
#
# `kernel="auto"` chooses the kernel by the space and reports the reason. The frequency-modulated kernel (Oh, Gavves &
# Welling 2021) has a length-scale for each number, also the rank of an ordinal, and two hyperparameters for each graph:
# `beta` sets how similar its levels are, `alpha` how much a distance in the numbers changes that.

# %%
gp = sl.GaussianProcess(encoders["circle"])
print(gp.kernel.description)
print("because", sl.kernels.auto_reason(gp.encoder))
{h.name: h.labels for h in gp.kernel.hyperparameters(gp.encoder)}

# %% [markdown]
# ## Predictions at an unobserved level
#
# The data are 28 measurements, none of them facing NW, which is the second-best direction. Whether the model can
# predict it depends on the graph. We fit the same kernel to the same data with three graphs.

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
# On the complete graph all directions are equally close to NW, so the prediction is about their average, with a large
# uncertainty. On the path NW has one neighbour, W. On the circle it has two, W and N; the prediction is closest to the
# truth and has the smallest uncertainty. In a study such a prediction determines whether NW is evaluated at all.

# %%
guesses = pd.DataFrame(unseen).T
error = (guesses["mean"] - guesses["truth"]).abs()
guesses.round(1)

# %% [markdown]
# The correlations between panels that differ only in direction, averaged over the draws, explain the difference. On the
# complete graph all pairs have the same correlation. On the other graphs it falls with the distance, and only the
# circle connects N and NW.


# %%
def correlations(fit, configs, n_draws=40):
    """Average the correlation matrix of the function at some configurations over evenly spaced draws."""
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
# ## Importance of the discrete parameters
#
# The larger `beta`, the more alike are the levels of a graph. The scale depends on the graph: with the same `beta` the
# ends of a long path are less alike than those of a short one. We therefore compare correlations, between the two
# levels that are farthest apart: black and white frames behave alike, N and S do not. Cleaning has a length-scale.

# %%
fit = graphs["circle"]
far_apart = {"cleaning": ("never", "weekly"), "frame": ("black", "white"), "facing": ("N", "S")}
alike = {
    name: correlations(fit, [panels[0] | {name: first}, panels[0] | {name: last}])[0, 1]
    for name, (first, last) in far_apart.items()
}
labels = {h.name: h.labels for h in fit.kernel.hyperparameters(fit.encoder)}
beta = pd.Series(np.median(fit.draws["beta"], axis=0), labels["beta"])
pd.DataFrame({"beta, median": beta, "correlation, farthest levels": alike}).round(2)

# %%
import arviz as az

# Each interval of beta spans a factor of ten or more, since there are only 28 observations.
idata = fit.idata.copy()
idata["posterior"]["log10_beta"] = np.log10(idata["posterior"]["beta"])
az.plot_forest(idata, var_names=["log10_beta"], combined=True)
plt.show()

# %% [markdown]
# ## Comparing kernels
#
# `loo()` returns the log predictive density of every observation given all others, which measures how well a kernel
# predicts. Two kernels are compared observation by observation, because observations that are hard to predict for one
# are mostly hard for the other: the standard error is that of the differences. A difference of less than two standard
# errors is not significant.


# %%
def compare(fits):
    """Tabulate leave-one-out densities, their differences from the best, and the standard errors of the differences."""
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
table

# %% [markdown]
# The circle is better than the complete graph by seven, which is several standard errors. The modulated kernel and the
# plain product of the two parts, which takes the ordinal as a path, differ less. The Matérn kernel has a column for
# each level of a category and uses no graph; it is the worst here. The table is valid for these 28 observations only.
# Where k is above 0.7, the entry is approximate.

# %% [markdown]
# ## A conditional space
#
# The second example has the parameters of a kernel ridge regression, whose kernel is itself a parameter:
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
    """Compute the log10 of the cross-validated share of unexplained variance, which varies by orders of magnitude."""
    machine = make_pipeline(StandardScaler(), KernelRidge(**config))
    return np.log10(-cross_val_score(machine, X, target, cv=5, scoring="neg_mean_squared_error").mean())


machines = ConfigurationSpace()
kernel = Categorical("kernel", ["linear", "polynomial", "rbf"])
gamma = Float("gamma", (1e-4, 1.0), log=True)
degree = Integer("degree", (2, 5))
machines.add(Float("alpha", (1e-3, 1e2), log=True), kernel, gamma, degree)
machines.add(InCondition(gamma, kernel, ["polynomial", "rbf"]), EqualsCondition(degree, kernel, "polynomial"))

encoder = sl.space.Encoder(machines)
automatic = sl.GaussianProcess(encoder).kernel
print(automatic.description, "because", sl.kernels.auto_reason(encoder))
print("conditional parameters:", *encoder.conditional)

# %% [markdown]
# ## A short study
#
# The study starts with a design of eight or ten points, then follows the model's suggestions. With
# `storage="sqlite:///study.db"` it would be kept on disk.

# %%
budget = {"budget": 24, "n_initial": 10}
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
# ## Correlations under the hierarchical kernel
#
# The distance between two configurations depends on the parameters that both have and on those that only one of them
# has (Hutter & Osborne 2013). A parameter that only one of them has adds a constant that does not depend on its value.
# A linear machine is therefore compared with the others by `alpha` only, apart from such constants. The figure shows
# machines with the same `alpha`. The closer their `gamma`, the higher their correlation; the two linear machines are
# identical. The model has learnt from the data that linear and rbf machines have little in common, and that the
# polynomial machines tell hardly anything about the others or about another degree. With a warp, as in every study by
# default, these are correlations of the transformed values.

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

figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
image = ax.imshow(matrix, vmin=0, vmax=1)
ax.set_xticks(range(len(shown)), list(shown), rotation=60, ha="right")
ax.set_yticks(range(len(shown)), list(shown))
figure.colorbar(image, label="correlation")
plt.show()

# %% [markdown]
# ## Predictions by branch
#
# Predictions, like evaluations, take the active parameters only. The linear machine has no `gamma`, so its prediction
# is a horizontal line. For polynomial machines of degree 2 with `gamma` above 0.03, where the search evaluated most
# configurations, the interval is narrow and includes the truth. Elsewhere it is wide. The search evaluated only four
# rbf machines, and the minimum of the truth near `gamma` = 0.03 is below the interval: the model interpolates between
# larger and smaller `gamma` and misses it. A model fitted to the trials of a search is reliable only in the regions
# that were searched. Predictions of a model with a warp are skewed: quantiles describe them better than mean and
# standard deviation.

# %%
gammas = np.geomspace(1e-4, 1, 40)
branches = {
    "linear": [{"kernel": "linear", "alpha": alpha} for _ in gammas],
    "polynomial": [{"kernel": "polynomial", "degree": 2, "gamma": value, "alpha": alpha} for value in gammas],
    "rbf": [{"kernel": "rbf", "gamma": value, "alpha": alpha} for value in gammas],
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharey=True, layout="constrained")
for ax, (name, branch) in zip(axes, branches.items(), strict=True):
    prediction = posterior.predict(branch)
    ax.fill_between(gammas, *prediction.interval(0.95), color=colours[name], alpha=0.25)
    ax.plot(gammas, prediction.quantile(0.5), color=colours[name], label="median, 95% interval")
    ax.plot(gammas[::3], [error_of(config) for config in branch[::3]], "k.", markersize=4, label="truth")
    ax.set(title=name + (", degree 2" if name == "polynomial" else ""), xscale="log", xlabel="gamma")
axes[0].set_ylabel("log10 error")
axes[0].legend(frameon=False, fontsize="small")
plt.show()

# %% [markdown]
# ## Comparison with other kernels
#
# We fit three kernels to the same trials. The Matérn kernel puts an inactive parameter at the middle of its range. The
# frequency-modulated kernel is modulated by a hierarchical kernel, so it models both graphs and conditions. All of them
# can be passed to `sl.minimize(..., kernel=...)`.
#
# On these trials the three kernels predict about equally well: the differences are within their standard errors.

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
# One study with few trials is weak evidence; `benchmarks/` has many studies. In practice: declare what you know in the
# space (conditions, orders, graphs), use `kernel="auto"`, and compare kernels with `loo()`.
