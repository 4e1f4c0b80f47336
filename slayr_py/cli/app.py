"""The commands of ``slayr``, their help, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from slayr_py.cli import manual
from slayr_py.display import printable
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
    """Turn the package's own errors into one message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SlayrError as error:
            if ctx.params.get("traceback"):
                raise
            # An error quotes files and studies, whose text may contain control characters.
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
    traceback: Annotated[bool, typer.Option("--traceback", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    # The group reads --traceback, and the callback handles --version.
    pass


@app.command(help=manual.DOCTOR, short_help="Check the compiler and CmdStan, and list what to install.")
def doctor(
    build: Annotated[
        bool, typer.Option("--build", help="Also install CmdStan if it is missing, and compile a program.")
    ] = False,
) -> None:
    """Check the compiler, CmdStan and the cache, and list what to install."""
    from slayr_py.inference import likelihood_in_use
    from slayr_py.toolchain import Check, doctor as examine

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
app.add_typer(toolchain, name="toolchain", short_help="Compile all Stan programs in advance.")


@toolchain.command(help=manual.BUILD, short_help="Compile every program, on all cores.")
def build(
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Number of parallel compilers; default: one per core.")
    ] = None,
) -> None:
    """Compile every program, on all cores."""
    from slayr_py.inference import build as build_programs, program_names

    typer.echo(f"compiling {', '.join(program_names())} and the libraries they need (once, a minute or two)")
    for name, seconds in build_programs(jobs):
        typer.echo(f"{name:<16}  {'already compiled' if seconds < 1 else f'{seconds:.0f} s'}")


@app.command(help=manual.EXAMPLE, short_help="Write an example into the working directory.")
def example(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the example; without it, a list.")] = None,
) -> None:
    """Write an example into the working directory."""
    from slayr_py.cli.examples import listing, write

    for line in listing() if name is None else write(name, Path.cwd()):
        typer.echo(line)


@app.command(help=manual.OPTIMIZE, short_help="Run the study of a configuration file.")
def optimize(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration file, described above.")],
    budget: Annotated[
        int | None, typer.Option(help="Number of trials at the end, including those of a resumed study.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed; the same seed gives the same trials.")] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="Storage of the study, e.g. sqlite:///study.db.")
    ] = None,
    study_name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the study in its storage.")] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the figure and the default storage.")
    ] = None,
    noisy: Annotated[
        bool | None,
        typer.Option("--noisy/--no-noisy", help="Whether the objective varies between evaluations of a configuration."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Past experiments: a CSV table with a column per parameter and 'value'."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, no progress bar.")] = False,
) -> None:
    """Minimise (or maximise) the objective of a configuration file."""
    from slayr_py.cli.optimize import run

    overrides: dict[str, Any] = {"budget": budget, "seed": seed, "noisy": noisy}
    run(
        config,
        overrides={key: value for key, value in overrides.items() if value is not None},
        storage=storage,
        study_name=study_name,
        output=output,
        quiet=quiet,
        history=history,
    )


_StudyName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the study, if there are several.")]


@app.command(help=manual.INSPECT, short_help="Show a study and the diagnostics of its fits.")
def inspect(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="An SQLite file or a storage URL.")],
    study_name: _StudyName = None,
    trials: Annotated[int, typer.Option(min=0, help="Number of trials to show, the last ones.")] = 20,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Also save a figure of the convergence.")] = None,
) -> None:
    """Show a study: the best configuration, its trials, and the diagnostics of every fit."""
    from slayr_py.cli.inspect import run

    run(study, study_name=study_name, n_trials=trials, figure=figure)


@app.command(help=manual.REPORT, short_help="Write a page about a study, as one HTML file.")
def report(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="An SQLite file or a storage URL.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; default: report.html.")
    ] = None,
    study_name: _StudyName = None,
) -> None:
    """Write a page about a study, as one HTML file."""
    from slayr_py.cli.report import run

    run(study, study_name=study_name, output=output)


_Data = Annotated[Path, typer.Argument(metavar="DATA", help="A CSV table with one row per observation.")]
_Target = Annotated[str, typer.Option(metavar="COLUMN", help="Column to model.")]
_SpaceFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Space as ConfigSpace JSON; default: the ranges of the columns.")
]
_Parameters = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column that is a parameter, also if it looks like a row number or a date."),
]
_Ignored = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Column to leave out; may be repeated.")]
_DropEmpty = Annotated[
    bool, typer.Option("--drop-empty", help="Leave out rows whose target is empty; otherwise they are an error.")
]


