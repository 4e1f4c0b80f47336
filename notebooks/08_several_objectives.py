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
# # Several objectives
#
# The front of two objectives, what the posteriors say about the part that no evaluation has found yet, and a rule that
# stops the study. [Several objectives](../docs/studies.md#several-objectives) describes the options.

# %%
import numpy as np
from ConfigSpace import ConfigurationSpace

import slayr_py as sl

options = {"budget": 30, "n_initial": 8}

# %% [markdown]
# ## Problem
#
# A beam of a width and a height: it should be light and bend little. Both dimensions are in centimetres. The mass is
# per metre, the deflection is that of a unit load, which falls with the cube of the height. A beam with a height of
# more than five widths would tilt, which is a constraint.

# %%
space = ConfigurationSpace({"width": (1.0, 10.0), "height": (2.0, 20.0)})


def beam(config):
    width, height = config["width"], config["height"]
    values = {"mass": 0.08 * width * height, "deflection": np.log10(1e4 / (width * height**3))}
    return values, {"slenderness": height / width}


# %% [markdown]
# ## Study
#
# `directions` has a name for each objective. The reference point has the worst values of interest: heavier beams than
# 8 kg per metre and deflections above 2 do not count. The hypervolume is the area between the front and this point, and
# the study stops when it probably lacks less than 0.5.

# %%
directions = {"mass": "minimize", "deflection": "minimize"}
reference = {"mass": 8.0, "deflection": 2.0}
result = sl.minimize(
    beam,
    space,
    directions=directions,
    reference_point=reference,
    constraints=["slenderness <= 5"],
    stop=sl.Regret(0.5),
    seed=1,
    progress=False,
    **options,
)
result.front

# %% [markdown]
# ## Hypervolume still to be gained
#
# After each trial, functions of both objectives and of the constraint are drawn from the posteriors. Each draw has a
# front, and the hypervolume that the evaluated beams lack. `probability` is that of less than `epsilon`; the rule waits
# for 0.95.

# %%
table = sl.study.regret_table(result.study)
table[["observations", "probability", "mean", "upper"]]

# %% [markdown]
# The best beams are as slender as the constraint allows: with a height of five widths, the mass determines the
# deflection. So the true front is known here.

# %%
width = np.linspace(1.0, 4.0, 200)
mass = 0.08 * 5 * width**2
deflection = np.log10(1e4 / (125 * width**4))
inside = (mass < 8) & (deflection < 2)
corners = np.column_stack([mass, deflection])[inside]
largest = sl.acquisition.hypervolume(corners, np.array([8.0, 2.0]))
found = result.hypervolume(reference)
print(f"hypervolume {found:.2f} of {largest:.2f}; {table['mean'].iloc[-1]:.2f} were expected to be missing")

# %% [markdown]
# ## Band of the front
#
# The band has the best deflection that is attainable at each mass, with probability 0.9 by the posteriors. The step
# function of the trials can only be above it.

# %%
figure = result.plot_front(band=0.9)
axes = figure.axes[0]
axes.plot(mass[inside], deflection[inside], "k--", lw=1)
axes.set_xlim(0, 9)
axes.set_ylim(-1, 2.2)
figure

# %% [markdown]
# Optuna draws the study too: `optuna.visualization.plot_pareto_front(result.study)` and `plot_hypervolume_history`.
# The [report page](../docs/studies.md#report-page) has the figures above: `result.report("report.html")`.
