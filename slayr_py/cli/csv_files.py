"""Read CSV tables: the data of ``slayr fit`` and ``slayr search``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from slayr_py.cli.checks import ConfigError
from slayr_py.errors import DataError


def read_table(path: Path, **options: Any) -> pd.DataFrame:
    """Read a CSV file with a header and at least one row; ``options`` as in `pandas.read_csv`.

    Raises
    ------
    ConfigError
        If the file is missing or not a table.
    DataError
        If it has no rows.
    """
    try:
        table: pd.DataFrame = pd.read_csv(path, **options)
    except FileNotFoundError:
        raise ConfigError(f"there is no table {path}") from None
    except (OSError, ValueError) as error:  # pandas' parser errors are ValueErrors
        raise ConfigError(f"{path} cannot be read as a table: {error}") from error
    if table.empty:
        raise DataError(f"{path} has a header but no rows")
    return table
