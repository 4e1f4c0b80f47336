"""Options of several commands, options from the fields of a dataclass, and the layout of help texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer

Study = Annotated[str, typer.Argument(metavar="STUDY", help="An SQLite file or a storage URL.")]
StudyName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the study, if there are several.")]
Epsilon = Annotated[
    float | None,
    typer.Option(metavar="NUMBER", help="The page has the ranges of configurations this close to the optimum (90%)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, no progress bar.")]


def help_text(text: str) -> str:
    """Mark the paragraphs with indented lines: their line breaks are kept, other paragraphs are wrapped."""
    paragraphs = cleandoc(text).split("\n\n")
    return "\n\n".join(f"\b\n{lines}" if "\n  " in f"\n{lines}" else lines for lines in paragraphs)


def announce(phase: str) -> None:
    """Announce a slow step on standard error."""
    typer.echo(f"{phase} ...", err=True)


def expand(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace parameters of a command by one option for each field of a dataclass.

    Parameters
    ----------
    **groups : type
        A dataclass for each parameter to replace; the command receives an instance of it. A field is either annotated
        for typer, or has its description under "help" in its metadata, and possibly a letter under "short".
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def expanded(**given: Any) -> None:
            for name, kind in groups.items():
                given[name] = kind(**{option.name: given.pop(option.name) for option in fields(kind)})
            command(**given)

        plain = signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for name, parameter in plain.parameters.items():
            parameters += _options(groups[name]) if name in groups else [parameter]
        expanded.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]
        return expanded

    return decorate


def _options(kind: type[Any]) -> Iterator[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for option in fields(kind):
        hint = hints[option.name]
        if "help" in option.metadata:
            names = [f"--{option.name}", f"-{option.metadata['short']}"] if "short" in option.metadata else []
            # The dataclass checks the names of a Literal, and suggests the nearest one.
            hint = str if get_origin(hint) is Literal else hint
            hint = Annotated[hint, typer.Option(*names, help=option.metadata["help"])]
        default = Parameter.empty if option.default is MISSING else option.default
        yield Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def keyword_options(function: Callable[..., Any], metadata: Mapping[str, Mapping[str, str]]) -> type[Any]:
    """Return a dataclass with some parameters of a function, their types, defaults, and this metadata."""
    parameters = signature(function).parameters
    hints = get_type_hints(function)
    return make_dataclass(
        "Options",
        [(name, hints[name], field(default=parameters[name].default, metadata=metadata[name])) for name in metadata],
    )
