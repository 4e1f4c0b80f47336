r"""Convert formulas of comments, such as ``omega_i^2 exp(-h / 2)``, to LaTeX.

The notation of the comments: names with ``_`` and ``^``, whose scope is a name, a number, brackets or braces; names of
Greek letters and functions; ``sum_{k=0}^p``; ``i in g``; words of more than one letter are upright text. Columns that
are separated by two spaces or more are aligned. Nothing is evaluated and no fraction is built: a formula has the form
in which the comment has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_GREEK = {
    "alpha", "beta", "gamma", "delta", "theta", "lambda", "mu", "nu", "omega", "phi", "pi", "rho", "sigma", "tau",
    "Gamma", "Phi",
}  # fmt: skip
_FUNCTIONS = {
    "asin": r"\arcsin", "cos": r"\cos", "exp": r"\exp", "in": r"\in", "log": r"\log", "max": r"\max", "sin": r"\sin",
}  # fmt: skip
_SIGNS = {
    "<=": r"\le", ">=": r"\ge", "~": r"\sim", "->": r"\to", "...": r"\dots",
    "\\": r"\backslash ", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#",
}  # fmt: skip
_LARGE = {"sum", "prod"}
_WORD = rf"(?!(?:{'|'.join(sorted(_GREEK | (_FUNCTIONS.keys() - {'in'})))})\b)[A-Za-z]{{2,}}"
_TOKEN = re.compile(
    rf"""\(eq\.[ ]\d+\)                          # a source
    | {_WORD}(?:[ ]{_WORD}(?=[\s,.)]|$))+        # words of a sentence
    | [A-Za-z]+ (?:~(?=[\s,)'\]_^]|$))?           # a name, perhaps with a tilde
    | \d+(?:\.\d+)? | \.\.\. | <= | >= | -> | \s+ | .""",
    re.VERBOSE,
)
_OPENING = {"(": ")", "[": "]", "{": "}"}


def to_latex(lines: Sequence[str]) -> str:
    """Convert the lines of a formula, which are aligned at their columns."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    if len(rows) == 1 and len(rows[0]) == 1:
        return formula(rows[0][0])
    if len(rows) == 1:
        return r" \qquad ".join(formula(cell) for cell in rows[0])
    columns = max(len(row) for row in rows)
    body = r" \\ ".join(" & ".join(formula(cell) for cell in row) for row in rows)
    return rf"\begin{{array}}{{{'l' * columns}}} {body} \end{{array}}"


def formula(text: str) -> str:
    """Convert one formula."""
    return "".join(_converted(_TOKEN.findall(text)))


def _converted(tokens: list[str]) -> Iterator[str]:
    position = 0
    while position < len(tokens):
        token = tokens[position]
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        if token in "_^" and following:
            script, position = _scope(tokens, position + 1)
            yield f"{token}{{{script}}}"
        elif token == "sqrt" and following == "(":
            inner, position = _scope(tokens, position + 1)
            yield rf"\sqrt{{{inner}}}"
        elif token.isspace():
            is_script = position > 1 and tokens[position - 2] in "_^"
            before = tokens[position - 1] if position and not is_script else ""
            spaced = _is_text(following) and following not in _LARGE and before not in _OPENING
            thin = before in _FUNCTIONS and before != "in" and following not in _OPENING
            yield r"\ " if _is_text(before) or spaced else r"\," if thin else " "
            position += 1
        else:
            yield rf"\{token} " if token in _LARGE and following == "_" else _one(token)
            position += 1


def _scope(tokens: list[str], start: int) -> tuple[str, int]:
    """Return what an index, an exponent or a root applies to, without its brackets, and the position after it."""
    if tokens[start] not in _OPENING:
        end = start + 2 if tokens[start] in "+-" else start + 1
        one = tokens[start]
        return one if one.isalpha() and len(one) == 2 else "".join(_converted(tokens[start:end])), end
    depth = 0
    for end in range(start, len(tokens)):
        depth += (tokens[end] in "([{") - (tokens[end] in ")]}")
        if depth == 0:
            break
    return "".join(_converted(tokens[start + 1 : end])), end + 1


def _one(token: str) -> str:
    """Convert a name, number or sign."""
    if len(token) > 1 and token.endswith("~"):
        return rf"\tilde{{{token[:-1]}}}"
    if token in _GREEK:
        return f"\\{token} "
    if token in _FUNCTIONS or token in _SIGNS:
        return (_FUNCTIONS.get(token) or _SIGNS[token]) + " "
    return rf"\text{{{token}}}" if _is_text(token) else token


def _is_text(token: str) -> bool:
    """Return whether a token is set upright: words, and names of more than one letter but those of differences."""
    return token.startswith("(eq.") or (
        len(token) > 1 and token.replace(" ", "").isalpha() and token not in {"dx", "sqrt", *_GREEK, *_FUNCTIONS}
    )
