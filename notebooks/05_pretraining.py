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
# # Kernels learned from related data
#
# Often there are data of a similar problem: another data set, a simulator, last year's device. `sl.svm.pretrain` learns
# from them which features matter, and returns a kernel for the new problem (Shilton et al., arXiv 1802.05370). Only the
# covariance is learned: the related values may have other units, another sign, and their best configuration elsewhere.

# %%
import matplotlib.pyplot as plt
import numpy as np
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

budget = 14
study = {"method": "carried"}
sampling = {"chains": 4}
n_points = 30

# %% [markdown]
# ## The problem and the related data
#
# The function of section 5.3 of the paper depends on the distance from the centre only. Its minimum, -0.825, is on two
# circles. The related data are 100 values of that distance itself: they have the same symmetry, but no circle of good
# values.

# %%
space = ConfigurationSpace({"x1": (-1.0, 1.0), "x2": (-1.0, 1.0)})
encoder = sl.space.Encoder(space)


def radius(config):
    return float(np.hypot(config["x1"], config["x2"]))


def objective(config):
    r = radius(config)
    return np.sin(5 * np.pi * r) * np.exp(-5 * (r - 0.5) ** 2)


related = encoder.sobol(100, seed=1)
values = np.array([radius(config) for config in related])

axis = np.linspace(-1, 1, 41)
grid = encoder.encode([{"x1": a, "x2": b} for b in axis for a in axis])
truth = np.array([objective({"x1": a, "x2": b}) for b in axis for a in axis])

figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True, layout="constrained")
figure.colorbar(axes[0].pcolormesh(axis, axis, truth.reshape(41, 41)), ax=axes[0])
dots = axes[1].scatter([c["x1"] for c in related], [c["x2"] for c in related], c=values, s=14)
figure.colorbar(dots, ax=axes[1])
axes[0].set(title="objective", xlabel="x1", ylabel="x2", aspect="equal")
axes[1].set(title="related data", xlabel="x1", aspect="equal")
plt.show()

# %% [markdown]
# ## Pre-training
#
# `pretrain` fits a machine to the related data. Its regularisation and its length-scale minimise the leave-one-out
# error; `table` has every setting that was tried. The support vector machine of the paper is the default. Here we take
# the least-squares machine, which is faster. `skill` is the share of the variance that it predicts when a point is left
# out.

# %%
pre = sl.svm.pretrain(space, related, values, machine="ridge")
print(pre)
print("skill", round(pre.skill, 3))
print(*pre.messages, sep="\n")
pre.table.sort_values("loo_mse").head(3)

# %% [markdown]
# ## The learned correlation
#
# The maps show the correlation of the function at a chosen point (the cross) with all others. That of a squared
# exponential knows nothing: the neighbours of the point are similar. The learned ones are correlations of two layers:
# the squared exponential of the distance between learned features.
#
# About the centre of the space, the default, the kernel has found that points at the same distance from the centre
# behave alike. The features are monomials about an origin, so the origin decides which symmetries can be found. About
# the corner of the space, which is what the paper uses, only the exchange of x1 and x2 can be. The machine is the same
# in both cases: its errors cannot tell which origin is better.

# %%
corner = sl.svm.pretrain(space, related, values, machine="ridge", origin="corner", C=pre.C, lengthscale=pre.lengthscale)
chosen = encoder.encode([{"x1": 0.6, "x2": 0.2}])
layers = {"sigma_f": 1.0, "feature_lengthscale": [0.3]}
maps = {
    "squared exponential": sl.kernels.Composite("SE").gram(
        chosen, grid, {"sigma_f": 1.0, "lengthscale": [pre.lengthscale] * 2}
    ),
    "learned, about the centre": pre.kernel(layers=2, base=None).gram(chosen, grid, layers),
    "learned, about the corner": corner.kernel(layers=2, base=None).gram(chosen, grid, layers),
}

figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharey=True, layout="constrained")
for ax, (name, correlation) in zip(axes, maps.items(), strict=True):
    mesh = ax.pcolormesh(axis, axis, correlation.reshape(41, 41), vmin=0, vmax=1)
    ax.plot(0.6, 0.2, "rx")
    ax.set(title=name, xlabel="x1", aspect="equal")
axes[0].set_ylabel("x2")
figure.colorbar(mesh, ax=axes)
plt.show()

# %% [markdown]
# ## Minimise
#
# `pre.kernel()` is a kernel like any other. By default it is a weighted sum of three parts with weights `share`: the
# learned kernel with one layer, with two, and a Matérn kernel for what the related data do not tell.

# %%
kernels = {"Matérn": sl.kernels.Matern(p=2), "pre-trained": pre.kernel()}
results = {
    name: sl.minimize(objective, space, budget=budget, n_initial=4, kernel=kernel, seed=1, progress=False, **study)
    for name, kernel in kernels.items()
}

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for name, result in results.items():
    ax.plot(range(1, budget + 1), np.minimum.accumulate(result.trials["value"]), "o-", markersize=3, label=name)
ax.axhline(-0.8251182, color="k", linewidth=0.5)
ax.set(xlabel="evaluations", ylabel="best value")
ax.legend()
plt.show()

# %% [markdown]
# The first four evaluations are the same design. A single run proves little;
# [benchmarks/optimisation](../benchmarks/optimisation/README.md) compares kernels over repetitions.
#
# ## Misleading data
#
# The related data may have nothing to do with the new problem. We permute their values: the machine then fits noise,
# and says so.

# %%
permuted = np.random.default_rng(1).permutation(values)
misled = sl.svm.pretrain(space, related, permuted, machine="ridge")
print("skill", round(misled.skill, 3))
print(*misled.messages, sep="\n")

# %% [markdown]
# The posterior of `share` shows what the new problem thinks of the related data. We fit 30 values of the objective with
# both kernels. With the related data as they are, hardly anything is left to the base kernel. With permuted ones, the
# base kernel does nearly everything, so the optimisation is close to one without related data. `check().notes` and
# `slayr inspect` print this share.

# %%
configs = encoder.sobol(n_points, seed=7)
y = [objective(config) for config in configs]
posteriors = {
    name: sl.GaussianProcess(space, kernel).fit(configs, y, seed=1, **sampling)
    for name, kernel in (("related data", pre.kernel()), ("permuted data", misled.kernel()))
}
for name, posterior in posteriors.items():
    print(f"{name}: {posterior.check().kernel_notes[0]}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, (name, posterior) in zip(axes, posteriors.items(), strict=True):
    share = posterior.idata["posterior"]["share"]
    for part in share["part"].values:
        ax.hist(np.ravel(share.sel(part=part)), bins=np.linspace(0, 1, 26), histtype="step", density=True, label=part)
    ax.set(title=name, xlabel="share")
axes[0].set_ylabel("posterior density")
axes[1].legend(loc="upper center")
plt.show()

# %% [markdown]
# ## Keep the kernel
#
# Pre-training takes seconds to minutes. The kernel can be saved, and used for every problem with the same parameters
# and ranges.

# %%
path = pre.kernel().save("kernel.json")
sl.kernels.Pretrained.load(path, space)
