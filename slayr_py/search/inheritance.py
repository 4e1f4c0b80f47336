"""Starts of the search for a mode: from the parent of an expression, from the periodogram and from the prior."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from slayr_py.inference import LITTLE_NOISE, Model, NormalCoordinates, quarter_of_period
from slayr_py.kernels import NOISE, Composite, LogNormal
from slayr_py.kernels.expressions import STATIONARY, Leaf, Node, Sum, leaves, spell
from slayr_py.space import FloatArray

_FRESH = (1, 2)  # starts that ignore the parent
_SPREAD = 0.3  # standard deviation of inherited coordinates in further starts


@dataclass(frozen=True)
class Parent:
    """A fitted expression from which another expression was derived.

    Attributes
    ----------
    node : Node
    coordinates : mapping
        Standard normal coordinates of its mode by name of the hyperparameter and label; the label of a scalar is "".
    theta : mapping of str to sequence of float
        Hyperparameters at its mode.
    """

    node: Node
    coordinates: Mapping[str, Mapping[str, float]]
    theta: Mapping[str, Sequence[float]]


def starts(
    model: Model,
    scores: NormalCoordinates,
    count: int,
    seed: int,
    peaks: Mapping[int, FloatArray],
    parent: Parent | None,
) -> list[FloatArray]:
    """Return the standard normal coordinates (P,) from which a mode is sought.

    The first start inherits from the parent; new hyperparameters are at their prior medians. The second and third
    ignore the parent, whose mode may be far from the best mode of its child. In the second, stationary length-scales
    are a quarter of the period of the highest peak of the periodogram: from longer length-scales, a fit to dozens of
    waves explains them as noise. The third is at the prior medians, or a draw of the prior if there is no parent.
    Further starts perturb inherited values and draw new ones from the prior. Start k has periods at the k-th peaks of
    the periodograms.

    Parameters
    ----------
    model : Model
        With the kernel `Composite`.
    count : int
        Number of starts.
    seed : int
        Determines the starts, together with the expression.
    peaks : mapping of int to FloatArray
        Periods at the peaks of the periodogram of a column, the highest first.
    parent : Parent, optional
    """
    kernel = model.kernel
    assert isinstance(kernel, Composite)
    rng = np.random.default_rng([seed, zlib.crc32(kernel.expression.encode())])
    inherited = {} if parent is None else _inherited_leaves(kernel.node, parent)
    splits = np.array([]) if parent is None else _inherited_splits(kernel.node, parent)
    periods = _at_peaks(model, kernel, peaks)
    short = _quarter_periods(model, kernel, peaks)
    points = []
    for k in range(count):
        from_parent = parent is not None and k not in _FRESH
        drawn = k > max(_FRESH) if parent is not None else k > 1
        z, moves = rng.standard_normal((2, scores.size)) if drawn else np.zeros((2, scores.size))
        for i, (name, label) in enumerate(scores.entries):
            if from_parent and (name, label) in inherited:
                z[i] = inherited[name, label] + _SPREAD * moves[i]
            elif name == "period" and len(tops := periods.get(label, ())):
                z[i] = tops[k % len(tops)]
            elif name == "lengthscale" and k == 1 and label in short:
                z[i] = short[label]
            elif name == NOISE.name and not drawn:
                z[i] = LITTLE_NOISE
        if from_parent and len(splits):
            place = scores.place("split")
            z[place] = splits + _SPREAD * moves[place]
        points.append(z)
    return points


def _inherited_leaves(node: Node, parent: Parent) -> dict[tuple[str, str], float]:
    """Return the coordinates of leaves and scalars that an expression inherits, by name and label in the expression.

    A leaf inherits from the first free leaf of the parent with the same text. A stationary leaf without such a partner
    inherits the length-scales of a free stationary leaf on the same columns.
    """
    theirs = leaves(parent.node)
    mine = leaves(node)
    free = dict(enumerate(theirs))
    pairs: dict[int, int] = {}
    for alike in (operator.eq, _both_stationary):
        for i, leaf in enumerate(mine):
            match = next((j for j, other in free.items() if i not in pairs and alike(leaf, other)), None)
            if match is not None:
                pairs[i] = match
                del free[match]
    inherited = {(name, ""): values[""] for name, values in parent.coordinates.items() if "" in values}
    for i, j in pairs.items():
        old = f"{j + 1}:{theirs[j].name}"
        new = f"{i + 1}:{mine[i].name}"
        for name, values in parent.coordinates.items():
            for label, value in values.items():
                if name != "split" and (label == old or label.startswith(f"{old}[")):
                    inherited[name, new + label.removeprefix(old)] = value
    return inherited


def _both_stationary(a: Leaf, b: Leaf) -> bool:
    return a.name in STATIONARY and b.name in STATIONARY and a.columns == b.columns


def _inherited_splits(node: Node, parent: Parent) -> FloatArray:
    """Return the coordinates of the splits of an expression.

    In every sum, terms that are also in a sum of the parent keep their relative shares. Every other term has the share
    of an equal division.
    """
    known = []
    for sum_, places in _sums(parent.node):
        splits = [parent.theta["split"][place] for place in places]
        known.append(dict(zip(map(spell, sum_.terms), _shares(splits), strict=True)))
    coordinates: dict[int, float] = {}
    for sum_, places in _sums(node):
        texts = [spell(term) for term in sum_.terms]
        nearest = max(known, key=lambda shares: sum(text in shares for text in texts), default={})
        old = np.array([nearest.get(text, 0.0) for text in texts])
        count = np.count_nonzero(old)
        total = old.sum()
        shares = np.full(len(texts), 1 / len(texts))
        if total > 0:
            shares = np.where(old > 0, old / total * count / len(texts), shares)
        heads = np.cumsum(shares)
        # The split before term i is Beta(i, 1) a priori, whose distribution function is the i-th power.
        for i, place in enumerate(places, start=1):
            level = np.clip((heads[i - 1] / heads[i]) ** i, 1e-3, 1 - 1e-3)
            coordinates[place] = float(ndtri(level))
    return np.array([coordinates[place] for place in sorted(coordinates)])


def _sums(node: Node) -> list[tuple[Sum, list[int]]]:
    """Return the sums of an expression with the positions of their splits in the kernel's hyperparameter."""
    sums: list[tuple[Sum, list[int]]] = []
    count = 0

    def visit(part: Node) -> None:
        nonlocal count
        if isinstance(part, Leaf):
            return
        places = []
        for i, operand in enumerate(part.terms if isinstance(part, Sum) else part.factors):
            visit(operand)
            if i and isinstance(part, Sum):
                places.append(count)
                count += 1
        if isinstance(part, Sum):
            sums.append((part, places))

    visit(node)
    return sums


