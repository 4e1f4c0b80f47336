"""Read Stan files: functions with their signatures, and the comments that document them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PART = re.compile(
    r"^/\*\*\n(?P<comment>.*?)^ \*/\n"
    r"|^(?P<signature>(?:array|tuple|int|real|complex|vector|row_vector|matrix|void)\b[^;{}=]*?\b(?P<name>\w+)\((?:[^{};]*)\))"
    r"(?P<body> \{\n.*?^\}|;$)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A paragraph of a comment: ``text``, a ``formula`` on lines of its own, or a ``table`` of entries and meanings."""

    kind: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Comment:
    """A documentation comment: paragraphs, parameters with their descriptions, and what is returned."""

    blocks: tuple[Block, ...]
    parameters: tuple[tuple[str, str], ...]
    returned: str

    @property
    def formulas(self) -> tuple[Block, ...]:
        """The formulas among the paragraphs."""
        return tuple(block for block in self.blocks if block.kind == "formula")


@dataclass(frozen=True)
class Function:
    """A function: its name, its declaration in one line, its comment, and its value if it is a constant."""

    name: str
    signature: str
    comment: Comment | None
    constant: str | None


@dataclass(frozen=True)
class StanFile:
    """A file of functions or a program: the comment at its top, and its functions."""

    path: Path
    comment: Comment | None
    functions: tuple[Function, ...]


def read(path: Path) -> StanFile:
    """Read a file.

    The first comment belongs to the file if another comment follows it before a function does. A function without
    arguments whose comment is the first of the file leaves it to the file, too: the comment introduces the constants.
    """
    text = path.read_text(encoding="utf-8")
    top = None
    pending = None
    functions = []
    for part in _PART.finditer(text):
        if part["comment"] is not None:
            if pending is not None and not functions and top is None:
                top = pending
            pending = comment(part["comment"])
            continue
        signature = " ".join(part["signature"].split())
        constant = re.fullmatch(r" \{\s*return (\d+);\s*\}", part["body"])
        if constant and not functions and top is None:
            top = pending
            pending = None
        functions.append(Function(part["name"], signature, pending, constant[1] if constant else None))
        pending = None
    return StanFile(path, top or pending, tuple(functions))


def comment(raw: str) -> Comment:
    """Parse the lines between ``/**`` and ``*/``."""
    text = re.sub(r"^ \* ?", "", raw, flags=re.MULTILINE)
    prose, *tags = re.split(r"^@(param|return) ?", text, flags=re.MULTILINE)
    parameters = []
    returned = ""
    for tag, content in zip(tags[::2], tags[1::2], strict=True):
        words = " ".join(content.split())
        if tag == "return":
            returned = words
        else:
            names = re.match(r"\w+(?:, \w+)*", words)
            found = names[0] if names else ""
            parameters.append((found, words[len(found) :].strip()))
    blocks: list[Block] = []
    for paragraph in re.split(r"\n\s*\n", prose.strip("\n")):
        lines = tuple(line.rstrip() for line in paragraph.split("\n") if line.strip())
        if lines and all(line.startswith("  ") for line in lines):
            is_table = bool(blocks) and blocks[-1].lines[-1].endswith("arguments:")
            blocks.append(Block("table" if is_table else "formula", lines))
        elif lines:
            blocks.append(Block("text", (" ".join(lines),)))
    return Comment(tuple(blocks), tuple(parameters), returned)
