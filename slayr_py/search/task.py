"""The interface between strategies and fits: the task of a strategy, its candidates and their evaluations.

A strategy is a generator. It yields batches of candidates, which may be fitted side by side, and is sent the
evaluations of the batch in the same order. The search closes it when the budget of fits is used up, so a strategy never
counts fits. A strategy must be deterministic: a resumed search repeats it from the start and reuses the known fits.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field

from slayr_py.kernels import Kernel
from slayr_py.kernels.expressions import Leaf, Node, spell
from slayr_py.space import Encoded, FloatArray


@dataclass(frozen=True)
class Candidate:
    """An expression to fit.

    Attributes
    ----------
    node : Node
        The expression in canonical form.
    parent : str, optional
        Canonical text of the evaluated expression from which the fit inherits hyperparameters.
    step : int
        Round of the strategy that proposed it, from 0.
    """

    node: Node
    parent: str | None = None
    step: int = 0

    @property
    def expression(self) -> str:
        """Canonical text."""
        return spell(self.node)


@dataclass(frozen=True)
class ScoredExpression:
    """A fitted expression.

    Attributes
    ----------
    node : Node
        The expression in canonical form.
    expression : str
        Its text.
    score : float
        Larger is better; -inf if the fit failed.
    theta : mapping of str to FloatArray
        Hyperparameters of the best fit by name, as vectors; empty if the fit failed.
    """

    node: Node
    expression: str
    score: float
    theta: Mapping[str, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """Data, base kernels and limits of a search.

    Attributes
    ----------
    base : tuple of Leaf
        Base kernels on all parameters, and on each parameter alone where there are several.
    max_leaves : int
        Largest number of leaves of an expression.
    train : Encoded
        The n observed configurations.
    y : (n,) float64
        Standardised targets.
    beam : int
        Number of expressions that a round expands.
    batch : int
        Number of candidates in a batch, which may be fitted side by side, at least 1. It is a setting instead of the
        number of processes, so that results do not depend on the machine.
    seed : int
        Fixes every random number of the strategy.
    given : mapping of str to Kernel
        Given leaves by name.
    first : tuple of Node
        Expressions to fit with the base kernels: the best ones of an earlier search.
    """

    base: tuple[Leaf, ...]
    max_leaves: int
    train: Encoded
    y: FloatArray
    beam: int = 3
    batch: int = 4
    seed: int = 1
    given: Mapping[str, Kernel] = field(default_factory=dict)
    first: tuple[Node, ...] = ()


Rounds = Generator[Sequence[Candidate], Sequence[ScoredExpression], None]
"""A strategy at work; see the module."""