def _shares(splits: Sequence[float]) -> list[float]:
    """Return the shares of the terms of a sum; split i is the share of what is left of term i + 1."""
    shares = []
    rest = 1.0
    for split in reversed(splits):
        shares.append(rest * (1 - split))
        rest *= split
    return [rest, *reversed(shares)]


def _at_peaks(model: Model, kernel: Composite, peaks: Mapping[int, FloatArray]) -> dict[str, FloatArray]:
    """Return coordinates of each period by label: the peaks of its column, rotated for each leaf of the column."""
    prior = next((h.prior for h in model.hyperparameters if h.name == "period"), None)
    if not isinstance(prior, LogNormal):
        return {}
    periods: dict[str, FloatArray] = {}
    earlier: dict[int, int] = {}
    for leaf in kernel.plan(model.encoder).leaves:
        if "period" not in leaf.places or leaf.columns[0] not in peaks:
            continue
        column = leaf.columns[0]
        tops = np.roll(peaks[column], -earlier.get(column, 0))
        earlier[column] = earlier.get(column, 0) + 1
        location, scale = (np.atleast_1d(v)[leaf.places["period"].start % np.size(v)] for v in (prior.mu, prior.sigma))
        periods[leaf.label] = (np.log(tops) - location) / scale if scale > 0 else np.zeros(len(tops))
    return periods


def _quarter_periods(model: Model, kernel: Composite, peaks: Mapping[int, FloatArray]) -> dict[str, float]:
    """Return the coordinates of short stationary length-scales by label."""
    h = next((h for h in model.hyperparameters if h.name == "lengthscale"), None)
    if h is None or h.labels is None or not isinstance(h.prior, LogNormal):
        return {}
    location, scale = (np.broadcast_to(v, h.shape) for v in (h.prior.mu, h.prior.sigma))
    short: dict[str, float] = {}
    for leaf in kernel.plan(model.encoder).leaves:
        if not leaf.stationary:
            continue
        for i, column in enumerate(leaf.columns, start=leaf.places["lengthscale"].start):
            short[h.labels[i]] = quarter_of_period(peaks.get(column, np.empty(0)), location[i], scale[i])
    return short
