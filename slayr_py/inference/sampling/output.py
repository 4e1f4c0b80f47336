"""What a Stan program wrote, as named arrays.

Symbols
-------
c : chains; s : draws of a chain. Every array of a run begins with these two axes; a method without chains has c = 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from slayr_py.space.dimension import FloatArray

SAMPLER_COLUMNS = {
    "lp__": "lp",
    "accept_stat__": "acceptance_rate",
    "stepsize__": "step_size",
    "treedepth__": "tree_depth",
    "n_leapfrog__": "n_steps",
    "divergent__": "diverging",
    "energy__": "energy",
}
"""CmdStan's sampler columns and the names ArviZ gives them."""

_NO_ARGUMENTS = re.compile(
    r"stan_version_.*|model|start_datetime|stan.*flags|stanc_version|.*_file|.* .*|raw_header|"
    r"column_names|draws_warmup|draws_sampling|ct_.*|time"
)


@dataclass(frozen=True)
class Run:
    """What a program wrote.

    Attributes
    ----------
    variables : dict of str to (c, s, size) float64
        Parameters, transformed parameters and generated quantities.
    shapes : dict of str to tuple of int
        Of the program's parameters, in its order; those without entries are left out.
    arguments : dict
        What the method was asked, JSON-able.
    sampler : dict of str to (c, s) float64
        NUTS statistics under ArviZ' names; empty for other methods.
    pareto_k, importance_ess : float
        Shape of the tail of the importance ratios of an approximation, and the effective number of different draws
        among those resampled by them; NaN for other methods.
    adaptation : list of dict
        Step size and inverse metric of each chain.
    calls : list of dict
        Arguments of each run of the program, CmdStan's defaults included, by :func:`call`.
    seconds : float
        Wall-clock time of the run.
    """

    variables: dict[str, FloatArray]
    shapes: dict[str, tuple[int, ...]]
    arguments: dict[str, Any]
    sampler: dict[str, FloatArray] = field(default_factory=dict)
    pareto_k: float = float("nan")
    importance_ess: float = float("nan")
    adaptation: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(next(iter(self.variables.values())))

    @property
    def unconstrained(self) -> dict[str, FloatArray]:
        """What the program samples: its parameters, (c, s, size)."""
        return {name: self.variables[name] for name in self.shapes}


def call(fit: Any, **given: str) -> dict[str, Any]:
    """Arguments that CmdStan says it ran with.

    Files are left out: they are gone after the run. ``given`` says where in the record their content is.
    """
    said = fit.metadata.cmdstan_config.items()
    return {name: value for name, value in said if not _NO_ARGUMENTS.fullmatch(name)} | given


def columns_of(names: Sequence[str]) -> dict[str, list[int]]:
    """Positions of each variable's columns; elements keep CmdStan's column-major order."""
    columns: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        columns.setdefault(re.split(r"[\[.]", name, maxsplit=1)[0], []).append(i)
    return columns


def shapes_of(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of the program's parameters, which alone are called ``z_...``; all are numbers or vectors."""
    return {
        name: () if name in names else (len(positions),)
        for name, positions in columns_of(names).items()
        if name.startswith("z_")
    }


def variables_of(table: FloatArray, names: Sequence[str]) -> dict[str, FloatArray]:
    """Named arrays; a variable with one element stays (c, s, 1) and is squeezed where its shape is known."""
    columns = columns_of(names)
    return {name: np.ascontiguousarray(table[..., i]) for name, i in columns.items() if not name.endswith("__")} | {
        name: table[..., columns[name][0]] for name in ("lp__",) if name in columns
    }


def read_csv(path: Path) -> pd.DataFrame:
    """A table with comment lines, every number read exactly (pandas' quick reader may miss the last bit)."""
    with path.open() as lines:
        header = next(line for line in lines if not line.startswith("#")).strip().split(",")
        return pd.DataFrame(np.loadtxt(lines, delimiter=",", comments="#", ndmin=2), columns=header)
