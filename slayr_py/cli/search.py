"""``slayr search``: search for the kernel that explains a table best."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from slayr_py.cli.observations import read_observations
from slayr_py.cli.wrapping import wrapped
from slayr_py.display import table_text
from slayr_py.search import MOST_EXACT, KernelSearch

_SHOWN = 5  # expressions in the table that is printed


def run(
    data: Path,
    *,
    target: str,
    space_file: Path | None,
    output: Path | None,
    quiet: bool,
    parameters: Sequence[str] = (),
    ignored: Sequence[str] = (),
    drop_empty: bool = False,
    **options: Any,
) -> None:
    """Search for an expression, print the best ones, and save the fits and figures.

    Parameters
    ----------
    data, target, space_file, parameters, ignored, drop_empty
        As for :func:`~slayr_py.cli.observations.read_observations`.
    output : Path or None
        Folder of the result and the figures; by default ``<data>_search`` in the working directory.
    quiet : bool
        Whether to leave out the progress bar.
    **options
        Arguments of `KernelSearch`.

    Raises
    ------
    ConfigError, DataError, SpaceError, InferenceError
        As raised by `read_observations` and the search.
    """
    configs, y, space = read_observations(data, target, space_file, parameters, ignored, drop_empty)
    typer.echo(f"{len(y)} observations of {target}, {len(space)} parameters")
    search = KernelSearch(space, **options)
    found = search.run(configs, y, progress=not quiet)
    for message in found.messages:
        typer.echo(wrapped(message))
    if found.table.empty:
        typer.echo(f"best  {found.best.expression}")
        return
    best = found.unique[["expression", search.score, "leaves", "parameters"]].head(_SHOWN)
    typer.echo(f"\nbest expressions of {len(found.unique)} fits, larger scores are better\n{table_text(best)}")
    folder = output or Path(f"{data.stem}_search")
    folder.mkdir(parents=True, exist_ok=True)
    found.save(folder / "search.json")
    found.table.to_csv(folder / "fits.csv", index=False)
    figures = [(folder / "scores.png", found.plot())]
    if len(search.encoder.real_names) == 1 and len(y) <= MOST_EXACT:
        figures.append((folder / "components.png", found.components().plot()))
    typer.echo(f"\nresult  {folder}  (load search.json with slayr_py.search.load; all fits in fits.csv)")
    for path, figure in figures:
        figure.savefig(path, dpi=150)
        typer.echo(f"figure  {path}")
    columns = [part for name in parameters for part in ("--parameter", name)]
    columns += [part for name in ignored for part in ("--ignore", name)]
    columns += [] if space_file is None else ["--space", str(space_file)]
    columns += ["--drop-empty"] if drop_empty else []
    again = shlex.join(["slayr", "fit", str(data), "--target", target, *columns, "--kernel", found.best.expression])
    typer.echo(f"posterior of the best one: {again}")
