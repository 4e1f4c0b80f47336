"""What every kernel offers.

Symbols
-------
s : number of hyperparameter draws; n_a, n_b : numbers of configurations; C : columns of the encoded inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError
from slayr_py.kernels.priors import LogNormal, Normal, Prior
from slayr_py.space import Encoded, Layout
from slayr_py.space.dimension import FloatArray

Hyperparameters = Mapping[str, ArrayLike]
"""Hyperparameters by name: scalars and vectors for one setting, with a leading axis of s for several."""


_SUPPORTS: dict[str, tuple[str, Callable[[FloatArray], bool]]] = {
    "positive": ("positive and finite", lambda v: bool(np.all(v > 0))),
    "non-negative": ("non-negative and finite", lambda v: bool(np.all(v >= 0))),
    "unit interval": ("in [0, 1]", lambda v: bool(np.all((v >= 0) & (v <= 1)))),
    "simplex": ("non-negative with sum 1", lambda v: bool(np.all(v >= 0) and abs(v.sum() - 1) < 1e-9)),
}


class Kernel(ABC):
    """A covariance function on encoded configurations.

    Attributes
    ----------
    name : str
        Name in configuration files and records.
    program : str
        Stem of the Stan program that fits it.
    dims : mapping of str to str
        For every vector of hyperparameters, what its entries belong to: the dimension of arrays of draws.
    optional : frozenset of str
        Scalars that only some of the program's kernels have; the program declares them as vectors of length 0 or 1.
    needs_graphs : bool
        Whether the space must have an ordinal or categorical parameter.
    may_vanish : frozenset of str
        Positive hyperparameters that :meth:`gram` also takes at their limit 0.
    tolerated : frozenset of str
        Names that :meth:`gram` takes and ignores, since other kernels of the family have them.
    """

    name: ClassVar[str]
    program: ClassVar[str]
    dims: ClassVar[Mapping[str, str]]
    optional: ClassVar[frozenset[str]] = frozenset()
    needs_graphs: ClassVar[bool] = False
    may_vanish: ClassVar[frozenset[str]] = frozenset()
    tolerated: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Arguments that make this kernel again, JSON-able."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it is, for people."""

    @abstractmethod
    def labels(self, encoder: Layout) -> dict[str, tuple[str, ...] | None]:
        """Hyperparameters of the kernel without ``sigma_f``: labels of a vector's entries, None for a scalar.

        They stand in the order in which the program declares them.
        """

    @abstractmethod
    def kernel_priors(self, encoder: Layout) -> dict[str, Prior]:
        """Default priors of the hyperparameters in :meth:`labels`."""

    @abstractmethod
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, Any]:
        """Data entries of the program for observed and new configurations, options included."""

    @abstractmethod
    def cross(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        """Covariances for every draw, (s, n_a, n_b); ``sigma_f`` included."""

    @abstractmethod
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Covariances (s, n_a, n_b) and their derivatives by the real coordinates of ``a``, (s, n_a, n_b, D_real)."""

    def diagonal(self, a: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        """Variances k(x, x) for every draw, (s, n_a); ``sigma_f**2`` for a stationary kernel."""
        return np.repeat(np.square(draws["sigma_f"])[:, None], len(a), axis=1)

    def reference_variance(self, encoder: Layout, draws: Mapping[str, FloatArray]) -> FloatArray:
        """Mean of k(x, x) / sigma_f^2 for every draw, (s,): over the vertices of all graphs, nothing far from itself.

        The prior of ``sigma_f`` is one of the function's standard deviation, divided by the root of this; 1 where
        ``sigma_f`` is that standard deviation.
        """
        return np.ones(len(next(iter(draws.values()))))

    def diagonal_gradient(self, a: Encoded, draws: Mapping[str, FloatArray]) -> FloatArray:
        """Derivatives of :meth:`diagonal` by the real coordinates, (s, n_a, D_real); 0 for a stationary kernel."""
        return np.zeros((len(draws["sigma_f"]), len(a), len(a.encoder.real_names)))

    def check_encoder(self, encoder: Layout) -> None:
        """Raise ``DataError`` if the kernel cannot be put on a space."""
        if self.needs_graphs and not encoder.graph_names:
            raise DataError(
                f"the kernel {self.name!r} needs an ordinal or categorical parameter; {list(encoder.names)} are all "
                "real; use kernel='matern', or put a small integer on a graph: Encoder(space, graphs={name: 'path'})"
            )

    def gram(self, a: Encoded, b: Encoded, theta: Hyperparameters) -> FloatArray:
        """Covariance matrix at one setting of the hyperparameters.

        Parameters
        ----------
        a, b : Encoded
            n_a and n_b configurations.
        theta : mapping of str to array_like
            Hyperparameters by name; ``sigma_f`` is 1 when absent, the noise never enters.

        Returns
        -------
        (n_a, n_b) float64

        Raises
        ------
        DataError
            For a missing or unknown name, a wrong length, or a value outside its support.
        """
        self.check_encoder(a.encoder)
        supports = {name: prior.support for name, prior in self.kernel_priors(a.encoder).items()}
        labels = self.labels(a.encoder)
        known = {"mu", "sigma_f", "sigma_n", *self.tolerated, *labels}
        if unknown := set(theta) - known:
            raise DataError(f"{self.name} has no hyperparameter {sorted(unknown)}; known: {sorted(known)}")
        draws = {"sigma_f": np.atleast_1d(np.asarray(theta.get("sigma_f", 1.0), dtype=np.float64))}
        for name, label in labels.items():
            if name not in theta and label != ():
                raise DataError(f"theta lacks {name!r}; {self.name} needs {sorted(labels)}")
            value = np.asarray(theta.get(name, ()), dtype=np.float64)
            shape = () if label is None else (len(label),)
            if value.shape != shape:
                raise DataError(f"theta[{name!r}] has shape {value.shape}, expected {shape}")
            draws[name] = value[None]
        for name, value in draws.items():
            wanted, legal = _SUPPORTS["non-negative" if name in self.may_vanish else supports.get(name, "positive")]
            if not (np.all(np.isfinite(value)) and legal(value)):
                raise DataError(f"theta[{name!r}] must be {wanted}, got {value[0].tolist()}")
        matrix: FloatArray = self.cross(a, b, draws)[0]
        return matrix

    def default_priors(self, encoder: Layout) -> dict[str, Prior]:
        """Default priors of all hyperparameters, mean and noise included, for standardised targets."""
        return {
            "mu": Normal(0.0, 1.0),
            "sigma_f": LogNormal(0.0, 0.5),
            "sigma_n": LogNormal(-4.0, 1.5),
            **self.kernel_priors(encoder),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.options().items())})"
