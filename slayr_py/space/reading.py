"""Read configurations from mappings, tables and arrays, and check them against the space's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from numpy.typing import NDArray

from slayr_py.arguments import plain_number
from slayr_py.errors import SpaceError, did_you_mean
from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.rules import BoolArray, Rules, clause_text
from slayr_py.space.vectors import Vectors

PARAMETER = "params_"
"""Start of the names of parameters in a table of trials, as Optuna writes it."""


def rows_of(
    configs: pd.DataFrame | Iterable[object] | NDArray[Any],
    dimensions: tuple[Dimension, ...],
    space: ConfigurationSpace,
    other_columns: bool = False,
) -> list[object]:
    """Return one mapping per configuration; empty cells of tables are omitted, array columns follow ``dimensions``.

    With ``other_columns``, columns of a DataFrame that are not parameters of the space are omitted. So are those beside
    the parameters in a table of trials, whose columns of parameters are called ``params_<name>``.
    """
    if isinstance(configs, Mapping):
        raise SpaceError("the configurations are a single mapping; put it into a list")
    if isinstance(configs, pd.DataFrame):
        named = configs.set_axis(configs.columns.map(str), axis=1)
        of_trials = {PARAMETER + name: name for name in space if PARAMETER + name in named and name not in named}
        if of_trials:
            named, other_columns = named.rename(columns=of_trials), True
        columns = _parameter_columns(named.columns, dimensions, space)
        records = (named[columns] if other_columns else named).to_dict(orient="records")
        table = [{str(name): value for name, value in row.items()} for row in records]
    elif isinstance(configs, np.ndarray):
        names = [d.name for d in dimensions]
        if configs.ndim != 2 or configs.shape[1] != len(names):
            raise SpaceError(
                f"the array of configurations has shape {configs.shape}; give shape (n, {len(names)}), one column for "
                f"each of {names}"
            )
        table = [dict(zip(names, row, strict=True)) for row in configs]
    elif isinstance(configs, Iterable):
        return list(configs)
    else:
        raise SpaceError(f"the configurations are {configs!r:.200}; give a list of mappings, a DataFrame or an array")
    levels = {d.name: d.levels for d in dimensions}
    return [{k: v for k, v in row.items() if not _is_empty(v) or v in levels.get(k, ())} for row in table]


def read(rows: list[object], vectors: Vectors, where: str) -> tuple[FloatArray, BoolArray]:
    """Read level indices and real values, and which parameters are given.

    Parameters
    ----------
    rows : list
        n mappings; other elements raise an error.
    vectors : Vectors
    where : str
        Template of the start of an error message; ``{}`` is replaced by the position of the configuration.

    Returns
    -------
    numbers : (n, D) float64
        A legal number where no value is given.
    given : (len(space), n) bool

    Raises
    ------
    SpaceError
        For an unknown parameter or an illegal value.
    """
    position = {d.name: j for j, d in enumerate(vectors.dimensions)}
    numbers = np.tile(np.array([d.lower for d in vectors.dimensions], dtype=np.float64), (len(rows), 1))
    given = np.zeros((len(vectors.space), len(rows)), dtype=np.bool_)
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise SpaceError(
                f"{where.format(i)}the configuration is {row!r}; give a mapping of names to values, or all "
                "configurations as an array or a DataFrame"
            )
        for name, value in row.items():
            plain = value.item() if isinstance(value, np.generic) else value
            try:
                if name in position:
                    numbers[i, position[name]] = vectors.dimensions[position[name]].number(plain)
                else:
                    _check_constant(name, plain, vectors)
            except SpaceError as error:
                raise SpaceError(where.format(i) + str(error)) from None
            given[vectors.space.index_of[name], i] = True
    return numbers, given


def check_rules(rules: Rules, vectors: FloatArray, given: BoolArray, varies: BoolArray, where: str) -> BoolArray:
    """Return which parameters are active, (len(space), n).

    Parameters
    ----------
    varies : (len(space),) bool
        Parameters that must be given where they are active; constants may be omitted.

    Raises
    ------
    SpaceError
        If an active parameter is missing, an inactive one is given, or a forbidden clause holds.
    """
    active = rules.switch_off(vectors)
    missing = active & ~given & varies[:, None]
    extra = given & ~active
    for i in np.flatnonzero((missing | extra).any(axis=0)):
        row = int(np.argmax(missing[:, i] | extra[:, i]))
        name = rules.space.at[row]
        what = f"{where.format(i)}parameter {name!r}"
        condition = rules.condition(name)
        if extra[row, i]:
            raise SpaceError(f"{what} has a value although it is inactive: {condition} does not hold")
        raise SpaceError(f"{what} has no value" + f" although it is active: {condition} holds" * bool(condition))
    for clause, holds in rules.broken(vectors):
        if holds.any():
            raise SpaceError(f"{where.format(int(np.argmax(holds)))}forbidden by the space: {clause_text(clause)}")
    return active


def _parameter_columns(
    columns: pd.Index[Any], dimensions: tuple[Dimension, ...], space: ConfigurationSpace
) -> pd.Index[Any]:
    """Return the columns of a table that are parameters.

    Raises
    ------
    SpaceError
        If a parameter without condition has no column, or a parameter has several.
    """
    found = columns[columns.isin(list(space))]
    if found.has_duplicates:
        raise SpaceError(f"the table has more than one column {found[found.duplicated()][0]!r}; rename or drop one")
    for d in dimensions:
        if d.name not in found and not space.parent_conditions_of[d.name]:
            others = list(columns.difference(found))
            hint = did_you_mean(d.name, others) if others else ""
            raise SpaceError(f"the table has no column for parameter {d.name!r}{hint}")
    return found


def _check_constant(name: str, value: object, vectors: Vectors) -> None:
    if name not in vectors.constants:
        raise SpaceError(f"there is no parameter {name!r} (= {value!r}){did_you_mean(name, vectors.space)}")
    if value != vectors.constants[name] and plain_number(value) != vectors.constants[name]:
        raise SpaceError(f"parameter {name!r} is the constant {vectors.constants[name]!r}, not {value!r}")


def _is_empty(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))
