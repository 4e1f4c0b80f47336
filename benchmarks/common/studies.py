"""Fit options on the command line, and kernels by name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import slayr_py as sl

KERNELS: dict[str, Callable[[], Any]] = {
    "auto": lambda: "auto",
    "matern": lambda: sl.kernels.Matern(),
    "matern-1": lambda: sl.kernels.Matern(p=1),
    "matern-6": lambda: sl.kernels.Matern(p=6),
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
