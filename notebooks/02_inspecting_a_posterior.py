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
# # Inspecting a posterior
#
# A fitted model is not one curve with one set of hyperparameters but thousands of draws of them. Two questions come
# before any use of it: did the sampler do its work, and does the model fit? Only then is it worth asking what the draws
# say about the objective. This notebook takes one posterior through all of that, and breaks another one to mend it.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace, Float
from scipy.stats import beta

import slayr_py as sl

quick = bool(os.environ.get("SLAYR_QUICK"))  # fewer draws: enough to see that everything runs
sampling = {"chains": 2, "warmup": 200, "draws": 200} if quick else {}

# %% [markdown]
# ## An objective whose inputs differ
#
# What is lost in a chemical reaction, in percent. The temperature has a sharp optimum, more time helps less and less,
# stirring helps a little and evenly, and the humidity of the room does nothing at all. The model is told none of this;
# it gets 48 measurements, each with a standard error of 2.

# %%
space = ConfigurationSpace()
space.add(
    Float("temperature", (20.0, 120.0)),
    Float("minutes", (1.0, 100.0), log=True),
    Float("stirring", (100.0, 1000.0)),
    Float("humidity", (0.0, 100.0)),
)


def loss(config):
    yielded = np.exp(-(((config["temperature"] - 75) / 14) ** 2)) * (1 - np.exp(-config["minutes"] / 12))
    return 100 - 65 * yielded - 0.03 * (config["stirring"] - 100)


encoder = sl.space.Encoder(space)
configs = encoder.sobol(48, seed=3)
noise = 2.0
y = np.array([loss(config) for config in configs]) + np.random.default_rng(1).normal(0, noise, len(configs))

# %%
gp = sl.GaussianProcess(space)
posterior = gp.fit(configs, y, seed=1, **sampling)
gp.kernel

# %% [markdown]
# ## Did the sampler do its work?
#
# `check()` has the verdict over all hyperparameters at once: the chains agree (R-hat near 1), the draws are worth some
# hundreds of independent ones, and no transition diverged.

# %%
posterior.check()

# %% [markdown]
# The same for each hyperparameter is ArviZ's summary. A length-scale can be anything from a fraction of the cube to
# hundreds, so its logarithm is what one looks at. `to_arviz()` gives the installed ArviZ what it takes; a quantity of
# our own is one more variable of its posterior.

# %%
import arviz as az

idata = posterior.to_arviz().copy()
idata.posterior["log10_lengthscale"] = np.log10(idata.posterior["lengthscale"])
idata.posterior["log10_sigma_n"] = np.log10(idata.posterior["sigma_n"])
names = ["log10_lengthscale", "sigma_f", "log10_sigma_n", "mu"]
az.summary(idata, var_names=names, round_to=2)

# %% [markdown]
# **Rank plots.** Rank all draws of a quantity over all chains together. If the chains sample the same distribution, the
# ranks of each are spread evenly: flat bars, or in ArviZ 1, which draws by how much their cumulative shares differ from
# even ones, lines within the band. A chain that is stuck piles up at one side, which the wiggles of a trace plot hide
# easily.

# %%
az.plot_rank(idata, var_names=["log10_lengthscale"])
plt.show()

# %% [markdown]
# **Energy.** Hamiltonian Monte Carlo moves on a level of energy and draws a new level before each move. Where the steps
# between levels are much narrower than the levels are spread, the sampler crawls through the tails. Here the two
# distributions overlap widely: an E-BFMI (`ebfmi_min` above) far over the limit of 0.2.

# %%
az.plot_energy(idata)
plt.show()

# %% [markdown]
# ## What did the data add to the prior?
#
# Priors are on the scale on which the model is fitted: inputs on the unit cube, values with mean 0 and standard
# deviation 1. `with_prior` runs the program that was fitted once more, its likelihood off, and puts the draws beside
# those of the posterior: three more groups of the tree, which ArviZ knows how to compare.

# %%
gp.priors

