"""What users give as configurations, read value by value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from slayr_py.errors import SpaceError, did_you_mean
from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.rules import BoolArray, Rules, spelled
from slayr_py.space.vectors import Vectors


def rows_of(configs: pd.DataFrame | Iterable[Any] | NDArray[Any], dimensions: tuple[Dimension, ...]) -> list[Any]:
    """One mapping for each configuration; empty cells of tables, (n, D) with columns as the dimensions, left out."""
    if isinstance(configs, Mapping):
        raise SpaceError("expected a list of configurations, got a single one; put it into a list")
    if isinstance(configs, pd.DataFrame):
        table = [{str(name): value for name, value in row.items()} for row in configs.to_dict(orient="records")]
    elif isinstance(configs, np.ndarray):
        names = [d.name for d in dimensions]
        if configs.ndim != 2 or configs.shape[1] != len(names):
            raise SpaceError(
                f"an array of configurations needs shape (n, {len(names)}), one column each for {names}; "
                f"got {configs.shape}"
            )
        table = [dict(zip(names, row, strict=True)) for row in configs]
    elif isinstance(configs, Iterable):
        return list(configs)
    else:
        raise SpaceError(f"expected configurations (mappings, a DataFrame, an array), got {configs!r:.200}")
    levels = {d.name: d.levels for d in dimensions}
    return [{k: v for k, v in row.items() if not _is_empty(v) or v in levels.get(k, ())} for row in table]


def read(rows: list[Any], vectors: Vectors, where: str) -> tuple[FloatArray, BoolArray]:
    """Level indices and real values, and which parameters are given.

    Parameters
    ----------
    rows : list
        What should be n mappings.
    vectors : Vectors
    where : str
        Begins the message about configuration i, and has a place for i.

    Returns
    -------
    numbers : (n, D) float64
        Legal also where nothing is given.
    given : (len(space), n) bool

    Raises
    ------
    SpaceError
        For an unknown parameter or a value that it cannot have.
    """
    position = {d.name: j for j, d in enumerate(vectors.dimensions)}
    numbers = np.tile(np.array([d.lower for d in vectors.dimensions], dtype=np.float64), (len(rows), 1))
    given = np.zeros((len(vectors.space), len(rows)), dtype=np.bool_)
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise SpaceError(f"{where.format(i)}a configuration is a mapping of names to values, got {row!r}")
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


def judge(rules: Rules, vectors: FloatArray, given: BoolArray, varies: BoolArray, where: str) -> BoolArray:
    """Find out what is active, (len(space), n), and raise for what is missing, inactive or forbidden.

    Parameters
    ----------
    varies : (len(space),) bool
        Parameters that must be given where they are active; constants need not.
    """
    active = rules.switch_off(vectors)
    missing, extra = active & ~given & varies[:, None], given & ~active
    for i in np.flatnonzero((missing | extra).any(axis=0)):
        row = int(np.argmax(missing[:, i] | extra[:, i]))
        name = rules.space.at[row]
        what, condition = f"{where.format(i)}parameter {name!r}", rules.condition(name)
        if extra[row, i]:
            raise SpaceError(f"{what} has a value though it is inactive: {condition} does not hold")
        raise SpaceError(f"{what} has no value" + f" though it is active: {condition} holds" * bool(condition))
    for clause, holds in rules.broken(vectors):
        if holds.any():
            raise SpaceError(f"{where.format(int(np.argmax(holds)))}forbidden by the space: {spelled(clause)}")
    return active


def _check_constant(name: Any, value: Any, vectors: Vectors) -> None:
    if name not in vectors.constants:
        raise SpaceError(f"there is no parameter {name!r} (= {value!r}){did_you_mean(name, vectors.space)}")
    if value != vectors.constants[name]:
        raise SpaceError(f"parameter {name!r} is the constant {vectors.constants[name]!r}, not {value!r}")


def _is_empty(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))
