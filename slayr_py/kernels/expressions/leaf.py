"""The interface of the leaves of composite kernels.

Symbols: s draws; D_c real parameters; "..." the shape of the pairs of points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from slayr_py.kernels.expressions.pairs import Pairs
from slayr_py.kernels.hyperparameters import Draws
from slayr_py.kernels.prior import Prior
from slayr_py.space import FloatArray


class Slope(NamedTuple):
    """Derivatives of a sum of values by entries of a hyperparameter.

    Attributes
    ----------
    name : str
    entries : slice
    by_entry : (s, entries) float64
    """

    name: str
    entries: slice
    by_entry: FloatArray


class LeafEvaluation(NamedTuple):
    """Values of a leaf and their derivatives.

    Attributes
    ----------
    value : (s, ...) float64
        (1, ...) if the values do not depend on hyperparameters.
    by_inputs : callable
        Yields the position of each real input that the leaf reads, and the derivatives (s, ...) by that input of the
        first points.
    by_hyperparameters : callable
        Takes the adjoint (s, ...) and yields the derivatives of the sum of the adjoint times the values.
    """

    value: FloatArray
    by_inputs: Callable[[], Iterator[tuple[int, FloatArray]]]
    by_hyperparameters: Callable[[FloatArray], Iterator[Slope]]


@dataclass(frozen=True)
class LeafKernel(ABC):
    """A leaf of an expression on one space.

    Attributes
    ----------
    label : str
        Number and name, such as "1:SE".
    columns : tuple of int
        Columns of the encoded inputs that the leaf reads.
    places : mapping of str to slice
        Entries of the leaf's hyperparameters in their vectors.
    given : int
        Position of the given values; -1 for none.
    code : int
        Code of the leaf in the Stan program.
    reads : {"all columns", "numbers", "nothing"}
        Which columns the leaf can read; "numbers" are the columns of real and ordinal parameters.
    stationary : bool
        Whether the leaf is a function of the squared distance h.
    defaults : mapping of str to Prior
        Hyperparameters with the default prior of an entry of each.
    """

    code: ClassVar[int]
    reads: ClassVar[Literal["all columns", "numbers", "nothing"]] = "nothing"
    stationary: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Prior]] = {}

    label: str
    columns: tuple[int, ...] = ()
    places: Mapping[str, slice] = field(default_factory=dict)
    given: int = -1

    @classmethod
    def priors(cls, n_columns: int) -> dict[str, Prior]:
        """Return the hyperparameters of a leaf of n columns, with the default prior of an entry of each."""
        return dict(cls.defaults)

    @abstractmethod
    def evaluate(self, pairs: Pairs, draws: Draws) -> LeafEvaluation:
        """Return the values of pairs of points and their derivatives."""

    def _entries(self, draws: Draws, name: str) -> FloatArray:
        """Return the draws of the leaf's entries of a hyperparameter, (s, entries)."""
        return draws[name][:, self.places[name]]

    def _slope(self, name: str, by_entry: FloatArray) -> Slope:
        return Slope(name, self.places[name], by_entry)

    def _real_inputs(self, pairs: Pairs) -> Iterator[tuple[int, int]]:
        """Yield the position among the real inputs, and among the leaf's columns, of each real input of the leaf."""
        for position, column in enumerate(pairs.real_columns):
            if column in self.columns:
                yield position, self.columns.index(column)
