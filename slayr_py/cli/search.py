"""``slayr search``: search for the kernel that explains a table best."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from slayr_py.cli.observations import Source, read_observations
from slayr_py.cli.options import Quiet, expand, keyword_options
from slayr_py.cli.wrapping import wrap
from slayr_py.display import table_text
from slayr_py.search import MOST_EXACT, KernelSearch
from slayr_py.text_files import check_writable, write_text

_SHOWN = 5  # expressions in the table that is printed
_BASE = ",".join(signature(KernelSearch).parameters["base"].default)

_OPTIONS: dict[str, dict[str, str]] = {
    "strategy": {"help": "greedy, random, model or generative."},
    "score": {"help": "laplace, bic, loo, rmse or elbo."},
    "budget": {"help": "Number of fits."},
    "max_leaves": {"help": "Largest number of leaves of an expression."},
    "restarts": {"help": "Starts of every fit."},
    "inducing": {"help": "Inducing points of sparse fits; default: 100 above 1000 rows."},
    "jobs": {"help": "Number of processes; default: one per core.", "short": "j"},
    "single": {"help": "Use base kernels on every single parameter as well."},
    "seed": {"help": "Random seed; the same seed gives the same result."},
}
"""Arguments of `KernelSearch`, which has their types and defaults."""


@expand(source=Source, options=keyword_options(KernelSearch.__init__, _OPTIONS))
def search(
    *,
    source: Source,
    base: Annotated[str, typer.Option(help="Base kernels, separated by commas.")] = _BASE,
    options: Any,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the result; default: <data>_search.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Search for the sum of products of base kernels that explains a table best.

    Columns are chosen as by slayr fit. Every candidate is fitted by its posterior mode; nothing is compiled. The budget
    counts fits. Prints the best expressions, and saves all fits and figures of the scores and, with a single real
    parameter, of the summands of the best expression. At least 10 rows are needed.

    For example:
      slayr search co2.csv --target ppm
      slayr search runs.csv --target loss --base SE,RQ,MAT52 --budget 200
      slayr search big.csv --target y --inducing 200 --no-single
    """
    configs, y, space = read_observations(source)
    leaves = [name.strip() for name in base.split(",") if name.strip()]
    kernel_search = KernelSearch(space, base=leaves, **asdict(options))
    folder = output or Path(f"{source.data.stem}_search")
    check_writable(folder)
    result = kernel_search.run(configs, y, progress=not quiet)
    for message in result.messages:
        typer.echo(wrap(message))
    if result.table.empty:
        typer.echo(f"best  {result.best.expression}")
        return
    best = result.unique[["expression", kernel_search.score, "leaves", "parameters"]].head(_SHOWN)
    typer.echo(f"\nbest expressions of {len(result.unique)} fits, larger scores are better\n{table_text(best)}")
    result.save(folder / "search.json")
    write_text(folder / "fits.csv", result.table.to_csv(index=False))
    figures = [(folder / "scores.png", result.plot())]
    if len(kernel_search.encoder.real_names) == 1 and len(y) <= MOST_EXACT:
        figures.append((folder / "components.png", result.components().plot()))
    typer.echo(f"\nresult  {folder}  (load search.json with slayr_py.search.load; all fits in fits.csv)")
    for path, figure in figures:
        figure.savefig(path, dpi=150)
        typer.echo(f"figure  {path}")
    again = shlex.join(["slayr", "fit", *source.arguments(), "--kernel", result.best.expression])
    typer.echo(f"posterior of the best one: {again}")
