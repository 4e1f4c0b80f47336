"""The command ``slayr``: its commands, and the conversion of errors to messages and exit codes.

The docstring of a command is its help. The modules of commands that need the model or Optuna are imported when they are
called, because these imports take seconds.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from slayr_py.cli.exit_codes import INTERRUPTED, exit_code
from slayr_py.cli.options import help_text
from slayr_py.display import printable
from slayr_py.errors import SlayrError
from slayr_py.toolchain import UNUSED_DAYS

_HELP = """\
Bayesian optimisation with fully Bayesian Gaussian processes in Stan.

Start here:
  slayr doctor                     check the compiler and CmdStan
  slayr example nusvr_diabetes     write an example into this folder
  slayr optimize nusvr_diabetes.toml
  slayr suggest lab.toml --history results.csv
                                   propose the next experiments, without an objective
  slayr inspect nusvr_diabetes.db  show the result and the diagnostics
  slayr report nusvr_diabetes.db   write a page with figures

Exit codes:
  0    success
  1    a study, an objective or a fit failed
  2    a wrong option, configuration file or table
  3    no usable compiler or CmdStan (see slayr doctor)
  4    a study's storage or a record does not open
  130  interrupted; finished evaluations are stored
Codes 1 and 2 of slayr replay differ: see slayr replay --help
"""

_SUMMARIES = {
    "doctor": "Check the compiler, CmdStan and the cache, and list what to install.",
    "toolchain": "Compile all Stan programs in advance, or remove old ones from the cache.",
    "example": "Write an example into the working directory, or list the examples.",
    "optimize": "Minimise (or maximise) the objective of a configuration file.",
    "suggest": "Propose the next experiments from a table of the past ones.",
    "inspect": "Show a study and the diagnostics of its fits.",
    "report": "Write a page about a study, as one HTML file.",
    "fit": "Fit a Gaussian process to a table and summarise its posterior.",
    "search": "Search for the sum of products of base kernels that explains a table best.",
    "replay": "Repeat a recorded fit and compare the draws.",
    "stan": "Export accelerated log densities for Stan programs of your own.",
}
"""The commands. All but ``toolchain`` are functions in modules of their name, and start their docstrings like this."""


class _Commands(TyperGroup):
    """Import the modules of commands when they are called; turn the package's errors into messages and exit codes."""

    commands: dict[str, Any]

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {**dict.fromkeys(_SUMMARIES), **self.commands}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            single = typer.Typer(rich_markup_mode=None, add_completion=False)
            function = getattr(importlib.import_module(f"slayr_py.cli.{cmd_name}"), cmd_name)
            single.command(cmd_name, help=help_text(function.__doc__))(function)
            self.commands[cmd_name] = typer.main.get_command(single)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUMMARIES.items()))

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning  # type: ignore[assignment]
                return super().invoke(ctx)
        except SlayrError as error:
            if ctx.params.get("traceback"):
                raise
            # An error quotes files and studies, whose text may contain control characters.
            typer.echo(printable(f"slayr: {'. '.join([str(error), *getattr(error, '__notes__', ())])}"), err=True)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            typer.echo("slayr: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None


def _show_warning(message: Warning | str, *where: Any) -> None:
    """Print a warning on one line, without the place in the code."""
    typer.echo(printable(f"warning: {message}"), err=True)


app = typer.Typer(
    cls=_Commands,
    name="slayr",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help=help_text(_HELP),
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from slayr_py import __version__

        typer.echo(f"slayr {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    # The group reads --traceback, and the callback handles --version.
    pass


toolchain = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Manage the compiled Stan programs.")
app.add_typer(toolchain, name="toolchain")


_BUILD = """\
Compile all Stan programs in parallel, and the libraries they need.

Without this command each program is compiled at its first fit. Executables are cached: a second call does nothing.

Example, for a container image or before working offline:
  slayr toolchain build
"""


@toolchain.command(help=help_text(_BUILD))
def build(
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Number of parallel compilers; default: one per core.")
    ] = None,
) -> None:
    """Compile all Stan programs in parallel, and the libraries they need."""
    from slayr_py.inference import build as build_programs
    from slayr_py.toolchain import program_names

    typer.echo(f"compiling {', '.join(program_names())} and the libraries they need (once, a minute or two)")
    for name, seconds in build_programs(jobs):
        typer.echo(f"{name:<16}  {'already compiled' if seconds < 1 else f'{seconds:.0f} s'}")


_CLEAN = """\
Remove compiled programs and installations of CmdStan that have not been used for a while from the cache.

Each change of a program, of the compiler or of Stan adds an executable to the cache. A program that is needed again
is compiled again.

Example:
  slayr toolchain clean --older-than 90
"""


@toolchain.command(help=help_text(_CLEAN))
def clean(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0.0, help="Days without use after which a folder is removed.")
    ] = UNUSED_DAYS,
) -> None:
    """Remove what has not been used for a while from the cache."""
    from slayr_py.toolchain import cache_size, remove_unused

    for folder in remove_unused(older_than):
        typer.echo(f"removed {folder}")
    typer.echo(f"the cache has {cache_size() / 1e6:.0f} MB")
