"""Kernels, each with a space that uses all its parts."""

from __future__ import annotations

from itertools import product

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace
from testing_spaces import conditional_space, mixed_space, plain_space

from slayr_py.kernels import FrequencyModulated, Hierarchical, Kernel, Matern, Separable
from slayr_py.space import Encoded, Encoder


def graphs_only_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        Categorical("colour", ["red", "green", "blue", "white"]),
        Categorical("size", ["s", "m", "l", "xl", "xxl"], ordered=True),
    )
    return space


CASES: dict[str, tuple[Kernel, ConfigurationSpace]] = {
    "matern-plain": (Matern(2), plain_space()),
    "matern-conditional": (Matern(1), conditional_space()),
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
    "fm-graphs-only": (FrequencyModulated(), graphs_only_space()),
    "fm-neural-graphs-only": (FrequencyModulated("neural"), graphs_only_space()),
    "fm-conditional": (FrequencyModulated(), conditional_space()),
    "fm-hierarchical": (FrequencyModulated(Hierarchical()), conditional_space()),
    "fm-hierarchical-rq-sum": (FrequencyModulated(Hierarchical("rq", "sum")), conditional_space()),
    **{
        f"separable-{graph}-{combine}": (Separable(graph, combine), mixed_space())
        for graph, combine in product(["laplacian", "diffusion"], ["product", "sum"])
    },
}


def random_points(encoder: Encoder, n: int, seed: int) -> Encoded:
    """Draw valid encoded configurations at random."""
    rng = np.random.default_rng(seed)
    encoded, allowed = encoder.resolve(encoder.from_uniform(rng.random((4 * n, len(encoder.names)))))
    return encoded[np.flatnonzero(allowed)[:n]]


def random_theta(kernel: Kernel, encoder: Encoder, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw hyperparameters from all of their supports."""
    theta = {"sigma_f": np.asarray(rng.lognormal())}
    priors = kernel.kernel_priors(encoder)
    for name, label in kernel.labels(encoder).items():
        size = None if label is None else len(label)
        if priors[name].support == "unit interval":
            theta[name] = rng.random(size)
        elif priors[name].support == "simplex":
            theta[name] = rng.dirichlet(np.ones(size))
        else:
            theta[name] = np.asarray(rng.lognormal(size=size))
    return theta
