"""Interface of covariance functions.

Symbols
-------
s : number of hyperparameter draws; n_a, n_b : numbers of configurations; C : columns of the encoded inputs.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError, SpaceError
from slayr_py.kernels.contracts import Contract, StanValue
from slayr_py.kernels.hyperparameters import SIGNAL, Draws, Hyperparameter
from slayr_py.kernels.prior import Prior
from slayr_py.kernels.stan_program import OwnProgram
from slayr_py.space import Encoded, FloatArray, Layout, jsonable

Hyperparameters = Mapping[str, ArrayLike]
"""Hyperparameters by name: scalars and vectors for one setting, with a leading axis of s for several."""


KERNELS: dict[str, type[Kernel]] = {}
"""Classes of kernels by name."""


class Kernel(ABC):
    """A covariance function on encoded configurations.

    Attributes
    ----------
    name : str
        Name in configuration files and records; a class that declares one is registered under it.
    contract : Contract
        Contract of the Stan program that fits the kernel.
    needs_graphs : bool
        Whether the space must have an ordinal or categorical parameter.
    tolerated : frozenset of str
        Names of hyperparameters of related kernels, which :meth:`gram` accepts and ignores.
    plain_mappings : tuple of str
        Options that may be mappings without being kernels.
    description : str
        Description for people.
    """

    name: ClassVar[str]
    contract: ClassVar[Contract]
    needs_graphs: ClassVar[bool] = False
    tolerated: ClassVar[frozenset[str]] = frozenset()
    plain_mappings: ClassVar[tuple[str, ...]] = ()
    description: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in vars(cls):
            return
        other = KERNELS.get(cls.name, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"the name {cls.name!r} belongs to the kernel {other.__qualname__}; choose another one")
        KERNELS[cls.name] = cls

    @property
    def program(self) -> str:
        """Stem of the Stan program that fits the kernel."""
        return self.contract.program

    @classmethod
    def own_program(cls) -> OwnProgram | None:
        """Return the Stan program of a kernel of a user; None if the package has it."""
        return None

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the arguments that construct this kernel; JSON-able."""

    @property
    def short_name(self) -> str:
        """Expression of a composite kernel; description of any other kernel."""
        return self.description

    def asdict(self) -> dict[str, Any]:
        """Return the name and the options; JSON-able."""
        return {"name": self.name, "options": jsonable(self.options())}

    @property
    def form(self) -> str:
        """Text that is the same for equal kernels, whatever the order of their terms."""
        return json.dumps(self.asdict(), sort_keys=True)

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that identify the kernel with its options."""
        return hashlib.sha256(json.dumps(self.asdict(), sort_keys=True).encode()).hexdigest()[:12]

    @abstractmethod
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        """Return the kernel's hyperparameters on a space, without ``sigma_f``."""

    @abstractmethod
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        """Return the program's data for observed and new configurations, without targets and priors."""

    @abstractmethod
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        """Return the covariances of every draw, (s, n_a, n_b), ``sigma_f`` included."""

    @abstractmethod
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return covariances (s, n_a, n_b) and their derivatives by the real inputs of ``a``, (s, n_a, n_b, D_real)."""

    def diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        """Return the variances k(x, x) of every draw, (s, n_a); ``sigma_f**2`` for a stationary kernel."""
        return np.repeat(np.square(draws["sigma_f"])[:, None], len(a), axis=1)

    def reference_variance(self, encoder: Layout, draws: Draws) -> FloatArray:
        """Return the mean of k(x, x) / sigma_f^2 over the vertices of all graphs for every draw, (s,).

        The prior of the function's standard deviation, divided by the square root of this mean, is the prior of
        ``sigma_f``.
        """
        return np.ones(len(next(iter(draws.values()))))

    def diagonal_gradient(self, a: Encoded, draws: Draws) -> FloatArray:
        """Return the derivatives of :meth:`diagonal` by the real inputs, (s, n_a, D_real); 0 if stationary."""
        return np.zeros((len(draws["sigma_f"]), len(a), len(a.encoder.real_names)))

    def component_names(self, encoder: Layout) -> tuple[str, ...]:
        """Return the names of the k summands of the kernel."""
        return (self.description,)

    def component_cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        """Return the covariances of each summand, (k, s, n_a, n_b); their sum is :meth:`cross`."""
        return self.cross(a, b, draws)[None]

    def component_diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        """Return the variances of each summand, (k, s, n_a); their sum is :meth:`diagonal`."""
        return self.diagonal(a, draws)[None]

    def informed_priors(self, train: Encoded, y: FloatArray) -> dict[str, Prior]:
        """Return default priors that depend on the n observations, by name; y (n,) is standardised."""
        return {}

    def notes(self, draws: Draws, train: Encoded) -> tuple[str, ...]:
        """Return notes on the kernel from draws of the posterior given observations at ``train``, one line each."""
        return ()

    def check_encoder(self, encoder: Layout) -> None:
        """Check that the kernel can be used on a space.

        Raises
        ------
        DataError
            If it needs a parameter that the space does not have.
        """
        if self.needs_graphs and not encoder.graph_names:
            raise DataError(
                f"the kernel {self.name!r} needs an ordinal or categorical parameter; {list(encoder.names)} are all "
                "real; use kernel='matern', or put a small integer on a graph: Encoder(space, graphs={name: 'path'})"
            )

    def gram(self, a: Encoded, b: Encoded, theta: Hyperparameters) -> FloatArray:
        """Return the covariance matrix at one setting of the hyperparameters.

        Parameters
        ----------
        a, b : Encoded
            n_a and n_b configurations of one space.
        theta : mapping of str to array_like
            Hyperparameters by name; ``sigma_f`` defaults to 1, and the noise is never included.

        Returns
        -------
        (n_a, n_b) float64

        Raises
        ------
        DataError
            For a missing or unknown name, a wrong length, or a value outside its support.
        SpaceError
            If a and b were encoded for different spaces or graphs.
        """
        if not a.encoder.matches(b.encoder):
            raise SpaceError("a and b were encoded for different spaces or graphs; encode both with one encoder")
        self.check_encoder(a.encoder)
        hyperparameters = self.hyperparameters(a.encoder)
        names = {h.name for h in hyperparameters}
        known = {"mu", "sigma_f", "sigma_n", "warp", *self.tolerated, *names}
        if unknown := set(theta) - known:
            raise DataError(f"{self.name} has no hyperparameter {sorted(unknown)}; known: {sorted(known)}")
        draws = {"sigma_f": SIGNAL.check(theta.get("sigma_f", 1.0))[None]}
        for h in hyperparameters:
            if h.name not in theta and h.shape != (0,):
                raise DataError(f"theta has no {h.name!r}; {self.name} needs {sorted(names)}")
            draws[h.name] = h.check(theta.get(h.name, ()))[None]
        matrix: FloatArray = self.cross(a, b, draws)[0]
        return matrix

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.options().items())})"