@app.command(help=manual.FIT, short_help="Fit a Gaussian process to a table.")
def fit(
    data: _Data,
    target: _Target,
    space: _SpaceFile = None,
    parameter: _Parameters = None,
    ignore: _Ignored = None,
    drop_empty: _DropEmpty = False,
    kernel: Annotated[str, typer.Option(help='Name of a kernel, or an expression: "LIN * PER + SE".')] = "auto",
    method: Annotated[str, typer.Option(help="nuts, pathfinder, laplace or map.")] = "nuts",
    chains: Annotated[int, typer.Option(min=1, help="Number of chains.")] = 4,
    warmup: Annotated[int, typer.Option(min=1, help="Warm-up iterations per chain.")] = 500,
    draws: Annotated[int, typer.Option(min=1, help="Draws per chain.")] = 500,
    target_acceptance: Annotated[
        float, typer.Option(help="Target acceptance statistic, in (0, 1). Larger: fewer divergences.")
    ] = 0.8,
    max_treedepth: Annotated[int, typer.Option(min=1, help="A trajectory has at most 2^max_treedepth steps.")] = 10,
    ess: Annotated[
        int | None, typer.Option(min=1, help="Sample until the ESS is this large, at most 16 x draws.")
    ] = None,
    retries: Annotated[int, typer.Option(min=0, help="Number of retries if the diagnostics fail.")] = 0,
    pointwise: Annotated[bool, typer.Option(help="Compute leave-one-out of every observation.")] = True,
    warp: Annotated[str, typer.Option(help="none, or log: compress large values of the target.")] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same draws.")] = 1,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the posterior; default: <data>_posterior.")
    ] = None,
) -> None:
    """Fit a Gaussian process to a table and summarise its posterior."""
    from slayr_py.cli.fit import run
    from slayr_py.inference import FitOptions, Method, Warp

    options = FitOptions(
        method=cast(Method, method),  # FitOptions checks the name
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_acceptance=target_acceptance,
        max_treedepth=max_treedepth,
        ess=ess,
        retries=retries,
        pointwise=pointwise,
    )
    passed = run(
        data,
        target=target,
        space_file=space,
        kernel=kernel,
        warp=cast(Warp, warp),  # GaussianProcess checks the name
        options=options,
        seed=seed,
        output=output,
        parameters=parameter or (),
        ignored=ignore or (),
        drop_empty=drop_empty,
    )
    if not passed:
        raise typer.Exit(EXIT_FAILED)


@app.command(help=manual.SEARCH, short_help="Search for the kernel that explains a table best.")
def search(
    data: _Data,
    target: _Target,
    space: _SpaceFile = None,
    parameter: _Parameters = None,
    ignore: _Ignored = None,
    drop_empty: _DropEmpty = False,
    base: Annotated[str, typer.Option(help="Base kernels, separated by commas.")] = "SE,RQ,PER,LIN",
    strategy: Annotated[str, typer.Option(help="greedy, random, model or generative.")] = "greedy",
    score: Annotated[str, typer.Option(help="laplace, bic, loo, rmse or elbo.")] = "laplace",
    budget: Annotated[int, typer.Option(min=1, help="Number of fits.")] = 100,
    max_leaves: Annotated[int, typer.Option(min=1, help="Largest number of leaves of an expression.")] = 10,
    restarts: Annotated[int, typer.Option(min=1, help="Starts of every fit.")] = 3,
    inducing: Annotated[
        int | None, typer.Option(min=1, help="Inducing points of sparse fits; default: 100 above 1000 rows.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Number of processes; default: one per core.")
    ] = None,
    single: Annotated[bool, typer.Option(help="Use base kernels on every single parameter as well.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Random seed; the same seed gives the same result.")] = 1,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the result; default: <data>_search.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result, no progress bar.")] = False,
) -> None:
    """Search for the kernel that explains a table best."""
    from slayr_py.cli.search import run

    run(
        data,
        target=target,
        space_file=space,
        output=output,
        quiet=quiet,
        parameters=parameter or (),
        ignored=ignore or (),
        drop_empty=drop_empty,
        base=[name.strip() for name in base.split(",") if name.strip()],
        strategy=strategy,  # KernelSearch checks the names
        score=score,
        budget=budget,
        max_leaves=max_leaves,
        restarts=restarts,
        inducing=inducing,
        jobs=jobs,
        single=single,
        seed=seed,
    )


@app.command(help=manual.REPLAY, short_help="Repeat a recorded fit and compare.")
def replay(
    record: Annotated[
        str, typer.Argument(metavar="RECORD", help="A record.json or its folder; an SQLite file or a storage URL.")
    ],
    trial: Annotated[int | None, typer.Option(min=0, help="Trial of a study; default: the last with a fit.")] = None,
    study_name: _StudyName = None,
) -> None:
    """Repeat a recorded fit and compare."""
    from slayr_py.cli.replay import run

    if code := run(record, trial=trial, study_name=study_name):
        raise typer.Exit(code)
