"""The leaves of an expression on one space, and the places of their hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels.expressions.contract import COMPOSITE_GP, SLOTS
from slayr_py.kernels.expressions.language import Leaf, Node, Product, Sum, spell, spell_column
from slayr_py.kernels.expressions.leaf import LeafKernel
from slayr_py.kernels.expressions.leaf_kernels import GIVEN_LEAVES, LEAVES
from slayr_py.kernels.expressions.pairs import Given
from slayr_py.kernels.expressions.plan import Plan
from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.prior import Prior
from slayr_py.kernels.priors import Beta
from slayr_py.space import Layout


class Placement:
    """Leaves, steps and hyperparameters of an expression, collected in reading order.

    Parameters
    ----------
    node : Node
    given : mapping of str to Given
        Given leaves by name.
    encoder : Layout
    """

    def __init__(self, node: Node, given: Mapping[str, Given], encoder: Layout) -> None:
        self._encoder = encoder
        self._given = given
        self._leaves: list[LeafKernel] = []
        self._steps: list[int] = []
        self._parts: list[Given] = []
        self._priors: dict[str, list[Prior]] = {}
        self._labels: dict[str, list[str]] = {}
        self._add(node)

    @property
    def plan(self) -> Plan:
        """Leaves and operations."""
        return Plan(tuple(self._leaves), tuple(self._steps), tuple(self._parts), n_split=self._count("split"))

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """Hyperparameters that the expression has, in the program's order."""
        return tuple(
            Hyperparameter(name, _join(self._priors[name]), tuple(self._labels[name]), _dimension(name))
            for name in (parameter.name for parameter in COMPOSITE_GP.own_parameters)
            if name in self._labels
        )

    def _add(self, node: Node) -> None:
        if isinstance(node, Leaf):
            self._add_leaf(node)
            return
        parts = node.terms if isinstance(node, Sum) else node.factors
        self._add(parts[0])
        for i, part in enumerate(parts[1:], start=1):
            self._add(part)
            if isinstance(node, Product):
                self._steps.append(0)
                continue
            # With i summands on the left, Beta(i, 1) makes the weights of all summands uniform on the simplex.
            left = spell(Sum(parts[:i]) if i > 1 else parts[0])
            self._place("split", [f"{self._count('split') + 1}:{left}"], Beta(i, 1))
            self._steps.append(-self._count("split"))

    def _add_leaf(self, leaf: Leaf) -> None:
        label = f"{len(self._leaves) + 1}:{leaf.name}"
        columns = read_columns(leaf, self._encoder)
        position = -1
        if leaf.name in LEAVES:
            kind = LEAVES[leaf.name]
        else:
            part = self._given[leaf.name]
            kind = GIVEN_LEAVES[part.kind]
            position = len(self._parts)
            self._parts.append(part)
        by_column = [f"{label}[{self._encoder.column_names[column]}]" for column in columns]
        places = {
            name: self._place(name, by_column if SLOTS[name].by_column else [label], prior)
            for name, prior in kind.priors(len(columns)).items()
        }
        self._leaves.append(kind(label, columns, places, position))
        self._steps.append(len(self._leaves))

    def _count(self, name: str) -> int:
        return len(self._labels.get(name, ()))

    def _place(self, name: str, labels: Sequence[str], prior: Prior) -> slice:
        """Append entries of a hyperparameter; return their places."""
        start = self._count(name)
        if labels:
            self._labels.setdefault(name, []).extend(labels)
            self._priors.setdefault(name, []).extend([prior] * len(labels))
        return slice(start, start + len(labels))


def read_columns(leaf: Leaf, encoder: Layout) -> tuple[int, ...]:
    """Return the columns of the encoded inputs that a leaf reads.

    Raises
    ------
    DataError
        For an unknown parameter, or a periodic or linear leaf of a categorical one.
    """
    reads = LEAVES[leaf.name].reads if leaf.name in LEAVES else "nothing"
    if reads == "nothing":
        return ()
    for name in leaf.columns or ():
        if name not in encoder.names:
            near = did_you_mean(name, map(spell_column, encoder.names))
            raise DataError(f"{spell(leaf)}: no parameter {name!r}{near}")
    names = encoder.names if leaf.columns is None else leaf.columns
    kinds = {d.name: d.kind for d in encoder.dimensions}
    for name in names:
        if kinds[name] == "categorical" and reads == "numbers":
            others = ",".join(spell_column(n) for n in encoder.names if kinds[n] != "categorical")
            way_out = f"name the others: {leaf.name}[{others}]" if others else "use SE, RQ or a Matérn kernel"
            raise DataError(
                f"{spell(leaf)}: {leaf.name} needs real or ordinal parameters, and {name!r} is categorical; {way_out}"
            )
    return tuple(column for name in names for column in encoder.columns_of[name])


def _dimension(name: str) -> str:
    """Return the name of a vector's dimension in arrays of draws."""
    return SLOTS[name].dimension if name in SLOTS else "left_summand"


def _join(priors: Sequence[Prior]) -> Prior:
    """Return one prior of a vector with the parameters of each entry."""
    values = [[v for k, v in prior.asdict().items() if k != "family"] for prior in priors]
    return type(priors[0])(*map(list, zip(*values, strict=True)))
