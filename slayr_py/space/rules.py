"""Evaluate a space's conditions and forbidden clauses for many configurations at once.

ConfigSpace evaluates them on its own vectors: arrays (len(space), n), one row per parameter in the order of the
space's keys, one column per configuration, NaN where a parameter is inactive. The result for a condition on an inactive
parent is therefore the same as for single configurations: it does not hold, except that NaN differs from every value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.conditions import Condition, ConditionLike, Conjunction, InCondition
from ConfigSpace.forbidden import (
    ForbiddenAndConjunction,
    ForbiddenConjunction,
    ForbiddenLessThanEqualsClause,
    ForbiddenLike,
    ForbiddenRelation,
)
from numpy.typing import NDArray

from slayr_py.errors import SpaceError
from slayr_py.space.dimension import FloatArray

BoolArray = NDArray[np.bool_]


class Rules:
    """The conditions and forbidden clauses of a space.

    Attributes
    ----------
    space : ConfigSpace.ConfigurationSpace
    ancestors : dict of str to frozenset of str
        Parents, their parents, and so on for every parameter of the space.
    read : frozenset of str
        Parameters that occur in a condition or clause; the other rows of a vector are not used.

    Raises
    ------
    SpaceError
        If the space has two different conditions that ConfigSpace treats as equal.
    """

    def __init__(self, space: ConfigurationSpace) -> None:
        self.space = space
        self.ancestors: dict[str, frozenset[str]] = {}
        for name in space:  # ConfigSpace puts parents before their children
            parents = [parent.name for parent in space.parents_of[name]]
            self.ancestors[name] = frozenset(parents).union(*(self.ancestors[parent] for parent in parents))
        self.read = frozenset(
            [literal.parent.name for condition in space.conditions for literal in literals(condition)]
            + [name for clause in space.forbidden_clauses for name in _forbidding(clause)]
        )
        _refuse_ambiguous(space.conditions)

    def condition(self, name: str) -> str:
        """Return the condition of a parameter as ConfigSpace prints it; empty if it has none."""
        return " and ".join(map(str, self.space.parent_conditions_of[name]))

    def meaning(self, name: str) -> frozenset[object]:
        """Return the condition of a parameter in a form that can be compared with that in another space."""
        return frozenset(map(_meaning, self.space.parent_conditions_of[name]))

    def holds(self, name: str, vectors: FloatArray) -> BoolArray:
        """Return where the condition of a parameter holds, (n,); everywhere if it has none."""
        active = np.ones(vectors.shape[1], dtype=np.bool_)
        for condition in self.space.parent_conditions_of[name]:
            active &= condition.satisfied_by_vector_array(vectors)
        return active

    def switch_off(self, vectors: FloatArray) -> BoolArray:
        """Return which parameters are active, (len(space), n); write NaN into ``vectors`` where they are not."""
        active = np.ones(vectors.shape, dtype=np.bool_)
        for row, name in enumerate(self.space):  # parents first, as above
            if self.space.parent_conditions_of[name]:
                active[row] = self.holds(name, vectors)
                vectors[row, ~active[row]] = np.nan
        return active

    def broken(self, vectors: FloatArray) -> Iterator[tuple[ForbiddenLike, BoolArray]]:
        """Yield every forbidden clause and where it holds, (n,)."""
        for clause in self.space.forbidden_clauses:
            yield clause, _forbids(clause, vectors)

    def allowed(self, vectors: FloatArray) -> BoolArray:
        """Return where no forbidden clause holds, (n,)."""
        allowed = np.ones(vectors.shape[1], dtype=np.bool_)
        for _, holds in self.broken(vectors):
            allowed &= ~holds
        return allowed


def literals(condition: ConditionLike) -> tuple[Condition, ...]:
    """Return the parts of a condition, each a comparison with one parent."""
    return condition.dlcs if isinstance(condition, Conjunction) else (condition,)


def clause_text(clause: ForbiddenLike) -> str:
    """Return a forbidden clause as ConfigSpace prints it, without the "Forbidden: " of each part."""
    return str(clause).replace("Forbidden: ", "")


def _forbids(clause: ForbiddenLike, vectors: FloatArray) -> BoolArray:
    if isinstance(clause, ForbiddenConjunction):
        combine = np.logical_and if isinstance(clause, ForbiddenAndConjunction) else np.logical_or
        return np.asarray(combine.reduce([_forbids(component, vectors) for component in clause.components]))
    if isinstance(clause, ForbiddenLessThanEqualsClause):
        # ConfigSpace 1.2 compares a single vector with <=, which is correct, but an array of vectors with >=.
        return np.asarray(vectors[clause.vector_id] <= clause.vector_value)
    return np.asarray(clause.is_forbidden_vector_array(vectors))


def _forbidding(clause: ForbiddenLike) -> list[str]:
    parts = clause.dlcs if isinstance(clause, ForbiddenConjunction) else (clause,)
    pairs = [(p.left, p.right) if isinstance(p, ForbiddenRelation) else (p.hyperparameter,) for p in parts]
    return [hyperparameter.name for pair in pairs for hyperparameter in pair]


def _refuse_ambiguous(conditions: Iterable[ConditionLike]) -> None:
    """Refuse different conjunctions that ConfigSpace treats as equal: it would use only the first of them."""
    for a, b in combinations([c for c in conditions if isinstance(c, Conjunction)], 2):
        same = a.equivalent_condition_on_parent(b) or b.equivalent_condition_on_parent(a)
        if same and _meaning(a) != _meaning(b):
            raise SpaceError(
                f"ConfigSpace treats the conditions {a} and {b} as equal; repeat a component of one of them"
            )


def _meaning(condition: ConditionLike) -> tuple[object, ...]:
    if isinstance(condition, Conjunction):
        return (type(condition), frozenset(map(_meaning, condition.components)))
    values = condition.values if isinstance(condition, InCondition) else [condition.value]
    return (type(condition), condition.parent.name, frozenset(float(condition.parent.to_vector(v)) for v in values))
