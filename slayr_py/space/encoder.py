"""Between configurations and arrays.

Symbols
-------
n : number of configurations; D : number of parameters that vary, in the order of the space's own keys.
unit_values (n, D) : coordinates, see :class:`~slayr_py.space.dimension.Dimension`; 0 where a parameter is inactive.
raw (n, D) : values of real parameters in the user's units, so that decoding gives back every digit.
active (n, D) : whether the parameter has a value in the configuration.
genotype (n, D) : coordinates of all parameters, active or not; what search moves through.
vectors (len(space), n) : ConfigSpace's own coordinates, see :mod:`slayr_py.space.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import Constant
from numpy.typing import NDArray
from scipy.stats import qmc

from slayr_py.errors import SpaceError
from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.encoded import Encoded
from slayr_py.space.graphs import adjacency, check_names, checked, named_graph
from slayr_py.space.reading import judge, read, rows_of
from slayr_py.space.rules import BoolArray, Rules, spelled
from slayr_py.space.spectrum import Spectrum, with_inactive
from slayr_py.space.unreachable import never_active
from slayr_py.space.vectors import Vectors

_DESIGN_LIMIT = 2**16  # Sobol points tried before a space is called (nearly) empty


class Encoder:
    """Encode the configurations of a space, and decode arrays back.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace
        Any space: floats, integers, ordinals, categoricals, constants, conditions, forbidden clauses. Constants
        carry no information and get no dimension.
    graphs : mapping of str to networkx.Graph or {"path", "complete"}, optional
        The graph whose vertices are the levels of a parameter, by default a path for an ordinal and a complete graph
        for a categorical. A graph of one's own is undirected and connected, its nodes are the levels (None is spelled
        "None"), its edges may have a positive ``weight``. An integer that is given a graph counts as an ordinal.

    Attributes
    ----------
    dimensions : tuple of Dimension
        The D parameters that vary.
    requested_graphs : dict of str to networkx.Graph or str
        What ``graphs`` asked for.

    Raises
    ------
    SpaceError
        If nothing in the space varies, a parameter can never be active, or a graph does not fit its parameter.
    """

    def __init__(self, space: ConfigurationSpace, graphs: Mapping[str, nx.Graph | str] | None = None) -> None:
        if not isinstance(space, ConfigurationSpace):
            raise SpaceError(f"expected a ConfigSpace.ConfigurationSpace, got {type(space).__name__}")
        asked = {} if graphs is None else graphs
        check_names(space, asked)
        self.space = space
        self.dimensions = tuple(
            Dimension.from_hyperparameter(h, on_graph=name in asked)
            for name, h in space.items()
            if not isinstance(h, Constant)
        )
        if not self.dimensions:
            raise SpaceError("the space is empty: it needs at least one parameter that is not a constant")
        self._rules = Rules(space)
        if dead := never_active(self._rules):
            raise SpaceError(f"parameter {dead[0]!r} is never active: {self._rules.condition(dead[0])} cannot hold")
        self._vectors = Vectors(space, self.dimensions)
        self.requested_graphs = {d.name: checked(d, asked[d.name]) for d in self.dimensions if d.name in asked}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the D parameters that vary, in the order of the space's own keys."""
        return tuple(d.name for d in self.dimensions)

    @cached_property
    def real_names(self) -> tuple[str, ...]:
        """Names of the float and integer parameters."""
        return tuple(d.name for d in self.dimensions if d.is_real)

    @cached_property
    def graph_names(self) -> tuple[str, ...]:
        """Names of the ordinal and categorical parameters, and of integers on a graph."""
        return tuple(d.name for d in self.dimensions if not d.is_real)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns of ``Encoded.columns``; ``act[relu]`` for a level."""
        names: list[str] = []
        for d in self.dimensions:
            names += [f"{d.name}[{level}]" for level in d.levels] if d.kind == "categorical" else [d.name]
        return tuple(names)

    @cached_property
    def column_of(self) -> dict[str, int]:
        """Column of ``Encoded.columns`` for every real parameter."""
        return {name: self.column_names.index(name) for name in self.real_names}

    @property
    def is_conditional(self) -> bool:
        """Whether some parameter is active only under a condition."""
        return bool(self.space.conditions)

    @cached_property
    def conditional(self) -> tuple[str, ...]:
        """Names of the parameters that have a condition, and so may be inactive."""
        return tuple(name for name in self.names if self.space.parent_conditions_of[name])

    @cached_property
    def ancestors(self) -> dict[str, tuple[str, ...]]:
        """For every name those of its parents, their parents and so on, in the order of ``names``.

        A constant is none itself, but its own ancestors are passed on.
        """
        return {name: tuple(a for a in self.names if a in self._rules.ancestors[name]) for name in self.names}

    @cached_property
    def graphs(self) -> dict[str, nx.Graph]:
        """Graph over the levels of every parameter in ``graph_names``, read-only."""
        graphs = {}
        for d in self.dimensions:
            if not d.is_real:
                default = "path" if d.kind == "ordinal" else "complete"
                graph = self.requested_graphs.get(d.name, default)
                graphs[d.name] = named_graph(d, graph) if isinstance(graph, str) else graph
        return graphs

    @cached_property
    def spectra(self) -> dict[str, Spectrum]:
        """Laplacian spectrum for every parameter in ``graph_names``; rows of the basis follow ``Encoded.vertices``.

        The graph of a parameter that may be inactive has one vertex more, see
        :func:`~slayr_py.space.spectrum.with_inactive`.
        """
        spectra = {}
        for name, graph in self.graphs.items():
            weights = adjacency(graph)
            spectra[name] = Spectrum.of(with_inactive(weights) if name in self.conditional else weights)
        return spectra

    def configuration(self, values: Mapping[str, Any]) -> Configuration:
        """Validate one configuration given as a mapping; constants may be left out.

        Raises
        ------
        SpaceError
            For unknown, missing or illegal values, values of inactive parameters, or a forbidden combination.
        """
        encoded = self._encode([values], where="")
        if isinstance(values, Configuration) and values.config_space is self.space:
            return values
        return self.decode(encoded)[0]

    def encode(self, configs: Encoded | pd.DataFrame | Iterable[Mapping[str, Any]] | NDArray[Any]) -> Encoded:
        """Arrays of the given configurations.

        Parameters
        ----------
        configs : iterable of Configuration or mapping, DataFrame, (n, D) array, or Encoded
            A DataFrame has a column for each parameter, an array follows ``names``; both are empty (NaN or None)
            where a parameter is inactive. Constants may be left out.

        Raises
        ------
        SpaceError
            If one of them is not a configuration of the space; the message names its position.
        """
        if isinstance(configs, Encoded):
            if not self._encodes_like(configs.encoder):
                raise SpaceError("these configurations were encoded for another space or with other graphs")
            return configs
        return self._encode(rows_of(configs, self.dimensions), where="configuration {}: ")

    def decode(self, encoded: Encoded) -> list[Configuration]:
        """Configurations of the given arrays; the inverse of :meth:`encode`.

        What made the arrays has judged them: neither conditions nor forbidden clauses are looked at again.
        """
        numbers = self._numbers(encoded)
        vectors = self._vectors.of(numbers, self.names)
        active = self._rules.switch_off(vectors.copy())
        active[self._vectors.rows] = encoded.active.T
        return self._vectors.configurations(numbers, vectors, active)

    def resolve(self, genotype: FloatArray) -> tuple[Encoded, BoolArray]:
        """Snap coordinates to legal values, switch off what the conditions leave inactive, and find what is forbidden.

        Parameters
        ----------
        genotype : (n, D) float64

        Returns
        -------
        encoded : Encoded
        allowed : (n,) bool
            False where a forbidden clause holds.
        """
        values = np.column_stack([d.snap(genotype[:, j]) for j, d in enumerate(self.dimensions)])
        encoded = Encoded(values, np.ones(values.shape, dtype=np.bool_), self)
        if not self._rules.read:
            return encoded, encoded.active[:, 0]
        vectors = self._vectors.of(self._numbers(encoded), self._rules.read)
        active = np.ascontiguousarray(self._rules.switch_off(vectors)[self._vectors.rows].T)
        return Encoded(np.where(active, values, 0.0), active, self), self._rules.allowed(vectors)

    def from_uniform(self, u: FloatArray) -> FloatArray:
        """Genotypes of uniform variates in [0, 1), (n, D)."""
        return np.column_stack([d.from_uniform(u[:, j]) for j, d in enumerate(self.dimensions)])

    def sobol(self, n: int, seed: int | np.random.Generator) -> list[Configuration]:
        """First ``n`` points of a scrambled Sobol design that no forbidden clause excludes.

        The sequence for a seed is always the same: a longer design begins with the shorter one.

        Raises
        ------
        SpaceError
            If the forbidden clauses leave fewer than ``n`` of the first 65,536 points.
        """
        engine = qmc.Sobol(len(self.dimensions), scramble=True, rng=np.random.default_rng(seed))
        u = engine.random_base2(max(int(np.ceil(np.log2(max(n, 1)))), 0))
        while True:
            encoded, allowed = self.resolve(self.from_uniform(u))
            if allowed.sum() >= n:
                return self.decode(encoded[np.flatnonzero(allowed)[:n]])
            if len(u) >= _DESIGN_LIMIT:
                first = " or ".join(map(spelled, self.space.forbidden_clauses[:3]))
                raise SpaceError(
                    f"only {int(allowed.sum())} of {len(u)} points of the space are not forbidden, {n} are needed; "
                    f"loosen a clause such as {first}"
                )
            u = np.vstack([u, engine.random(len(u))])

    def _encodes_like(self, other: Encoder) -> bool:
        if other is self:
            return True
        if other.dimensions != self.dimensions or other.ancestors != self.ancestors:
            return False
        own = self.requested_graphs.keys() | other.requested_graphs.keys()
        return all(np.array_equal(adjacency(self.graphs[name]), adjacency(other.graphs[name])) for name in own)

    def _numbers(self, encoded: Encoded) -> FloatArray:
        """Level indices and real values, (n, D), with the digits that ConfigSpace keeps; any legal one if inactive."""
        numbers = np.empty(encoded.unit_values.shape)
        for j, d in enumerate(self.dimensions):
            if d.is_real and encoded.raw is not None:
                numbers[:, j] = np.where(encoded.active[:, j], encoded.raw[:, j], d.lower)
            else:
                numbers[:, j] = d.rounded(d.numbers(encoded.unit_values[:, j]))
        return numbers

    def _encode(self, rows: list[Any], where: str) -> Encoded:
        """Read and judge configurations; ``where`` begins the message about the i-th, and has a place for i."""
        numbers, given = read(rows, self._vectors, where)
        # ConfigSpace has rounded its own, and rounding again may change the last digit of a large number.
        foreign = [i for i, row in enumerate(rows) if not isinstance(row, Configuration)]
        for j, d in enumerate(self.dimensions):
            numbers[foreign, j] = d.rounded(numbers[foreign, j])
        vectors = self._vectors.of(numbers, self._rules.read)
        for i, row in enumerate(rows):
            if isinstance(row, Configuration) and row.config_space is self.space:
                vectors[:, i] = row.get_array()
        active = judge(self._rules, vectors, given, self._vectors.varies, where)[self._vectors.rows].T

        values = np.column_stack([d.coordinates(numbers[:, j]) for j, d in enumerate(self.dimensions)])
        real = np.array([d.is_real for d in self.dimensions])
        return Encoded(
            np.where(active, values, 0.0), np.ascontiguousarray(active), self, np.where(active & real, numbers, 0.0)
        )
