"""Trajectories of the generator as expressions, and their truncations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from slayr_py.kernels.expressions import Leaf, Node, add, canonical, multiply
from slayr_py.search.strategies.generator import Trajectory


def trajectory_node(trajectory: Trajectory, base: Sequence[Leaf]) -> Node:
    """Return the canonical expression of a trajectory, a sum of products of base kernels."""
    total: Node | None = None
    for term in trajectory:
        product: Node = base[term[0]]
        for symbol in term[1:]:
            product = multiply(product, base[symbol])
        total = product if total is None else add(total, product)
    assert total is not None
    return canonical(total)


def truncations(trajectory: Trajectory) -> Iterator[Trajectory]:
    """Yield truncations of a trajectory: itself, then its prefixes from the longest on, then the others.

    A truncation has the first terms of a trajectory and the first factors of each of these terms.
    """
    n_terms = len(trajectory)
    for m in range(n_terms, 0, -1):
        for n in range(len(trajectory[m - 1]), 0, -1):
            yield (*trajectory[: m - 1], trajectory[m - 1][:n])
    for m in range(n_terms, 1, -1):
        for lengths in itertools.product(*(range(len(term), 0, -1) for term in trajectory[:m])):
            if any(n < len(term) for n, term in zip(lengths[:-1], trajectory, strict=False)):
                yield tuple(term[:n] for n, term in zip(lengths, trajectory, strict=False))
