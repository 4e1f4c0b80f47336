"""Expressions of kernels: sums and products of named kernels as text and as trees.

    expression = product ("+" product)*
    product    = factor ("*" factor)*
    factor     = "(" expression ")"  |  name [ "[" column ("," column)* "]" ]

A name is one of `LEAVES` or of the caller's further leaves; a column is the name of a parameter, in double quotes if it
is empty, begins or ends with a blank or contains one of ``, [ ] ( ) "``. Blanks around all parts are skipped.

The functions expect trees that `parse`, `add` and `multiply` can build. `canonical` also accepts sums in sums and
products in products.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from slayr_py.errors import DataError, did_you_mean

LEAVES = ("SE", "RQ", "PER", "LIN", "MAT12", "MAT32", "MAT52", "C")

MOST_NESTING = 100
"""Brackets inside each other. Every level takes three calls of Python, whose default limit is 1000."""

MOST_TERMS = 1000
"""Terms of a distributed expression: their number can grow exponentially with the number of leaves."""

NAME = re.compile(r"[^\W\d]\w*")
PLAIN_COLUMN = re.compile(r'[^,\[\]()"]+')
QUOTED_COLUMN = re.compile(r'"((?:[^"\\]|\\["\\])*)"')


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


def parse(text: str, given: Collection[str] = ()) -> Node:
    """Return the tree of an expression.

    Parameters
    ----------
    text : str
    given : collection of str
        Names of further leaves, which take no columns.

    Raises
    ------
    DataError
        If the text is no expression; the message shows the place. If a name in `given` is no word or is in `LEAVES`.

    Examples
    --------
    >>> parse("LIN + SE[x1]")
    Sum(terms=(Leaf(name='LIN', columns=None), Leaf(name='SE', columns=('x1',))))
    """
    for name in given:
        if not isinstance(name, str) or not NAME.fullmatch(name) or name in LEAVES:
            raise DataError(
                f"a given kernel must have a name of letters, digits and underscores that is not one of "
                f"{', '.join(LEAVES)}; got {name!r}"
            )
    if not isinstance(text, str):
        raise DataError(f"an expression must be a string such as 'LIN * PER + SE', got {text!r}")
    if not text.strip():
        raise DataError("character 1 of the expression: it is empty; write kernels, such as 'LIN * PER + SE'")
    return _Parser(text, given).whole()


class _Parser:
    """Recursive descent over one text; every method starts and ends at a character that is not blank."""

    def __init__(self, text: str, given: Collection[str]) -> None:
        self.text = text
        self.given = given
        self.at = 0
        self.nesting = 0
        self.skip(0)

    @property
    def next(self) -> str:
        """The next character, "" at the end."""
        return self.text[self.at : self.at + 1]

    def skip(self, length: int) -> None:
        """Move behind a token and the blanks after it."""
        self.at += length
        while self.next.isspace():
            self.at += 1

    def error(self, problem: str, way_out: str, at: int | None = None) -> DataError:
        """Return an error with the place, by default the next character, marked in the text around it."""
        at = self.at if at is None else at
        start = max(0, at - 80)
        excerpt = "".join(char if char.isprintable() else " " for char in self.text[start : at + 40])
        before = "..." if start else ""
        after = "..." if at + 40 < len(self.text) else ""
        return DataError(
            f"character {at + 1} of the expression: {problem}; {way_out}\n"
            f"    {before}{excerpt}{after}\n"
            f"    {' ' * (len(before) + at - start)}^"
        )

    def unknown_character(self) -> DataError:
        return self.error(
            f"unknown character {self.next!r}", "use names of kernels, '+', '*', '(', ')' and columns in '[', ']'"
        )

    def whole(self) -> Node:
        node = self.sum()
        if self.next:
            raise self.after_operand()
        return node

    def sum(self) -> Node:
        terms = [self.product()]
        while self.next == "+":
            self.skip(1)
            terms.append(self.product())
        return _join_terms(terms)

    def product(self) -> Node:
        factors = [self.factor()]
        while self.next == "*":
            self.skip(1)
            factors.append(self.factor())
        return _join_factors(factors)

    def factor(self) -> Node:
        if self.next == "(":
            return self.brackets()
        if word := NAME.match(self.text, self.at):
            return self.leaf(word.group())
        if self.next == "" or self.next in "+*)[]":
            place = f"before {self.next!r}" if self.next else "at the end"
            raise self.error(f"a kernel is missing {place}", "write one, or remove the operator or bracket")
        raise self.unknown_character()

    def brackets(self) -> Node:
        opened = self.at
        self.nesting += 1
        if self.nesting > MOST_NESTING:
            raise self.error(f"more than {MOST_NESTING} nested brackets", "remove brackets that change nothing")
        self.skip(1)
        node = self.sum()
        if self.next == "":
            raise self.error("unclosed '('", "add the missing ')'", opened)
        if self.next != ")":
            raise self.after_operand()
        self.nesting -= 1
        self.skip(1)
        return node

    def after_operand(self) -> DataError:
        """Return the error about a character that cannot follow a complete operand."""
        if self.next in ")]":
            return self.error(f"surplus {self.next!r}", "remove it, or open the bracket before")
        if self.next == "[":
            return self.error("columns that follow no kernel", "write them after the name of each, such as SE[x1]")
        if self.next == "(" or NAME.match(self.text, self.at):
            return self.error(
                "an operator is missing", "write '+' or '*'; columns are in square brackets, as in SE[x1]"
            )
        return self.unknown_character()

    def leaf(self, name: str) -> Leaf:
        if name not in LEAVES and name not in self.given:
            known = did_you_mean(name, [*LEAVES, *self.given]).removeprefix("; ")
            raise self.error(f"unknown kernel {name!r}", known)
        self.skip(len(name))
        if self.next != "[":
            return Leaf(name)
        if name == CONSTANT.name or name in self.given:
            raise self.error(f"{name} takes no columns, but has some", "remove them")
        return Leaf(name, self.columns())

    def columns(self) -> tuple[str, ...]:
        opened = self.at
        self.skip(1)
        if self.next == "]":
            raise self.error("empty list of columns", "name parameters, or remove the brackets to use all", opened)
        found: list[str] = []
        while True:
            start = self.at
            column = self.column(opened)
            if column in found:
                raise self.error(f"repeated column {column!r}", "name each parameter once", start)
            found.append(column)
            if self.next == "]":
                self.skip(1)
                return tuple(found)
            if self.next == "":
                raise self.error("unclosed '['", "add the missing ']'", opened)
            if self.next != ",":
                raise self.error(
                    f"unexpected {self.next!r} in columns", "write ',' or ']', or put the whole name in double quotes"
                )
            self.skip(1)

    def column(self, opened: int) -> str:
        """Return the name of a parameter in the brackets that were opened at a place."""
        if self.next == '"':
            quoted = QUOTED_COLUMN.match(self.text, self.at)
            if quoted is None:
                raise self.error(
                    "unclosed quotes",
                    "end the name with '\"', and write '\\\"' and '\\\\' for quotes and backslashes in it",
                )
            self.skip(len(quoted.group()))
            return re.sub(r"\\(.)", r"\1", quoted.group(1))
        if plain := PLAIN_COLUMN.match(self.text, self.at):
            self.skip(len(plain.group()))
            return plain.group().strip()
        if self.next == "":
            raise self.error("unclosed '['", "add the missing ']'", opened)
        if self.next in ",]":
            raise self.error(f"the name of a parameter is missing before {self.next!r}", "write one, or remove the ','")
        raise self.error(
            f"unexpected {self.next!r} in columns", "put the whole name in double quotes, or close the '['"
        )


def spell(node: Node) -> str:
    """Return the text of an expression, with as few brackets as possible; `parse` inverts it.

    Examples
    --------
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


