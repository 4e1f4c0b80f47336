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
# A fitted model consists of thousands of draws of the hyperparameters. Before using them, check that the sampler
# converged and that the model fits the data. This notebook makes these checks for one posterior and interprets its
# hyperparameters. A second example has skewed values and needs a warp. A third provokes divergences and removes them.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace, Float
from scipy.stats import beta

import slayr_py as sl

sampling = {"chains": 4}
long_chains = {"chains": 4}

# %% [markdown]
# ## Example objective
#
# The objective is the loss of a chemical reaction, in percent. The temperature has a sharp optimum, time has
# diminishing returns, stirring has a small linear effect, and the humidity of the room has none. The model does not
# know this. It is given 48 measurements, each with a standard error of 2.

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
# ## Convergence
#
# `check()` summarises all hyperparameters: the chains agree (R-hat near 1), the smallest effective sample size is about
# 1000, and no transition diverged.

# %%
posterior.check()

# %% [markdown]
# ArviZ's summary has the same numbers for each hyperparameter. Length-scales range from a fraction of the cube to ten
# times its width, so we look at their logarithms. ArviZ accepts `idata` as it
# is. Derived quantities can be added as variables of its posterior; we add them to a copy.

# %%
import arviz as az

idata = posterior.idata.copy()
idata["posterior"]["log10_lengthscale"] = np.log10(idata["posterior"]["lengthscale"])
idata["posterior"]["log10_sigma_n"] = np.log10(idata["posterior"]["sigma_n"])
names = ["log10_lengthscale", "sigma_f", "log10_sigma_n", "mu"]
az.summary(idata, var_names=names, round_to=2)

# %% [markdown]
# **Rank plots.** All draws of a quantity are ranked over all chains together. If the chains sample the same
# distribution, the ranks of each chain are uniform: flat bars, or in ArviZ 1, which plots the difference of the
# cumulative distribution from uniform, lines within the band. The ranks of a chain that is stuck pile up at one side,
# which is easily overlooked in a trace plot.

# %%
az.plot_rank(idata, var_names=["log10_lengthscale"])
plt.show()

# %% [markdown]
# **Energy.** Hamiltonian Monte Carlo moves within an energy level and draws a new level before each move. If the steps
# between levels are much smaller than the spread of the levels, the sampler explores the tails slowly. Here the two
# distributions overlap widely: E-BFMI (`ebfmi_min` above) is far above the limit of 0.2.

# %%
az.plot_energy(idata)
plt.show()

# %% [markdown]
# ## Prior and posterior
#
# Priors are on the scale of the fitted model: inputs on the unit cube, values with mean 0 and standard deviation 1.
# `with_prior` runs the same program without its likelihood and adds the draws as three groups of the tree, which
# ArviZ's functions can compare with the posterior.

# %%
gp.priors

# %%
both = posterior.with_prior(draws=sampling.get("draws", 1000))
prior = {name: values.stack(sample=("chain", "draw")).values for name, values in both.idata["prior"].items()}
panels = {name: (prior["lengthscale"][i], posterior.draws["lengthscale"][:, i]) for i, name in enumerate(encoder.names)}
panels["noise, sigma_n"] = prior["sigma_n"], posterior.draws["sigma_n"]

figure, axes = plt.subplots(1, 5, figsize=(12, 2.6), layout="constrained")
for ax, (title, (before, after)) in zip(axes, panels.items(), strict=True):
    ends = np.quantile(np.log10([*before, *after]), (0.002, 0.998))
    bins = np.linspace(*ends, 40)
    ax.hist(np.log10(before), bins, density=True, color="0.8", label="prior")
    ax.hist(np.log10(after), bins, density=True, histtype="step", color="tab:blue", linewidth=1.5, label="posterior")
    ax.set(title=title, xlabel="log10", yticks=[])
axes[0].legend(frameon=False, fontsize="small")
plt.show()

# %% [markdown]
# The data determine the length-scales of `temperature`, `minutes` and `stirring`. For `humidity` they only exclude
# short length-scales. Beyond that the posterior falls like the prior, because functions with length-scales of 5 and of
# 10 look alike on a cube of width 1. This is not a failure of the sampler: the posterior shows what is known.

