"""Names of the columns in tables of trials and of past experiments."""

from __future__ import annotations

from collections.abc import Sequence

from slayr_py.study.storage.attributes import ERROR_KEY

PARAMETER = "params_"
"""Start of the columns of parameters in a table of trials."""

OBJECTIVE = "values_"
"""Start of the columns of the values of several objectives."""


def value_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of the values of objectives with these names: "value", or "values_<name>" of several."""
    return ["value"] if len(names) == 1 else [OBJECTIVE + name for name in names]


def error_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of the known errors of these values: "y_sd", or "y_sd_<name>" of several objectives."""
    return [ERROR_KEY] if len(names) == 1 else [f"{ERROR_KEY}_{name}" for name in names]
