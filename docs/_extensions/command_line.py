"""The directive ``command-line``: the commands of ``slayr`` with their help, arguments and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from typer.main import get_command


def commands(command: Any, parent: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Yield the full name, the command and its context, for a command and those below it."""
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    yield context.command_path, command, context
    for name in getattr(command, "list_commands", lambda _: [])(context):
        yield from commands(command.get_command(context, name), context)


def table(rows: list[tuple[str, str]]) -> nodes.definition_list:
    """Return terms and their descriptions."""
    items = nodes.definition_list(classes=["command-options"])
    for term, text in rows:
        item = nodes.definition_list_item()
        item += nodes.term("", "", nodes.literal(term, term))
        item += nodes.definition("", nodes.paragraph(text, text))
        items += item
    return items


def manual(text: str) -> Iterator[nodes.Element]:
    """Yield the paragraphs of a help text; those whose line breaks are kept, with a backspace, as they are."""
    kept: list[str] = []
    for block in [*text.strip().split("\n\n"), ""]:
        if block.startswith("\b\n"):
            kept.append(block.removeprefix("\b\n"))
            continue
        if kept:
            lines = "\n\n".join(kept)
            yield nodes.literal_block(lines, lines, language="none")
            kept = []
        if block:
            yield nodes.paragraph(block, block)


def section(name: str, command: Any, context: Any) -> nodes.section:
    """Return the section of one command."""
    result = nodes.section("", nodes.title(name, name), ids=[nodes.make_id(name)], names=[name])
    usage = command.get_usage(context).removeprefix("Usage: ")
    result += nodes.literal_block(usage, usage, language="console")
    result += manual(command.help or "")
    records = [record for p in command.get_params(context) if (record := p.get_help_record(context))]
    if records:
        result += table(records)
    return result


class CommandLine(Directive):
    """Write a section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        from slayr_py.cli.app import app

        sections = [section(*one) for one in commands(get_command(app))]
        for one in sections:
            self.state.document.note_explicit_target(one)
        return list(sections)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