# %%
log_sd = np.log10(posterior.draws["lengthscale"]).std(axis=0) / np.log10(prior["lengthscale"]).std(axis=1)
share = pd.Series(log_sd, encoder.names, name="posterior width / prior width")
share.round(2)

# %% [markdown]
# ## Interpretation of length-scales
#
# A length-scale is the distance, in widths of the cube, over which values of the function become nearly uncorrelated. A
# short length-scale means a wiggly function, a long one a nearly straight function. The forest plot shows a point
# estimate and two intervals for each.

# %%
az.plot_forest(idata, var_names=["log10_lengthscale"], combined=True)
plt.show()

# %% [markdown]
# `temperature` has by far the shortest length-scale: its optimum covers about a quarter of the range. But a long
# length-scale does not mean that an input is irrelevant. A straight line has a long length-scale, however steep it is.
# To see the effect of an input, vary it alone and keep the others at the middle of their ranges.

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
# `stirring` has a length-scale longer than the width of the cube and still changes the loss by about 25 percent.
# `humidity` has a longer length-scale and hardly any effect. Both lines are nearly straight, but only one is flat.

# %%
table = pd.DataFrame({"length-scale": np.median(posterior.draws["lengthscale"], axis=0)}, encoder.names)
table["swing of the mean, %"] = pd.Series(swing)
table.sort_values("length-scale").round(2)

# %% [markdown]
# **Pair plots.** A pair plot shows which hyperparameters the data do not identify separately. A function with a larger
# amplitude *and* longer length-scales looks the same on the cube, so `sigma_f` and the length-scale of `stirring` are
# correlated. A point estimate would be a single point of this cloud.

# %%
draws = idata["posterior"]
draws["log10_sigma_f"] = np.log10(draws["sigma_f"])
draws["log10_stirring"] = draws["log10_lengthscale"].sel(encoded_column="stirring", drop=True)
az.plot_pair(idata, var_names=["log10_sigma_f", "log10_stirring", "log10_sigma_n"])
plt.show()

# %% [markdown]
# ## Model fit
#
# `loo()` predicts every observation from all others: exactly in the function, by importance sampling in the
# hyperparameters. The Pareto k of each observation measures the quality of the importance sampling. Above 0.7 the
# hyperparameters depend too much on that observation, and its value is only approximate. Check such an observation: it
# may be a mistake, or the only one in its region.

# %%
loo = posterior.loo()
worst = int(np.argmin(loo.values))
print(f"sum {loo.attrs['elpd']:.1f}, standard error {loo.attrs['se']:.1f}")
print(f"hardest to predict: number {worst}, k = {float(loo['pareto_k'][worst]):.2f}, loss {y[worst]:.1f}")
print({name: round(value, 1) for name, value in configs[worst].items()})

# %% [markdown]
# **LOO-PIT.** The LOO-PIT is the cumulative probability of each observation under its leave-one-out prediction. The
# replicates in `posterior_predictive` are draws of each observation given all others, so they do not depend on the
# value with which they are compared. `log_likelihood` has the corresponding log densities. ArviZ uses them to re-weight
# the draws of the hyperparameters as if that observation had been left out.

# %%
if az.__version__ < "1":
    pit = np.asarray(az.loo_pit(posterior.idata, y="y"))
else:  # a Dataset of all variables
    pit = az.loo_pit(posterior.idata)["y"].values

# %% [markdown]
# If the predictions are calibrated, these numbers are uniform, and each order statistic is outside the band with a
# probability of 5%. A curve below the line at the left and above it at the right indicates an overconfident model, the
# reverse an underconfident one.

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
f"{outside:.0%} of the values are outside the band"

# %% [markdown]
# ## Skewed objectives
#
# A Gaussian process assumes that the function deviates from its mean as far downwards as upwards. Many objectives do
# not: a few values are far worse than all others. The example is the time of a computation in seconds, measured with a
# relative error of 3%. It depends on the size of the blocks into which the data are divided, and on the share of them
# that is kept in memory. A wrong choice multiplies the time.