# %%
both = posterior.with_prior(draws=sampling.get("draws", 1000))
prior = {name: values.stack(sample=("chain", "draw")).values for name, values in both.idata["prior"].items()}
panels = {name: (prior["lengthscale"][i], posterior.draws["lengthscale"][:, i]) for i, name in enumerate(encoder.names)}
panels["noise, sigma_n"] = prior["sigma_n"], posterior.draws["sigma_n"]

figure, axes = plt.subplots(1, 5, figsize=(12, 2.6), layout="constrained")
for ax, (title, (before, after)) in zip(axes, panels.items(), strict=True):
    bins = np.linspace(*np.quantile(np.log10(before), (0.005, 0.995)), 40)
    ax.hist(np.log10(before), bins, density=True, color="0.8", label="prior")
    ax.hist(np.log10(after), bins, density=True, histtype="step", color="tab:blue", linewidth=1.5, label="posterior")
    ax.set(title=title, xlabel="log10", yticks=[])
axes[0].legend(frameon=False, fontsize="small")
plt.show()

# %% [markdown]
# The data have pinned down `temperature`, `minutes` and `stirring`. Of `humidity` they have said only that its
# length-scale is not short; above that the posterior follows the prior, for functions with length-scales of 30 and of
# 100 look alike on a cube of width 1. That is no failure of the sampler: it is what is known.

# %%
log_sd = np.log10(posterior.draws["lengthscale"]).std(axis=0) / np.log10(prior["lengthscale"]).std(axis=1)
share = pd.Series(log_sd, encoder.names, name="posterior width / prior width")
assert share.idxmax() == "humidity"
share.round(2)

# %% [markdown]
# ## What the length-scales say about the objective
#
# A length-scale is how far one has to go, in widths of the cube, until the function has forgotten its value. Short
# means winding, long means nearly straight. The forest plot has a point and two intervals for each.

# %%
az.plot_forest(idata, var_names=["log10_lengthscale"], combined=True)
plt.show()

# %% [markdown]
# `temperature` comes first by far: its optimum fills about a quarter of the range. But beware of reading "long" as
# "does not matter". A straight line is a function with a long length-scale, however steep it is. What an input does is
# seen by moving it alone, with all others in their middle.

# %%
middle = {"temperature": 75.0, "minutes": 10.0, "stirring": 550.0, "humidity": 50.0}
slices = {
    "temperature": np.linspace(20, 120, 25),
    "minutes": np.geomspace(1, 100, 25),
    "stirring": np.linspace(100, 1000, 25),
    "humidity": np.linspace(0, 100, 25),
}

figure, axes = plt.subplots(1, 4, figsize=(12, 3), sharey=True, layout="constrained")
swing = {}
for ax, (name, values) in zip(axes, slices.items(), strict=True):
    grid = [middle | {name: value} for value in values]
    prediction = posterior.predict(grid)
    ax.fill_between(values, prediction.mean - 2 * prediction.sd, prediction.mean + 2 * prediction.sd, alpha=0.25)
    ax.plot(values, prediction.mean, label="posterior mean, 2 sd")
    ax.plot(values, [loss(config) for config in grid], "k--", linewidth=1, label="truth")
    ax.set(xlabel=name, xscale="log" if name == "minutes" else "linear")
    swing[name] = np.ptp(prediction.mean)
axes[0].set_ylabel("loss, %")
axes[0].legend(frameon=False, fontsize="small")
plt.show()

# %% [markdown]
# `stirring` has a length-scale twice as long as the cube is wide and is worth about 25 percent all the same; `humidity`
# has a longer one and is worth nothing. Both lines are nearly straight; only one of them is flat.

# %%
table = pd.DataFrame({"length-scale": np.median(posterior.draws["lengthscale"], axis=0)}, encoder.names)
table["swing of the mean, %"] = pd.Series(swing)
assert table["length-scale"].idxmin() == "temperature" and table["length-scale"].idxmax() == "humidity"
assert 20 < swing["stirring"] < 30 and swing["humidity"] < 5
table.sort_values("length-scale").round(2)

