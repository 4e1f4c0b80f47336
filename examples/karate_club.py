"""Classification and regression on the nodes of a graph, with Zachary's karate club.

Zachary (1977) observed how a club of 34 members split after a dispute between its instructor, Mr. Hi, and its officer.
Edge weights are the number of settings in which two members met. A diffusion kernel answers two questions:

* Classification: which side does each member take, given only the sides of the two rivals?
* Regression: which share of each member's time is spent with Mr. Hi's side, given the shares of every third member?

::

    python karate_club.py --figure karate_club.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import networkx as nx
import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import r2_score

from slayr_py import svm

CLUB = nx.karate_club_graph()
MEMBERS = list(CLUB)
RIVALS = [0, 33]
SIDES = np.array([CLUB.nodes[member]["club"] == "Mr. Hi" for member in MEMBERS])
WEIGHTS = nx.to_numpy_array(CLUB)
TIMES = WEIGHTS @ SIDES / WEIGHTS.sum(axis=1)
KERNEL = svm.Diffusion(CLUB, beta=0.3)


def decide() -> np.ndarray:
    """Compute every member's decision value (positive: Mr. Hi's side) from the sides of the two rivals."""
    machine = svm.KernelSVC(KERNEL, C=100.0).fit(RIVALS, SIDES[RIVALS])
    return machine.decision_function(MEMBERS)


def rate() -> np.ndarray:
    """Predict the share of time spent with Mr. Hi's side for all members, from the shares of every third member."""
    machine = svm.KernelSVR(KERNEL, C=10.0, epsilon=0.02).fit(MEMBERS[::3], TIMES[::3])
    return machine.predict(MEMBERS)


def draw(decisions: np.ndarray, ratings: np.ndarray) -> Figure:
    """Plot the decision values on the graph, and the predicted against the true shares of time."""
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    club, scatter = figure.subplots(1, 2, width_ratios=[1.4, 1])
    colours = {"cmap": "coolwarm", "vmin": -1, "vmax": 1}
    places = nx.spring_layout(CLUB, seed=3)
    nx.draw_networkx_edges(
        CLUB, places, ax=club, width=0.4 * np.sqrt(WEIGHTS[tuple(np.array(CLUB.edges).T)]), alpha=0.5
    )
    for side, shape, label in ((True, "o", "went with Mr. Hi"), (False, "s", "went with the officer")):
        group = [member for member in MEMBERS if SIDES[member] == side]
        edges = ["black" if member in RIVALS else "white" for member in group]
        style = {"node_shape": shape, "node_size": 170, "edgecolors": edges, "linewidths": 1.8, "label": label}
        nodes = nx.draw_networkx_nodes(CLUB, places, group, ax=club, node_color=decisions[group], **style, **colours)
    figure.colorbar(nodes, ax=club, label="decision value", location="left", shrink=0.8)
    club.set_title("Sides, from those of the two rivals (black rings)")
    club.legend(frameon=False, fontsize="small")
    club.axis("off")

    asked = np.isin(MEMBERS, MEMBERS[::3])
    scatter.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    scatter.plot(TIMES[~asked], ratings[~asked], "o", color="tab:purple", label="not asked")
    scatter.plot(TIMES[asked], ratings[asked], "o", mfc="none", color="0.5", label="asked")
    scatter.set(xlabel="time with Mr. Hi's side", ylabel="predicted", title="Time, from that of every third member")
    scatter.legend(frameon=False)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Answer both questions, print the accuracy, and draw the figure."""
    parser = argparse.ArgumentParser(description="Support vector machines on the nodes of Zachary's karate club.")
    parser.add_argument("--figure", help="file for the figure")
    options = parser.parse_args(arguments)

    decisions = decide()
    ratings = rate()
    wrong = [member for member in MEMBERS if (decisions[member] > 0) != SIDES[member]]
    print(f"sides: {len(MEMBERS) - len(wrong)} of {len(MEMBERS)} right; wrong: {wrong}")
    others = [member for member in MEMBERS if member not in MEMBERS[::3]]
    print(f"time with Mr. Hi's side: R2 = {r2_score(TIMES[others], ratings[others]):.2f} on {len(others)} members")
    if options.figure:
        draw(decisions, ratings).savefig(options.figure, dpi=95)


if __name__ == "__main__":
    main()
