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
# # Kernel search
#
# [Notebook 04](04_composite_kernels.py) wrote the kernel of the carbon dioxide of Mauna Loa by hand. Here a search
# finds expressions, and a stack averages the best of them. [Kernel search](../docs/kernel-search.md) describes scores,
# strategies and limits. Every candidate is fitted by its posterior mode in NumPy, so a search compiles nothing.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

first = 1976
options = {"budget": 60}

# %% [markdown]
# ## Data
#
# Monthly means in parts per million, as in notebook 04: every second month from 1976 to 1993 for the search, and the
# last eight years for a test.

# %%
monthly = """
1976 331.7 332.6 333.4 334.4 334.8 334.4 332.9 330.7 329.4 329.1 330.4 331.6
1977 332.9 333.4 334.7 336.0 336.7 336.2 334.8 332.9 331.6 331.2 332.4 333.9
1978 335.0 335.4 336.6 337.6 338.0 337.9 336.5 334.6 332.7 332.6 333.8 335.0
1979 336.2 336.7 338.0 338.9 339.4 339.2 337.5 336.0 334.0 334.0 335.2 336.7
1980 337.9 338.2 340.1 340.8 341.3 341.0 339.4 337.6 335.9 336.0 337.1 338.2
1981 339.2 340.4 341.4 342.4 342.8 342.1 340.4 338.4 336.7 336.9 338.4 339.6
1982 340.7 341.6 342.7 343.5 344.0 343.3 341.9 339.6 338.0 337.9 339.3 340.4
1983 341.3 342.5 343.2 344.9 345.6 345.3 343.8 342.2 339.9 340.0 341.2 343.0
1984 343.7 344.4 345.2 347.4 347.4 346.7 345.2 343.3 341.1 341.5 342.8 344.1
1985 344.9 345.9 347.4 348.3 348.8 348.2 346.4 344.3 343.0 342.8 344.2 345.6
1986 346.2 346.8 347.7 349.5 350.1 349.4 347.8 345.8 344.8 344.1 345.6 346.9
1987 348.0 348.5 349.5 350.8 351.7 351.2 349.4 348.1 346.4 346.4 347.9 348.9
1988 350.4 351.8 352.1 353.6 354.2 353.8 352.2 350.3 348.8 349.0 350.0 351.4
1989 352.8 353.0 353.6 355.4 355.6 355.1 353.9 351.6 349.9 350.0 351.2 352.5
1990 353.6 354.6 355.5 356.2 357.1 356.1 354.7 352.9 350.9 351.2 352.7 354.1
1991 354.7 355.6 357.2 358.6 359.2 358.2 356.0 353.9 352.1 352.2 353.7 355.0
1992 355.9 356.7 357.9 359.1 359.5 359.1 357.0 354.9 353.0 353.4 354.2 355.4
1993 356.7 357.2 358.4 359.3 360.2 359.5 357.4 355.3 353.8 354.1 355.4 356.8
1994 358.3 358.9 359.9 361.2 361.6 360.9 359.5 357.4 355.9 356.0 357.6 359.1
1995 360.0 360.9 361.6 363.4 363.7 363.2 361.8 359.4 358.0 357.8 359.5 360.7
1996 362.0 363.2 364.1 364.7 365.3 364.9 363.5 361.3 359.4 359.6 360.7 362.4
1997 363.1 363.9 364.6 366.3 366.7 365.5 364.4 362.5 360.2 360.8 362.4 364.2
1998 365.3 366.2 367.4 368.5 369.1 368.8 367.6 365.7 363.9 364.3 365.6 366.9
1999 368.1 368.8 369.6 371.0 370.8 370.2 369.0 366.7 364.7 365.1 366.6 367.9
2000 369.0 369.4 370.4 371.5 371.6 371.6 369.9 368.0 366.5 366.7 368.1 369.4
2001 370.2 371.3 372.1 372.8 373.8 373.1 371.3 369.4 367.9 368.0 369.4 371.0
"""
table = np.array([line.split() for line in monthly.split("\n") if line], dtype=float)
data = pd.DataFrame(table[:, 1:], table[:, 0].astype(int), np.arange(12)).stack()
years = data.index.get_level_values(0) + (data.index.get_level_values(1) + 0.5) / 12
space = ConfigurationSpace({"year": (1976.0, 2002.0)})


def configs(some):
    return [{"year": float(year)} for year in some]


fitted = (first <= years) & (years < 1994) & (np.arange(len(years)) % 2 == 0)
tested = years >= 1994
x = np.array(years[fitted])
y = data.to_numpy()[fitted]
ahead = np.array(years[tested])
truth = data.to_numpy()[tested]
len(x), len(ahead)

# %% [markdown]
# ## Search
#
# The search fits the base kernels SE, RQ, PER and LIN, then expressions that differ from the best ones by one move,
# such as `+ LIN` or `* PER`. The budget counts fits. The default is 100; the structure appears earlier here.

