"""Kernels of users: a covariance function in a Stan file of theirs, with its twin in NumPy."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.errors import DataError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.contracts import COMMON_ENTRIES, COMMON_PARAMETERS, Contract, Parameter, StanValue, column_inputs
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.prior import Prior
from slayr_py.kernels.stan_program import SUPPORTS, OwnProgram, own_program
from slayr_py.space import Encoded, FloatArray, Layout

_IDENTIFIER = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TAKEN = {variable.name for variable in (*COMMON_ENTRIES, *COMMON_PARAMETERS)}
_STEP = 1e-5  # of the unit interval: the error of a central difference is about 1e-10


class StanKernel(Kernel):
    """A kernel whose covariance function is in a Stan file of the user.

    A subclass that declares ``name`` can be used wherever a kernel can. Its Stan file has a function of that name,

    .. code-block:: stan

        vector NAME(data matrix a, data matrix b, vector lengthscale, real shape)

    which returns the covariance of row i of ``a`` and row i of ``b`` for a signal standard deviation of 1. Rows are
    encoded configurations in [0, 1], with one column for each number and one for each level of a category. The other
    arguments are the hyperparameters, first those of ``per_column``, then those of ``scalars``. A file with the blocks
    of a program is the program itself; it has to have the data, parameters and outputs of the one that
    :meth:`own_program` returns for a function.

    Attributes
    ----------
    name : str
        Name of the kernel and of the Stan function: lower-case letters, digits and single underscores.
    stan_file : str or Path
        File of the function; a relative path starts at the folder of the module that declares the class, in a notebook
        at the working directory.
    per_column : mapping of str to Prior
        Hyperparameters with an entry for each column, and their default priors.
    scalars : mapping of str to Prior
        Hyperparameters that are numbers, and their default priors.

    Raises
    ------
    TypeError
        If a class declares a name or a prior that Stan cannot have.

    Notes
    -----
    The page "Kernels of your own" of the documentation has an example. `slayr_py.inference.check_kernel` compares the
    two functions.
    """

    stan_file: ClassVar[str | Path]
    per_column: ClassVar[Mapping[str, Prior]] = {}
    scalars: ClassVar[Mapping[str, Prior]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "name" in vars(cls):
            cls._check_names()
            columns = (Parameter(name, ("D",), name, support=p.support) for name, p in cls.per_column.items())
            numbers = (Parameter(name, ("1",), name, support=p.support) for name, p in cls.scalars.items())
            cls.contract = Contract(f"{cls.name}_gp", (), (*columns, *numbers))
            cls.description = f"{cls.name} kernel of {Path(cls.stan_file).name}"
        elif changed := vars(cls).keys() & {"stan_file", "per_column", "scalars"}:
            raise TypeError(f"{cls.__qualname__} declares {', '.join(sorted(changed))} but no name; give it a name")
        super().__init_subclass__(**kwargs)

    @abstractmethod
    def covariance(self, a: FloatArray, b: FloatArray, theta: Mapping[str, FloatArray]) -> FloatArray:
        """Return covariances for a signal standard deviation of 1: the twin of the Stan function.

        Parameters
        ----------
        a, b : (..., C) float64
            Encoded configurations, whose leading axes are broadcast together.
        theta : mapping of str to float64
            Hyperparameters by name: (C,) of ``per_column``, () of ``scalars``.

        Returns
        -------
        (...) float64
        """

    @override
    def options(self) -> dict[str, Any]:
        return {}

    @classmethod
    @override
    def own_program(cls) -> OwnProgram:
        """Return the Stan program of the kernel.

        Raises
        ------
        DataError
            If the Stan file does not exist.
        """
        owner = next(base for base in cls.__mro__ if "stan_file" in vars(base))
        module = getattr(sys.modules.get(owner.__module__), "__file__", None) or ""  # a notebook has no file
        file = Path(module).parent / Path(cls.stan_file).expanduser()
        if not file.is_file():
            raise DataError(
                f"the Stan file of the kernel {cls.name!r} does not exist: {file.absolute()}; correct stan_file of "
                f"{cls.__qualname__}"
            )
        return own_program(cls.name, file.absolute(), cls.contract.own_parameters, frozenset(cls.scalars))

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        columns = encoder.column_names
        vectors = (Hyperparameter(name, prior, columns, "encoded_column") for name, prior in self.per_column.items())
        return (*vectors, *(Hyperparameter(name, prior) for name, prior in self.scalars.items()))

    @override
    def check_encoder(self, encoder: Layout) -> None:
        super().check_encoder(encoder)
        self.own_program()  # before the first evaluation of an objective

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        return column_inputs(train, new)

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        return self._covariances(a.columns[:, None], b.columns[None], draws)

    @override
    def diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        return self._covariances(a.columns, a.columns, draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        k = self.cross(a, b, draws)
        gradient = np.empty((*k.shape, len(a.encoder.real_names)))
        for position, (below, above, distance) in enumerate(self._neighbours(a)):
            difference = self._covariances(above[:, None], b.columns[None], draws)
            difference -= self._covariances(below[:, None], b.columns[None], draws)
            gradient[..., position] = difference / distance[:, None]
        return k, gradient

    @override
    def diagonal_gradient(self, a: Encoded, draws: Draws) -> FloatArray:
        gradient = np.empty((len(draws["sigma_f"]), len(a), len(a.encoder.real_names)))
        for position, (below, above, distance) in enumerate(self._neighbours(a)):
            difference = self._covariances(above, above, draws) - self._covariances(below, below, draws)
            gradient[..., position] = difference / distance
        return gradient

    def _neighbours(self, a: Encoded) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield two neighbours (n, C) in [0, 1] along the column of each real input, and their distances (n,)."""
        for column in a.encoder.column_of.values():
            below, above = a.columns.copy(), a.columns.copy()
            below[:, column] = np.maximum(below[:, column] - _STEP, 0.0)
            above[:, column] = np.minimum(above[:, column] + _STEP, 1.0)
            yield below, above, above[:, column] - below[:, column]

    def _covariances(self, a: FloatArray, b: FloatArray, draws: Draws) -> FloatArray:
        """Return the covariances of every draw, ``sigma_f`` included; a and b are broadcast together."""
        shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
        names = (*self.per_column, *self.scalars)
        found = np.empty((len(draws["sigma_f"]), *shape))
        for i, variance in enumerate(np.square(draws["sigma_f"])):
            values = np.asarray(self.covariance(a, b, {name: draws[name][i] for name in names}))
            if values.shape != shape:
                raise DataError(
                    f"{type(self).__name__}.covariance returns shape {values.shape} for points of shapes {a.shape} "
                    f"and {b.shape}; return {shape}: sum over the last axis, axis=-1"
                )
            found[i] = variance * values
        return found

    @classmethod
    def _check_names(cls) -> None:
        """Check the names of the function and of its arguments, and the priors of the arguments."""
        priors = {**cls.per_column, **cls.scalars}
        for name in (cls.name, *priors):
            if not _IDENTIFIER.fullmatch(name) or name in _TAKEN:
                raise TypeError(
                    f"{cls.__qualname__}: {name!r} cannot be the name of a Stan function or of its argument here; use "
                    "lower-case letters, digits and single underscores, and none of "
                    f"{', '.join(sorted(taken for taken in _TAKEN if taken.islower()))}"
                )
        if len(priors) < len(cls.per_column) + len(cls.scalars):
            raise TypeError(f"{cls.__qualname__} has a name in per_column and in scalars; rename one of them")
        for name, prior in priors.items():
            if not isinstance(prior, Prior) or prior.support not in SUPPORTS:
                raise TypeError(
                    f"{cls.__qualname__}: the prior of {name!r} is {prior!r}; use a prior such as sl.LogNormal(0, 1) "
                    f"with one of the supports {', '.join(SUPPORTS)}"
                )