# %% [markdown]
# **Pairs.** A pair plot shows what the data cannot tell apart. A function with a larger amplitude *and* longer
# length-scales looks the same on the cube: `sigma_f` and the length-scale of `stirring` go together. A point estimate
# would pick one spot of this cloud.

# %%
idata.posterior["log10_sigma_f"] = np.log10(idata.posterior["sigma_f"])
idata.posterior["log10_stirring"] = idata.posterior["log10_lengthscale"].sel(encoded_column="stirring", drop=True)
az.plot_pair(idata, var_names=["log10_sigma_f", "log10_stirring", "log10_sigma_n"])
plt.show()

# %% [markdown]
# ## Does the model fit?
#
# `loo()` predicts every observation from all others: exactly in the function, by importance sampling in the
# hyperparameters. Its Pareto k says for each observation whether that went well; above 0.7 the hyperparameters hang on
# this one observation too much, and the value is a rough one. Such an observation deserves a look: is it a mistake, or
# the only one of its region?

# %%
loo = posterior.loo()
worst = int(np.argmin(loo.values))
print(f"sum {loo.attrs['elpd']:.1f}, standard error {loo.attrs['se']:.1f}")
print(f"hardest to predict: number {worst}, k = {float(loo['pareto_k'][worst]):.2f}, loss {y[worst]:.1f}")
print({name: round(value, 1) for name, value in configs[worst].items()})

# %% [markdown]
# **LOO-PIT.** Where does each observation fall in its own leave-one-out prediction? The replicates in
# `posterior_predictive` are draws of each observation given all others, so that none has seen the value it is compared
# with, and `log_likelihood` has their densities. From these ArviZ weights the draws of the hyperparameters as if that
# observation had not been there either.

# %%
if az.__version__ < "1":
    pit = np.asarray(az.loo_pit(posterior.to_arviz(), y="y"))
else:  # a Dataset of all variables
    pit = az.loo_pit(posterior.to_arviz())["y"].values

# %% [markdown]
# If the predictions are calibrated, these numbers are uniform, and each of them, in order, leaves the band with a
# probability of 5%. Below the line at the left and above it at the right would be a model too sure of itself, the
# reverse one that is too cautious.

# %%
order = np.arange(1, len(pit) + 1)
lower, upper = (beta.ppf(q, order, len(pit) + 1 - order) for q in (0.025, 0.975))
expected = order / (len(pit) + 1)
ordered = np.sort(pit)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
left.fill_between(expected, lower - expected, upper - expected, color="0.88")
left.plot(expected, ordered - expected, drawstyle="steps-mid")
left.axhline(0, color="k", linewidth=0.8)
left.set(xlabel="uniform quantile", ylabel="LOO-PIT minus it", title="calibration")
right.plot(loo["pareto_k"], loo, ".")
right.axvline(0.7, color="k", linestyle=":", linewidth=1)
right.set(xlabel="Pareto k", ylabel="log predictive density", title="each observation")
plt.show()

# %%
outside = np.mean((ordered < lower) | (ordered > upper))
assert outside < 0.1
f"{outside:.0%} of the values are outside the band"

# %% [markdown]
# ## A divergence, found and cured
#
# A divergence is a transition at which the integrator could not follow the posterior: the step size, fitting elsewhere,
# was too large for the curvature there. It matters because it marks a place that the draws avoid.
#
# Seven noiseless values of a function of one input, and somebody who wants to be "uninformative": a length-scale and a
# signal of anything between 1/18000 and 18000 (the 95% interval of a LogNormal(0, 5)).

# %%
line = ConfigurationSpace({"x": (0.0, 1.0)})
x = np.linspace(0.05, 0.95, 7)
few = [{"x": value} for value in x]
wiggle = np.sin(6 * x) + 0.3 * np.cos(20 * x)
vague = {"lengthscale": sl.LogNormal(0, 5), "sigma_f": sl.LogNormal(0, 5)}

diverged = sl.GaussianProcess(line, priors=vague).fit(few, wiggle, seed=1)
assert diverged.check().divergences > 20 and not diverged.check().ok
diverged.check().messages

# %% [markdown]
# **The symptom.** A higher target acceptance asks for smaller steps, and those can follow. This is what the message
# proposes, and always worth the first try.

