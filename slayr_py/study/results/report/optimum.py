"""Posterior of the optimum's location."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from slayr_py.errors import DataError
from slayr_py.study.results.optimum import good, optimum as posterior_of_optimum
from slayr_py.study.results.report.blocks import Block, Notice, Paragraph, Table, sentence
from slayr_py.study.results.report.figures import drawing
from slayr_py.study.results.report.reading import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ROWS = 10  # of a table
_PROBABILITY = 0.9  # of being within epsilon of the optimum


def optimum(reading: Reading) -> Iterator[Block]:
    """Return the interval of the optimal value, the figure of the location, and the probably best trials."""
    posterior = reading.posterior
    reading.progress("drawing the location of the optimum")
    found = posterior_of_optimum(reading.study, posterior, 1)
    low, median, high = found.value
    yield Paragraph(
        "Functions drawn from the posterior have their optimum at these configurations. The optimal value is "
        f"{median:.4g} (90% interval {low:.4g} to {high:.4g}), without noise and at feasible configurations."
    )
    yield from (Notice(sentence(note)) for note in found.notes)
    columns = {str(name): found.table[name] for name in found.table}
    numbers = Table.of("optimum-table", "Location of the optimum", columns, ".4g")

    def draw() -> Figure:
        return found.plot()

    text = f"Distribution of the optimum's location for {len(found.table['parameter'].unique())} parameters."
    yield drawing("optimum-figure", "Location of the optimum", text, draw, numbers)
    best = found.evaluated.head(_MOST_ROWS)
    yield Table.of(
        "optimum-trials",
        "Probability that a trial is the best of all trials",
        {"number": best["number"], "probability": best["probability"]},
        ".3g",
    )
    if reading.epsilon is not None:
        yield _nearly_optimal(reading, reading.epsilon)


def _nearly_optimal(reading: Reading, epsilon: float) -> Block:
    try:
        ranges = good(reading.study, reading.posterior, epsilon, _PROBABILITY, 1)
    except DataError as error:
        return Notice(str(error))
    title = f"Configurations within {epsilon:g} of the optimum with a probability of at least {_PROBABILITY:.0%}"
    return Table.of("good-table", title, {str(name): ranges[name] for name in ranges}, ".4g")
