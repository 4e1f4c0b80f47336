"""The part of a space in which constraints on inputs hold.

Symbols
-------
n : number of configurations; D : parameters that vary; K : constraints.
numbers (n, D) : values of real parameters in the user's units, indices of levels of the others.
s : numbers of real parameters, scaled to [0, 1] by their bounds, also of logarithmic parameters. A linear constraint is
    linear in s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant
from numpy.typing import NDArray

from slayr_py.arguments import is_number
from slayr_py.errors import SpaceError, did_you_mean
from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.fixed import Fixed
from slayr_py.space.rules import BoolArray
from slayr_py.space.within.rows import Choice, Rows
from slayr_py.space.within.rules import InputConstraint

TOLERANCE = 1e-9
"""Largest violation of a constraint by a suggestion, in the units of the constraint, or 1e-14 of the sizes of its terms
at the configuration. An equality also holds if a change of its parameters by their rounding errors changes the sign of
the difference."""

_ROUNDING = 1e-14  # of terms, of a number and of its lower bound: errors of a unit value in double precision
_DECIMALS = 1e-13  # ConfigSpace's rounding of a float
_RECORDED = 0.01  # of the scale, and of a unit value: violations of past experiments that count as rounded values
_FRACTIONS = 0.5 ** np.arange(11)  # of steps that mend a violation
_MOST_JOINT = 40  # rows of lists in a draw if other parameters are drawn for each row apart: 3 ms each
_SCALE_POINTS = 256  # random points, the largest value at which is the scale of a constraint


class Region:
    """The configurations of a space that satisfy constraints on inputs.

    Parameters
    ----------
    space : ConfigurationSpace
    dimensions : sequence of Dimension
    constraints : sequence of InputConstraint
        Kept with the functions, which may rely on the comparisons, after these.
    choices : sequence of Choice
        Lists, of each of which a configuration has a row.

    Raises
    ------
    SpaceError
        If a constraint reads a parameter that does not exist or is not a number, or two lists have the same one.
    """

    def __init__(
        self,
        space: ConfigurationSpace,
        dimensions: Sequence[Dimension],
        constraints: Sequence[InputConstraint],
        choices: Sequence[Choice] = (),
    ) -> None:
        self.dimensions = tuple(dimensions)
        self.choices = tuple(choice.on(dimensions) for choice in choices)
        columns = np.concatenate([np.empty(0, dtype=np.intp), *(choice.columns for choice in self.choices)])
        if len(twice := np.flatnonzero(np.bincount(columns) > 1)):
            raise SpaceError(f"two tables in within= have the column {dimensions[twice[0]].name!r}; join them")
        self.listed = np.isin(np.arange(len(dimensions)), columns)
        """Parameters that are columns of a list, (D,)."""
        self.constraints = tuple(sorted(constraints, key=lambda c: not c.has_slopes))
        self._constants = {name: h.value for name, h in space.items() if isinstance(h, Constant)}
        self.position = {d.name: j for j, d in enumerate(dimensions)}
        for constraint in self.constraints:
            self._check_names(constraint, space)
        self.real = np.array([d.is_real for d in dimensions])
        self.lower = np.array([d.lower for d in dimensions])
        self.width = np.array([d.upper - d.lower or 1.0 for d in dimensions])  # 1 for a single level
        self.scales = self._sample_scales()

    @property
    def texts(self) -> list[str]:
        """Texts of the constraints, each once, and of the lists."""
        return [
            *dict.fromkeys(constraint.text for constraint in self.constraints),
            *(c.rows.text for c in self.choices),
        ]

    @property
    def given(self) -> tuple[InputConstraint | Rows, ...]:
        """The constraints and lists as `read_within` returns them."""
        return (*self.constraints, *(choice.rows for choice in self.choices))

    @property
    def stored(self) -> list[Any]:
        """Constraints as plain JSON: texts, each once, ``{"function": name}`` for functions, and `Choice.stored`."""
        functions = [{"function": c.text} for c in self.functions.constraints]
        return [*self.comparisons.texts, *functions, *(choice.stored for choice in self.choices)]

    @property
    def readers(self) -> BoolArray:
        """Which constraints read which parameters, (K, D); functions read none."""
        read = [[d.name in c.names for d in self.dimensions] for c in self.constraints]
        return np.array(read, dtype=np.bool_).reshape(len(read), len(self.dimensions))

    @property
    def read(self) -> BoolArray:
        """Parameters that some comparison reads, (D,)."""
        return np.asarray(self.readers.any(axis=0))

    def excess(self, numbers: FloatArray, active: BoolArray) -> FloatArray:
        """Return by how much each constraint is violated, (n, K): 0 where it holds or does not apply.

        Functions are not called where a comparison is violated by more than rounded values; the number there is
        infinite.
        """
        found = np.zeros((len(numbers), len(self.constraints)))
        applies = self.applies(active)
        n_comparisons = sum(c.has_slopes for c in self.constraints)
        for k, constraint in enumerate(self.constraints):
            if not constraint.has_slopes:
                far = (found[:, :n_comparisons] > _RECORDED * self.scales[:n_comparisons]).any(axis=1)
                found[far, k] = np.inf
                applies[far, k] = False
            if len(rows := np.flatnonzero(applies[:, k])):
                difference = self.evaluate(constraint, numbers[rows], active[rows])[0]
                size = np.abs(difference) if constraint.is_equality else np.maximum(difference, 0.0)
                found[rows, k] = np.where(np.isnan(size), np.inf, size)
        return found

    def violated(self, numbers: FloatArray, active: BoolArray) -> BoolArray:
        """Return which constraints are violated beyond the tolerance, (n, K)."""
        return self._beyond(self.excess(numbers, active), numbers, active)

    def _beyond(self, excess: FloatArray, numbers: FloatArray, active: BoolArray) -> BoolArray:
        """Return which constraints are violated beyond the tolerance, (n, K), given their `excess` (n, K)."""
        equal = np.array([c.is_equality for c in self.constraints], dtype=np.bool_)
        violated = excess > TOLERANCE
        for k in np.flatnonzero(violated.any(axis=0)):
            rows = np.flatnonzero(violated[:, k])
            values = self._values(self.constraints[k], numbers[rows])
            violated[rows, k] = ~(excess[rows, k] < _ROUNDING * self.constraints[k].size(values))  # also infinite
        return violated & ~self._mended(violated & equal, numbers, active, self.rounding(numbers))

    def holds(self, numbers: FloatArray, active: BoolArray) -> BoolArray:
        """Return where all constraints hold, (n,)."""
        held = ~self.violated(numbers, active).any(axis=1)
        for choice in self.choices:
            held &= choice.contains(numbers, self.rounding(numbers))
        return np.asarray(held)

    def nearly_holds(self, numbers: FloatArray, active: BoolArray) -> BoolArray:
        """Return where all constraints hold up to the rounding of recorded values, (n,).

        It is 1% of the scale of a constraint, and not more than changes of the parameters by 1% of their ranges mend.
        """
        excess = self.excess(numbers, active)
        violated = self._beyond(excess, numbers, active)
        limits = np.array([_RECORDED * c.has_slopes for c in self.constraints]) * self.scales
        small = violated & (excess <= limits)
        linear = np.array([c.is_linear for c in self.constraints], dtype=np.bool_)
        mended = self._mended(small & ~linear, numbers, active, _RECORDED * self.unit_steps(numbers))
        held = (~violated | small & linear | mended).all(axis=1)
        for choice in self.choices:
            held &= choice.contains(numbers, np.tile(_RECORDED * self.width, (len(numbers), 1)))
        return np.asarray(held)

    def _mended(self, some: BoolArray, numbers: FloatArray, active: BoolArray, steps: FloatArray) -> BoolArray:
        """Return which of some violations, (n, K), real parameters mend if each moves by its step (n, D) or less."""
        mended = np.zeros_like(some)
        for k in np.flatnonzero(some.any(axis=0)):
            rows = np.flatnonzero(some[:, k])
            value, slopes = self.evaluate(self.constraints[k], numbers[rows], active[rows])
            change = np.zeros((len(rows), len(self.dimensions)))
            for name, slope in slopes.items():
                j = self.position.get(name)
                if j is not None and self.real[j]:
                    change[:, j] = -np.sign(value) * np.sign(slope) * steps[rows, j]
            for fraction in _FRACTIONS:
                moved = np.clip(numbers[rows] + fraction * change, self.lower, self.lower + self.width)
                after = self.evaluate(self.constraints[k], moved, active[rows])[0]
                mended[rows, k] |= np.sign(value) * after <= 0
        return mended

    def rounding(self, numbers: FloatArray) -> FloatArray:
        """Return the largest rounding errors of numbers that are stored as unit values, (n, D)."""
        decimals = np.array([_DECIMALS * (d.kind == "float") for d in self.dimensions])
        return np.asarray(decimals + _ROUNDING * (np.abs(self.lower) + np.abs(numbers - self.lower)))

    def broken(self, numbers: FloatArray, active: BoolArray) -> list[str]:
        """Describe the first violated constraint of each configuration, (n,), if possible a comparison; else empty."""
        texts = []
        excess = self.excess(numbers, active)
        for row, is_violated in zip(excess, self._beyond(excess, numbers, active), strict=True):
            violated = np.flatnonzero(is_violated)
            text = ""
            if len(violated):
                constraint = self.constraints[violated[0]]
                by = f" by {row[violated[0]]:.3g}" if constraint.has_slopes else ""
                text = f"{constraint.text!r} is violated{by}"
            texts.append(text)
        for choice in self.choices:
            for i in np.flatnonzero(~choice.contains(numbers, self.rounding(numbers))):
                texts[i] = texts[i] or f"{choice.rows.text!r} is violated"
        return texts

    def _check_names(self, constraint: InputConstraint, space: ConfigurationSpace) -> None:
        for name in constraint.names:
            what = f"the constraint {constraint.text!r}"
            if name not in space:
                raise SpaceError(
                    f"{what} on inputs reads {name!r}, which is not a parameter; bounds on numbers that the objective "
                    f"returns belong into constraints={did_you_mean(name, space)}"
                )
            levels = (self._constants[name],) if name in self._constants else self._levels(name)
            if not all(map(is_number, levels)):
                raise SpaceError(
                    f"{what} reads {name!r}, which is not a number; pass a function of the configuration, or forbid "
                    "levels by a forbidden clause of the space"
                )

    def _levels(self, name: str) -> tuple[Any, ...]:
        return self.dimensions[self.position[name]].levels

    def snapped(self, unit_values: FloatArray, fixed: Fixed | None) -> tuple[FloatArray, list[NDArray[np.intp]]]:
        """Return unit values (n, D) with the nearest rows of the lists, and which rows (n,) of each.

        If no row has the fixed values, the unit values do not change, and the array is empty.
        """
        snapped = unit_values.copy() if self.choices else unit_values
        chosen = []
        for choice in self.choices:
            among = choice.having(fixed)
            rows = choice.nearest(unit_values[:, choice.columns], among) if len(among) else among
            if len(among):
                snapped[:, choice.columns] = choice.unit_values[rows]
            chosen.append(rows)
        return snapped, chosen

    def with_random_rows(self, unit_values: FloatArray, rng: np.random.Generator, fixed: Fixed | None) -> FloatArray:
        """Return unit values (n, D) with random rows of the lists, those with the fixed values if there are any.

        If a comparison reads a list and other parameters, these are drawn for each row apart: rows are few then.
        """
        drawn = unit_values.copy() if self.choices else unit_values
        readers = self.comparisons.readers
        is_joint = bool((readers[:, self.listed].any(axis=1) & readers[:, ~self.listed].any(axis=1)).any())
        for choice in self.choices:
            among = choice.having(fixed)
            if is_joint and len(among) > (most := round(_MOST_JOINT ** (1 / len(self.choices)))):
                among = rng.choice(among, most, replace=False)
            if len(among):
                drawn[:, choice.columns] = choice.unit_values[rng.choice(among, len(drawn))]
        return drawn

    def only(self, rows: Sequence[int]) -> Region:
        """Return the region of some of the constraints, or of none, without the lists."""
        some = copy(self)
        some.choices = ()
        some.listed = np.zeros_like(self.listed)
        some.constraints = tuple(self.constraints[k] for k in rows)
        some.scales = self.scales[np.array(rows, dtype=np.intp)]
        return some

    @property
    def comparisons(self) -> Region:
        """The region of the comparisons, into which configurations can be moved."""
        return self.only([k for k, c in enumerate(self.constraints) if c.has_slopes])

    @property
    def functions(self) -> Region:
        """The region of the functions."""
        return self.only([k for k, c in enumerate(self.constraints) if not c.has_slopes])

    def bounds_text(self, name: str) -> str:
        """Return the bounds of a parameter for a message."""
        if name in self._constants:
            return f"{name} = {self._constants[name]}"
        j = self.position[name]
        ends = np.array([self.dimensions[j].lower, self.dimensions[j].upper])
        for choice in self.choices:
            if len(place := np.flatnonzero(choice.columns == j)):
                numbers = choice.numbers[:, place]
                ends = np.array([numbers.min(), numbers.max()])
        lower, upper = self.dimensions[j].values(ends)
        return f"{name} from {lower} to {upper}{' in the table' * bool(self.listed[j])}"

    def _sample_scales(self) -> FloatArray:
        rng = np.random.default_rng(0)
        u = rng.random((_SCALE_POINTS, len(self.dimensions)))
        numbers = np.column_stack([d.numbers(d.from_uniform(u[:, j])) for j, d in enumerate(self.dimensions)])
        scales = []
        for constraint in self.constraints:
            if not constraint.has_slopes:
                scales.append(1.0)
                continue
            values = self.evaluate(constraint, numbers, np.ones(numbers.shape, dtype=np.bool_))[0]
            finite = np.abs(values[np.isfinite(values)])
            if not len(finite):
                raise SpaceError(f"the constraint {constraint.text!r} has no finite value within the bounds")
            scales.append(float(finite.max()))
        return np.array(scales)

    def applies(self, active: BoolArray) -> BoolArray:
        """Return where all parameters of a constraint are active, (n, K)."""
        applies = np.ones((len(active), len(self.constraints)), dtype=np.bool_)
        for k, constraint in enumerate(self.constraints):
            applies[:, k] = active[:, [self.position[n] for n in constraint.names if n in self.position]].all(axis=1)
        return applies

    def evaluate(
        self, constraint: InputConstraint, numbers: FloatArray, active: BoolArray
    ) -> tuple[FloatArray, Mapping[str, FloatArray]]:
        """Return the number (n,) that is not positive or 0 where a constraint holds, and its derivatives by name."""
        return constraint.evaluate(self._values(constraint, numbers), lambda: self._configs(numbers, active))

    def _values(self, constraint: InputConstraint, numbers: FloatArray) -> dict[str, FloatArray]:
        """Return the values (n,) that a constraint reads, by name."""
        values: dict[str, FloatArray] = {}
        for name in constraint.names:
            if name in self._constants:
                values[name] = np.full(len(numbers), float(self._constants[name]))
                continue
            column = numbers[:, self.position[name]]
            levels = self._levels(name)
            values[name] = np.asarray(levels, dtype=np.float64)[column.astype(np.intp)] if levels else column
        return values

    def _configs(self, numbers: FloatArray, active: BoolArray) -> list[dict[str, Any]]:
        columns = {d.name: d.values(numbers[:, j]) for j, d in enumerate(self.dimensions)}
        on = {d.name: active[:, j].tolist() for j, d in enumerate(self.dimensions)}
        configs = []
        for i in range(len(numbers)):
            config = {name: column[i] for name, column in columns.items() if on[name][i]}
            configs.append({**self._constants, **config})
        return configs

    def scaled(self, numbers: FloatArray, columns: NDArray[np.intp], curved: BoolArray | None = None) -> FloatArray:
        """Return s (n, C) of some columns of numbers (n, D); unit values of the ``curved`` ones, (C,)."""
        s = (numbers[:, columns] - self.lower[columns]) / self.width[columns]
        for place in () if curved is None else np.flatnonzero(curved):
            j = columns[place]
            s[:, place] = np.log(numbers[:, j] / self.lower[j]) / self._log_range(j)
        return np.asarray(s)

    def unscaled(self, s: FloatArray, columns: NDArray[np.intp], curved: BoolArray | None = None) -> FloatArray:
        """Return the numbers (n, C) of s of some columns, or of unit values, within their bounds."""
        lower = self.lower[columns]
        numbers = lower + s * self.width[columns]
        for place in () if curved is None else np.flatnonzero(curved):
            j = columns[place]
            numbers[:, place] = self.lower[j] * np.exp(s[:, place] * self._log_range(j))
        return np.asarray(np.clip(numbers, lower, lower + self.width[columns]))

    def logs_of(self, columns: NDArray[np.intp], linear: bool) -> BoolArray:
        """Return which columns are logarithmic floats that some constraint of one kind reads, (C,).

        Linear constraints are straight in s, others may be straighter in unit values.
        """
        names = {n for c in self.constraints if c.is_linear == linear for n in c.names}
        moving = [self.dimensions[j] for j in columns]
        return np.array([d.log and d.kind == "float" and d.name in names for d in moving], dtype=np.bool_)

    def _log_range(self, j: int) -> float:
        return float(np.log1p(self.width[j] / self.lower[j]))

    def unit_steps(self, numbers: FloatArray) -> FloatArray:
        """Return the derivatives of the numbers by their unit values, (n, D)."""
        steps = np.broadcast_to(self.width, numbers.shape).copy()
        for j, d in enumerate(self.dimensions):
            if d.shift:
                steps[:, j] = (numbers[:, j] + d.shift) * np.log1p(d.upper / d.shift)
            elif d.log:
                steps[:, j] = numbers[:, j] * np.log(d.upper / d.lower)
        return steps
