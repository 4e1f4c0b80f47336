"""Between configurations and arrays.

Symbols
-------
n : number of configurations; D : number of parameters that vary, in the order of the space's own keys.
values (n, D) : coordinates, see :class:`~slayr_py.space.dimension.Dimension`; 0 where a parameter is inactive.
raw (n, D) : values of real parameters in the user's units, so that decoding gives back every digit.
active (n, D) : whether the parameter has a value in the configuration.
genotype (n, D) : coordinates of all parameters, active or not; what search moves through.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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

_DESIGN_LIMIT = 2**16  # Sobol points tried before a space is called (nearly) empty


@dataclass(frozen=True, eq=False)
class Encoded:
    """Configurations as arrays.

    Attributes
    ----------
    values : (n, D) float64
        Coordinates; real parameters in [0, 1], others the index of their level, 0 where inactive.
    active : (n, D) bool
    encoder : Encoder
        The encoder that made them.
    raw : (n, D) float64, optional
        Real parameters in the user's units, which a logarithmic coordinate cannot carry to the last digit; without it
        they are computed from ``values``.
    """

    values: FloatArray
    active: NDArray[np.bool_]
    encoder: Encoder
    raw: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | NDArray[Any] | list[int]) -> Encoded:
        raw = None if self.raw is None else self.raw[rows]
        return Encoded(self.values[rows], self.active[rows], self.encoder, raw)

    @cached_property
    def columns(self) -> FloatArray:
        """One-hot inputs of a kernel on the unit cube, (n, C), in the order of ``encoder.column_names``.

        Real parameters fill one column, ordinals one with their rank scaled to [0, 1], categoricals one a level.
        Inactive real parameters and ordinals stand at 1/2, inactive categoricals have no level.
        """
        parts = []
        for i, dimension in enumerate(self.encoder.dimensions):
            column, on = self.values[:, i], self.active[:, i]
            if dimension.kind == "categorical":
                parts.append((column[:, None] == np.arange(len(dimension.levels))) & on[:, None])
            else:
                width = max(len(dimension.levels) - 1, 1)
                parts.append(np.where(on, column / width, 0.5)[:, None])
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)

    def concatenate(self, other: Encoded) -> Encoded:
        """These configurations followed by ``other``."""
        raw = None if self.raw is None or other.raw is None else np.vstack([self.raw, other.raw])
        return Encoded(
            np.vstack([self.values, other.values]), np.vstack([self.active, other.active]), self.encoder, raw
        )


class Encoder:
    """Encode the configurations of a space, and decode arrays back.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace
        Any space: floats, integers, ordinals, categoricals, constants, conditions, forbidden clauses. Constants
        carry no information and get no dimension.
    graphs : mapping of str to networkx.Graph, optional
        For ordinal or categorical parameters, the graph whose vertices are their levels. By default a path for
        ordinals and a complete graph for categoricals.

    Raises
    ------
    SpaceError
        If nothing in the space varies, or a graph does not fit its parameter.
    """

    def __init__(self, space: ConfigurationSpace, graphs: Mapping[str, nx.Graph] | None = None) -> None:
        if not isinstance(space, ConfigurationSpace):
            raise SpaceError(f"expected a ConfigSpace.ConfigurationSpace, got {type(space).__name__}")
        self.space = space
        self.dimensions = tuple(Dimension.from_hyperparameter(h) for h in space.values() if not isinstance(h, Constant))
        if not self.dimensions:
            raise SpaceError("the space is empty: it needs at least one parameter that is not a constant")
        self.graphs = {d.name: _graph(d, (graphs or {}).get(d.name)) for d in self.dimensions if not d.is_real}
        if unknown := set(graphs or {}) - set(self.graphs):
            raise SpaceError(f"graphs given for {sorted(unknown)}; only {list(self.graph_names)} have levels")
        self._order = _topological_order(space)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the D parameters that vary, in the order of the space's own keys."""
        return tuple(d.name for d in self.dimensions)

    @property
    def real_names(self) -> tuple[str, ...]:
        """Names of the float and integer parameters."""
        return tuple(d.name for d in self.dimensions if d.is_real)

    @property
    def graph_names(self) -> tuple[str, ...]:
        """Names of the ordinal and categorical parameters."""
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

    def configuration(self, values: Mapping[str, Any]) -> Configuration:
        """Validate one configuration given as a mapping.

        Raises
        ------
        SpaceError
            For unknown, missing or illegal values, values of inactive parameters, or a forbidden combination.
        """
        if isinstance(values, Configuration) and values.config_space is self.space:
            return values
        if not isinstance(values, Mapping):
            raise SpaceError(f"a configuration is a mapping of parameter names to values, got {values!r}")
        plain = {name: _plain(value) for name, value in values.items()}
        try:
            return Configuration(self.space, values=plain)
        except (ValueError, TypeError, KeyError) as error:
            reason = str(error) or type(error).__name__
            raise SpaceError(f"{plain} is not a configuration of this space: {reason}") from error

    def encode(self, configs: Encoded | pd.DataFrame | Iterable[Mapping[str, Any]] | NDArray[Any]) -> Encoded:
        """Arrays of the given configurations.

        Parameters
        ----------
        configs : iterable of Configuration or mapping, DataFrame, (n, D) array, or Encoded
            A DataFrame has a column for each parameter, empty where inactive; an array follows ``names``.

        Raises
        ------
        SpaceError
            If one of them is not a configuration of the space; the message names its position.
        """
        if isinstance(configs, Encoded):
            if configs.encoder.dimensions != self.dimensions:
                raise SpaceError("these configurations were encoded for another space")
            return configs
        rows: list[Mapping[str, Any]]
        if isinstance(configs, pd.DataFrame):
            rows = [{str(k): v for k, v in r.items() if not _missing(v)} for r in configs.to_dict(orient="records")]
        elif isinstance(configs, np.ndarray):
            if configs.ndim != 2 or configs.shape[1] != len(self.dimensions):
                raise SpaceError(
                    f"an array of configurations needs shape (n, {len(self.dimensions)}), one column each for "
                    f"{list(self.names)}; got {configs.shape}"
                )
            constants = {h.name: h.value for h in self.space.values() if isinstance(h, Constant)}
            rows = [dict(zip(self.names, row, strict=True)) | constants for row in configs]
        elif isinstance(configs, Mapping):
            raise SpaceError("expected a list of configurations, got a single one; put it into a list")
        else:
            rows = list(configs)
        n, d = len(rows), len(self.dimensions)
        values, raw, active = np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d), dtype=np.bool_)
        for i, row in enumerate(rows):
            try:
                config = self.configuration(row)
            except SpaceError as error:
                raise SpaceError(f"configuration {i}: {error}") from error
            for j, dimension in enumerate(self.dimensions):
                if dimension.name in config:
                    active[i, j] = True
                    values[i, j] = dimension.coordinate(config[dimension.name])
                    raw[i, j] = config[dimension.name] if dimension.is_real else 0.0
        return Encoded(values, active, self, raw)

    def decode(self, encoded: Encoded) -> list[Configuration]:
        """Configurations of the given arrays; the inverse of :meth:`encode`."""
        constants = {h.name: h.value for h in self.space.values() if isinstance(h, Constant)}
        on = self._active_keys(encoded.values, encoded.active) if constants else {}
        configs = []
        for i in range(len(encoded)):
            values = {
                d.name: encoded.raw[i, j] if encoded.raw is not None and d.kind == "float" else d.value(coordinate)
                for j, (d, coordinate) in enumerate(zip(self.dimensions, encoded.values[i], strict=True))
                if encoded.active[i, j]
            }
            values |= {name: value for name, value in constants.items() if on[name][i]}
            configs.append(self.configuration(values))
        return configs

    def resolve(self, genotype: FloatArray) -> tuple[Encoded, NDArray[np.bool_]]:
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
        everything = np.ones(values.shape, dtype=np.bool_)
        if not (self.space.conditions or self.space.forbidden_clauses):
            return Encoded(values, everything, self), everything[:, 0]
        vectors = self._vectors(values, everything)
        on = self._switch_off(vectors)
        active = np.column_stack([on[name] for name in self.names])
        allowed = np.ones(len(values), dtype=np.bool_)
        for clause in self.space.forbidden_clauses:
            allowed &= ~clause.is_forbidden_vector_array(vectors)
        return Encoded(np.where(active, values, 0.0), active, self), allowed

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
                raise SpaceError(
                    f"only {int(allowed.sum())} of {len(u)} points of the space are not forbidden; {n} are needed"
                )
            u = np.vstack([u, engine.random(len(u))])

    def _vectors(self, values: FloatArray, active: NDArray[np.bool_]) -> FloatArray:
        """ConfigSpace's own vectors, one column a configuration; NaN where inactive."""
        vectors = np.zeros((len(self.space), len(values)))
        for j, d in enumerate(self.dimensions):
            hyperparameter = self.space[d.name]
            row = np.array([hyperparameter.to_vector(d.value(c)) for c in values[:, j]], dtype=np.float64)
            vectors[self.space.index_of[d.name]] = np.where(active[:, j], row, np.nan)
        return vectors

    def _switch_off(self, vectors: FloatArray) -> dict[str, NDArray[np.bool_]]:
        """Apply the conditions in topological order, writing NaN into ``vectors``."""
        on = {}
        for name in self._order:
            active = np.ones(vectors.shape[1], dtype=np.bool_)
            for condition in self.space.parent_conditions_of[name]:
                active &= condition.satisfied_by_vector_array(vectors)
            vectors[self.space.index_of[name], ~active] = np.nan
            on[name] = active
        return on

    def _active_keys(self, values: FloatArray, active: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
        return self._switch_off(self._vectors(values, active))


def _topological_order(space: ConfigurationSpace) -> list[str]:
    graph = nx.DiGraph()
    graph.add_nodes_from(space.keys())
    graph.add_edges_from((parent.name, child) for child in space for parent in space.parents_of[child])
    return list(nx.topological_sort(graph))


def _graph(dimension: Dimension, graph: nx.Graph | None) -> nx.Graph:
    levels: Sequence[Hashable] = dimension.levels
    if graph is None:
        made = nx.path_graph(len(levels)) if dimension.kind == "ordinal" else nx.complete_graph(len(levels))
        return nx.relabel_nodes(made, dict(enumerate(levels)))
    if not isinstance(graph, nx.Graph) or graph.is_directed():
        raise SpaceError(f"the graph of {dimension.name!r} must be an undirected networkx.Graph, got {graph!r}")
    if set(graph.nodes) != set(levels):
        odd = sorted(map(str, set(graph.nodes) ^ set(levels)))
        raise SpaceError(f"the graph of {dimension.name!r} must have exactly its levels as nodes; {odd} differ")
    if not nx.is_connected(graph):
        raise SpaceError(f"the graph of {dimension.name!r} is not connected; add the missing edges")
    return graph


def _plain(value: Any) -> Any:
    """Python scalar of a NumPy scalar, so that ConfigSpace compares like with like."""
    return value.item() if isinstance(value, np.generic) else value


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))
