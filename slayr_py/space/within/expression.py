"""Parse comparisons of arithmetic expressions, and evaluate them with their derivatives.

An expression has numbers, names of parameters, ``+ - * / **``, brackets, and the functions abs, exp, log and sqrt. A
name that is not an identifier stands in backticks. Python's parser reads the text, with placeholders for names that it
would change or take for keywords; only the nodes listed here are interpreted, and nothing is executed.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from slayr_py.errors import SpaceError
from slayr_py.space.dimension import FloatArray

_LONGEST = 1000  # characters: Python's parser uses the stack
_NAMES = re.compile(r"`([^`]+)`|(?<![\w.])(?:[^\W\d]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*")
_PLACEHOLDER = "_quoted"
_FORM = 'write a comparison of numbers such as "x1 + x2 <= 1", "2*a - b >= 0.5" or "a * b == 3"'

_Slope = TypeVar("_Slope", float, FloatArray)

Value = tuple[FloatArray, dict[str, FloatArray]]
"""Values (n,) and their derivatives (n,) by name."""

_FUNCTIONS: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "abs": (np.abs, np.sign),
    "exp": (np.exp, np.exp),
    "log": (np.log, lambda x: 1 / x),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
}


@dataclass(frozen=True)
class Comparison:
    """A comparison: the difference of its sides is not positive or, of an equality, 0.

    Attributes
    ----------
    text : str
    names : tuple of str
        Parameters that it reads.
    is_equality : bool
    """

    text: str
    names: tuple[str, ...]
    is_equality: bool
    _difference: ast.expr
    _aliases: Mapping[str, str]

    def evaluate(self, values: Mapping[str, FloatArray]) -> Value:
        """Return the difference (n,) and its derivatives at n values of each parameter; NaN where it is undefined."""
        count = len(values[self.names[0]])
        with np.errstate(all="ignore"):
            aliased = {alias: values[name] for alias, name in self._aliases.items()}
            value, slopes = _evaluate(self._difference, aliased, count)
        return value, self._by_name(slopes)

    def size(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Return the sum of the sizes of the terms (n,), of which double precision keeps a share of 1e-16."""
        count = len(values[self.names[0]])
        with np.errstate(all="ignore"):
            return _size(self._difference, {alias: values[name] for alias, name in self._aliases.items()}, count)

    def linear_form(self) -> tuple[dict[str, float], float] | None:
        """Return the coefficients by name and the constant of the difference; None if it is not linear."""
        form = _linear(self._difference)
        return None if form is None else (self._by_name(form[0]), form[1])

    def _by_name(self, slopes: Mapping[str, _Slope]) -> dict[str, _Slope]:
        """Return slopes by name; a quoted name has an alias at each of its places."""
        found: dict[str, _Slope] = {}
        for alias, slope in slopes.items():
            name = self._aliases[alias]
            found[name] = found[name] + slope if name in found else slope
        return found