def add(a: Node, b: Node) -> Node:
    """Return a + b; sums become one sum."""
    return _join_terms([a, b])


def multiply(a: Node, b: Node) -> Node:
    """Return a * b; products become one product."""
    return _join_factors([a, b])


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return the expression with other names of given leaves, which are renamed at once."""
    if isinstance(node, Leaf):
        return Leaf(names.get(node.name, node.name), node.columns)
    if isinstance(node, Sum):
        return Sum(tuple(renamed(term, names) for term in node.terms))
    return Product(tuple(renamed(factor, names) for factor in node.factors))


def canonical(node: Node) -> Node:
    """Return the same form for expressions that differ only by simple rules; it describes the same kernels.

    Sums and products are flattened and sorted, as are columns. The constant is dropped beside another factor. Several
    constants in a sum become one, as do squared-exponential factors of the same columns, whose inverse squared
    length-scales add up. Products are not multiplied out.

    Examples
    --------
    >>> spell(canonical(parse("SE * C * (RQ + SE * SE + LIN)")))
    '(LIN + RQ + SE) * SE'
    """
    if isinstance(node, Sum):
        terms = [term for part in node.terms for term in _terms(canonical(part))]
        return _join_terms(sorted(_merged(terms, lambda term: term == CONSTANT), key=spell))
    if isinstance(node, Product):
        factors = [factor for part in node.factors for factor in _factors(canonical(part))]
        varying = [factor for factor in factors if factor != CONSTANT] or [CONSTANT]
        merged = _merged(varying, lambda factor: isinstance(factor, Leaf) and factor.name == "SE")
        return _join_factors(sorted(merged, key=spell))
    return node if node.columns is None else Leaf(node.name, tuple(sorted(node.columns)))


def distribute(node: Node) -> Node:
    """Return the expression with products multiplied out: a sum of products of leaves, or a single product or leaf.

    Raises
    ------
    DataError
        If there were more than `MOST_TERMS` terms.

    Examples
    --------
    >>> spell(distribute(parse("(LIN + C) * (SE + PER)")))
    'LIN * SE + LIN * PER + C * SE + C * PER'
    """
    count = _count_products(node)
    if count > MOST_TERMS:
        raise DataError(
            f"multiplied out, the expression has {count} terms, at most {MOST_TERMS} are possible; "
            "use it as it is, or with fewer sums in products"
        )
    return _join_terms([_join_factors(factors) for factors in _products(node)])


def _count_products(node: Node) -> int:
    if isinstance(node, Sum):
        return sum(map(_count_products, node.terms))
    return math.prod(map(_count_products, node.factors)) if isinstance(node, Product) else 1


def _products(node: Node) -> list[tuple[Leaf, ...]]:
    """Return the factors of every term of the distributed expression."""
    if isinstance(node, Sum):
        return [factors for term in node.terms for factors in _products(term)]
    if isinstance(node, Product):
        choices = itertools.product(*map(_products, node.factors))
        return [tuple(itertools.chain.from_iterable(choice)) for choice in choices]
    return [(node,)]


def _terms(node: Node) -> tuple[Node, ...]:
    return node.terms if isinstance(node, Sum) else (node,)


def _factors(node: Node) -> tuple[Node, ...]:
    return node.factors if isinstance(node, Product) else (node,)


def _join_terms(nodes: Iterable[Node]) -> Node:
    """Return the flattened sum of at least one node."""
    terms = tuple(term for node in nodes for term in _terms(node))
    return Sum(terms) if len(terms) > 1 else terms[0]


def _join_factors(nodes: Iterable[Node]) -> Node:
    """Return the flattened product of at least one node."""
    factors = tuple(factor for node in nodes for factor in _factors(node))
    return Product(factors) if len(factors) > 1 else factors[0]


def _merged(nodes: Sequence[Node], merges: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes, with equal ones that can be merged only once."""
    return [node for place, node in enumerate(nodes) if not merges(node) or node not in nodes[:place]]
