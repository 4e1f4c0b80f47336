"""Fit options on the command line, kernels by name, and CSV files that several processes append to."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import slayr_py as sl

KERNELS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "matern": lambda: sl.kernels.Matern(),
    "hierarchical": lambda: sl.kernels.Hierarchical(),
    "fm": lambda: sl.kernels.FrequencyModulated(modulator="laplacian"),
    "fm-power": lambda: sl.kernels.FrequencyModulated(modulator="power"),
    "fm-neural": lambda: sl.kernels.FrequencyModulated(modulator="neural"),
    "fm-diffusion": lambda: sl.kernels.FrequencyModulated(modulator="diffusion"),
    "fm-hierarchical": lambda: sl.kernels.FrequencyModulated(modulator=sl.kernels.Hierarchical()),
    "product-laplacian": lambda: sl.kernels.Separable(graph="laplacian", combine="product"),
    "sum-laplacian": lambda: sl.kernels.Separable(graph="laplacian", combine="sum"),
    "product-diffusion": lambda: sl.kernels.Separable(graph="diffusion", combine="product"),
    "sum-diffusion": lambda: sl.kernels.Separable(graph="diffusion", combine="sum"),
}
"""Names in Oh et al. (2021): fm is ModLap, fm-diffusion ModDif, product-laplacian ProdLap, sum-diffusion AddDif."""


def add_fit_arguments(parser: argparse.ArgumentParser, chains: int, warmup: int, draws: int) -> None:
    """Add the options of a slayr_py fit with the given defaults."""
    parser.add_argument("--method", default="nuts", choices=["nuts", "pathfinder", "laplace", "map"])
    parser.add_argument("--chains", type=int, default=chains)
    parser.add_argument("--warmup", type=int, default=warmup, help="warm-up iterations per chain")
    parser.add_argument("--draws", type=int, default=draws, help="draws per chain")


def fit_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("method", "chains", "warmup", "draws")}


def fit_label(method: str, chains: int, warmup: int, draws: int) -> str:
    return method if method == "map" else f"{method} {chains}x({warmup}+{draws})"


def read(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    """Return the rows of a file, or no rows if the file does not exist."""
    # The converter is exact; the default parser of pandas may round the last digit.
    exact = {"value": float, "exact": float}
    rows = pd.read_csv(path, converters=exact) if path.exists() else pd.DataFrame()
    return rows.reindex(columns=list(columns))


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Append one row in a single write, so that several processes can share the file."""
    pd.DataFrame([row]).to_csv(path, mode="a", header=False, index=False)


def median_rhat(rows: pd.DataFrame) -> str:
    """Return the median of the column ``rhat``, or an empty cell if there is none (point estimates)."""
    values = rows["rhat"].dropna()
    return f"{values.median():.3f}" if len(values) else ""


def standard_error(values: pd.Series) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def begin_table(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    """Create a file with these columns for :func:`append` unless it exists, and return its rows."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(columns=list(columns)).to_csv(path, index=False)
    return read(path, columns)


def line(row: Mapping[str, Any]) -> str:
    """Return a row as text with four digits."""
    texts = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
    return ", ".join(f"{name} {text}" for name, text in texts.items())
