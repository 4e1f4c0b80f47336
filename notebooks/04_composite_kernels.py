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
# # Composite kernels
#
# A kernel can be a sum of products of simple kernels, written as an expression. The fitted function then has parts
# with a meaning, such as a trend and a season, and extrapolates them. This notebook fits carbon dioxide in the air of
# Mauna Loa, the standard example. [Composite kernels](../docs/composite-kernels.md) describes the language, the leaves
# and their priors. All expressions run in one Stan program, so nothing is compiled for a new one.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

first = 1976
draws = 100

# %% [markdown]
# ## Data
#
# The monthly means of carbon dioxide in parts per million, January to December, are averages of the weekly record of
# Keeling & Whorf. We fit every second month from 1976 to 1993, and keep the last eight years for a test.

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
len(x), tested.sum()

# %% [markdown]
# ## An expression
#
# `LIN + SE * PER + RQ` is a line, a season whose shape changes slowly, and a smooth deviation on several time-scales.
# Laplace's approximation takes a few seconds for 108 observations. `method="nuts"` takes minutes.

# %%
gp = sl.GaussianProcess(space, "LIN + SE * PER + RQ")
gp

# %%
fit = {"method": "laplace", "chains": 4, "draws": draws, "warmup": 100, "seed": 1}
posterior = gp.fit(configs(x), y, **fit)
posterior.check()

# %% [markdown]
# Every hyperparameter is a vector over the leaves that have it. Labels begin with the number of the leaf. A `split` is
# the share of what is left of a `+`.

# %%
posterior

# %% [markdown]
# ## The period
#
# The likelihood of a period has a mode near many multiples and fractions of the true one, so the periodogram helps
# twice. With more than 30 observations of a single column, the prior of the period moves to its highest peak, and the
# search for the mode starts at its peaks. A period is in units of the range of its parameter, here 26 years.

# %%
span = 2002 - 1976
before = gp.priors["period"]
informed = posterior.model.priors["period"]
period = span * posterior.draws["period"][:, 0]
print(f"prior median {span * np.exp(before.mu[0]):.2f} years, moved to {span * np.exp(informed.mu):.4f} years")
print(f"posterior {period.mean():.4f} years, sd {period.std():.4f}")

# %% [markdown]
# Other modes are not explored: all draws, also those of chains, are near the best mode that was found. If several
# periods are plausible, fit each with a narrow prior and compare `loo()`.
#
# ## Summands
#
# `components` splits the function into the summands of its kernel. Their means and a constant, the offset, add up to
# the prediction. Their levels are not determined, because a constant can move from one summand to another: read the
# shapes. All bands are wide for this reason.

# %%
axis = 1976 + (np.arange(26 * 12) + 0.5) / 12
parts = posterior.components(configs(axis))
total = posterior.predict(configs(axis))
parts

# %%
figure, axes = plt.subplots(3, 1, figsize=(9, 6), sharex=True, layout="constrained")
for ax, name, mean, sd in zip(axes, parts.names, parts.mean, parts.sd, strict=True):
    ax.fill_between(axis, mean - 1.64 * sd, mean + 1.64 * sd, alpha=0.3, linewidth=0)
    ax.plot(axis, mean)
    ax.axvline(1994, color="k", linestyle=":", linewidth=1)
    ax.set(ylabel="ppm")
    ax.set_title(name, loc="left")
plt.show()

# %% [markdown]
# `parts.plot()` draws the same figure. The season has a range of about 6 ppm, with the maximum in May.

# %%
season = pd.Series(parts.mean[1], np.arange(26 * 12) % 12).groupby(level=0).mean()
season.rename(dict(enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()))).round(1).to_frame("ppm").T

# %% [markdown]
# ## A kernel without the structure
#
# A squared-exponential kernel has one length-scale. It is a quarter of a year here, short enough for the season, and
# too short for everything else: a few months after the end of the data the prediction is back at the mean.

# %%
plain = sl.GaussianProcess(space, "SE").fit(configs(x), y, **fit)
plain.check()

# %%
figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
recent = np.linspace(1990, 2002, 12 * 12 + 1)
scores = {}
for ax, (name, each) in zip(axes, {"LIN + SE * PER + RQ": posterior, "SE": plain}.items(), strict=True):
    prediction = each.predict(configs(recent))
    low, high = prediction.interval(0.9, observation=True)
    ax.fill_between(recent, low, high, alpha=0.3, linewidth=0, label="90% interval")
    ax.plot(recent, prediction.mean, label="mean")
    ax.plot(years[years >= 1990], data[years >= 1990], "k.", markersize=4, label="data")
    ax.axvline(1994, color="k", linestyle=":", linewidth=1)
    ax.set(ylabel="ppm")
    ax.set_title(name, loc="left")
    ahead = each.predict(configs(years[tested]))
    truth = data.to_numpy()[tested]
    low, high = ahead.interval(0.9, observation=True)
    scores[name] = {
        "leave-one-out": each.loo().attrs["elpd"],
        "error ahead, ppm": np.sqrt(np.mean((ahead.mean - truth) ** 2)),
        "in the 90% interval": np.mean((low < truth) & (truth < high)),
    }
axes[0].legend(frameon=False, fontsize="small", loc="upper left")
plt.show()

# %%
table = pd.DataFrame(scores).T
table.round(2)

# %% [markdown]
# Both kernels follow the data where there are any; `loo()` shows the difference already there. Ahead of the data, the
# expression continues the trend and the season, and its intervals grow. They still do not cover as often as they claim,
# because the expression itself is uncertain. A structure that does not exist is extrapolated with the same confidence,
# so compare a few expressions, by `loo()` and by values that were kept for a test.
#
# An expression is a kernel like any other: `sl.minimize(..., kernel="LIN * PER + SE")`, or in Python
# `sl.kernels.Matern(p=2) + sl.kernels.Composite("LIN")`.