# %%
computation = ConfigurationSpace()
computation.add(Float("block", (1.0, 4096.0), log=True), Float("share", (0.0, 1.0)))


def seconds(config):
    size = np.log2(config["block"]) / 12
    share = config["share"]
    return np.exp(10 * (size - 0.55) ** 2 + 4 * (share - 0.35) ** 2 + 0.5 * np.sin(9 * size) * share)


timed = sl.space.Encoder(computation).sobol(50, seed=3)
times = np.array([seconds(config) for config in timed]) * np.exp(np.random.default_rng(1).normal(0, 0.03, 50))
np.quantile(times, [0, 0.25, 0.5, 0.75, 1]).round(1)

# %% [markdown]
# With `warp="log"` the values are a Gaussian process after a transformation that compresses large values and stretches
# small ones. Its parameter `warp` is sampled with the other hyperparameters; near 0 the transformation has no effect.
# `minimize` uses a warp by default, `GaussianProcess` does not. Both posteriors converge.

# %%
warps = {
    name: sl.GaussianProcess(computation, warp=name).fit(timed, times, seed=1, **sampling) for name in ("none", "log")
}
pd.DataFrame(
    {
        name: {"R-hat": fit.check().rhat_max, "ESS": fit.check().ess_bulk_min, "divergences": fit.check().divergences}
        for name, fit in warps.items()
    }
).T.round(3)

# %% [markdown]
# **Posterior of the warp.** Under the prior, LogNormal(-1, 1), the central 90% of `warp` is from 0.07 to 1.9. If the
# values were not skewed, the posterior would be at the lower end of this range. Here the data require a strong
# transformation.

# %%
of_prior = np.random.default_rng(1).lognormal(-1, 1, 20_000)
of_posterior = warps["log"].draws["warp"]

figure, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
bins = np.linspace(0, 4, 60)
ax.hist(of_prior, bins, density=True, color="0.8", label="prior")
ax.hist(of_posterior, bins, density=True, histtype="step", color="tab:blue", linewidth=1.5, label="posterior")
ax.set(xlabel="warp", yticks=[])
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# **LOO-PIT.** The figures show the LOO-PIT as above; ArviZ 1 shows its distribution function, so that the sign is
# reversed. Without a warp the curve reaches the edges of the band: too few values are near 0 and 1. The model has to
# allow for large values everywhere, so its predictions of small ones are too uncertain. With the warp the curve is well
# within the band.

# %%
for name, fit in warps.items():
    if az.__version__ < "1":
        az.plot_loo_pit(fit.idata, y="y", ecdf=True, figsize=(6, 3), textsize=9)
    else:
        az.plot_loo_pit(fit.idata)
    plt.gcf().suptitle(f"warp = {name}")
plt.show()

# %% [markdown]
# **Predictive density.** `loo()` refers to the seconds of both models, so that its values can be compared observation
# by observation. A difference of several standard errors is clear evidence for the warp. (A few Pareto k are above 0.7:
# the values of these observations are approximate.)

# %%
each = {name: fit.loo() for name, fit in warps.items()}
gain = each["log"].values - each["none"].values
gain_se = np.sqrt(len(gain) * gain.var())
print({name: round(values.attrs["elpd"], 1) for name, values in each.items()})
print(f"difference {gain.sum():.1f}, standard error {gain_se:.1f}")

# %% [markdown]
# **Predictions.** Under a warp the distribution of a prediction is skewed, and values far above the data can dominate
# its mean and standard deviation. Quantiles and intervals describe it better. Near the optimum, where an optimiser has
# to distinguish configurations, the interval with a warp is a fraction of the one without.

# %%
blocks = np.geomspace(1, 4096, 60)
line_of_blocks = [{"block": value, "share": 0.35} for value in blocks]
figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
width = {}
for ax, (name, fit) in zip(axes, warps.items(), strict=True):
    prediction = fit.predict(line_of_blocks)
    low, high = prediction.interval(0.9)
    ax.fill_between(blocks, low, high, alpha=0.25)
    ax.plot(blocks, prediction.quantile(0.5), label="median, 90% interval")
    ax.plot(blocks, [seconds(config) for config in line_of_blocks], "k--", linewidth=1, label="truth")
    ax.set(title=f"warp = {name}", xscale="log", xlabel="block", ylim=(-0.5, 6))
    width[name] = float(np.min(high - low))
