"""Choose the parameter columns of a table; leave out row numbers and dates."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from slayr_py.cli.checks import ConfigError
from slayr_py.errors import DataError, did_you_mean
from slayr_py.space import FloatArray, TimeScale

_DECADES = 1e3  # ratio of the largest and the smallest value of a column that may be logarithmic

_NUMBER_NAMES = re.compile(
    r"(row|run|trial|experiment|observation)?[ _-]?(index|number|no\.?|nr\.?|id)|row|run|trial|#"
)
_UNNAMED = re.compile(r"unnamed: \d+")  # pandas' name of a column without one, as to_csv writes the index
_DATE_NAMES = re.compile(r"date|timestamp|date[ _-]?time([ _-].*)?")
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?"
_ZONE = r"( ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
_DATE = r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))"
_QUANTITY = re.compile(r"[-+]?\d+([.,]\d+)?(e[-+]?\d+)?\s*(?P<unit>[^\d\s.,].*)", re.IGNORECASE)
_DATE_OR_TIME = re.compile(rf"{_DATE}([ T]{_TIME}{_ZONE})?|{_TIME}{_ZONE}|-?\d+ days?,? {_TIME}")


def parameter_columns(
    columns: pd.DataFrame, source: Path, included: Sequence[str] = (), ignored: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Choose the columns that are parameters, and explain which ones are left out.

    Row numbers and dates are left out: columns with 0, 1, ..., n - 1 or 1, 2, ..., n in the order of the rows, columns
    called "run", "trial", "index", "number" or "id" with different values, and columns of dates or times.

    Parameters
    ----------
    columns : pandas.DataFrame
        The table without its target.
    source : Path
        The table's file, for messages.
    included, ignored : sequence of str
        Columns that the user declares as parameters, or excludes.

    Returns
    -------
    names : list of str
        In the order of the table.
    notes : list of str
        One sentence for every column that is left out and not in ``ignored``.

    Raises
    ------
    ConfigError
        If ``included`` or ``ignored`` has an unknown column, or both have the same one.
    DataError
        If a column may be a row number or a parameter, or no column is left.
    """
    known = [str(name) for name in columns.columns]
    for option, names in (("--parameter", included), ("--ignore", ignored)):
        if unknown := [name for name in names if name not in known]:
            raise ConfigError(
                f"{option}: {source} has no parameter column {unknown[0]!r}{did_you_mean(unknown[0], known)}"
            )
    if both := [name for name in included if name in ignored]:
        raise ConfigError(f"--parameter and --ignore both name {both[0]!r}; choose one of them")
    if not known:
        raise DataError("the table has no column but the target: a model needs at least one parameter")
    reasons = {name: _reason(name, columns[name]) for name in known if name not in (*included, *ignored)}
    notes = [
        f"left out: column {name!r} has {reason}; include it with --parameter {shlex.quote(name)}"
        for name, reason in reasons.items()
        if reason
    ]
    chosen = [name for name in known if name in included or reasons.get(name, "ignored") is None]
    if not chosen:
        raise DataError(f"{source} has no parameter: {'; '.join(notes) or 'all columns are ignored'}")
    return chosen, notes


