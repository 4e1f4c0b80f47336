"""Moves between expressions of kernels, and a prior over expressions.

All expressions are in canonical form, see :func:`slayr_py.kernels.expressions.canonical`. The order of a result depends
on the arguments only, never on hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, zip_longest

import numpy as np

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels import MOST_LEAVES
from slayr_py.kernels.expressions import CONSTANT, LEAVES, Leaf, Node, Product, Sum, add, canonical, leaves, multiply
from slayr_py.space import Layout

P_LEAF = 18 / 28
P_SUM = 5 / 28
P_PRODUCT = 5 / 28
"""Probabilities of the grammar's rules: an expression is a base kernel, a sum or a product of two expressions.

The expected number of leaves is P_LEAF / (2 P_LEAF - 1) = 2.25. AutoGP.jl has the same weights.
"""

_NEEDS_ORDER = frozenset(name for name, leaf in LEAVES.items() if leaf.reads == "numbers")

Parts = tuple[Node, ...]
Replace = Callable[[Node], Node]


def base_leaves(
    encoder: Layout, names: Sequence[str], given: Collection[str] = (), single: bool = True
) -> tuple[Leaf, ...]:
    """Return the base kernels of a search: each on all parameters, and on each parameter alone if there are several.

    PER and LIN read real and ordinal parameters only; on a space with categorical parameters, "all" means all others.

    Parameters
    ----------
    encoder : Layout
    names : sequence of str
        Names in `LEAVES`.
    given : collection of str
        Names of further leaves, which take no columns.
    single : bool
        Whether to use base kernels on each of several parameters alone.

    Returns
    -------
    tuple of Leaf
        Base kernels of all parameters first.

    Raises
    ------
    DataError
        For an unknown name, or if there is no base kernel.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> from slayr_py.kernels.expressions import spell
    >>> space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    >>> [spell(leaf) for leaf in base_leaves(Layout(space), ["SE", "PER"])]
    ['SE', 'PER', 'SE[x]', 'PER[x]', 'SE[y]', 'PER[y]']
    """
    for name in names:
        if name not in LEAVES:
            raise DataError(f"unknown base kernel {name!r}{did_you_mean(name, LEAVES)}")
    wide = [leaf for name in names for leaf in _on_all(encoder, name)] + [Leaf(name) for name in given]
    narrow = [
        Leaf(name, (d.name,))
        for d in (encoder.dimensions if single and len(encoder.dimensions) > 1 else ())
        for name in names
        if name != CONSTANT.name and (d.kind != "categorical" or name not in _NEEDS_ORDER)
    ]
    base = tuple(dict.fromkeys([*wide, *narrow]))
    if not base:
        raise DataError(
            f"there is no base kernel: {', '.join(names)}, and all parameters are categorical; name "
            "some that read categorical parameters, such as SE and MAT52"
            if names
            else "there is no base kernel; name one or more, such as SE, RQ, PER and LIN"
        )
    return base


def _on_all(encoder: Layout, name: str) -> list[Leaf]:
    """Return the leaf on all parameters that the kernel can read; nothing if there are no such parameters."""
    if name not in _NEEDS_ORDER or all(d.kind != "categorical" for d in encoder.dimensions):
        return [Leaf(name)]
    columns = tuple(sorted(d.name for d in encoder.dimensions if d.kind != "categorical"))
    return [Leaf(name, columns)] if columns else []


def expansions(node: Node, base: Sequence[Leaf], max_leaves: int = MOST_LEAVES) -> tuple[Node, ...]:
    """Return the neighbours of an expression, one move away.

    The moves are S -> S + B, S -> S * B and S -> S * (B + C) for every subexpression S and base kernel B, with the
    constant C; B -> B' for every leaf; and the deletion of a leaf [1]_, [2]_. A subexpression is the whole, or any
    term or factor at any depth. S * (B + C) is left out for the linear kernel, which contains a constant, and so is SE
    as a factor beside SE of more parameters.

    Parameters
    ----------
    node : Node
    base : sequence of Leaf
    max_leaves : int
        Larger expressions are left out.

    Returns
    -------
    tuple of Node
        Distinct and without `node`. The kinds of moves take turns. Within a kind, base kernels of several parameters
        come before base kernels of one, and the whole comes before its parts.

    References
    ----------
    .. [1] D. Duvenaud et al. (2013), Structure discovery in nonparametric regression through compositional kernel
       search.
    .. [2] J. R. Lloyd et al. (2014), Automatic construction and natural-language description of nonparametric
       regression models.

    Examples
    --------
    >>> from slayr_py.kernels.expressions import parse, spell
    >>> [spell(near) for near in expansions(parse("SE"), [Leaf("SE"), Leaf("PER")])]
    ['SE + SE', '(C + SE) * SE', 'PER + SE', 'PER * SE', 'PER', '(C + PER) * SE']
    """
    node = canonical(node)
    places = list(_places(node))
    wide = [leaf for leaf in base if leaf.columns is None or len(leaf.columns) > 1]
    narrow = [leaf for leaf in base if leaf not in wide]
    grown = [(part, rebuild, leaf) for group in (wide, narrow) for part, rebuild in places for leaf in group]
    kinds: list[Iterable[Node]] = [
        (rebuild(add(part, leaf)) for part, rebuild, leaf in grown),
        (rebuild(multiply(part, leaf)) for part, rebuild, leaf in grown),
        (rebuild(leaf) for part, rebuild, leaf in grown if isinstance(part, Leaf)),
        (rebuild(multiply(part, add(leaf, CONSTANT))) for part, rebuild, leaf in grown if leaf.name != "LIN"),
        _shorten(node),
    ]
    in_turn = (near for near in chain.from_iterable(zip_longest(*kinds)) if near is not None)
    distinct = dict.fromkeys(map(canonical, in_turn))
    return tuple(
        near for near in distinct if near != node and len(leaves(near)) <= max_leaves and not _is_redundant(near)
    )


def _is_redundant(node: Node) -> bool:
    """Return whether a product has a squared-exponential factor beside one that reads the same columns and more.

    Inverse squared length-scales add up, so that the expression without it describes the same kernels.
    """
    if isinstance(node, Leaf):
        return False
    factors = node.factors if isinstance(node, Product) else ()
    columns = [factor.columns for factor in factors if isinstance(factor, Leaf) and factor.name == "SE"]
    narrow = [set(names) for names in columns if names is not None]
    covered = None in columns and narrow or any(a < b for a in narrow for b in narrow)
    return bool(covered) or any(map(_is_redundant, _parts(node)[0]))


def _places(node: Node) -> Iterator[tuple[Node, Replace]]:
    """Yield all subexpressions, the whole first, each with the function that replaces it."""
    yield node, lambda new: new
    if isinstance(node, Leaf):
        return
    parts, join = _parts(node)
    for i, part in enumerate(parts):
        for inner, rebuild in _places(part):
            yield inner, _within(parts[:i], rebuild, parts[i + 1 :], join)


def _within(before: Parts, rebuild: Replace, after: Parts, join: Callable[[Parts], Node]) -> Replace:
    return lambda new: join((*before, rebuild(new), *after))


def _shorten(node: Node) -> Iterator[Node]:
    """Yield the expression without each of its leaves; nothing for a single leaf."""
    if isinstance(node, Leaf):
        return
    parts, join = _parts(node)
    for i, part in enumerate(parts):
        before = parts[:i]
        after = parts[i + 1 :]
        if isinstance(part, Leaf):
            rest = (*before, *after)
            yield join(rest) if len(rest) > 1 else rest[0]
        for shorter in _shorten(part):
            yield join((*before, shorter, *after))


def _parts(node: Sum | Product) -> tuple[Parts, Callable[[Parts], Node]]:
    return (node.terms, Sum) if isinstance(node, Sum) else (node.factors, Product)


def sample_expression(rng: np.random.Generator, base: Sequence[Leaf], max_leaves: int) -> Node:
    """Draw an expression from the grammar's prior, given that it has at most ``max_leaves`` leaves.

    An expression is a base kernel with probability `P_LEAF`, all being equally likely, and otherwise a sum or a product
    of two independent expressions. Larger draws are rejected as a whole: the others keep the ratios of
    their probabilities. Leaves are counted before the canonical form merges any.
    """
    while True:
        rules = _derivation(rng, max_leaves)
        if rules is not None:
            break
    operands: list[Node] = []
    for rule in reversed(rules):
        if rule == "leaf":
            operands.append(base[int(rng.integers(len(base)))])
        else:
            join = add if rule == "sum" else multiply
            operands.append(join(operands.pop(), operands.pop()))
    return canonical(operands[0])


def _derivation(rng: np.random.Generator, max_leaves: int) -> list[str] | None:
    """Return the rules of a derivation in prefix order; None if it has too many leaves."""
    rules: list[str] = []
    open_expressions = 1
    size = 1
    while open_expressions:
        rule = str(rng.choice(["leaf", "sum", "product"], p=[P_LEAF, P_SUM, P_PRODUCT]))
        rules.append(rule)
        open_expressions += -1 if rule == "leaf" else 1
        size += rule != "leaf"
        if size > max_leaves:
            return None
    return rules


def log_prior(node: Node, n_base: int = 1) -> float:
    """Return the log probability of one derivation of an expression, up to a constant.

    A derivation is a binary tree with the leaves and operators of the expression. A tree of n leaves has n - 1
    operators, and both operators have the same probability, so all these trees have the same value. The value ignores
    how many trees and orders of operands lead to the same expression, and the limit on the number of leaves.

    Parameters
    ----------
    node : Node
    n_base : int
        Number of base kernels among which each leaf is drawn.
    """
    n = len(leaves(node))
    return float(n * np.log(P_LEAF / n_base) + (n - 1) * np.log(P_SUM))
