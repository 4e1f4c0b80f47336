"""Kernels, each with a space that uses all its parts."""

from __future__ import annotations

from itertools import product

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace
from testing_spaces import conditional_space, mixed_space, plain_space

from slayr_py.kernels import (
    Additive,
    Composite,
    FrequencyModulated,
    Hierarchical,
    Kernel,
    Matern,
    Pretrained,
    Separable,
)
from slayr_py.kernels.base import KERNELS
from slayr_py.kernels.expressions import Leaf
from slayr_py.kernels.expressions.composite import Planned
from slayr_py.kernels.expressions.pairs import Given
from slayr_py.space import Encoded, Encoder


def graphs_only_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        Categorical("colour", ["red", "green", "blue", "white"]),
        Categorical("size", ["s", "m", "l", "xl", "xxl"], ordered=True),
    )
    return space


def pretrained(space: ConfigurationSpace, layers=(1, 2), base=Matern(p=1)) -> Pretrained:  # noqa: B008
    """Return a kernel learned from invented related data."""
    encoder = Encoder(space)
    rng = np.random.default_rng(5)
    alpha = rng.normal(size=8)
    support = encoder.encode(encoder.sobol(8, 3)).columns
    columns = encoder.column_names
    return Pretrained(support, alpha - alpha.mean(), 0.8, layers=layers, base=base, columns=columns)


CASES: dict[str, tuple[Kernel, ConfigurationSpace]] = {
    "matern-plain": (Matern(2), plain_space()),
    "matern-conditional": (Matern(1), conditional_space()),
    "additive-plain": (Additive(2), plain_space()),
    "additive-conditional": (Additive(1), conditional_space()),
    **{
        f"hierarchical-{base}-{combine}": (Hierarchical(base, combine, p), conditional_space())
        for base, combine, p in [
            ("se", "product", 2),
            ("rq", "product", 2),
            ("matern", "product", 2),
            ("se", "sum", 2),
            ("rq", "sum", 2),
            ("matern", "sum", 0),
        ]
    },
    "hierarchical-mixed": (Hierarchical("matern"), mixed_space()),
    "fm-laplacian": (FrequencyModulated(), mixed_space()),
    "fm-power": (FrequencyModulated("power", orders=3), mixed_space()),
    "fm-power-tau": (FrequencyModulated("power", orders=2, tau=1.2), mixed_space()),
    "fm-neural": (FrequencyModulated("neural"), mixed_space()),
    "fm-diffusion": (FrequencyModulated("diffusion"), mixed_space()),
    "fm-ranks": (FrequencyModulated(ordinals="ranks"), mixed_space()),
    "fm-ranks-hierarchical": (FrequencyModulated(Hierarchical("matern"), ordinals="ranks"), mixed_space()),
    "fm-ranks-graphs-only": (FrequencyModulated("power", ordinals="ranks"), graphs_only_space()),
    "fm-graphs-only": (FrequencyModulated(), graphs_only_space()),
    "fm-neural-graphs-only": (FrequencyModulated("neural"), graphs_only_space()),
    "fm-conditional": (FrequencyModulated(), conditional_space()),
    "fm-hierarchical": (FrequencyModulated(Hierarchical()), conditional_space()),
    "fm-hierarchical-graphs-only": (FrequencyModulated(Hierarchical()), graphs_only_space()),
    "fm-hierarchical-rq-sum": (FrequencyModulated(Hierarchical("rq", "sum")), conditional_space()),
    **{
        f"separable-{graph}-{combine}": (Separable(graph, combine), mixed_space())
        for graph, combine in product(["laplacian", "diffusion"], ["product", "sum"])
    },
    "separable-matern": (Separable("diffusion", "product", "matern", 2), mixed_space()),
    "separable-matern-sum": (Separable("laplacian", "sum", "matern", 1), mixed_space()),
    "composite-plain": (Composite("LIN * PER + (RQ[x] + C) * SE"), plain_space()),
    "composite-mixed": (Composite("SE[lr,act] * RQ + (C + MAT32) * PER[units,lr] * LIN[lr,size]"), mixed_space()),
    "pretrained-plain": (pretrained(plain_space()), plain_space()),
    "pretrained-mixed": (pretrained(mixed_space(), layers=(0, 2)), mixed_space()),
    "composite-given": (
        Composite(
            "ONE * LIN + TWO + SE",
            {"ONE": pretrained(plain_space(), 1, None), "TWO": pretrained(plain_space(), 2, None)},
        ),
        plain_space(),
    ),
    "composite-conditional": (Composite("MAT12 * MAT32 + MAT52"), conditional_space()),
}


class Squares(Given):
    """A covariance that was computed elsewhere."""

    kind = "correlation"

    def between(self, a, b):
        return (1 + a.columns @ b.columns.T) / 2

    def gradient(self, a, b):
        raise AssertionError("not called")


class Learned(Planned):
    """A kernel that can be a given leaf; its class declares no name, which would register it."""

    description = "learned kernel"
    only_part = Squares()

    def __init__(self):
        self.name = "learned"

    def as_node(self):
        return Leaf("PRE"), {"PRE": self}

    def _plan(self, encoder):
        raise AssertionError("not called")

    def hyperparameters(self, encoder):
        return ()

    def options(self):
        return {}


def random_points(encoder: Encoder, n: int, seed: int) -> Encoded:
    """Return n random valid configurations."""
    rng = np.random.default_rng(seed)
    encoded, allowed = encoder.resolve(encoder.from_uniform(rng.random((4 * n, len(encoder.names)))))
    return encoded[np.flatnonzero(allowed)[:n]]


def random_theta(kernel: Kernel, encoder: Encoder, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw hyperparameters from all of their supports."""
    theta = {"sigma_f": np.asarray(rng.lognormal())}
    for h in kernel.hyperparameters(encoder):
        if h.prior.support == "unit interval":
            theta[h.name] = rng.random(h.shape)
        elif h.prior.support == "simplex":
            theta[h.name] = rng.dirichlet(np.ones(h.shape))
        else:
            theta[h.name] = np.asarray(rng.lognormal(size=h.shape))
    return theta


def own_names() -> set[str]:
    """Return the names of the package's kernels: a benchmark that a test imports may register others."""
    return {name for name, kernel in KERNELS.items() if kernel.__module__.startswith("slayr_py.")}
