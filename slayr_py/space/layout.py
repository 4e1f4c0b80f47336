"""The layout of a space's arrays: dimensions, columns, ancestors, graphs and their spectra."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import networkx as nx
import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant
from numpy.typing import NDArray

from slayr_py.errors import SpaceError
from slayr_py.space.dimension import Dimension
from slayr_py.space.graphs import GraphLike, adjacency, check_graph, check_names, named_graph
from slayr_py.space.rules import Rules, clause_text
from slayr_py.space.spectrum import Spectrum, with_inactive
from slayr_py.space.unreachable import never_active


class Layout:
    """Names, columns, graphs and spectra of a space's arrays; kernels read them from ``Encoded.encoder``.

    Parameters and errors are described in :class:`~slayr_py.space.encoder.Encoder`.

    Attributes
    ----------
    dimensions : tuple of Dimension
        The D parameters that vary.
    requested_graphs : dict of str to networkx.Graph or str
        Copies of the graphs in ``graphs``.
    """

    def __init__(self, space: ConfigurationSpace, graphs: Mapping[str, GraphLike] | None = None) -> None:
        if not isinstance(space, ConfigurationSpace):
            raise SpaceError(
                f"the space is a {type(space).__name__}; give a ConfigSpace.ConfigurationSpace or a dictionary"
            )
        requested = {} if graphs is None else graphs
        check_names(space, requested)
        self.space = space
        self.dimensions = tuple(
            Dimension.from_hyperparameter(h, on_graph=name in requested)
            for name, h in space.items()
            if not isinstance(h, Constant)
        )
        if not self.dimensions:
            raise SpaceError("the space is empty; add at least one parameter that is not a constant")
        self._rules = Rules(space)
        if dead := never_active(self._rules):
            raise SpaceError(
                f"parameter {dead[0]!r} is never active: {self._rules.condition(dead[0])} cannot hold; remove it, or "
                "change its condition"
            )
        self.requested_graphs = {
            d.name: check_graph(d, requested[d.name]) for d in self.dimensions if d.name in requested
        }

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
        return tuple(name for d in self.dimensions for name in d.column_names)

    @cached_property
    def columns_of(self) -> dict[str, range]:
        """Columns of ``Encoded.columns`` of every parameter. Names of columns need not be distinct."""
        ends = np.cumsum([len(d.column_names) for d in self.dimensions]).tolist()
        return {d.name: range(end - len(d.column_names), end) for d, end in zip(self.dimensions, ends, strict=True)}

    @cached_property
    def is_level(self) -> NDArray[np.bool_]:
        """Which columns of ``Encoded.columns`` are levels of a categorical parameter, (C,)."""
        is_level = np.array([d.kind == "categorical" for d in self.dimensions], dtype=np.bool_)
        return np.repeat(is_level, [len(d.column_names) for d in self.dimensions])

    @cached_property
    def column_of(self) -> dict[str, int]:
        """Column of ``Encoded.columns`` for every real parameter."""
        return {name: self.columns_of[name].start for name in self.real_names}

    @property
    def is_conditional(self) -> bool:
        """Whether some parameter is active only under a condition."""
        return bool(self.space.conditions)

    @cached_property
    def conditional(self) -> tuple[str, ...]:
        """Names of the parameters that have a condition and may be inactive."""
        return tuple(name for name in self.names if self.space.parent_conditions_of[name])

    @cached_property
    def _conditions(self) -> dict[str, frozenset[object]]:
        return {name: self._rules.meaning(name) for name in self.names}

    @cached_property
    def ancestors(self) -> dict[str, tuple[str, ...]]:
        """Names of the parents, their parents and so on for every name, in the order of ``names``.

        The ancestors of a constant are listed, the constant is not.
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
    def ranked(self) -> Layout:
        """The layout of `Encoded.ranked`: ordinals are integers, ranks from 0, unless the user gives their graph."""
        dimensions = tuple(d if d.name in self.requested_graphs else d.ranked() for d in self.dimensions)
        if dimensions == self.dimensions:
            return self
        other = Layout(self.space, self.requested_graphs)
        other.dimensions = dimensions
        return other

    @cached_property
    def spectra(self) -> dict[str, Spectrum]:
        """Laplacian spectrum for every parameter in ``graph_names``; rows of the basis follow ``Encoded.vertices``.

        The graph of a parameter that may be inactive has a last vertex for inactivity, joined to all others.
        """
        spectra = {}
        for name, graph in self.graphs.items():
            weights = adjacency(graph)
            spectra[name] = Spectrum.of(with_inactive(weights) if name in self.conditional else weights)
        return spectra

    def matches(self, other: Layout) -> bool:
        """Return whether the other layout has equal dimensions, conditions and graphs, so that arrays mean the same.

        Forbidden clauses and constraints on inputs may differ: covariances and predictions do not depend on them.
        """
        if other is self:
            return True
        if other.dimensions != self.dimensions or other._conditions != self._conditions:
            return False
        requested = self.requested_graphs.keys() | other.requested_graphs.keys()
        return all(np.array_equal(adjacency(self.graphs[name]), adjacency(other.graphs[name])) for name in requested)

    def forbids_as(self, other: Layout) -> bool:
        """Return whether the other layout has the same forbidden clauses, so that suggestions have the same choice."""
        mine, others = (sorted(map(clause_text, each.space.forbidden_clauses)) for each in (self, other))
        return mine == others
