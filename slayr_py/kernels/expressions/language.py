"""Expressions of kernels: trees of sums and products of named kernels, their text and their canonical form.

The functions expect trees that :func:`~slayr_py.kernels.expressions.parser.parse`, `add` and `multiply` can build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

PLAIN_COLUMN = re.compile(r'[^,\[\]()"]+')


@dataclass(frozen=True)
class Leaf:
    """A named kernel.

    Attributes
    ----------
    name : str
    columns : tuple of str, optional
        Distinct names of the parameters that the kernel reads, at least one; None for all parameters.
    """

    name: str
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Sum:
    """A sum of at least two terms, none of them a sum."""

    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Product:
    """A product of at least two factors, none of them a product."""

    factors: tuple[Node, ...]


Node = Leaf | Sum | Product

CONSTANT = Leaf("C")


def spell(node: Node) -> str:
    """Return the text of an expression, with as few brackets as possible; `parse` inverts it.

    Examples
    --------
    >>> from slayr_py.kernels.expressions import parse
    >>> spell(parse('(LIN*PER) + SE[x1, "act"]'))
    'LIN * PER + SE[x1,act]'
    """
    if isinstance(node, Sum):
        return " + ".join(map(spell, node.terms))
    if isinstance(node, Product):
        return " * ".join(f"({spell(factor)})" if isinstance(factor, Sum) else spell(factor) for factor in node.factors)
    if node.columns is None:
        return node.name
    return f"{node.name}[{','.join(map(spell_column, node.columns))}]"


def spell_column(name: str) -> str:
    """Return the text of a column, in quotes where the language needs them."""
    if PLAIN_COLUMN.fullmatch(name) and name == name.strip():
        return name
    return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def leaves(node: Node) -> tuple[Leaf, ...]:
    """Return the leaves in reading order."""
    if isinstance(node, Leaf):
        return (node,)
    parts = node.terms if isinstance(node, Sum) else node.factors
    return tuple(leaf for part in parts for leaf in leaves(part))


def add(*nodes: Node) -> Node:
    """Return the sum of at least one node; sums become one sum."""
    terms = tuple(term for node in nodes for term in terms_of(node))
    return Sum(terms) if len(terms) > 1 else terms[0]


def multiply(*nodes: Node) -> Node:
    """Return the product of at least one node; products become one product."""
    factors = tuple(factor for node in nodes for factor in factors_of(node))
    return Product(factors) if len(factors) > 1 else factors[0]


def terms_of(node: Node) -> tuple[Node, ...]:
    """Return the terms of a sum, or the node itself."""
    return node.terms if isinstance(node, Sum) else (node,)


def factors_of(node: Node) -> tuple[Node, ...]:
    """Return the factors of a product, or the node itself."""
    return node.factors if isinstance(node, Product) else (node,)


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """Return the expression with other names of given leaves, which are all renamed together."""
    if isinstance(node, Leaf):
        return Leaf(names.get(node.name, node.name), node.columns)
    if isinstance(node, Sum):
        return Sum(tuple(rename(term, names) for term in node.terms))
    return Product(tuple(rename(factor, names) for factor in node.factors))


def canonical(node: Node) -> Node:
    """Return the canonical form, which is the same for expressions that simple rules transform into each other.

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
        return add(*sorted(_merge(terms, lambda term: term == CONSTANT), key=spell))
    if isinstance(node, Product):
        factors = [factor for part in node.factors for factor in factors_of(canonical(part))]
        varying = [factor for factor in factors if factor != CONSTANT] or [CONSTANT]
        merged = _merge(varying, lambda factor: isinstance(factor, Leaf) and factor.name == "SE")
        return multiply(*sorted(merged, key=spell))
    return node if node.columns is None else Leaf(node.name, tuple(sorted(node.columns)))


def _merge(nodes: Sequence[Node], merges: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes without repetitions of nodes that can be merged."""
    return [node for place, node in enumerate(nodes) if not merges(node) or node not in nodes[:place]]
