"""Leaves and operations of a composite kernel on one space, in the encoding of ``stan/composite_gp.stan``.

The operations are in postfix order: l > 0 pushes leaf l on a stack, 0 multiplies the two uppermost values, and -j
replaces them by their sum with the weights left_j and right_j.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from slayr_py.kernels.contracts import StanValue, column_inputs
from slayr_py.kernels.expressions.contract import SLOTS
from slayr_py.kernels.expressions.leaf import LeafKernel
from slayr_py.kernels.expressions.leaf_kernels import GIVEN_LEAVES, LEAVES
from slayr_py.kernels.expressions.pairs import Given, Pairs
from slayr_py.kernels.hyperparameters import Draws
from slayr_py.space import Encoded, FloatArray


class Component(NamedTuple):
    """A summand of the expression when it is multiplied out.

    Attributes
    ----------
    leaves : tuple of int
        Positions of the leaves that are multiplied.
    weights : tuple of (bool, int)
        Weights that are multiplied: whether the right operand's, and the sum.
    """

    leaves: tuple[int, ...]
    weights: tuple[tuple[bool, int], ...]


@dataclass(frozen=True)
class Plan:
    """Leaves and operations of an expression.

    Attributes
    ----------
    leaves : tuple of LeafKernel
    steps : tuple of int
        Operations in postfix order.
    given : tuple of Given
        Covariances and distances that were computed elsewhere.
    n_split, n_share : int
        Number of sums with a split; number of leaves, if they are added up with shares and there is no split.
    """

    leaves: tuple[LeafKernel, ...]
    steps: tuple[int, ...]
    given: tuple[Given, ...]
    n_split: int = 0
    n_share: int = 0

    @classmethod
    def from_stan_data(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan of the data of a program, the inverse of :meth:`stan_data`; leaves have their number only."""
        kinds = {leaf.code: leaf for leaf in (*LEAVES.values(), *GIVEN_LEAVES.values())}
        firsts = {name: np.asarray(data[slot.first], dtype=np.intp) for name, slot in SLOTS.items()}
        columns = iter(np.asarray(data["column"], dtype=np.intp) - 1)
        leaves = []
        for i, (code, count) in enumerate(zip(data["kind"], data["n_columns"], strict=True)):
            kind = kinds[int(code)]
            read = tuple(int(column) for column in islice(columns, int(count)))
            places = {}
            for name in kind.priors(max(len(read), 1)):
                first = int(firsts[name][i]) - 1
                places[name] = slice(first, first + (len(read) if SLOTS[name].by_column else 1))
            leaves.append(kind(str(i + 1), read, places, int(data["given_of"][i]) - 1))
        steps = tuple(int(step) for step in data["steps"])
        # The values of given leaves are in the data.
        return cls(tuple(leaves), steps, (), int(data["n_split"]), int(data["n_share"]))

    @property
    def depth(self) -> int:
        """Largest number of values on the stack."""
        return int(np.cumsum([1 if step > 0 else -1 for step in self.steps]).max())

    def stan_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        """Return the data of the program without targets and priors."""
        by_leaf = {
            "kind": [leaf.code for leaf in self.leaves],
            "n_columns": [len(leaf.columns) for leaf in self.leaves],
            "given_of": [leaf.given + 1 for leaf in self.leaves],
            "column": [column + 1 for leaf in self.leaves for column in leaf.columns],
            "steps": list(self.steps),
        }
        counts = {}
        for name, slot in SLOTS.items():
            places = [leaf.places.get(name) for leaf in self.leaves]
            by_leaf[slot.first] = [place.start + 1 if place else slot.absent for place in places]
            counts[slot.count] = max((place.stop for place in places if place), default=0)
        return {
            **column_inputs(train, new),
            "L": len(self.leaves),
            "n_given": len(self.given),
            "n_split": self.n_split,
            "n_share": self.n_share,
            "depth": self.depth,
            **counts,
            **{name: np.array(values, dtype=np.int64) for name, values in by_leaf.items()},
            **self._given_data(train, new),
        }

    def _given_data(self, train: Encoded, new: Encoded) -> dict[str, StanValue]:
        diagonals = Pairs.own(train, self.given).given
        triangles = [
            np.concatenate([_lower_triangle(part.between(train, train)), diagonal])
            for part, diagonal in zip(self.given, diagonals, strict=True)
        ]
        n = len(train)
        m = len(new)
        return {
            "given": _side_by_side(triangles, n * (n + 1) // 2),
            "given_cross": _side_by_side([part.between(train, new).ravel(order="F") for part in self.given], n * m),
            "given_own": _side_by_side(Pairs.own(new, self.given).given, m),
            "given_new": np.zeros((0, len(self.given))),
        }

    def correlation(self, pairs: Pairs, draws: Draws) -> FloatArray:
        """Return the values of the expression, (s, ...), without ``sigma_f``."""
        return self._all_values([leaf.evaluate(pairs, draws).value for leaf in self.leaves], draws)[-1]

    def correlation_gradient(self, pairs: Pairs, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return the values (s, ...) and their derivatives by the real inputs of the first points, (s, ..., D_c)."""
        evaluations = [leaf.evaluate(pairs, draws) for leaf in self.leaves]
        values = self._all_values([evaluation.value for evaluation in evaluations], draws)
        gradient = np.zeros((*values[-1].shape, len(pairs.real_columns)))
        for step, adjoint in zip(self.steps, self._adjoints(values, draws), strict=True):
            if step > 0:
                for position, slope in evaluations[step - 1].by_inputs():
                    gradient[..., position] += adjoint * slope
        return values[-1], gradient

    def correlation_pullback(
        self, pairs: Pairs, draws: Draws
    ) -> tuple[FloatArray, Callable[[FloatArray], dict[str, FloatArray]]]:
        """Return the values (s, ...), and a function of their adjoint.

        The function takes the derivatives (s, ...) of a scalar by the values and returns its derivatives by the
        hyperparameters, (s, entries) by name: one backward sweep over the steps.
        """
        evaluations = [leaf.evaluate(pairs, draws) for leaf in self.leaves]
        values = self._all_values([evaluation.value for evaluation in evaluations], draws)

        def pullback(adjoint: FloatArray) -> dict[str, FloatArray]:
            s = len(draws["sigma_f"])
            slopes = {name: np.zeros_like(draws[name]) for name in SLOTS if name in draws}
            left, right = np.zeros((2, s, self.n_split + max(self.n_share, 1) - 1))
            for i, (step, inner) in enumerate(zip(self.steps, self._adjoints(values, draws), strict=True)):
                outer = adjoint * inner
                if step > 0:
                    for name, entries, by_entry in evaluations[step - 1].by_hyperparameters(outer):
                        slopes[name][:, entries] += by_entry
                elif step < 0:
                    for weight, operand in zip((left, right), self._operands[i], strict=True):
                        weight[:, -step - 1] = (outer * values[operand]).reshape(s, -1).sum(axis=1)
            if self.n_share:
                slopes["share"] = np.hstack([left[:, :1], right])
            elif self.n_split:
                slopes["split"] = left - right
            return slopes

        return values[-1], pullback

    def weights(self, draws: Draws) -> tuple[FloatArray, FloatArray]:
        """Return the weights of the left and right operands of the sums, (s, sums) each."""
        if self.n_share:
            share = draws["share"]
            return np.column_stack([share[:, :1], np.ones((len(share), self.n_share - 2))]), share[:, 1:]
        split = draws.get("split", np.zeros((len(draws["sigma_f"]), 0)))
        return split, 1 - split

    def components(self) -> list[Component]:
        """Return the summands of the expression when it is multiplied out."""
        terms: list[list[Component]] = []
        for i, step in enumerate(self.steps):
            if step > 0:
                terms.append([Component((step - 1,), ())])
                continue
            left, right = (terms[operand] for operand in self._operands[i])
            if step == 0:
                terms.append([Component(a.leaves + b.leaves, a.weights + b.weights) for a in left for b in right])
            else:
                weighted = [term._replace(weights=(*term.weights, (False, -step - 1))) for term in left]
                weighted += [term._replace(weights=(*term.weights, (True, -step - 1))) for term in right]
                terms.append(weighted)
        return terms[-1]

    def component_correlations(self, pairs: Pairs, draws: Draws) -> FloatArray:
        """Return the values of each summand, (k, s, ...), without ``sigma_f``; they add up to the expression."""
        values = [leaf.evaluate(pairs, draws).value for leaf in self.leaves]
        weights = self.weights(draws)
        products = []
        for component in self.components():
            weight = np.ones(len(draws["sigma_f"]))
            for right, j in component.weights:
                weight = weight * weights[right][:, j]
            product = weight.reshape(-1, *[1] * (values[0].ndim - 1))
            for leaf in component.leaves:
                product = product * values[leaf]
            products.append(product)
        return np.stack(np.broadcast_arrays(*products))

    def _all_values(self, leaf_values: Sequence[FloatArray], draws: Draws) -> list[FloatArray]:
        """Return the values after each step, the last one for every draw."""
        weights = self.weights(draws)
        shape = (-1, *[1] * (leaf_values[0].ndim - 1))
        values: list[FloatArray] = []
        for i, step in enumerate(self.steps):
            if step > 0:
                values.append(leaf_values[step - 1])
                continue
            a, b = (values[operand] for operand in self._operands[i])
            if step == 0:
                values.append(a * b)
            else:
                left, right = (weight[:, -step - 1].reshape(shape) for weight in weights)
                values.append(left * a + right * b)
        s = len(draws["sigma_f"])
        values[-1] = np.broadcast_to(values[-1], (s, *values[-1].shape[1:]))
        return values

    @cached_property
    def _operands(self) -> dict[int, tuple[int, int]]:
        """Positions of the operands of each operation by its position."""
        operands: dict[int, tuple[int, int]] = {}
        stack: list[int] = []
        for i, step in enumerate(self.steps):
            if step <= 0:
                right = stack.pop()
                left = stack.pop()
                operands[i] = left, right
            stack.append(i)
        return operands

    def _adjoints(self, values: list[FloatArray], draws: Draws) -> list[FloatArray]:
        """Return the derivatives of the expression by the values after each step."""
        weights = self.weights(draws)
        adjoints: list[FloatArray] = [np.ones(())] * len(values)
        shape = (-1, *[1] * (values[-1].ndim - 1))
        for i in reversed(range(len(values))):
            step = self.steps[i]
            if step > 0:
                continue
            a, b = self._operands[i]
            by_a, by_b = (values[b], values[a]) if step == 0 else (w[:, -step - 1].reshape(shape) for w in weights)
            adjoints[a] = adjoints[i] * by_a
            adjoints[b] = adjoints[i] * by_b
        return adjoints


def _lower_triangle(matrix: FloatArray) -> FloatArray:
    """Return the strict lower triangle column by column."""
    return np.asarray(matrix.T[np.triu_indices(len(matrix), 1)])


def _side_by_side(columns: Sequence[FloatArray], rows: int) -> FloatArray:
    return np.column_stack(columns) if columns else np.zeros((rows, 0))
