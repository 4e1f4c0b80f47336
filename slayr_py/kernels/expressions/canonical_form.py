"""The canonical form of expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slayr_py.kernels.expressions.language import (
    CONSTANT,
    Leaf,
    Node,
    Product,
    Sum,
    add,
    factors_of,
    multiply,
    spell,
    terms_of,
)


def canonical(node: Node) -> Node:
    """Return the canonical form, which is equal for expressions that differ only by simple rules.

    Sums and products are flattened and sorted, as are columns. The constant is dropped beside another factor. Several
    constants in a sum become one, as do squared-exponential factors of the same columns, whose inverse squared
    length-scales add up. Products are not multiplied out.

    Examples
    --------
    >>> from slayr_py.kernels.expressions import parse
    >>> spell(canonical(parse("SE * C * (RQ + SE * SE + LIN)")))
    '(LIN + RQ + SE) * SE'
    """
    if isinstance(node, Sum):
        terms = [term for part in node.terms for term in terms_of(canonical(part))]
        return add(*sorted(_merged(terms, lambda term: term == CONSTANT), key=spell))
    if isinstance(node, Product):
        factors = [factor for part in node.factors for factor in factors_of(canonical(part))]
        varying = [factor for factor in factors if factor != CONSTANT] or [CONSTANT]
        merged = _merged(varying, lambda factor: isinstance(factor, Leaf) and factor.name == "SE")
        return multiply(*sorted(merged, key=spell))
    return node if node.columns is None else Leaf(node.name, tuple(sorted(node.columns)))


def _merged(nodes: Sequence[Node], merges: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes, with equal ones that can be merged only once."""
    return [node for place, node in enumerate(nodes) if not merges(node) or node not in nodes[:place]]