def with_times(columns: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return parameters with times instead of dates, and a sentence about the unit and origin of each such column.

    Raises
    ------
    DataError
        For dates or times in another form than 2024-03-01 12:30:00.
    """
    changed = columns.copy()
    notes = []
    for name in columns.columns:
        if (scale := TimeScale.of(str(name), columns[name])) is not None:
            changed[name] = scale.numbers(str(name), columns[name])
            notes.append(f"column {str(name)!r} has dates, which are read as {scale}")
        elif _has_dates(columns[name]):
            raise DataError(
                f"column {str(name)!r} has dates or times such as {columns[name].dropna().iloc[0]!r}, which are not "
                "read; write dates as 2024-03-01 or 2024-03-01 12:30:00, and durations as numbers"
            )
    return changed, notes


def logarithmic(columns: pd.DataFrame) -> list[str]:
    """Return notes on columns whose values seem to be spread on a logarithmic scale, which is not inferred.

    They are positive, span at least three decades, and their logarithms are spread more evenly than they are, by the
    Kolmogorov-Smirnov distance from the uniform distribution over their range.
    """
    notes = []
    for name, column in columns.items():
        if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            continue
        values = column.dropna().to_numpy(dtype=np.float64)
        if not len(values) or values.min() <= 0 or values.max() < _DECADES * values.min():
            continue
        if _unevenness(np.log(values)) < _unevenness(values):
            notes.append(
                f"column {str(name)!r} spans {np.log10(values.max() / values.min()):.1f} decades, evenly in its "
                "logarithm, but its scale is linear: a space in which it is logarithmic, with --space, may fit better"
            )
    return notes


def quantities(columns: pd.DataFrame) -> list[str]:
    """Return notes on columns of categories whose cells are numbers with the same unit, such as "20 °C"."""
    notes = []
    for name, column in columns.items():
        texts = column.dropna()
        if pd.api.types.is_numeric_dtype(texts):
            continue
        matches = [_QUANTITY.fullmatch(text.strip()) if isinstance(text, str) else None for text in texts]
        if all(matches) and len({match["unit"] for match in matches if match}) == 1:
            notes.append(
                f"column {str(name)!r} has {texts.nunique()} categories such as {texts.iloc[0]!r}: if it is a "
                "quantity, write its numbers without the unit, which can stand in the header"
            )
    return notes


def _unevenness(values: FloatArray) -> float:
    """Return the largest difference between the distribution of n values and the uniform one over their range."""
    n = len(values)
    uniform = (np.sort(values) - values.min()) / np.ptp(values)
    return float(np.maximum(np.arange(1, n + 1) / n - uniform, uniform - np.arange(n) / n).max())


def _reason(name: str, values: pd.Series[Any]) -> str | None:
    """Describe the content of a column that is not a parameter; None if it is a parameter.

    Raises
    ------
    DataError
        If this cannot be decided.
    """
    if values.nunique() < 2:
        return None
    plain = name.strip().lower()
    if _has_dates(values) or _DATE_NAMES.fullmatch(plain):
        return "dates or times"
    different = bool(values.is_unique)
    counts = _counts_rows(values)
    if _UNNAMED.fullmatch(plain) or _NUMBER_NAMES.fullmatch(plain):
        if different:
            return "numbers or names of the rows"
        raise _undecided(name, "has the name of a row number, but repeats values")
    if counts and values.is_monotonic_increasing:
        return f"row numbers, {int(values.iloc[0])} to {int(values.iloc[-1])}"
    if counts:
        raise _undecided(name, f"has each number from {int(values.min())} to {int(values.max())} once, out of order")
    return None


def _has_dates(values: pd.Series[Any]) -> bool:
    texts = values.dropna()
    if texts.empty or pd.api.types.is_numeric_dtype(texts):
        return False
    return all(isinstance(text, str) and _DATE_OR_TIME.fullmatch(text.strip()) for text in texts)


def _counts_rows(values: pd.Series[Any]) -> bool:
    """Whether the values are 0, ..., n - 1 or 1, ..., n in any order."""
    n = len(values)
    if n < 2 or pd.api.types.is_bool_dtype(values) or not pd.api.types.is_numeric_dtype(values):
        return False
    ordered = np.sort(values.to_numpy())
    return ordered[0] in (0, 1) and bool(np.array_equal(ordered, np.arange(n) + ordered[0]))


def _undecided(name: str, why: str) -> DataError:
    return DataError(
        f"column {name!r} {why}: is it a parameter? Use --parameter {shlex.quote(name)} if it is, and "
        f"--ignore {shlex.quote(name)} if it numbers the rows"
    )
