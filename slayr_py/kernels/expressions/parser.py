"""The text of an expression as a tree, by recursive descent.

    expression = product ("+" product)*
    product    = factor ("*" factor)*
    factor     = "(" expression ")"  |  name [ "[" column ("," column)* "]" ]

A name is one of `LEAVES` or of the caller's further leaves; a column is the name of a parameter, in double quotes if it
is empty, begins or ends with a blank or contains one of ``, [ ] ( ) "``. Blanks around all parts are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.expressions.language import CONSTANT, PLAIN_COLUMN, Leaf, Node, add, multiply
from slayr_py.kernels.expressions.leaf_kernels import LEAVES

MOST_NESTING = 100
"""Largest depth of nested brackets. Every level needs three nested calls, of which Python allows 1000 by default."""

NAME = re.compile(r"[^\W\d]\w*")
QUOTED_COLUMN = re.compile(r'"((?:[^"\\]|\\["\\])*)"')


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
        If the text is not an expression (the message shows the place), or a name in `given` is not a word or is in
        `LEAVES`.

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
        raise DataError(f"the expression is {text!r}; use a string such as 'LIN * PER + SE'")
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
        return add(*terms)

    def product(self) -> Node:
        factors = [self.factor()]
        while self.next == "*":
            self.skip(1)
            factors.append(self.factor())
        return multiply(*factors)

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
            raise self.error(f"{name} cannot have columns", "remove them")
        return Leaf(name, self.columns())

    def columns(self) -> tuple[str, ...]:
        opened = self.at
        self.skip(1)
        if self.next == "]":
            raise self.error("empty list of columns", "name parameters, or remove the brackets to use all", opened)
        columns: list[str] = []
        while True:
            start = self.at
            column = self.column(opened)
            if column in columns:
                raise self.error(f"repeated column {column!r}", "name each parameter once", start)
            columns.append(column)
            if self.next == "]":
                self.skip(1)
                return tuple(columns)
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
