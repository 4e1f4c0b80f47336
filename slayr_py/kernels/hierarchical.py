r"""Kernel for conditional spaces (Hutter & Osborne 2013), the NumPy twin of ``stan/functions/hierarchical.stan``.

Dimension i has a distance of its own, with omega_i the product of gamma over i and all its ancestors (eq. 6):

===============================================  ===================================================
inactive in both configurations                  0
active in exactly one                            omega_i
active in both, real                             omega_i sqrt(2 - 2 cos(pi rho_i (x_i - x'_i)))
active in both, different ones of m levels       omega_i rho_i sqrt(2 / (1 + (m - 1) (1 - rho_i)^2))
===============================================  ===================================================

Each is the Euclidean distance of an embedding (Propositions 3 and 4; the last line is that of the document's map f,
whose stated distance omega_i sqrt(2) omits rho), so that any Euclidean kernel of distance / lengthscale_i is positive
semi-definite, and so are products and sums over the dimensions. rho_i weighs differing in value against differing in
activity: from one end of a real parameter to the other is as far as from active to inactive at rho_i = 1/3, farther
above, nearer below.

Real coordinates are scaled by their range; ordinals count as real with their ranks; graphs play no part here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.base_kernels import CODES, Base, correlation, slope
from slayr_py.kernels.conditional_tree import Tree, product_and_others
from slayr_py.kernels.matern import checked_order
from slayr_py.kernels.priors import Beta, LogNormal, Prior, lengthscale_prior
from slayr_py.space import Encoded, Layout
from slayr_py.space.dimension import FloatArray

Combine = Literal["product", "sum"]


class Hierarchical(Kernel):
    """Hierarchical kernel: hyperparameters ``gamma``, ``rho`` and ``lengthscale``, one for each dimension.

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
    program: ClassVar[str] = "hierarchical_gp"
    dims: ClassVar[Mapping[str, str]] = {"gamma": "parameter", "rho": "parameter", "lengthscale": "parameter"}
    optional: ClassVar[frozenset[str]] = frozenset({"rq_alpha"})

    def __init__(self, base: Base = "se", combine: Combine = "product", p: int = 2) -> None:
        if base not in CODES:
            raise DataError(f"unknown base kernel {base!r}{did_you_mean(base, tuple(CODES))}")
        if combine not in get_args(Combine):
            raise DataError(f"unknown combination {combine!r}{did_you_mean(combine, get_args(Combine))}")
        self.base, self.combine, self.p = base, combine, checked_order(p)

    @override
    def options(self) -> dict[str, Any]:
        return {"base": self.base, "combine": self.combine} | ({"p": self.p} if self.base == "matern" else {})

    @property
    @override
    def description(self) -> str:
        bases = {"se": "squared-exponential", "rq": "rational quadratic", "matern": f"Matérn p = {self.p}"}
        return f"hierarchical kernel ({bases[self.base]}, {self.combine} over dimensions)"

    @override
    def labels(self, encoder: Layout) -> dict[str, tuple[str, ...] | None]:
        return self.tree_labels(Tree.of(encoder))

    @override
    def kernel_priors(self, encoder: Layout) -> dict[str, Prior]:
        return self.tree_priors(Tree.of(encoder))

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, Any]:
        tree = Tree.of(train.encoder)
        return {
            "N": len(train),
            "D": len(tree.names),
            "X": tree.coordinates(train),
            "active": tree.activity(train),
            "levels": tree.levels,
            "M": len(new),
            "X_new": tree.coordinates(new),
            "active_new": tree.activity(new),
            **self.tree_data(tree),
        }

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        variance = np.square(draws["sigma_f"])[:, None, None]
        return variance * self.correlations(Tree.of(a.encoder), a, b, draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        variance = np.square(draws["sigma_f"])[:, None, None]
        k, gradient = self.correlations_with_gradient(Tree.of(a.encoder), a, b, draws)
        return variance * k, variance[..., None] * gradient

    @override
    def diagonal(self, a: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        return super().diagonal(a, draws) * self.bound(Tree.of(a.encoder))

    @override
    def reference_variance(self, encoder: Layout, draws: Mapping[str, FloatArray]) -> FloatArray:
        return self.bound(Tree.of(encoder)) * super().reference_variance(encoder, draws)

    # The same on a tree of some dimensions only, for kernels that modulate with this one.

    def bound(self, tree: Tree) -> float:
        """Largest correlation, reached by equal configurations: 1 for the product, the number of terms for the sum."""
        return 1.0 if self.combine == "product" else float(len(tree.names))

    def tree_labels(self, tree: Tree) -> dict[str, tuple[str, ...] | None]:
        """See :meth:`labels`."""
        labels: dict[str, tuple[str, ...] | None] = {
            "gamma": tree.weight_names,
            "rho": tree.names,
            "lengthscale": tree.names,
        }
        return labels | ({"rq_alpha": None} if self.base == "rq" else {})

    def tree_priors(self, tree: Tree) -> dict[str, Prior]:
        """Length-scales as for the Matérn kernel; weights that leave room for any share of a dimension."""
        lengthscale = lengthscale_prior(len(tree.names))
        priors: dict[str, Prior] = {"gamma": Beta(2.0, 1.0), "rho": Beta(2.0, 2.0), "lengthscale": lengthscale}
        return priors | ({"rq_alpha": LogNormal(0.0, 1.0)} if self.base == "rq" else {})

    def tree_data(self, tree: Tree) -> dict[str, Any]:
        """Options and structure as the Stan programs take them."""
        absent = {} if self.base == "rq" else {"rq_alpha_location": np.zeros(0), "rq_alpha_scale": np.zeros(0)}
        return {
            "lineage": tree.lineage,
            "base": CODES[self.base],
            "p": self.p,
            "add": int(self.combine == "sum"),
            **absent,
        }

    def correlations(self, tree: Tree, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        """Covariances over ``sigma_f**2``, (s, n_a, n_b)."""
        rq_alpha = self._rq_alpha(draws)
        combined = np.full((len(draws["rho"]), len(a), len(b)), float(self.combine == "product"))
        for separation in tree.separations(a, b, draws):
            k = correlation(separation.squared, self.base, self.p, rq_alpha)
            if self.combine == "product":
                combined *= k
            else:
                combined += k
        return combined

    def correlations_with_gradient(
        self, tree: Tree, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Also the derivatives by the real coordinates of ``a``, (s, n_a, n_b, D_real)."""
        rq_alpha = self._rq_alpha(draws)
        separations = list(tree.separations(a, b, draws, gradient=True))
        shape = (len(draws["rho"]), len(a), len(b))
        factors = [correlation(each.squared, self.base, self.p, rq_alpha) for each in separations]
        combined, others = product_and_others(factors, shape)
        if self.combine == "sum":
            combined, others = sum(factors, start=np.zeros(shape)), [np.ones(())] * len(factors)
        gradient = np.empty((*shape, len(a.encoder.real_names)))
        column = 0
        for i, separation in enumerate(separations):
            if separation.gradient is not None:
                by_x = slope(separation.squared, self.base, self.p, rq_alpha) * separation.gradient
                gradient[..., column] = by_x * others[i]
                column += 1
        return combined, gradient

    def _rq_alpha(self, draws: Mapping[str, FloatArray]) -> FloatArray | None:
        return draws["rq_alpha"][:, None, None] if self.base == "rq" else None
