"""The directive ``stan-reference``: every function and program of ``stan/``, from the comments of the files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import stan_source
from docutils import nodes
from docutils.parsers.rst import Directive
from plain_formulas import to_latex
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from stan_source import Block, Comment, Function, StanFile


class Reference(Directive):
    """Write the sections of the files, or of all files of the folders, that the content names, one on each line."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return one section for each file."""
        env = self.state.document.settings.env
        stan = Path(env.srcdir) / "stan"
        files = [stan_source.read(path) for path in sorted(stan.rglob("*.stan"))]
        known = {function.name for file in files for function in file.functions}
        self.links = re.compile(
            rf"\b({'|'.join(sorted(name for name in known if '_' in name))})\b|(?<=see )({'|'.join(known)})\b"
        )
        for file in files:
            env.note_dependency(str(file.path))
        # A link leads to the first file with a function of that name, and not to its accelerated declaration.
        declared = [file for file in files if "accelerated" not in file.path.parts]
        self.first = {function.name: file.path for file in reversed(declared) for function in file.functions}
        named = [stan / line for line in self.content]
        chosen = [file for path in named for file in files if path in (file.path, file.path.parent)]
        if not chosen:
            raise self.error(f"no Stan file is called {' or '.join(self.content)}")
        return [self.file(file, stan) for file in chosen]

    def file(self, file: StanFile, stan: Path) -> nodes.section:
        """Return the section of a file."""
        result = self.section(file.path.name, nodes.make_id(file.path.relative_to(stan).as_posix()))
        result += self.described(file.comment, "")
        text = file.path.read_text(encoding="utf-8")
        if file.functions:
            for group in groups(function for function in file.functions if function.constant is not None):
                result += self.described(group[0].comment, "")
                result += self.constants(file, group)
            # The accelerated functions have the names of those that they replace.
            prefix = "stan-accelerated" if "accelerated" in file.path.parts else "stan"
            for function in file.functions:
                if function.constant is None:
                    section = self.function(function, prefix)
                    self.target(file, function.name, section["ids"][0])
                    result += section
        else:
            result += self.included(re.findall(r"#include (\S+)", text))
            result += nodes.literal_block(text, text, language="stan", classes=["stan-program"])
        return result

    def function(self, function: Function, prefix: str) -> nodes.section:
        """Return the section of a function, whose anchor is its name after the prefix."""
        result = self.section(function.name, f"{prefix}-{function.name}")
        signature = wrapped(function)
        result += nodes.literal_block(signature, signature, language="stan")
        result += self.described(function.comment, function.name)
        return result

    def section(self, title: str, name: str) -> nodes.section:
        """Return an empty section; overloads of a function get numbered anchors."""
        identifier = nodes.make_id(name)
        while identifier in self.state.document.ids:
            stem, _, number = identifier.rpartition("-")
            identifier = f"{stem}-{int(number) + 1}" if number.isdigit() else f"{identifier}-2"
        result = nodes.section("", nodes.title("", "", nodes.literal(title, title)), ids=[identifier])
        self.state.document.note_explicit_target(result)
        return result

    def target(self, file: StanFile, name: str, identifier: str) -> None:
        """Let all pages refer to a function of this one; of equal names in several files, to the first."""
        if self.first[name] == file.path:
            env = self.state.document.settings.env
            env.get_domain("std").note_hyperlink_target(identifier, env.docname, identifier, name)

    def constants(self, file: StanFile, functions: list[Function]) -> nodes.container:
        """Return the codes that functions without arguments stand for, with an anchor for each function."""
        width = max(len(function.name) for function in functions)
        lines = "\n".join(f"{function.name + '()':<{width + 2}}  {function.constant:>2}" for function in functions)
        ids = [anchor(function.name) for function in functions]
        for function, identifier in zip(functions, ids, strict=True):
            self.target(file, function.name, identifier)
        return nodes.container("", nodes.literal_block(lines, lines, language="none"), ids=ids)

    def described(self, comment: Comment | None, own: str) -> list[nodes.Node]:
        """Return the paragraphs, the parameters and the returned value of a comment."""
        if comment is None:
            return []
        result: list[nodes.Node] = [self.block(block, own) for block in comment.blocks]
        fields = [*comment.parameters, *([("returns", comment.returned)] if comment.returned else [])]
        if fields:
            items = nodes.definition_list(classes=["stan-parameters"])
            for name, text in fields:
                term = nodes.emphasis(name, name) if name == "returns" else nodes.literal(name, name)
                item = nodes.definition_list_item("", nodes.term("", "", term))
                item += nodes.definition("", nodes.paragraph("", "", *self.linked(text, own)))
                items += item
            result.append(items)
        return result

    def block(self, block: Block, own: str) -> nodes.Node:
        """Return a paragraph, a formula, or a table of entries."""
        if block.kind == "text":
            return nodes.paragraph("", "", *self.linked(block.lines[0], own))
        if block.kind == "formula":
            latex = to_latex(block.lines)
            return nodes.math_block(latex, latex, nowrap=True, number=None, label=None)
        text = "\n".join(line.removeprefix("  ") for line in block.lines)
        return nodes.literal_block(text, text, language="none")

    def linked(self, text: str, own: str) -> list[nodes.Node]:
        """Return a text whose names of other functions are links."""
        result: list[nodes.Node] = []
        position = 0
        for found in self.links.finditer(text):
            name = found[0]
            if name == own:
                continue
            result.append(nodes.Text(text[position : found.start()]))
            # A reference to a keyword of the documentation keeps its text as code; "ref" would not.
            options = {"refdomain": "std", "reftype": "keyword", "reftarget": anchor(name)}
            docname = self.state.document.settings.env.docname
            result.append(pending_xref("", nodes.literal(name, name), refdoc=docname, refwarn=True, **options))
            position = found.end()
        return [*result, nodes.Text(text[position:])]

    def included(self, paths: list[str]) -> list[nodes.Node]:
        """Return the sentence that names the files a program includes."""
        if not paths:
            return []
        result: Any = nodes.paragraph("", "Includes ")
        for i, path in enumerate(paths):
            result += [nodes.Text(", " if i else ""), nodes.literal(path, path)]
        result += nodes.Text(".")
        return [result]


def anchor(name: str) -> str:
    """Return the anchor of a function or of a code, whose names may differ in case only: FM and fm."""
    return nodes.make_id(f"stan-code-{name}" if name.isupper() else f"stan-{name}")


def groups(constants: Iterable[Function]) -> list[list[Function]]:
    """Return constants together with those that follow without a comment of their own."""
    result: list[list[Function]] = []
    for function in constants:
        if function.comment is not None or not result:
            result.append([])
        result[-1].append(function)
    return result


def wrapped(function: Function, width: int = 76) -> str:
    """Return the declaration of a function, with one argument a line if it is long."""
    if len(function.signature) <= width:
        return function.signature
    head, _, arguments = function.signature.partition(f"{function.name}(")
    lines = [""]
    depth = 0
    for character in arguments.removesuffix(")"):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            lines.append("")
        else:
            lines[-1] += character
    return f"{head}{function.name}(\n  " + ",\n  ".join(line.strip() for line in lines) + "\n)"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("stan-reference", Reference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
