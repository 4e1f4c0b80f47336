"""Files of results, from which an interrupted command resumes, and tables in Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def add_result_arguments(parser: argparse.ArgumentParser, file: str) -> None:
    """Add the folder of the results, by default beside the module ``file``, and the option to run nothing."""
    folder = Path(file).parent / "results"
    parser.add_argument("--output", type=Path, default=folder, help="folder of the results")
    parser.add_argument("--report", action="store_true", help="run nothing; print the tables of the stored results")


class ResultFile:
    """Rows of a benchmark in a CSV file; a command that is run again makes the missing ones.

    Parameters
    ----------
    path : Path
    keys : sequence of str
        Columns that identify a run, which may have several rows.
    columns : sequence of str
        All columns, in the order of the file.
    """

    def __init__(self, path: Path, keys: Sequence[str], columns: Sequence[str]) -> None:
        self.path = path
        self.keys = list(keys)
        self.columns = list(columns)
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(columns=self.columns).to_csv(path, index=False)

    def rows(self) -> pd.DataFrame:
        """Return all rows."""
        return read(self.path, self.columns)

    def missing(self, runs: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the runs, given by the values of their keys, that have no row."""
        stored = {tuple(map(str, key)) for key in self.rows()[self.keys].itertuples(index=False, name=None)}
        return [run for run in runs if tuple(map(str, run)) not in stored]

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append the rows of a run and print them."""
        for row in rows:
            append(self.path, {column: row[column] for column in self.columns})
            print(line(row), flush=True)


def read(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    """Return the rows of a file, or no rows if the file does not exist."""
    # The converter is exact; the default parser of pandas may round the last digit.
    exact = {"value": float, "exact": float}
    rows = pd.read_csv(path, converters=exact) if path.exists() else pd.DataFrame()
    return rows.reindex(columns=list(columns))


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append one row in a single write, so that several processes can share the file."""
    pd.DataFrame([row]).to_csv(path, mode="a", header=False, index=False)


def line(row: Mapping[str, Any]) -> str:
    """Return a row as text with four digits."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def standard_error(values: pd.Series) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def mean_cell(values: pd.Series, digits: int = 3) -> str:
    """Return "mean ± standard error"; without the error for one value, and "" for none."""
    if values.empty:
        return ""
    error = f" ± {standard_error(values):.2g}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}g}{error}"


def median_rhat(rows: pd.DataFrame) -> str:
    """Return the median of the column ``rhat``, or an empty cell if there is none (point estimates)."""
    values = rows["rhat"].dropna()
    return f"{values.median():.3f}" if len(values) else ""