axes[0].set_ylabel("seconds")
axes[0].legend(frameon=False, fontsize="small")
plt.show()
{name: round(value, 2) for name, value in width.items()}

# %% [markdown]
# ## Divergences
#
# A divergence is a transition at which the integrator could not follow the posterior: a step size suitable elsewhere
# was too large for the curvature there. It matters because the draws may miss that region.
#
# The example has seven noiseless values of a function of one input and a prior meant to be "uninformative":
# length-scale and signal are between 1/18000 and 18000 (the 95% interval of a LogNormal(0, 5)). The prior of the noise
# says that the values are nearly exact.

# %%
line = ConfigurationSpace({"x": (0.0, 1.0)})
x = np.linspace(0.05, 0.95, 7)
few = [{"x": value} for value in x]
wiggle = np.sin(6 * x) + 0.3 * np.cos(20 * x)
exact = {"sigma_n": sl.LogNormal(-4, 1)}
vague = {"lengthscale": sl.LogNormal(0, 5), "sigma_f": sl.LogNormal(0, 5)} | exact

diverged = sl.GaussianProcess(line, priors=vague).fit(few, wiggle, seed=1, **long_chains)
diverged.check().messages

# %% [markdown]
# **Treating the symptom.** A higher target acceptance means smaller steps, which can follow the curvature. The message
# suggests it, and it is a good first attempt.

# %%
careful = sl.GaussianProcess(line, priors=vague).fit(few, wiggle, seed=1, target_acceptance=0.99, **long_chains)
careful.check()

# %% [markdown]
# **Removing the cause.** The observations are 0.15 apart. All length-scales far below that make the values independent
# and have the same likelihood, so the posterior has a plateau there that no data can exclude. Large steps are suitable
# on the plateau, but not at its edge, where the length-scale begins to affect the likelihood. The default prior assumes
# inputs on the unit cube and standardised values. Under it a length-scale below 0.02 has a probability of 1%, under the
# vague prior 22%.

# %%
sensible = sl.GaussianProcess(line, priors=exact).fit(few, wiggle, seed=1, **long_chains)
sensible.check()

# %% [markdown]
# Each red point is the draw of a divergent trajectory. Note the range of the length-scales. The plateau is at the left.
# In the middle is the ridge of functions through all points. At the right, with a large `sigma_n`, the data are
# explained as noise.

# %%
fits = {"vague, 0.8": diverged, "vague, 0.99": careful, "default, 0.8": sensible}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), sharex=True, sharey=True, layout="constrained")
for ax, (title, fit) in zip(axes, fits.items(), strict=True):
    where = fit.idata["sample_stats"]["diverging"].values.ravel()
    lengthscale = fit.draws["lengthscale"][:, 0]
    sigma_n = fit.draws["sigma_n"]
    ax.plot(lengthscale, sigma_n, ".", markersize=2, alpha=0.4)
    ax.plot(lengthscale[where], sigma_n[where], "r.", markersize=4)
    ax.set(xscale="log", yscale="log", xlabel="lengthscale", title=title)
axes[0].set_ylabel("sigma_n")
plt.show()

# %% [markdown]
# Smaller steps cost time. The last column is the efficiency: effective draws of the worst hyperparameter per 1000
# leapfrog steps. The better prior makes the posterior itself easier to sample.

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
costs.round(2)

# %% [markdown]
# The vague prior was also not uninformative. Even without divergences it predicts a function that is uncorrelated over
# very short distances, because most of its length-scales are very short. Seven observations are too few to outweigh it.

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
plt.show()

# %% [markdown]
# In a study these checks are automatic: every fit is checked, a fit that fails is retried, and `slayr inspect` lists
# the diagnostics of every trial. No program can choose the right priors for a problem: `gp.priors` shows them, and
# `docs/decisions/priors.md` gives the reasons for the defaults.
