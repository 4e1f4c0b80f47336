"""Output of a Stan program as named arrays.

Symbols
-------
c : chains; s : draws per chain. They are the first two axes of every array of a run; a method without chains has c = 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import cmdstanpy
import numpy as np
import pandas as pd

from slayr_py.space import FloatArray

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


class Adaptation(TypedDict):
    """Step size and inverse metric of a chain: variances, or rows of covariances."""

    step_size: float
    inv_metric: list[float] | list[list[float]]


@dataclass(frozen=True)
class Run:
    """Output of one run of a program.

    Attributes
    ----------
    variables : dict of str to (c, s, size) float64
        Parameters, transformed parameters and generated quantities.
    shapes : dict of str to tuple of int
        Shapes of the program's parameters, in its order, without empty ones.
    arguments : dict
        Arguments and settings of the method, JSON-able.
    sampler : dict of str to (c, s) float64
        NUTS statistics under ArviZ' names, of the draws before any resampling; empty for other methods.
    pareto_k, importance_ess : float
        Shape of the tail of the importance ratios of an approximation or of a binary likelihood, and effective number
        of distinct draws after resampling by them; NaN for other runs.
    adaptation : list of Adaptation
        One entry per chain of NUTS; empty for other methods.
    calls : list of dict
        Arguments of each CmdStan call, defaults included, by :func:`call`.
    seconds : float
        Wall-clock time of the run.
    """

    variables: dict[str, FloatArray]
    shapes: dict[str, tuple[int, ...]]
    arguments: dict[str, Any]
    sampler: dict[str, FloatArray] = field(default_factory=dict)
    pareto_k: float = float("nan")
    importance_ess: float = float("nan")
    adaptation: list[Adaptation] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def chains(self) -> int:
        """Number of chains."""
        return len(next(iter(self.variables.values())))

    @property
    def unconstrained(self) -> dict[str, FloatArray]:
        """The program's parameters, (c, s, size), on the unconstrained scale."""
        return {name: self.variables[name] for name in self.shapes}


def call(
    fit: cmdstanpy.CmdStanMCMC | cmdstanpy.CmdStanMLE | cmdstanpy.CmdStanLaplace | cmdstanpy.CmdStanPathfinder,
    **origins: Any,
) -> dict[str, Any]:
    """Return the arguments that CmdStan reports for a call.

    Files are omitted, since they are removed after the run. ``origins`` has their content, or says where the record has
    it.
    """
    reported = fit.metadata.cmdstan_config.items()
    return {name: value for name, value in reported if not _NO_ARGUMENTS.fullmatch(name)} | origins


def columns_of(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the positions of each variable's columns; elements keep CmdStan's column-major order."""
    columns: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        columns.setdefault(re.split(r"[\[.]", name, maxsplit=1)[0], []).append(i)
    return columns


def shapes_of(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the program's parameters: the scalars and vectors named ``z_...``."""
    return {
        name: () if name in names else (len(positions),)
        for name, positions in columns_of(names).items()
        if name.startswith("z_")
    }


def variables_of(table: FloatArray, names: Sequence[str]) -> dict[str, FloatArray]:
    """Return named arrays (c, s, size); a scalar has size 1."""
    columns = columns_of(names)
    return {name: np.ascontiguousarray(table[..., i]) for name, i in columns.items() if not name.endswith("__")} | {
        name: table[..., columns[name][0]] for name in ("lp__",) if name in columns
    }


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table with comment lines; every number is exact (pandas' default parser can miss the last bit)."""
    with path.open() as lines:
        header = next(line for line in lines if not line.startswith("#")).strip().split(",")
        return pd.DataFrame(np.loadtxt(lines, delimiter=",", comments="#", ndmin=2), columns=header)
