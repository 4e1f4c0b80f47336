r"""Kernel for conditional spaces (Hutter & Osborne 2013), the NumPy twin of ``stan/functions/hierarchical.stan``.

The distance along dimension i, with omega_i the product of gamma over i and all its ancestors (eq. 6), is

===============================================  ===================================================
inactive in both configurations                  0
active in exactly one                            omega_i
active in both, real                             omega_i sqrt(2 - 2 cos(pi rho_i (x_i - x'_i)))
active in both, different ones of m levels       omega_i rho_i sqrt(2 / (1 + (m - 1) (1 - rho_i)^2))
===============================================  ===================================================

Each is the Euclidean distance of an embedding (Propositions 3 and 4; the last line follows from the document's map f,
whose stated distance omega_i sqrt(2) omits rho). Any Euclidean kernel of distance / lengthscale_i is therefore positive
semi-definite, and so are products and sums over the dimensions. rho_i weighs a difference in value against a difference
in activity. At rho_i = 1/3 the distance between the two ends of a real parameter equals the distance between active and
inactive; it is larger above 1/3 and smaller below.

Real parameters are scaled by their range, and ordinal ones count as real with their ranks. Graphs are not used.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.base_kernels import (
    BASES,
    DEFAULT_ORDER,
    SMALLEST_FACTOR,
    Base,
    correlation,
    order_of_base,
    slope,
)
from slayr_py.kernels.contracts import LENGTHSCALE, MATERN_ORDER, Contract, Entry, Parameter, StanValue
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.mixed.conditional_tree import Tree
from slayr_py.kernels.priors import Beta, LogNormal, lengthscale_prior
from slayr_py.space import Encoded, FloatArray, Layout

Combine = Literal["product", "sum"]

ACTIVE = (
    Entry("active", ("N", "D"), "1 where the dimension has a value in the configuration, else 0"),
    Entry("active_new", ("M", "D"), "as `active`, for the new points"),
)
BASE = Entry(
    "base", (), "kernel in one dimension (squared-exponential, rational quadratic, Matérn)", "int", codes=BASES
)
ADD = Entry("add", (), "combination of the dimensions", "int", codes={"product": 0, "sum": 1})
RHO = Parameter(
    "rho",
    ("D",),
    "weight of a difference in value relative to a difference in activity",
    support="unit interval",
)
RQ_ALPHA = Parameter("rq_alpha", ("1",), "shape of the rational quadratic kernel", when={"base": BASES["rq"]})

HIERARCHICAL_GP = Contract(
    "hierarchical_gp",
    (
        *ACTIVE,
        Entry("levels", ("D",), "number of levels, 0 for a real dimension", "int"),
        Entry("lineage", ("D", "D"), "1 where the column's dimension is the row's or an ancestor of it, else 0"),
        BASE,
        MATERN_ORDER,
        ADD,
    ),
    (
        Parameter("gamma", ("D",), "weights of the dimensions", support="unit interval"),
        RHO,
        LENGTHSCALE,
        RQ_ALPHA,
    ),
)


class Hierarchical(Kernel):
    """Hierarchical kernel: hyperparameters ``gamma``, ``rho`` and ``lengthscale`` for each dimension.

    Parameters
    ----------
    base : {"se", "rq", "matern"}
        Kernel of the scaled distance in one dimension: squared-exponential, rational quadratic (whose shape
        ``rq_alpha`` is a hyperparameter) or Matérn.
    combine : {"product", "sum"}
        How the dimensions' kernels are combined (eqs. 2 and 3).
    p : int
        Order of the Matérn kernel, nu = p + 1/2.

    Raises
    ------
    DataError
        For an unknown base or combination, or p that is not an integer in 0..1000.

    Examples
    --------
    A support vector machine: ``degree`` exists only for the polynomial kernel::

        kernel (linear, poly)
        └── degree in [2, 4], if kernel = poly

    >>> from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
    >>> from slayr_py.space import Encoder
    >>> space = ConfigurationSpace()
    >>> kernel, degree = Categorical("kernel", ["linear", "poly"]), Float("degree", (2.0, 4.0))
    >>> space.add(kernel, degree, EqualsCondition(degree, kernel, "poly"))
    >>> encoder = Encoder(space)
    >>> encoder.names
    ('kernel', 'degree')
    >>> configs = [{"kernel": "linear"}, {"kernel": "poly", "degree": 2}, {"kernel": "poly", "degree": 4}]
    >>> points = encoder.encode(configs)

    With gamma = 0.8 for ``degree`` and 0.5 for ``kernel``, omega is 0.8 * 0.5 = 0.4 for ``degree``, which has an
    ancestor, and 0.5 for ``kernel``. With rho = 1/3 for ``degree`` and 1 for ``kernel`` the squared distances are

    * linear, poly 2: ``degree`` is active in one, 0.4^2 = 0.16; ``kernel`` differs, 0.5^2 * 2 = 0.5;
    * poly 2, poly 4: ``degree`` from end to end, 0.4^2 (2 - 2 cos(pi/3)) = 0.16; ``kernel`` agrees, 0.

    With unit length-scales the product of squared exponentials is exp(-(0.16 + 0.5)/2) = 0.718924 and
    exp(-0.16/2) = 0.923116.

    >>> theta = {"gamma": [0.5, 0.8], "rho": [1.0, 1 / 3], "lengthscale": [1.0, 1.0]}
    >>> Hierarchical(base="se").gram(points, points, theta).round(6)
    array([[1.      , 0.718924, 0.718924],
           [0.718924, 1.      , 0.923116],
           [0.718924, 0.923116, 1.      ]])
    """

    name: ClassVar[str] = "hierarchical"
    contract: ClassVar[Contract] = HIERARCHICAL_GP

    def __init__(self, base: Base = "se", combine: Combine = "product", p: int = DEFAULT_ORDER) -> None:
        if base not in BASES:
            raise DataError(f"unknown base kernel {base!r}{did_you_mean(base, tuple(BASES))}")
        if combine not in get_args(Combine):
            raise DataError(f"unknown combination {combine!r}{did_you_mean(combine, get_args(Combine))}")
        self.base = base
        self.combine = combine
        self.p = order_of_base(base, p)
        bases = {"se": "squared-exponential", "rq": "rational quadratic", "matern": f"Matérn p = {p}"}
        self.description = f"hierarchical kernel ({bases[base]}, {combine} over dimensions)"

    @override
    def options(self) -> dict[str, Any]:
        return {"base": self.base, "combine": self.combine} | ({"p": self.p} if self.base == "matern" else {})

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        return self.tree_hyperparameters(Tree.of(encoder))

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        tree = Tree.of(train.encoder)
        return {
            "N": len(train),
            "D": len(tree.names),
            "X": tree.inputs(train),
            "active": tree.activity(train),
            "levels": tree.levels,
            "M": len(new),
            "X_new": tree.inputs(new),
            "active_new": tree.activity(new),
            **self.tree_data(tree),
        }

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        variance = np.square(draws["sigma_f"])[:, None, None]
        return variance * self.correlations(Tree.of(a.encoder), a, b, draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        variance = np.square(draws["sigma_f"])[:, None, None]
        k, gradient = self.correlations_with_gradient(Tree.of(a.encoder), a, b, draws)
        return variance * k, variance[..., None] * gradient

    @override
    def diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        return super().diagonal(a, draws) * self.bound(Tree.of(a.encoder))

    @override
    def reference_variance(self, encoder: Layout, draws: Draws) -> FloatArray:
        return self.bound(Tree.of(encoder)) * super().reference_variance(encoder, draws)

    # The methods below take a tree of some dimensions, for kernels that this kernel modulates.

    def bound(self, tree: Tree) -> float:
        """Return the correlation of equal configurations: 1 for the product, the number of terms for the sum."""
        return 1.0 if self.combine == "product" else float(len(tree.names))

    def tree_hyperparameters(self, tree: Tree) -> tuple[Hyperparameter, ...]:
        """Return weights with weakly informative priors, and length-scales with the prior of the Matérn kernel."""
        names = tree.names
        dimension = tree.dimension
        shape = (Hyperparameter("rq_alpha", LogNormal(0.0, 1.0)),) if self.base == "rq" else ()
        return (
            Hyperparameter("gamma", Beta(2.0, 1.0), tree.weight_names, tree.weight_dimension),
            Hyperparameter("rho", Beta(2.0, 2.0), names, dimension),
            Hyperparameter("lengthscale", lengthscale_prior(len(names)), names, dimension),
            *shape,
        )

    def tree_data(self, tree: Tree) -> dict[str, StanValue]:
        """Return options and structure as entries of the programs' data."""
        return {
            "lineage": tree.lineage,
            "base": BASES[self.base],
            "p": self.p,
            "add": int(self.combine == "sum"),
        }

    def correlations(self, tree: Tree, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        """Return the covariances over ``sigma_f**2``, (s, n_a, n_b)."""
        distances = tree.distances(a, b, draws)
        total = distances.sums(lambda squared: self._terms(squared, draws))
        for block in distances.blocks:
            total[block.where] += self._terms(block.squared, draws)
        return self._combined(total, tree)

    def correlations_with_gradient(
        self, tree: Tree, a: Encoded, b: Encoded, draws: Draws
    ) -> tuple[FloatArray, FloatArray]:
        """Return the covariances over ``sigma_f**2``, and their derivatives by the inputs of ``a`` (..., D_real)."""
        distances = tree.distances(a, b, draws, gradient=True)
        total = distances.sums(lambda squared: self._terms(squared, draws))
        gradient = np.zeros((*total.shape, len(a.encoder.real_names)))
        column = 0
        for block in distances.blocks:
            total[block.where] += self._terms(block.squared, draws)
            if block.gradient is not None:
                gradient[(*block.where, column)] = self._slopes(block.squared, draws) * block.gradient
                column += 1
        combined = self._combined(total, tree)
        if self.combine == "product":
            gradient *= combined[..., None]
        return combined, gradient

    # With k the kernel in one dimension, sums over dimensions are those of log k or, for a sum of kernels, of k - 1.

    def _terms(self, squared: FloatArray, draws: Draws) -> FloatArray:
        """Return log k, or k - 1, at squared distances (s, ...)."""
        if self.combine == "product" and self.base == "se":
            return -0.5 * squared
        k = correlation(squared, self.base, self.p, self._rq_alpha(squared, draws))
        return np.log(np.maximum(k, SMALLEST_FACTOR)) if self.combine == "product" else k - 1

    def _slopes(self, squared: FloatArray, draws: Draws) -> FloatArray:
        """Return the derivatives of `_terms`."""
        rq_alpha = self._rq_alpha(squared, draws)
        by_squared = slope(squared, self.base, self.p, rq_alpha)
        if self.combine == "sum":
            return by_squared
        return by_squared / np.maximum(correlation(squared, self.base, self.p, rq_alpha), SMALLEST_FACTOR)

    def _combined(self, total: FloatArray, tree: Tree) -> FloatArray:
        return np.exp(total, out=total) if self.combine == "product" else total + self.bound(tree)

    def _rq_alpha(self, squared: FloatArray, draws: Draws) -> FloatArray | None:
        return draws["rq_alpha"].reshape(-1, *(1,) * (squared.ndim - 1)) if self.base == "rq" else None
