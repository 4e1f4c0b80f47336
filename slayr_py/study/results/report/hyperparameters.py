"""Posterior of the hyperparameters beside their prior: densities, and central intervals of 50% and 90%."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import gaussian_kde

from slayr_py.inference import Posterior
from slayr_py.kernels import Beta, Hyperparameter, Prior
from slayr_py.space import FloatArray
from slayr_py.study.results.report.blocks import Block, Drawing, Drawings, Heading, Notice, Paragraph, Table
from slayr_py.study.results.report.figures import QUANTILES, drawing, page_figure, scale, short
from slayr_py.study.results.report.palette import light
from slayr_py.study.results.report.reading import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FEWEST_DRAWS = 40  # for a density
_MOST_DENSITIES = 14  # rows of a figure; more have intervals only
_BOUNDED = ("unit interval", "simplex")
_ROWS = 40  # of a figure; more entries are drawn in further figures


class _Entry(NamedTuple):
    """A scalar hyperparameter or an entry of a vector: its name, draws, and quantiles of its prior."""

    name: str
    draws: FloatArray
    prior: FloatArray
    curve: FloatArray
    """Values of the prior at the normal coordinates `_Z`, for its density."""


_Z = np.linspace(-3.0, 3.0, 61)  # smooth in a figure, and 99.7% of the prior


def hyperparameters(reading: Reading) -> Iterator[Block]:
    """Return a figure for each hyperparameter of each kernel."""
    posterior = reading.posterior
    yield Paragraph(
        "Blue: the posterior, with its density, median, and central intervals of 50% and 90%. Grey, dashed: the prior. "
        "A posterior that equals its prior means that the trials say nothing about this hyperparameter. All refer to "
        "standardised values of the objective, and to parameters scaled to the unit interval."
    )
    if not posterior.is_stack:
        yield from _of(posterior, "hyper")
        return
    for k, (part, (name, weight)) in enumerate(zip(posterior.posteriors, posterior.weights.items(), strict=True)):
        yield Heading(f"{str(name)}, weight {weight:.2f}")
        if weight > 0:
            yield from _of(part, f"hyper-{k}")
        else:
            yield Notice("Weight 0: predictions do not use this kernel, and its hyperparameters are not drawn.")


def _of(posterior: Posterior, key: str) -> Iterator[Block]:
    if posterior.n_draws == 1:
        yield Notice("The fit is a point estimate: single values without uncertainty.", "warning")
    figures: list[Drawing] = []
    constant: list[str] = []
    for number, h in enumerate(posterior.model.hyperparameters):
        entries = _entries(posterior, h)
        pairs = list(zip(entries, np.atleast_1d(posterior.model.fixed[h.name]), strict=True))
        constant += [f"{entry.name} = {entry.draws[0]:.4g}" for entry, is_fixed in pairs if is_fixed]
        free = [entry for entry, is_fixed in pairs if not is_fixed]
        for first in range(0, len(free), _ROWS):
            figures.append(_figure(f"{key}-{number}-{first}", h, free[first : first + _ROWS]))
    yield Drawings(figures)
    if constant:
        yield Notice(f"Fixed by their prior: {', '.join(constant)}.")


def _entries(posterior: Posterior, h: Hyperparameter) -> list[_Entry]:
    draws = posterior.draws[h.name].reshape(posterior.n_draws, -1)
    return [
        _Entry(name, draws[:, i], _prior_values(h, i, ndtri(QUANTILES)), _prior_values(h, i, _Z))
        for i, name in enumerate(h.entries)
    ]


def _prior_values(h: Hyperparameter, i: int, z: FloatArray) -> FloatArray:
    """Return the values of entry i at normal coordinates z; an entry of a Dirichlet vector has a Beta distribution."""
    size = len(h.entries)
    prior: Prior = h.prior
    if prior.support == "simplex":
        alpha = np.broadcast_to(np.asarray(prior.asdict()["concentration"], np.float64), (size,))
        if size == 1:
            return np.ones(len(z))
        prior = Beta(float(alpha[i]), float(alpha.sum() - alpha[i]))
    values = np.asarray(prior.at_score(np.broadcast_to(z[:, None], (len(z), size))), dtype=np.float64)
    return np.broadcast_to(values, (len(z), size))[:, i]


def _figure(key: str, h: Hyperparameter, entries: Sequence[_Entry]) -> Drawing:
    log = h.prior.support == "positive"
    label = {"simplex": "weight", "unit interval": "value in (0, 1)"}.get(h.prior.support, "value")
    quantiles = [np.quantile(entry.draws, QUANTILES) for entry in entries]
    columns: dict[str, Any] = {"hyperparameter": [entry.name for entry in entries]}
    for j, q in enumerate(QUANTILES):
        columns[f"{q:.0%}"] = [row[j] for row in quantiles]
    for j in (0, 2, 4):
        columns[f"prior {QUANTILES[j]:.0%}"] = [entry.prior[j] for entry in entries]
    single = len(entries) == 1
    title = entries[0].name if single else h.name
    text = f"Posterior and prior of {title}"
    if single:
        low, median, high = quantiles[0][[0, 2, 4]]
        text += f": median {median:.3g}, 90% interval {low:.3g} to {high:.3g}; prior {entries[0].prior[0]:.3g} to "
        text += f"{entries[0].prior[4]:.3g}"

    def draw() -> Figure:
        step = 0.62 if len(entries) <= _MOST_DENSITIES else 0.3
        figure, axes = page_figure(4.0, 1.15 + step * len(entries))
        for row, (entry, q) in enumerate(zip(entries, quantiles, strict=True)):
            _draw_entry(axes, -row, entry, q, h.prior.support, density=len(entries) <= _MOST_DENSITIES)
        names = [short(e.name if h.labels is None else e.name[len(h.name) + 1 : -1], 20) for e in entries]
        axes.set_yticks([] if single else [-row for row in range(len(entries))], [] if single else names)
        axes.set_ylim(-len(entries) + 0.55, 0.95)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{label}, logarithmic scale" if log else label)
        axes.set_title(short(title, 44), loc="left")
        axes.set_xlim(*_range(entries, h.prior.support))
        scale(axes.xaxis, log)
        return figure

    return drawing(key, title, f"{text}.", draw, Table.of(f"{key}-table", f"Quantiles of {title}", columns))


def _range(entries: Sequence[_Entry], support: str) -> tuple[float, float]:
    """Return the range of all draws but the extreme ones and of the central part of the priors."""
    if support in _BOUNDED:
        return -0.02, 1.02
    log = support == "positive"
    values = np.concatenate([np.concatenate([e.prior, np.quantile(e.draws, [0.005, 0.995])]) for e in entries])
    values = np.log(values[values > 0]) if log else values
    low = float(values.min())
    high = float(values.max())
    margin = 0.05 * (high - low) or 0.5
    return (float(np.exp(low - margin)), float(np.exp(high + margin))) if log else (low - margin, high + margin)


def _draw_entry(axes: Any, row: int, entry: _Entry, q: FloatArray, support: str, density: bool) -> None:
    """Draw one row: the density above the line of the intervals, and the prior below it."""
    log = support == "positive"
    if density:
        x, height = _density(entry.draws, support)
        prior = np.exp(-0.5 * _Z**2) / np.maximum(np.gradient(_transform(entry.curve, log), _Z), 1e-12)
        peak = max(float(height.max(initial=0.0)), 1e-300)
        # One height for both, so that their areas can be compared; a prior far below is still visible as a line.
        top = max(peak, float((prior / np.sqrt(2 * np.pi)).max()))
        axes.plot(entry.curve, row + 0.7 * prior / np.sqrt(2 * np.pi) / top, "--", color=light("prior"), lw=1.1)
        if len(x):
            axes.fill_between(x, row, row + 0.7 * height / top, color=light("model"), alpha=0.28, lw=0)
            axes.plot(x, row + 0.7 * height / top, color=light("model"), lw=1.1)
    axes.plot(entry.prior[[0, 4]], [row - 0.2] * 2, color=light("prior"), lw=1.2)
    axes.plot(entry.prior[[1, 3]], [row - 0.2] * 2, color=light("prior"), lw=3.0)
    if len(entry.draws) > 1:
        axes.plot(q[[0, 4]], [row] * 2, color=light("model"), lw=1.4)
        axes.plot(q[[1, 3]], [row] * 2, color=light("model"), lw=4.0)
    axes.plot(q[2], row, "o", color=light("paper"), markeredgecolor=light("model"), markeredgewidth=1.6, markersize=6)


def _transform(values: FloatArray, log: bool) -> FloatArray:
    return np.log(values) if log else values


def _density(draws: FloatArray, support: str) -> tuple[FloatArray, FloatArray]:
    """Return a grid and the kernel density estimate of the (logarithms of the) draws there; empty for too few."""
    log = support == "positive"
    values = _transform(draws, log)
    if len(values) < _FEWEST_DRAWS or np.ptp(values) < 1e-9 * max(1.0, float(np.abs(values).max())):
        return np.empty(0), np.empty(0)
    margin = 0.25 * float(np.std(values))
    grid = np.linspace(values.min() - margin, values.max() + margin, 90)
    estimate = gaussian_kde(values)
    height = np.asarray(estimate(grid))
    if support in _BOUNDED:  # mass beyond a bound is reflected at it
        grid = np.linspace(max(0.0, grid[0]), min(1.0, grid[-1]), 90)
        height = np.asarray(estimate(grid) + estimate(-grid) + estimate(2 - grid))
    return np.exp(grid) if log else grid, height