# %%
careful = sl.GaussianProcess(line, priors=vague).fit(few, wiggle, seed=1, target_acceptance=0.99)
assert careful.check().divergences < diverged.check().divergences / 10
careful.check()

# %% [markdown]
# **The cause.** The observations are 0.15 apart. All length-scales far below that mean the same, "each value for
# itself", and this prior has a plateau of them that no data can rule out. On the plateau large steps are right; at its
# edge, where the length-scale begins to matter, they are not. The default prior knows that the inputs are on the unit
# cube and the values standardised, and has hardly any mass out there.

# %%
sensible = sl.GaussianProcess(line).fit(few, wiggle, seed=1)
assert sensible.check().ok and sensible.check().divergences < 10
sensible.check()

# %% [markdown]
# Each red point is the draw of a trajectory that diverged on its way. Note the range of the length-scales: the plateau
# is at the left, the ridge of functions through all points in the middle, and at the right, with a large `sigma_n`, the
# explanation that everything is noise.

# %%
fits = {"vague, 0.8": diverged, "vague, 0.99": careful, "default, 0.8": sensible}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharex=True, sharey=True, layout="constrained")
for ax, (title, fit) in zip(axes, fits.items(), strict=True):
    where = fit.idata["sample_stats"]["diverging"].values.ravel()
    lengthscale, sigma_n = fit.draws["lengthscale"][:, 0], fit.draws["sigma_n"]
    ax.plot(lengthscale, sigma_n, ".", markersize=2, alpha=0.4)
    ax.plot(lengthscale[where], sigma_n[where], "r.", markersize=4)
    ax.set(xscale="log", yscale="log", xlabel="lengthscale", title=title)
axes[0].set_ylabel("sigma_n")
plt.show()

# %% [markdown]
# Small steps have a price. The last column is what the computer's time buys: effective draws of the worst
# hyperparameter for a thousand leapfrog steps. The better prior makes the posterior easier, not only the integrator
# more careful.

# %%
costs = pd.DataFrame(
    {
        title: {
            "divergences": fit.check().divergences,
            "R-hat": fit.check().rhat_max,
            "ESS": fit.check().ess_bulk_min,
            "steps a draw": float(fit.idata["sample_stats"]["n_steps"].mean()),
        }
        for title, fit in fits.items()
    }
).T
costs["ESS for 1000 steps"] = costs["ESS"] / sensible.n_draws / costs["steps a draw"] * 1000
assert costs.loc["default, 0.8", "ESS for 1000 steps"] > 3 * costs.loc["vague, 0.99", "ESS for 1000 steps"]
costs.round(2)

# %% [markdown]
# And the vague prior was not uninformative at all. Without a single divergence it still predicts a function that
# forgets every value at once, since that is what most of its length-scales mean. The data, seven of them, are too few
# to object.

# %%
between = [{"x": value} for value in np.linspace(0, 1, 101)]
figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
uncertainty = {}
for ax, (title, fit) in zip(axes, {"vague, 0.99": careful, "default, 0.8": sensible}.items(), strict=True):
    prediction = fit.predict(between)
    grid = np.linspace(0, 1, 101)
    ax.fill_between(grid, prediction.mean - 2 * prediction.sd, prediction.mean + 2 * prediction.sd, alpha=0.25)
    ax.plot(grid, prediction.mean)
    ax.plot(grid, np.sin(6 * grid) + 0.3 * np.cos(20 * grid), "k--", linewidth=1)
    ax.plot(x, wiggle, "k.")
    ax.set(xlabel="x", title=title)
    uncertainty[title] = float(prediction.sd.mean())
assert uncertainty["vague, 0.99"] > uncertainty["default, 0.8"]
plt.show()

# %% [markdown]
# In a study all of this happens by itself: every fit is checked, one that fails is made again, and `slayr inspect`
# lists the diagnostics of every trial. What no program can do is choose priors for a problem; `gp.priors` shows them,
# and `docs/decisions/default-priors.md` says why the defaults are what they are.
