"""Encode configurations as arrays and decode them.

Symbols
-------
n : number of configurations; D : number of parameters that vary, in the order of the space's own keys.
unit_values (n, D) : see :class:`~slayr_py.space.dimension.Dimension`; 0 where a parameter is inactive.
raw (n, D) : values of real parameters in the user's units, so that decoding restores every digit.
active (n, D) : whether the parameter has a value in the configuration.
genotype (n, D) : unit values of all parameters, active or not; the search moves in this space.
vectors (len(space), n) : ConfigSpace's own encoding, see :mod:`slayr_py.space.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import Configuration, ConfigurationSpace
from numpy.typing import NDArray
from scipy.stats import qmc

from slayr_py.errors import SpaceError, listed
from slayr_py.space.dictionaries import as_space
from slayr_py.space.dimension import FloatArray
from slayr_py.space.encoded import Encoded
from slayr_py.space.fixed import Fixed
from slayr_py.space.graphs import GraphLike
from slayr_py.space.layout import Layout
from slayr_py.space.reading import check_rules, read, rows_of
from slayr_py.space.rules import BoolArray, clause_text
from slayr_py.space.spread import spread
from slayr_py.space.vectors import Vectors
from slayr_py.space.within import (
    Choice,
    Region,
    Rows,
    Within,
    along_faces,
    draw,
    integer_exchanges,
    read_within,
    repair,
    why_empty,
)

_FIRST_POINTS = 8  # binary logarithm of the number of Sobol points that are searched first for fixed values
_POOL = 512  # points from which a design inside constraints is chosen
_BATCHES = 50  # of the pool, after which a design may have fewer points than wanted
_CHECKED = 128  # points of which one has to satisfy the comparisons among the constraints on inputs
_TRIED = 2**13  # points of which one has to satisfy functions too, into which no point can be moved
_DESIGN_LIMIT = 2**16  # Sobol points tried before a space is reported as (nearly) empty


class Encoder(Layout):
    """Encode the configurations of a space as arrays, and decode them.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace or mapping of str to parameter
        Any space: floats, integers, ordinals, categoricals, constants, conditions, forbidden clauses. Constants
        carry no information and get no dimension. In a mapping, two floats or two
        integers are bounds, a list has levels, and another value is a constant or a parameter of ConfigSpace.
    graphs : mapping of str to networkx.Graph, list of edges, "path" or "complete", optional
        Graphs whose vertices are the levels of a parameter; by default a path for an ordinal and a complete graph
        for a categorical. An edge has two levels and optionally a weight, as in
        ``[("relu", "gelu"), ("gelu", "tanh", 0.5)]``. A networkx graph must be undirected and connected, its nodes are
        the levels ("None" for None), and its edges may have a positive ``weight``. An integer with a graph becomes an
        ordinal.
    within : sequence of str, Linear, callable or DataFrame, or a DataFrame, optional
        Constraints on the parameters, which every suggested configuration satisfies: linear ones such as
        ``"x1 + x2 + x3 == 1"``, other comparisons such as ``"temperature * time <= 6000"``, or functions that take a
        configuration and return whether it is allowed. A comparison does not apply where one of its parameters is
        inactive. A DataFrame, alone or among them, is a list of what can be evaluated: suggested configurations have
        one of its rows in the parameters that are its columns. Configurations from elsewhere may violate the
        constraints: see `inside`.

    Raises
    ------
    SpaceError
        If nothing in the space varies, a parameter can never be active, a graph does not fit its parameter, or no
        configuration satisfies the constraints.

    Attributes
    ----------
    logarithmic : tuple of str
        Numbers that have a logarithmic scale here although the space declares a linear one, see `rescaled`.

    See Also
    --------
    slayr_py.space.layout.Layout : names, dimensions, graphs and spectra, which an encoder has as attributes.
    """

    def __init__(
        self,
        space: ConfigurationSpace | Mapping[str, Any],
        graphs: Mapping[str, GraphLike] | None = None,
        within: Within | None = None,
    ) -> None:
        super().__init__(as_space(space), graphs)
        self.logarithmic: tuple[str, ...] = ()
        self._declared = self.dimensions
        self._vectors = Vectors(self.space, self.dimensions)
        constraints = () if within is None else read_within(within)
        choices = [Choice.of(each, self.space, self.dimensions) for each in constraints if isinstance(each, Rows)]
        others = [each for each in constraints if not isinstance(each, Rows)]
        self.region = Region(self.space, self.dimensions, others, choices) if constraints else None
        if self.region is not None:
            self._check_region(self.region)

    def configuration(self, values: Mapping[str, object]) -> Configuration:
        """Validate one configuration given as a mapping; constants may be omitted.

        Raises
        ------
        SpaceError
            For unknown, missing or illegal values, values of inactive parameters, or a forbidden combination.
        """
        encoded = self._encode([values], where="")
        if isinstance(values, Configuration) and values.config_space is self.space:
            return values
        return self.decode(encoded)[0]

    def encode(
        self,
        configs: Encoded | pd.DataFrame | Iterable[Mapping[str, object]] | NDArray[Any],
        other_columns: bool = False,
    ) -> Encoded:
        """Encode configurations as arrays.

        Parameters
        ----------
        configs : iterable of Configuration or mapping, DataFrame, (n, D) array, or Encoded
            A DataFrame has one column per parameter, in any order; the columns of an array follow ``names``. Both are
            empty (NaN or None) where a parameter is inactive. Constants may be omitted. Encoded configurations may be
            of a space with other forbidden clauses, which are not checked again.
        other_columns : bool
            Ignore columns of a DataFrame that are not parameters of the space, instead of raising an error.

        Raises
        ------
        SpaceError
            If an element is not a configuration of the space; the message gives its position.
        """
        if isinstance(configs, Encoded):
            if self.matches(configs.encoder):
                return configs
            other = configs.encoder
            if isinstance(other, Encoder) and self.rescaled(()).matches(other.rescaled(())):
                return self._from_numbers(other._numbers(configs), configs)
            raise SpaceError(
                "these configurations were encoded for another space or with other graphs; encode them again"
            )
        return self._encode(rows_of(configs, self.dimensions, self.space, other_columns), where="configuration {}: ")

    def rows(self, configs: Iterable[Mapping[str, Any]] | Any) -> list[Any]:
        """Return one mapping for each row of a table or element of a sequence; empty cells are omitted.

        Raises
        ------
        SpaceError
            For a single mapping, another type, or a column that is not a parameter.
        """
        return rows_of(configs, self.dimensions, self.space)

    def decode(self, encoded: Encoded) -> list[Configuration]:
        """Return the configurations of the given arrays; the inverse of :meth:`encode`.

        Conditions and forbidden clauses were checked by :meth:`encode` and are not checked again.
        """
        numbers = self._numbers(encoded)
        vectors = self._vectors.of(numbers, self.names)
        active = self._rules.switch_off(vectors.copy())
        active[self._vectors.rows] = encoded.active.T
        return self._vectors.configurations(numbers, vectors, active)

    def resolve(self, genotype: FloatArray, fixed: Fixed | None = None) -> tuple[Encoded, BoolArray]:
        """Snap unit values to legal values, deactivate parameters whose conditions fail, and find forbidden rows.

        Parameters
        ----------
        genotype : (n, D) float64
        fixed : Fixed, optional
            Values that replace values of the genotype.

        Returns
        -------
        encoded : Encoded
        allowed : (n,) bool
            False where a forbidden clause holds, a fixed parameter is inactive, or a constraint on inputs does not
            hold: lists get the nearest rows that have the fixed values, and floats are moved to the nearest numbers
            that satisfy the constraints, if there are any.
        """
        if self.region is None:
            return self._resolve(genotype, fixed)
        genotype, rows = self.region.snapped(genotype, fixed)
        encoded, allowed = self._with_rows(*self._resolve(genotype, fixed), rows)
        numbers = self._numbers(encoded)
        comparisons = self.region.comparisons
        outside = ~comparisons.holds(numbers, encoded.active)
        if outside.any():
            floats = encoded.active & [d.kind == "float" for d in self.dimensions]
            numbers = repair(comparisons, numbers, encoded.active, floats & self._movable(fixed))
            moved = self._to_units(numbers, encoded.unit_values)
            moved = np.where(encoded.active & comparisons.read & outside[:, None], moved, genotype)
            # A moved parameter may have activated another one.
            encoded, allowed = self._with_rows(*self._resolve(moved, fixed), rows)
            numbers = self._numbers(encoded)
            allowed = allowed & comparisons.holds(numbers, encoded.active)
        inside = allowed.copy()
        inside[allowed] = self.region.functions.holds(numbers[allowed], encoded.active[allowed])  # may take long
        return encoded, inside

    def _with_rows(
        self, encoded: Encoded, allowed: BoolArray, rows: Sequence[NDArray[np.intp]]
    ) -> tuple[Encoded, BoolArray]:
        """Return configurations with the exact numbers of rows (n,) of each list; none is allowed without a row."""
        if not rows:
            return encoded, allowed
        assert self.region is not None
        raw = self._numbers(encoded)
        for choice, chosen in zip(self.region.choices, rows, strict=True):
            if not len(chosen):
                return encoded, np.zeros_like(allowed)
            raw[:, choice.columns] = choice.numbers[chosen]
        return Encoded(encoded.unit_values, encoded.active, self, raw), allowed

    def rescaled(self, names: Collection[str]) -> Encoder:
        """Return the encoder with logarithmic scales of these numbers, which the space declares linear.

        The configurations are the same, and so is everything but unit values: see `Dimension.rescaled`. Of no names it
        is the encoder of the space as declared.

        Raises
        ------
        SpaceError
            For a name that is not that of a number on a linear scale whose range is at least 0 and spans two decades.
        """
        if set(names) == set(self.logarithmic):
            return self
        other = self._copied()
        other.logarithmic = tuple(name for name in self.names if name in names)
        on = {d.name: d.rescaled() for d in self._declared if d.name in names}
        if unknown := sorted(name for name in names if on.get(name) is None):
            raise SpaceError(
                f"{listed(unknown)} cannot be logarithmic: not a number on a linear scale from 0, or from a positive "
                "number over two decades"
            )
        other.dimensions = tuple(on.get(d.name) or d for d in self._declared)
        other._vectors = Vectors(self.space, other.dimensions)
        if self.region is not None:
            other.region = Region(self.space, other.dimensions, self.region.constraints, self.region.choices)
        return other

    def _from_numbers(self, numbers: FloatArray, configs: Encoded) -> Encoded:
        """Return configurations that were encoded with other scales, given their numbers (n, D)."""
        units = np.where(configs.active, self._to_units(numbers, configs.unit_values), 0.0)
        real = np.array([d.is_real for d in self.dimensions])
        return Encoded(units, configs.active, self, np.where(configs.active & real, numbers, 0.0))

    def free(self, fixed: Fixed | None) -> BoolArray:
        """Return which parameters have no fixed value, (D,)."""
        return ~np.isin(np.arange(len(self.dimensions)), () if fixed is None else fixed.columns)

    def _movable(self, fixed: Fixed | None) -> BoolArray:
        """Return which parameters have neither a fixed value nor one of a list, (D,)."""
        return self.free(fixed) & ~self.listed

    def _to_units(self, numbers: FloatArray, units: FloatArray) -> FloatArray:
        """Return the unit values of real numbers, and of the other parameters the given ones."""
        columns = [d.unit_values(numbers[:, j]) if d.is_real else units[:, j] for j, d in enumerate(self.dimensions)]
        return np.column_stack(columns)

    def _resolve(self, genotype: FloatArray, fixed: Fixed | None) -> tuple[Encoded, BoolArray]:
        """Resolve genotypes without constraints on inputs."""
        if fixed is not None:
            if not fixed.is_on(self.dimensions):
                raise SpaceError(
                    f"the values {dict(fixed.values)} were fixed for another space or scale; fix them again"
                )
            encoded, allowed = self._resolve(fixed.put(genotype), None)
            raw = self._numbers(encoded)
            raw[:, fixed.columns] = fixed.numbers  # a logarithmic unit value loses the last digits
            return Encoded(encoded.unit_values, encoded.active, self, raw), allowed & fixed.active(encoded)
        values = np.column_stack([d.snap(genotype[:, j]) for j, d in enumerate(self.dimensions)])
        encoded = Encoded(values, np.ones(values.shape, dtype=np.bool_), self)
        if not self._rules.read:
            return encoded, encoded.active[:, 0]
        vectors = self._vectors.of(self._numbers(encoded), self._rules.read)
        active = np.ascontiguousarray(self._rules.switch_off(vectors)[self._vectors.rows].T)
        return Encoded(np.where(active, values, 0.0), active, self), self._rules.allowed(vectors)

    def fix(self, values: Mapping[str, object], where: str = "") -> Fixed:
        """Return fixed values of some parameters for :meth:`resolve`.

        Parameters
        ----------
        values : mapping of str to value
            A conditional parameter excludes the configurations in which it is inactive.
        where : str
            Start of an error message.

        Raises
        ------
        SpaceError
            For an unknown parameter, an illegal value, a parameter that is inactive with the other values, or if no
            configuration of the space has these values.
        """
        if not isinstance(values, Mapping):
            raise SpaceError(f"{where}the fixed values are {values!r:.200}; give a mapping of parameters to values")
        if self.logarithmic:  # an example is as easily found as on the declared scales
            return self.refix(self.rescaled(()).fix(values, where))
        given = dict(values)
        numbers, _ = read([given], self._vectors, where)
        columns = np.array([j for j, d in enumerate(self.dimensions) if d.name in given], dtype=np.intp)
        chosen = [self.dimensions[j] for j in columns]
        exact = np.array(
            [d.rounded(numbers[0, [j]])[0] for d, j in zip(chosen, columns, strict=True)], dtype=np.float64
        )
        unit_values = np.array(
            [d.unit_values(x[None])[0] for d, x in zip(chosen, exact, strict=True)], dtype=np.float64
        )
        plain = {d.name: d.values(x[None])[0] for d, x in zip(chosen, exact, strict=True)}
        no_example = np.zeros((1, len(self.dimensions)))
        return self._with_example(Fixed(plain, self.dimensions, columns, exact, unit_values, no_example), where)

    def refix(self, fixed: Fixed) -> Fixed:
        """Return values that were fixed on other scales of the space, themselves on the same ones."""
        if fixed.all_dimensions == self.dimensions:
            return fixed
        example = fixed.example.copy()
        for j, (old, new) in enumerate(zip(fixed.all_dimensions, self.dimensions, strict=True)):
            if new != old:
                example[:, j] = new.unit_values(old.numbers(example[:, j]))
        pairs = zip(fixed.columns, fixed.numbers, strict=True)
        unit_values = np.array([self.dimensions[j].unit_values(x) for j, x in pairs], dtype=np.float64)
        return replace(fixed, all_dimensions=self.dimensions, unit_values=unit_values, example=example)

    def _with_example(self, fixed: Fixed, where: str) -> Fixed:
        engine = qmc.Sobol(len(self.dimensions), scramble=True, rng=np.random.default_rng(0))
        u = engine.random_base2(_FIRST_POINTS)
        most = _DESIGN_LIMIT if self.region is None else _TRIED
        while True:
            genotypes = fixed.put(self._into_region(self.from_uniform(u), np.random.default_rng(0), fixed))
            encoded, allowed = self.resolve(genotypes, fixed)
            if allowed.any():
                return replace(fixed, example=genotypes[[np.argmax(allowed)]])
            possible = np.flatnonzero(self._resolve(genotypes, fixed)[1])  # but for the constraints on inputs
            if engine.num_generated >= (most if self._compares(encoded[possible]) else _POOL):
                break
            u = engine.random(engine.num_generated)
        for name, column in zip(fixed.values, fixed.columns, strict=True):
            if not encoded.active[:, column].any():
                condition = self._rules.condition(name)
                raise SpaceError(
                    f"{where}parameter {name!r} has a value although it is inactive: {condition} cannot hold"
                )
        for choice in self.choices:
            if not len(choice.having(fixed)):
                shown = {name: v for name, v in fixed.values.items() if name in choice.rows.columns}
                raise SpaceError(f"{where}no row of a table in within= has the values {shown}; leave one out")
        if self.region is not None and len(possible):
            movable = self._movable(fixed)
            why = why_empty(self.region, self._numbers(encoded)[possible], encoded.active[possible], movable)
            raise SpaceError(f"{where}with the values {dict(fixed.values)}, {why}, or leave a value out")
        raise SpaceError(f"{where}no configuration of the space has the values {dict(fixed.values)}; leave one out")

    def from_uniform(self, u: FloatArray) -> FloatArray:
        """Map uniform variates in [0, 1), (n, D), to genotypes."""
        return np.column_stack([d.from_uniform(u[:, j]) for j, d in enumerate(self.dimensions)])

    def sobol(self, n: int, seed: int | np.random.Generator, fixed: Fixed | None = None) -> list[Configuration]:
        """Return the first ``n`` points of a scrambled Sobol design that no forbidden clause excludes.

        A seed fixes the sequence, so that a longer design starts with a shorter one. All points have the values of
        ``fixed``. With constraints on inputs, the points represent the uniform distribution inside: see `spread`. If
        fewer than ``n`` configurations were found there, the result has these.

        Raises
        ------
        SpaceError
            If the forbidden clauses leave fewer than ``n`` of the first 65,536 points.
        """
        if self.region is not None:
            return self._spread_inside(n, np.random.default_rng(seed), fixed)
        points = self.allowed_sobol(n, np.random.default_rng(seed), fixed, self.from_uniform, _DESIGN_LIMIT)
        if len(points) < n:
            first = " or ".join(map(clause_text, self.space.forbidden_clauses[:3])) or "a fixed value"
            raise SpaceError(
                f"only {len(points)} of {_DESIGN_LIMIT} points of the space are not forbidden, {n} are needed; "
                f"loosen a clause such as {first}"
            )
        return points

    def allowed_sobol(
        self,
        n: int,
        rng: np.random.Generator,
        fixed: Fixed | None,
        genotypes: Callable[[FloatArray], FloatArray],
        most: int,
    ) -> list[Configuration]:
        """Return the first ``n`` legal points of a scrambled Sobol sequence; the first ``most`` points may have fewer.

        ``genotypes`` maps the sequence (k, D) to genotypes. A longer result starts with a shorter one.
        """
        engine = qmc.Sobol(len(self.dimensions), scramble=True, rng=rng)
        u = engine.random_base2(max(int(np.ceil(np.log2(max(n, 1)))), 0))
        while True:
            encoded, allowed = self.resolve(genotypes(u), fixed)
            if allowed.sum() >= n or len(u) >= most:
                return self.decode(encoded[np.flatnonzero(allowed)[:n]])
            u = np.vstack([u, engine.random(len(u))])

    def uniform(self, n: int, rng: np.random.Generator, fixed: Fixed | None = None) -> FloatArray:
        """Draw genotypes (n, D), uniform in unit values, and inside the constraints on inputs if there are any.

        Some rows may still be outside after :meth:`resolve`, for example if a constraint is a function.
        """
        return self._into_region(self.from_uniform(rng.random((n, len(self.dimensions)))), rng, fixed)

    def _into_region(self, genotypes: FloatArray, rng: np.random.Generator, fixed: Fixed | None) -> FloatArray:
        if self.region is None:
            return genotypes
        genotypes = self.region.with_random_rows(genotypes, rng, fixed)
        encoded, _ = self._resolve(genotypes, fixed)
        real = encoded.active & [d.is_real for d in self.dimensions]
        drawn = draw(self.region, self._numbers(encoded), encoded.active, real & self._movable(fixed), rng)
        moved = encoded.active & self.region.read & ~self.region.listed
        return np.where(moved, self._to_units(drawn, encoded.unit_values), genotypes)

    def _spread_inside(self, n: int, rng: np.random.Generator, fixed: Fixed | None) -> list[Configuration]:
        pool: Encoded | None = None
        for _ in range(_BATCHES):
            encoded, allowed = self.resolve(self.uniform(_POOL, rng, fixed), fixed)
            inside = encoded[np.flatnonzero(allowed)]
            pool = inside if pool is None else pool.concatenate(inside)
            if len(pool) >= max(_POOL // 2, 4 * n):
                break
        assert pool is not None
        if not len(pool):
            why = "the forbidden clauses and the constraints exclude all points that were tried; loosen one of them"
            raise SpaceError(f"no configuration was found: {why}")
        _, first = np.unique(np.column_stack([pool.unit_values, pool.active]), axis=0, return_index=True)
        distinct = pool[np.sort(first)]
        return self.decode(distinct[spread(distinct, min(n, len(distinct)))])

    def inside(self, configs: Encoded, recorded: bool = False) -> BoolArray:
        """Return which configurations satisfy the constraints on inputs, (n,).

        With ``recorded``, small violations count as rounding of recorded values: see `Region.nearly_holds`.
        """
        if self.region is None:
            return np.ones(len(configs), dtype=np.bool_)
        check = self.region.nearly_holds if recorded else self.region.holds
        return check(self._numbers(configs), configs.active)

    @property
    def constrained(self) -> frozenset[str]:
        """Names of the parameters that comparisons among the constraints on inputs read, or that a list has."""
        read = () if self.region is None else self.region.read | self.region.listed
        return frozenset(d.name for d, is_read in zip(self.dimensions, read, strict=False) if is_read)

    @property
    def within(self) -> list[Any]:
        """Constraints on inputs as plain JSON: texts, ``{"function": name}`` for functions, ``{"rows": columns}``."""
        return [] if self.region is None else self.region.stored

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Lists, of each of which a configuration has a row."""
        return () if self.region is None else self.region.choices

    @property
    def listed(self) -> BoolArray:
        """Parameters that are columns of a list, (D,)."""
        return np.zeros(len(self.dimensions), dtype=np.bool_) if self.region is None else self.region.listed

    @cached_property
    def unconstrained(self) -> Encoder:
        """The encoder without constraints on inputs."""
        whole = self._copied()
        whole.region = None
        return whole

    def _copied(self) -> Encoder:
        """Return a copy without the values that are cached."""
        other = copy(self)
        for name in ("unconstrained", "exchanges", "ranked"):
            other.__dict__.pop(name, None)
        return other

    @cached_property
    def exchanges(self) -> list[tuple[list[int], FloatArray]]:
        """Steps of two integers on a linear scale that keep an equality: their columns, and changes of unit values."""
        return [] if self.region is None else integer_exchanges(self.region)

    def along(self, configs: Encoded, gradients: FloatArray) -> FloatArray:
        """Return projectors (n, D, D) on the moves along the faces of constraints at which gradients (n, D) push."""
        assert self.region is not None
        return along_faces(self.region, self._numbers(configs), configs.unit_values, gradients, configs.active)

    def broken(self, configs: Encoded) -> list[str]:
        """Describe the first violated constraint on inputs of each configuration, (n,); empty if all hold."""
        return (
            [""] * len(configs) if self.region is None else self.region.broken(self._numbers(configs), configs.active)
        )

    def outside(self, configs: Sequence[Configuration]) -> list[str]:
        """Describe the constraint on inputs that each recorded configuration violates; small violations are rounding.

        A text is empty if all hold.
        """
        if self.region is None or not configs:
            return [""] * len(configs)
        encoded = self.encode(configs)
        texts = [""] * len(configs)
        rows = np.flatnonzero(~self.inside(encoded, recorded=True))
        for row, text in zip(rows, self.broken(encoded[rows]), strict=True):
            texts[row] = text
        return texts

    def _check_region(self, region: Region) -> None:
        """Check that some configuration satisfies the constraints on inputs."""
        rng = np.random.default_rng(0)
        n = _CHECKED
        while not self.inside(encoded := self.resolve(self.uniform(n, rng))[0]).any():
            if n >= _TRIED or not self._compares(encoded):
                movable = self._movable(None)
                raise SpaceError(why_empty(region, self._numbers(encoded), encoded.active, movable))
            n *= 2

    def _compares(self, configs: Encoded) -> bool:
        """Return whether the comparisons among the constraints on inputs hold for one of the configurations."""
        return self.region is None or bool(self.region.comparisons.holds(self._numbers(configs), configs.active).any())

    @property
    def is_searchable(self) -> bool:
        """Whether uniform draws meet configurations that satisfy the constraints on inputs, as on declared scales."""
        if self.region is None:
            return True
        return bool(self.inside(self.resolve(self.uniform(_CHECKED, np.random.default_rng(0)))[0]).any())

    def _numbers(self, encoded: Encoded) -> FloatArray:
        """Return level indices and real values, (n, D), rounded as in ConfigSpace; a legal number where inactive."""
        numbers = np.empty(encoded.unit_values.shape)
        for j, d in enumerate(self.dimensions):
            if d.is_real and encoded.raw is not None:
                numbers[:, j] = np.where(encoded.active[:, j], encoded.raw[:, j], d.lower)
            else:
                numbers[:, j] = d.rounded(d.numbers(encoded.unit_values[:, j]))
        return numbers

    def _encode(self, rows: list[object], where: str) -> Encoded:
        """Read and check configurations; error messages about configuration i start with ``where.format(i)``."""
        numbers, given = read(rows, self._vectors, where)
        # ConfigSpace rounds its configurations; a second rounding could change the last digit of large numbers.
        foreign = [i for i, row in enumerate(rows) if not isinstance(row, Configuration)]
        for j, d in enumerate(self.dimensions):
            numbers[foreign, j] = d.rounded(numbers[foreign, j])
        vectors = self._vectors.of(numbers, self._rules.read)
        for i, row in enumerate(rows):
            if isinstance(row, Configuration) and row.config_space is self.space:
                vectors[:, i] = row.get_array()
        active = check_rules(self._rules, vectors, given, self._vectors.varies, where)[self._vectors.rows].T

        values = np.column_stack([d.unit_values(numbers[:, j]) for j, d in enumerate(self.dimensions)])
        real = np.array([d.is_real for d in self.dimensions])
        return Encoded(
            np.where(active, values, 0.0), np.ascontiguousarray(active), self, np.where(active & real, numbers, 0.0)
        )