# %%
search = sl.search.KernelSearch(space, **options, jobs=1, seed=1)
found = search.run(configs(x), y, progress=False)
found

# %% [markdown]
# `laplace` approximates the log evidence: larger is better, and a difference of a few units is small. `loo` is the log
# density of each observation given the others. Both are of standardised values, at the mode. The order by one is not
# quite the order by the other.

# %%
columns = ["fit", "expression", "leaves", "parameters", "laplace", "loo", "bic", "probability"]
found.unique[columns].head(8).round(3)

# %% [markdown]
# The figure shows the score of each fit. Base kernels alone do not explain the data. The score jumps when a trend and a
# period are in one expression.

# %%
scores = found.table[~found.table["cached"]]
figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.plot(scores["fit"], scores["laplace"], ".", label="fit")
ax.step(scores["fit"], scores["best"], where="post", label="best so far")
ax.set(xlabel="fits", ylabel="laplace (larger is better)", ylim=(-150, None))
ax.legend(frameon=False)
plt.show()

# %%
best = found.unique.iloc[0]

# %% [markdown]
# `found.plot()` draws the same figure, with the best expression as its title.
#
# ## Summands of the best expression
#
# `found.components` splits the function into summands, at the mode of the best expression.

# %%
axis = 1976 + (np.arange(26 * 12) + 0.5) / 12
parts = found.components(configs(axis))
figure, axes = plt.subplots(
    len(parts.names), 1, figsize=(9, 1.8 * len(parts.names)), sharex=True, layout="constrained", squeeze=False
)
for ax, name, mean in zip(axes[:, 0], parts.names, parts.mean, strict=True):
    ax.plot(axis, mean)
    ax.axvline(1994, color="k", linestyle=":", linewidth=1)
    ax.set(ylabel="ppm")
    ax.set_title(name, loc="left")
plt.show()

# %% [markdown]
# ## Stack
#
# The best expression is one of several that explain the data about as well. `found.stack` fits the best ones and a
# plain Matérn kernel, and weights their posteriors by leave-one-out. `fit={"chains": 4}` samples each by NUTS, which
# takes minutes for every kernel; the modes are enough to see the effect.

# %%
stack = found.stack(top=3, fit={"method": "map"})
stack.weights.round(3).to_frame()

# %% [markdown]
# ## Extrapolation
#
# All parts of the stack and the stack itself predict the eight years that no fit has seen.

# %%
rows = {}
for name, one in [*zip(stack.weights.index, stack.posteriors, strict=True), ("stack", stack)]:
    prediction = one.predict(configs(ahead))
    low, high = prediction.interval(0.9, observation=True)
    rows[name] = {
        "weight": stack.weights.get(name, np.nan),
        "error ahead, ppm": np.sqrt(np.mean((prediction.mean - truth) ** 2)),
        "in the 90% interval": np.mean((low < truth) & (truth < high)),
        "width, ppm": np.mean(high - low),
    }
summary = pd.DataFrame(rows).T
summary.round(2)

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
recent = np.linspace(1990, 2002, 12 * 12 + 1)
shown = {f"best by laplace: {best['expression']}": stack.posteriors[0], "stack": stack}
for ax, (name, one) in zip(axes, shown.items(), strict=True):
    prediction = one.predict(configs(recent))
    low, high = prediction.interval(0.9, observation=True)
    ax.fill_between(recent, low, high, alpha=0.3, linewidth=0, label="90% interval")
    ax.plot(recent, prediction.mean, label="mean")
    ax.plot(years[years >= 1990], data[years >= 1990], "k.", markersize=4, label="data")
    ax.axvline(1994, color="k", linestyle=":", linewidth=1)
    ax.set(ylabel="ppm")
    ax.set_title(name, loc="left")
axes[0].legend(frameon=False, fontsize="small", loc="upper left")
plt.show()

# %% [markdown]
# ## What averaging changes
#
# Expressions with nearly the same evidence fit the observed years alike and extrapolate differently: what they say
# about the trend after 1993 is an assumption, not a measurement. The best expression alone states one of these
# assumptions with narrow intervals. Which one it is can depend on a difference of less than one unit in the score, on
# the budget and on the seed.
#
# The stack depends less on such a difference. Its weights are those that predict left-out observations best, so a
# kernel that loses on the observations gets no weight, whatever its score. If several keep a weight, the intervals
# contain their disagreement. The best part alone can predict the future better than the average. Which part that will
# be is not known in advance.
#
# It does not make extrapolation safe: the intervals of the stack still cover less often than they claim. All parts were
# chosen on the same data, and a structure that none of them has is not in the average. Weights from modes also favour
# kernels with many hyperparameters, because the mode has seen the observations; weights of sampled posteriors have that
# corrected.
#
# The result is kept with `found.save("search.json")`, read with `sl.search.load`, and continued with
# `found.resume(200)`. The best expression is an ordinary kernel, `sl.GaussianProcess(space, found.best)`.
