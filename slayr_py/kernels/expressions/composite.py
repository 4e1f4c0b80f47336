"""Composite kernels: sums and products of kernels as data of one Stan program, ``stan/composite_gp.stan``."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError
from slayr_py.kernels.base import Kernel
from slayr_py.kernels.contracts import Contract, StanValue
from slayr_py.kernels.expressions.contract import COMPOSITE_GP
from slayr_py.kernels.expressions.language import Node, add, canonical, leaves, multiply, rename, spell
from slayr_py.kernels.expressions.leaf_kernels import LEAVES
from slayr_py.kernels.expressions.pairs import Given, Pairs
from slayr_py.kernels.expressions.parser import parse
from slayr_py.kernels.expressions.periodogram import peaks
from slayr_py.kernels.expressions.placement import Placement, read_columns
from slayr_py.kernels.expressions.plan import Plan
from slayr_py.kernels.hyperparameters import Draws, Hyperparameter
from slayr_py.kernels.prior import Prior
from slayr_py.kernels.priors import LogNormal
from slayr_py.space import Encoded, FloatArray, Layout

MOST_LEAVES = 64  # largest `max_leaves`; chosen by hand
_DEFAULT_MOST_LEAVES = 16  # longer expressions are mostly mistakes; chosen by hand
_PERIODOGRAM_POINTS = 30  # with fewer observations the periodogram does not move the prior of the period


class Composable(Kernel):
    """A kernel that can be a part of sums and products."""

    @abstractmethod
    def as_node(self) -> tuple[Node, dict[str, Kernel]]:
        """Return the kernel as an expression, and its given leaves by name.

        Raises
        ------
        DataError
            If no expression describes it.
        """

    def as_composite(self) -> Composite:
        """Return the composite kernel of the expression."""
        return Composite.from_node(*self.as_node())

    def __add__(self, other: object) -> Composite:
        return self._combine(other, add)

    def __mul__(self, other: object) -> Composite:
        return self._combine(other, multiply)

    def _combine(self, other: object, join: Callable[..., Node]) -> Composite:
        if not isinstance(other, Composable):
            return self.__radd__(other)
        left, given = self.as_node()
        right, others = other.as_node()
        names: dict[str, str] = {}
        for name, kernel in others.items():
            taken = {*given, *others, *names.values(), *LEAVES}
            free = next(free for i in count(2) if (free := f"{name}{i}") not in taken)
            names[name] = name if given.get(name, kernel) is kernel else free
        node = join(left, rename(right, names))
        given = given | {names[name]: kernel for name, kernel in others.items()}
        n_leaves = len(leaves(node))
        return Composite.from_node(node, given, min(max(n_leaves, _DEFAULT_MOST_LEAVES), MOST_LEAVES))

    def __radd__(self, other: object) -> Composite:
        if not isinstance(other, Kernel):
            raise TypeError(f"{other!r:.200} is not a kernel; add or multiply kernels only")
        raise DataError(
            f"kernel {other.name!r} cannot be part of a sum or product; use a composite, a pre-trained or a Matérn "
            "kernel with p <= 2"
        )

    __rmul__ = __radd__


class Planned(Composable):
    """A kernel that ``composite_gp`` fits: leaves and operations of an expression."""

    contract: ClassVar[Contract] = COMPOSITE_GP
    _last_plan: tuple[Layout, Plan] | None = None  # fits, searches and suggestions need that of one space many times

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickle without the space it has seen, whose constraints may be lambdas."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_last_")}

    @property
    def only_part(self) -> Given | None:
        """The fixed covariance or distance of a kernel without other parts; None for any other kernel."""
        return None

    def plan(self, encoder: Layout) -> Plan:
        """Return leaves and operations on a space."""
        last = self._last_plan
        if last is None or last[0] is not encoder:
            self._last_plan = last = (encoder, self._plan(encoder))
        return last[1]

    @abstractmethod
    def _plan(self, encoder: Layout) -> Plan:
        """Check the space, and return a new plan."""

    @override
    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        return self.plan(train.encoder).stan_data(train, new)

    @override
    def cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        plan = self.plan(a.encoder)
        return _scaled(plan.correlation(Pairs.cross(a, b, plan.given), draws), draws)

    @override
    def cross_gradient(self, a: Encoded, b: Encoded, draws: Draws) -> tuple[FloatArray, FloatArray]:
        plan = self.plan(a.encoder)
        k, gradient = plan.correlation_gradient(Pairs.cross(a, b, plan.given, gradient=True), draws)
        return _scaled(k, draws), _scaled(gradient, draws)

    @override
    def diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        plan = self.plan(a.encoder)
        return _scaled(plan.correlation(Pairs.own(a, plan.given), draws), draws)

    @override
    def diagonal_gradient(self, a: Encoded, draws: Draws) -> FloatArray:
        plan = self.plan(a.encoder)
        # k(x, x) depends on x through both arguments of a symmetric function.
        return 2 * _scaled(plan.correlation_gradient(Pairs.own(a, plan.given, gradient=True), draws)[1], draws)

    @override
    def component_cross(self, a: Encoded, b: Encoded, draws: Draws) -> FloatArray:
        plan = self.plan(a.encoder)
        return _scaled(plan.component_correlations(Pairs.cross(a, b, plan.given), draws), draws, axis=1)

    @override
    def component_diagonal(self, a: Encoded, draws: Draws) -> FloatArray:
        plan = self.plan(a.encoder)
        return _scaled(plan.component_correlations(Pairs.own(a, plan.given), draws), draws, axis=1)


class Composite(Planned):
    r"""Sum of products of kernels, given as an expression.

    Leaves are ``SE`` (squared exponential), ``RQ`` (rational quadratic), ``PER`` (periodic), ``LIN`` (linear),
    ``MAT12``, ``MAT32``, ``MAT52`` (Matérn) and ``C`` (constant), joined by ``+``, ``*`` and brackets. A leaf reads all
    parameters, or those in its brackets: ``SE[x1,act]``. Categorical parameters are read through their one-hot columns;
    ``PER`` and ``LIN`` read real and ordinal parameters only. Kernels can be added and multiplied too:
    ``Matern(p=2) + Composite("LIN")``. All expressions use the same program, so a new one needs no compilation.

    Its hyperparameters are vectors, labelled with number and name of the leaf: ``lengthscale`` ("1:SE[x1]"),
    ``period``, ``rq_alpha``, ``centre`` of linear leaves, and ``split``, the weight of the left operand of each ``+``.
    Every leaf has mean variance 1 on the unit cube and sums are convex combinations, so ``sigma_f`` is the standard
    deviation of the function for any number of terms.

    Parameters
    ----------
    expression : str
        Such as "LIN * PER + SE[x1]".
    given : mapping of str to Kernel, optional
        Further leaves by name: :class:`~slayr_py.kernels.Pretrained` kernels with one layer and no base.
    max_leaves : int
        Largest number of leaves, at most 64.

    Attributes
    ----------
    expression : str
        The expression, spelled with as few brackets as possible.

    Raises
    ------
    DataError
        If the expression cannot be read (the message shows the place), has too many leaves, or a given leaf is not a
        kernel with a single learned part. When the kernel is used, for an unknown parameter, and for a ``PER`` or
        ``LIN`` of a categorical one.

    Notes
    -----
    With more than 30 observations of a single parameter, the default prior of each period moves to the highest peak of
    the periodogram; ``posterior.model.priors["period"]`` shows it.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> from slayr_py.space import Encoder
    >>> encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0)}))
    >>> kernel = Composite("SE + PER")
    >>> points = encoder.encode([{"x": 0.0}, {"x": 0.5}])
    >>> theta = {"lengthscale": [0.5, 1.0], "period": [0.5], "split": [0.25]}
    >>> kernel.gram(points, points, theta).round(6).tolist()  # 1/4 exp(-1/2) + 3/4
    [[1.0, 0.901633], [0.901633, 1.0]]
    """

    name: ClassVar[str] = "composite"

    def __init__(
        self, expression: str, given: Mapping[str, Kernel] | None = None, max_leaves: int = _DEFAULT_MOST_LEAVES
    ) -> None:
        self.given = dict(given or {})
        self._parts = {leaf: _only_part(leaf, kernel) for leaf, kernel in self.given.items()}
        self.max_leaves = check_integer("max_leaves", max_leaves, 1, MOST_LEAVES)
        self.node = parse(expression, self.given)
        self.expression = spell(self.node)
        self.description = f"composite kernel {self.expression}"
        if (n := len(leaves(self.node))) > self.max_leaves:
            raise DataError(
                f"the expression has {n} leaves, more than max_leaves={self.max_leaves}; use a shorter expression, or "
                f"a larger max_leaves, up to {MOST_LEAVES}"
            )

    @classmethod
    def from_node(
        cls, node: Node, given: Mapping[str, Kernel] | None = None, max_leaves: int = _DEFAULT_MOST_LEAVES
    ) -> Composite:
        """Return the kernel of a tree of ``slayr_py.kernels.expressions.language``."""
        return cls(spell(node), given, max_leaves)

    @override
    def as_node(self) -> tuple[Node, dict[str, Kernel]]:
        return self.node, self.given

    @override
    def as_composite(self) -> Composite:
        return self

    @property
    def canonical(self) -> str:
        """The expression in canonical form: equal for expressions that describe the same kernels by simple rules."""
        return spell(canonical(self.node))

    @override
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"expression": self.expression}
        if self.given:
            options["given"] = {name: {"name": k.name, **k.options()} for name, k in self.given.items()}
        return options | ({"max_leaves": self.max_leaves} if self.max_leaves != _DEFAULT_MOST_LEAVES else {})

    def __repr__(self) -> str:
        return f"Composite(expression={self.expression!r}{f', given={self.given}' if self.given else ''})"

    @property
    @override
    def short_name(self) -> str:
        return self.expression

    @property
    @override
    def form(self) -> str:
        spelled = self.asdict()
        spelled["options"]["expression"] = self.canonical
        return json.dumps(spelled, sort_keys=True)

    @override
    def check_encoder(self, encoder: Layout) -> None:
        super().check_encoder(encoder)
        for leaf in leaves(self.node):
            read_columns(leaf, encoder)
        for kernel in self.given.values():
            kernel.check_encoder(encoder)

    @override
    def _plan(self, encoder: Layout) -> Plan:
        return Placement(self.node, self._parts, encoder).plan

    @override
    def hyperparameters(self, encoder: Layout) -> tuple[Hyperparameter, ...]:
        return Placement(self.node, self._parts, encoder).hyperparameters

    @override
    def component_names(self, encoder: Layout) -> tuple[str, ...]:
        plan = self.plan(encoder)
        texts = [spell(leaf) for leaf in leaves(self.node)]
        names = [" * ".join(texts[leaf] for leaf in component.leaves) for component in plan.components()]
        # Equal summands are labelled with the numbers of their leaves.
        labels = [" * ".join(plan.leaves[leaf].label for leaf in component.leaves) for component in plan.components()]
        return tuple(label if names.count(name) > 1 else name for name, label in zip(names, labels, strict=True))

    @override
    def informed_priors(self, train: Encoded, y: FloatArray) -> dict[str, Prior]:
        n_period = sum(leaf.name == "PER" for leaf in leaves(self.node))
        if not n_period or len(train) <= _PERIODOGRAM_POINTS or train.columns.shape[1] != 1:
            return {}
        period = peaks(train.columns[:, 0], y, 1)
        return {"period": LogNormal(float(np.log(period[0])), 0.5)} if len(period) else {}


def _only_part(name: str, kernel: Kernel) -> Given:
    """Return the covariance or distance of a given leaf; raise ``DataError`` for another kernel."""
    part = kernel.only_part if isinstance(kernel, Planned) else None
    if part is None:
        raise DataError(
            f"given[{name!r}] is {kernel!r:.200}; use a pre-trained kernel with one layer and no base, such as "
            "pre.kernel(layers=2, base=None)"
        )
    return part


def _scaled(values: FloatArray, draws: Draws, axis: int = 0) -> FloatArray:
    """Return values (..., s, ...) times the signal variance of each draw, s being at ``axis``."""
    shape = [1] * values.ndim
    shape[axis] = -1
    return np.asarray(values * np.square(draws["sigma_f"]).reshape(shape))