def parse(text: str) -> list[Comparison]:
    """Parse a text; a chain such as ``"1 <= a + b <= 2"`` has several comparisons.

    Raises
    ------
    SpaceError
        If the text is not a comparison of arithmetic expressions.
    """
    aliases: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        if match[1] is None and not _is_read_differently(match[0]):
            return match[0]
        alias = f"{_PLACEHOLDER}{len(aliases)}"
        aliases[alias] = match[1] or match[0]
        return alias

    what = f"the constraint {text!r:.200}"
    try:
        if len(text) > _LONGEST:
            raise SpaceError(f"{what} has more than {_LONGEST} characters; pass a function")
        root = ast.parse(_NAMES.sub(placeholder, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise SpaceError(f"{what} is not a comparison; {_FORM}") from None
    if not isinstance(root, ast.Compare):
        raise SpaceError(f"{what} is not a comparison; {_FORM}")
    sides = [root.left, *root.comparators]
    try:
        for side in sides:
            _check(side, what)
            _linear(side)
    except OverflowError:
        raise SpaceError(f"{what} has a number beyond {sys.float_info.max:.1e}; write it in other units") from None
    comparisons = []
    for left, relation, right in zip(sides, root.ops, sides[1:], strict=False):
        if isinstance(relation, ast.GtE | ast.Gt):
            left, right = right, left
        elif not isinstance(relation, ast.LtE | ast.Lt | ast.Eq):
            raise SpaceError(f"{what} has another relation than <=, >= and ==; {_FORM}")
        difference = ast.BinOp(left, ast.Sub(), right)
        found = {alias: aliases.get(alias, alias) for alias in _parameters(difference)}
        if not found:
            raise SpaceError(f"{what} compares numbers and no parameter; {_FORM}")
        names = tuple(dict.fromkeys(found.values()))
        comparisons.append(Comparison(text, names, isinstance(relation, ast.Eq), difference, found))
    return comparisons


def _is_read_differently(word: str) -> bool:
    """Return whether Python reads a name as a keyword or another identifier, or it may be that of a placeholder."""
    changed = word.isidentifier() and unicodedata.normalize("NFKC", word) != word
    return keyword.iskeyword(word) or changed or word.startswith(_PLACEHOLDER)


def _parameters(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    for child in node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node):
        yield from _parameters(child)


def _check(node: ast.expr, what: str) -> None:
    """Check that an expression has only known parts."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        if not math.isfinite(node.value):
            raise SpaceError(f"{what} has the number {node.value}, which is not finite")
    elif isinstance(node, ast.Name):
        pass
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand, what)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        _check(node.left, what)
        _check(node.right, what)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        if _number(node.right) is None:
            raise SpaceError(f"{what} has an exponent that is not a number; write exp(b * log(a)) for a ** b")
        _check(node.left, what)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if len(node.args) != 1 or node.keywords:
            raise SpaceError(f"{what}: {node.func.id} takes one argument")
        _check(node.args[0], what)
    else:
        part = ast.unparse(node)
        known = ", ".join(_FUNCTIONS)
        raise SpaceError(
            f"{what} has {part!r:.80}, which is not arithmetic; it may have numbers, parameters, + - * / **, {known}"
            "; pass a function of the configuration for anything else"
        )


def _number(node: ast.expr) -> float | None:
    """Return the value of an expression without parameters."""
    form = _linear(node)
    return form[1] if form is not None and not form[0] else None


def _size(node: ast.expr, values: Mapping[str, FloatArray], count: int) -> FloatArray:
    if isinstance(node, ast.UnaryOp):
        return _size(node.operand, values, count)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs":
        return _size(node.args[0], values, count)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _size(node.left, values, count) + _size(node.right, values, count)
    return np.abs(_evaluate(node, values, count)[0])


def _evaluate(node: ast.expr, values: Mapping[str, FloatArray], count: int) -> Value:
    if isinstance(node, ast.Constant):
        return np.full(count, float(node.value)), {}  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return values[node.id], {node.id: np.ones(count)}
    if isinstance(node, ast.UnaryOp):
        value, slopes = _evaluate(node.operand, values, count)
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        return sign * value, {name: sign * slope for name, slope in slopes.items()}
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        inner, slopes = _evaluate(node.args[0], values, count)
        function, derivative = _FUNCTIONS[node.func.id]
        outer = derivative(inner)
        return function(inner), {name: outer * slope for name, slope in slopes.items()}
    assert isinstance(node, ast.BinOp)
    left, by_left = _evaluate(node.left, values, count)
    if isinstance(node.op, ast.Pow):
        power = _number(node.right)
        assert power is not None
        outer = power * left ** (power - 1) if power != 0 else np.zeros(count)
        return left**power, {name: outer * slope for name, slope in by_left.items()}
    right, by_right = _evaluate(node.right, values, count)
    value, (factor, other) = _combine(node.op, left, right)
    slopes = {}
    for name in by_left.keys() | by_right.keys():
        slopes[name] = np.asarray(factor * by_left.get(name, 0.0) + other * by_right.get(name, 0.0))
    return value, slopes


def _combine(
    operator: ast.operator, left: FloatArray, right: FloatArray
) -> tuple[FloatArray, tuple[FloatArray | float, FloatArray | float]]:
    """Return the value of an operation, and its derivatives by both sides."""
    if isinstance(operator, ast.Add):
        return left + right, (1.0, 1.0)
    if isinstance(operator, ast.Sub):
        return left - right, (1.0, -1.0)
    if isinstance(operator, ast.Mult):
        return left * right, (right, left)
    return left / right, (1 / right, -left / right**2)


def _linear(node: ast.expr) -> tuple[dict[str, float], float] | None:
    """Return coefficients and constant of a linear expression, None of any other."""
    if isinstance(node, ast.Constant):
        return {}, float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return {node.id: 1.0}, 0.0
    if isinstance(node, ast.UnaryOp):
        return _scaled(_linear(node.operand), -1.0 if isinstance(node.op, ast.USub) else 1.0)
    if not isinstance(node, ast.BinOp):
        return None
    left = _linear(node.left)
    right = _linear(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add | ast.Sub):
        added = _scaled(right, -1.0 if isinstance(node.op, ast.Sub) else 1.0)
        assert added is not None
        names = left[0].keys() | added[0].keys()
        return {name: left[0].get(name, 0.0) + added[0].get(name, 0.0) for name in names}, left[1] + added[1]
    if isinstance(node.op, ast.Mult):
        if not left[0]:
            return _scaled(right, left[1])
        return None if right[0] else _scaled(left, right[1])
    if isinstance(node.op, ast.Div):
        return None if right[0] or right[1] == 0 else _scaled(left, 1 / right[1])
    return ({}, left[1] ** right[1]) if not left[0] and not right[0] and left[1] > 0 else None


def _scaled(form: tuple[dict[str, float], float] | None, factor: float) -> tuple[dict[str, float], float] | None:
    if form is None:
        return None
    return {name: factor * coefficient for name, coefficient in form[0].items()}, factor * form[1]
