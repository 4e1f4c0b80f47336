"""Nearly optimal configurations: more of those whose regret is probably small than the search for optima has met.

The drawn functions and their minima are known, and with them the regret of any configuration. Rounds of proposals
extend the pool outward from the nearly optimal configurations at the ends of each number's range, and towards the
levels that none of them has. A step along one parameter does not reach the end of its range: the others move too,
towards the middle of theirs or, along a ridge, together with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.candidates import Candidates, perturb
from slayr_py.acquisition.optimum import Optima
from slayr_py.space import Encoder, FloatArray

_ROUNDS = 16  # at most; chosen by hand, as all numbers below
_PROPOSALS = 240  # in a round, shared by the targets
_PARENTS = 3  # of each target
_PATIENCE = 3  # rounds without growth, after which no more follow
_GROWTH = 0.01  # of the width of a range; less is none
_DECADES = 2.5  # of the sizes of steps
_LARGEST = 0.3  # step where no range has a width yet


class _Target(NamedTuple):
    """An end of a number's range, or another level, or a smaller regret, which proposals shall reach."""

    parents: NDArray[np.intp]
    """Rows of the configurations that are moved."""
    column: int
    """The parameter; -1 for a smaller regret."""
    sign: float
    """Direction of a number; 0 for a level, which the parents have but no nearly optimal configuration."""
    least: float
    """The smallest step of a number, that of an integer."""


def extend_pool(optima: Optima, epsilon: float, probability: float, rng: np.random.Generator) -> Optima:
    """Extend the pool by configurations whose regret is below ``epsilon`` with this probability, and by others.

    The minima of the functions stay. Where no configuration of the pool is near enough, those with the smallest regrets
    are improved first, in the same way for every ``epsilon``.
    """
    pool = Candidates.at(optima.pool, rng, optima.fixed)
    lowest = optima.draws.sign * optima.values[:, None]
    regrets = [optima.regrets]
    bounds = _bounds(optima.regrets, probability)
    widths = _widths(pool, bounds < epsilon)
    idle = 0
    for _ in range(_ROUNDS):
        known = len(pool)
        targets = _targets(optima, pool, bounds, bounds < epsilon)
        if targets:
            pool = pool.join(_proposals(optima, pool, targets, bounds < epsilon, rng))
        if len(pool) == known:
            break
        regrets.append(np.maximum(optima.draws(pool.encoded[known:]) - lowest, 0.0))
        bounds = np.append(bounds, _bounds(regrets[-1], probability))
        before, widths = widths, _widths(pool, bounds < epsilon)
        idle = idle + 1 if np.any(bounds < epsilon) and np.all(widths - before <= _GROWTH * widths) else 0
        if idle == _PATIENCE:
            break
    return optima._replace(pool=pool.encoded, regrets=np.hstack(regrets))


def _bounds(regrets: FloatArray, probability: float) -> FloatArray:
    """Return the regrets (m,) that m configurations do not exceed with this probability."""
    return np.asarray(np.quantile(regrets, probability, axis=0, method="inverted_cdf"))


def _widths(pool: Candidates, near: NDArray[np.bool_]) -> FloatArray:
    """Return the width of each number's range, and the number of each other parameter's levels, (D,)."""
    widths = np.zeros(pool.genotypes.shape[1])
    for j, d in enumerate(pool.encoded.encoder.dimensions):
        values = pool.encoded.unit_values[near & pool.encoded.active[:, j], j]
        if len(values):
            widths[j] = np.ptp(values) if d.is_real else len(np.unique(values))
    return widths


def _targets(optima: Optima, pool: Candidates, bounds: FloatArray, near: NDArray[np.bool_]) -> list[_Target]:
    order = np.argsort(bounds, kind="stable")[: np.isfinite(bounds).sum()]
    if not near.any():
        return [_Target(order[:_PARENTS], -1, 0.0, 0.0)] if len(order) else []
    targets = []
    for j, d in enumerate(pool.encoded.encoder.dimensions):
        if optima.fixed is not None and j in optima.fixed.columns:
            continue
        values, active = pool.encoded.unit_values[:, j], pool.encoded.active[:, j]
        if not d.is_real:
            for level in np.setdiff1d(values[order][active[order]], values[active & near]):
                rows = order[active[order] & (values[order] == level)]
                targets.append(_Target(rows[:_PARENTS], j, 0.0, 0.0))
            continue
        rows = np.flatnonzero(active & near)
        rows = rows[np.argsort(values[rows], kind="stable")]
        for sign, limit, ends in ((-1.0, 0.0, rows[:_PARENTS]), (1.0, 1.0, rows[::-1][:_PARENTS])):
            if len(ends) and values[ends[0]] != limit:
                steps = np.abs(d.neighbours(float(values[ends[0]])) - values[ends[0]])
                targets.append(_Target(ends, j, sign, float(steps.max(initial=0.0))))
    return targets


def _proposals(
    optima: Optima, pool: Candidates, targets: list[_Target], near: NDArray[np.bool_], rng: np.random.Generator
) -> Candidates:
    """Return configurations that may reach the targets.

    Each parent moves towards a nearly optimal configuration, away from it, or anywhere. In all three cases the number
    of its target moves outward.
    """
    encoder = pool.encoded.encoder
    assert isinstance(encoder, Encoder)
    which = np.resize(rng.permutation(len(targets)), _PROPOSALS)
    parents = np.array([rng.choice(targets[i].parents) for i in which])
    partners = rng.choice(np.flatnonzero(near), _PROPOSALS) if near.any() else rng.permutation(parents)
    columns, signs, least = np.array([targets[i][1:] for i in which]).T
    # Constraints on inputs may have moved a configuration away from its genotype.
    active = pool.encoded.active
    genotypes = np.where(active, pool.encoded.unit_values, pool.genotypes)
    centres = genotypes[parents]
    real = np.array([d.is_real for d in encoder.dimensions])
    widths = np.where(real, _widths(pool, near), 0.0)
    widest = np.log10(widths.max() or _LARGEST)
    kind, share = rng.integers(3, size=(_PROPOSALS, 1)), rng.random((_PROPOSALS, 1))
    size = 10 ** (-_DECADES * rng.random((_PROPOSALS, 1)))
    apart = np.where(real & active[parents] & active[partners], genotypes[partners] - centres, 0.0)
    anywhere = perturb(encoder, centres, rng, (widest - _DECADES, widest))
    moved = np.where(kind == 2, anywhere, centres + np.where(kind == 0, share, -size) * apart)
    rows = np.flatnonzero(columns >= 0)
    places = rows, columns[rows].astype(np.intp)
    along = size[rows, 0] * np.where(widths[places[1]] > 0, widths[places[1]], _LARGEST)
    steps = np.where(kind[rows, 0] == 0, along, np.abs(moved - centres)[places])
    moved[places] = centres[places] + signs[rows] * np.maximum(steps, least[rows])
    moved[:, real] = np.clip(moved[:, real], 0.0, 1.0)
    return Candidates.of(encoder, moved, optima.fixed)
