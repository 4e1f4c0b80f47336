"""The commands of ``slayr``, their help, and how errors become messages and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from slayr_py.cli import manual
from slayr_py.cli.tables import printable
from slayr_py.errors import DataError, SlayrError, SpaceError, StorageError, ToolchainError

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_TOOLCHAIN = 3
EXIT_STORAGE = 4
EXIT_INTERRUPTED = 130

_CODES: tuple[tuple[type[SlayrError], int], ...] = (
    (ToolchainError, EXIT_TOOLCHAIN),
    (StorageError, EXIT_STORAGE),
    (DataError, EXIT_USAGE),
    (SpaceError, EXIT_USAGE),
    (SlayrError, EXIT_FAILED),
)


class _Commands(TyperGroup):
    """Turns the suite's own errors into one message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SlayrError as error:
            if ctx.params.get("traceback"):
                raise
            # An error quotes files and studies, whose texts must not steer the terminal.
            typer.echo(printable(f"slayr: {error}"), err=True)
            raise typer.Exit(next(code for kind, code in _CODES if isinstance(error, kind))) from None
        except KeyboardInterrupt:
            typer.echo("slayr: interrupted", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None


app = typer.Typer(
    cls=_Commands,
    name="slayr",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help=manual.SLAYR,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from slayr_py import __version__

        typer.echo(f"slayr {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    # Both options are read elsewhere: the group looks for --traceback, the callback answers --version.
    pass


@app.command(help=manual.DOCTOR, short_help="Check what Stan needs and say what to install.")
def doctor(
    build: Annotated[
        bool, typer.Option("--build", help="Also assemble CmdStan where there is none, and compile a program.")
    ] = False,
) -> None:
    """Check the compiler, CmdStan and the cache, and say what to install."""
    from slayr_py.inference.sampling.programs import likelihood_in_use
    from slayr_py.toolchain import Check
    from slayr_py.toolchain import doctor as examine

    checks = examine(build=build)
    if all(check.ok for check in checks):
        checks.append(Check("likelihood", True, likelihood_in_use(build)))
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        typer.echo(f"{'ok     ' if check.ok else 'MISSING'}  {check.name:<{width}}  {check.detail}")
        if not check.ok and check.remedy:
            typer.echo("\n".join(f"         {line}" for line in str(check.remedy).splitlines()))
    if not all(check.ok for check in checks):
        raise typer.Exit(EXIT_TOOLCHAIN)


toolchain = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=manual.TOOLCHAIN)
app.add_typer(toolchain, name="toolchain", short_help="Compile everything now, so that nothing waits for it later.")


@toolchain.command(help=manual.BUILD, short_help="Compile every program, on all cores.")
def build(
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Compilers at a time; default: one a core.")
    ] = None,
) -> None:
    """Compile every program, on all cores."""
    from slayr_py.inference.sampling.programs import build as build_programs
    from slayr_py.inference.sampling.programs import program_names

    typer.echo(f"compiling {', '.join(program_names())} and what they are linked with (a minute or two, once)")
    for name, seconds in build_programs(jobs):
        typer.echo(f"{name:<16}  {'already compiled' if seconds < 1 else f'{seconds:.0f} s'}")


@app.command(help=manual.OPTIMIZE, short_help="Run a study as a configuration file says.")
def optimize(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="What to optimise: see above.")],
    budget: Annotated[
        int | None, typer.Option(help="Number of trials at the end, those of a resumed study included.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same trials.")] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the study is kept, e.g. sqlite:///study.db.")
    ] = None,
    study_name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the study in its storage.")] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the figure and the default storage.")
    ] = None,
    noisy: Annotated[
        bool | None,
        typer.Option("--noisy/--no-noisy", help="Whether the objective varies, so that asking again may pay."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, only the result.")] = False,
) -> None:
    """Minimise (or maximise) an objective as a configuration file says."""
    from slayr_py.cli.optimize import run

    overrides: dict[str, Any] = {"budget": budget, "seed": seed, "noisy": noisy}
    run(
        config,
        overrides={key: value for key, value in overrides.items() if value is not None},
        storage=storage,
        study_name=study_name,
        output=output,
        quiet=quiet,
    )


@app.command(help=manual.INSPECT, short_help="Show a study and the diagnostics of its fits.")
def inspect(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="An SQLite file or a storage URL.")],
    study_name: Annotated[str | None, typer.Option(metavar="NAME", help="Which study, if there are several.")] = None,
    trials: Annotated[int, typer.Option(min=0, help="How many of the last trials to show.")] = 20,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the convergence.")] = None,
) -> None:
    """Show a study: the best configuration, its trials, and the diagnostics of every fit."""
    from slayr_py.cli.inspect import run

    run(study, study_name=study_name, n_trials=trials, figure=figure)


@app.command(help=manual.FIT, short_help="Fit a Gaussian process to a table.")
def fit(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A table: one row an observation.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to model.")],
    space: Annotated[
        Path | None, typer.Option(metavar="FILE", help="ConfigSpace JSON; default: the columns' own ranges.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="Name of a kernel.")] = "auto",
    method: Annotated[str, typer.Option(help="nuts, pathfinder, laplace or map.")] = "nuts",
    chains: Annotated[int, typer.Option(min=1)] = 4,
    warmup: Annotated[int, typer.Option(min=1, help="Warm-up iterations a chain.")] = 500,
    draws: Annotated[int, typer.Option(min=1, help="Kept iterations a chain.")] = 500,
    target_acceptance: Annotated[float, typer.Option(help="In (0, 1); higher: fewer divergences.")] = 0.8,
    max_treedepth: Annotated[int, typer.Option(min=1, help="Trajectories of 2^this steps at most.")] = 10,
    ess: Annotated[
        int | None, typer.Option(min=1, help="Go on, up to 16 x draws, until so many are effective.")
    ] = None,
    retries: Annotated[int, typer.Option(min=0, help="Fit again so often if the diagnostics object.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same draws.")] = 1,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the posterior; default: <data>_posterior.")
    ] = None,
) -> None:
    """Fit a Gaussian process to a table and look at its posterior."""
    from slayr_py.cli.fit import run

    trusted = run(
        data,
        target=target,
        space_file=space,
        kernel=kernel,
        options={
            "method": method,
            "chains": chains,
            "warmup": warmup,
            "draws": draws,
            "target_acceptance": target_acceptance,
            "max_treedepth": max_treedepth,
            "ess": ess,
            "retries": retries,
            "seed": seed,
        },
        output=output,
    )
    if not trusted:
        raise typer.Exit(EXIT_FAILED)


@app.command(help=manual.REPLAY, short_help="Make a recorded fit again and compare.")
def replay(
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="A record.json or its folder; an SQLite file or a storage URL.")
    ],
    trial: Annotated[int | None, typer.Option(min=0, help="Of a study; default: the last with a fit.")] = None,
    study_name: Annotated[str | None, typer.Option(metavar="NAME", help="Which study, if there are several.")] = None,
) -> None:
    """Make a recorded fit again and compare."""
    from slayr_py.cli.replay import run

    if code := run(record, trial=trial, study_name=study_name):
        raise typer.Exit(code)
