"""Graphs whose vertices are the levels of a parameter."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import networkx as nx
import numpy as np
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import Constant, FloatHyperparameter

from slayr_py.errors import SpaceError, did_you_mean
from slayr_py.space.dimension import Dimension, FloatArray

GraphLike = nx.Graph | str | Iterable[Sequence[Any]]
"""A networkx graph, "path" or "complete", or edges: two levels and an optional weight each."""

_NAMES = ("path", "complete")


def check_names(space: ConfigurationSpace, graphs: Mapping[str, object]) -> None:
    """Raise ``SpaceError`` if a graph is given for a parameter that is unknown or has no levels."""
    if not isinstance(graphs, Mapping):
        raise SpaceError(f"graphs is {graphs!r}; give a mapping of parameter names to graphs")
    for name in graphs:
        if name not in space:
            raise SpaceError(f"a graph is given for {name!r}, which is not a parameter{did_you_mean(name, space)}")
        if isinstance(space[name], FloatHyperparameter | Constant):
            kind = "constant" if isinstance(space[name], Constant) else "float"
            raise SpaceError(
                f"a graph is given for the {kind} {name!r}; give graphs for integers, ordinals and categoricals only"
            )


def vertices(dimension: Dimension) -> list[Hashable]:
    """Return the node names of a parameter's graph: its levels, as strings where networkx does not accept them."""
    return [str(level) if level is None or not isinstance(level, Hashable) else level for level in dimension.levels]


def from_edges(dimension: Dimension, edges: Iterable[tuple[int, int, float]]) -> nx.Graph:
    """Make a read-only graph over a parameter's levels, in order, from edges (level index, level index, weight)."""
    names = vertices(dimension)
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_weighted_edges_from((names[i], names[j], weight) for i, j, weight in edges)
    return nx.freeze(graph)


def to_edges(dimension: Dimension, graph: nx.Graph) -> list[tuple[int, int, float]]:
    """Return the sorted edges of a graph over a parameter's levels: two level indices, smaller first, and weight."""
    index = {name: i for i, name in enumerate(vertices(dimension))}
    edges = ((index[u], index[v], float(weight)) for u, v, weight in graph.edges(data="weight", default=1.0))
    return sorted((min(i, j), max(i, j), weight) for i, j, weight in edges)


def named_graph(dimension: Dimension, name: str) -> nx.Graph:
    """Make the "path" through a parameter's levels in order, or the "complete" graph over them."""
    indices = range(len(dimension.levels))
    pairs = pairwise(indices) if name == "path" else combinations(indices, 2)
    return from_edges(dimension, ((i, j, 1.0) for i, j in pairs))


def check_graph(dimension: Dimension, graph: object) -> nx.Graph | str:
    """Check the graph that a user requested; return its name, or a copy of its levels, edges and weights.

    Raises
    ------
    SpaceError
        Unless it is a known name, or an undirected, connected networkx graph whose nodes are the levels, without
        self-loops or parallel edges, with positive and finite weights (1 for an edge without one), or a list of the
        edges of such a graph.
    """
    what = f"the graph of {dimension.name!r}"
    if isinstance(graph, str):
        if graph not in _NAMES:
            raise SpaceError(f"{what} cannot be {graph!r}{did_you_mean(graph, _NAMES)}")
        return graph
    if not isinstance(graph, nx.Graph):
        graph = _graph_from_list(graph, what)
    _check_nodes_and_edges(dimension, graph, what)
    return from_edges(dimension, to_edges(dimension, graph))


def _check_nodes_and_edges(dimension: Dimension, graph: nx.Graph, what: str) -> None:
    if graph.is_directed() or graph.is_multigraph():
        raise SpaceError(f"{what} is a {type(graph).__name__}; use an undirected networkx.Graph with single edges")
    names = vertices(dimension)
    if missing := [name for name in names if name not in graph]:
        raise SpaceError(f"{what} must have exactly the levels as nodes; missing: {missing}")
    if extra := [node for node in graph if node not in set(names)]:
        raise SpaceError(f"{what} must have exactly the levels as nodes; {extra} are not among {names}")
    for u, v, weight in graph.edges(data="weight", default=1.0):
        if u == v:
            raise SpaceError(f"{what} joins {u!r} to itself; remove the self-loop")
        if not isinstance(weight, int | float | np.integer | np.floating) or not 0 < weight < math.inf:
            raise SpaceError(f"{what} has weight {weight!r} between {u!r} and {v!r}; use positive finite weights")
    if not nx.is_connected(graph):
        parts = [sorted(map(str, part)) for part in nx.connected_components(graph)]
        raise SpaceError(f"{what} is not connected, since no edge leaves {min(parts, key=len)}; add an edge")


def _graph_from_list(edges: object, what: str) -> nx.Graph:
    """Make a graph from a list of edges: two nodes each, and a weight if there is a third entry."""
    given = list(edges) if isinstance(edges, Iterable) and not isinstance(edges, str | bytes | Mapping) else []
    if not given or not all(map(_is_edge, given)):
        raise SpaceError(
            f"{what} is {edges!r:.200}; use 'path', 'complete', a networkx.Graph or a list of edges such as "
            "[('small', 'medium'), ('medium', 'large', 0.5)]"
        )
    graph = nx.Graph()
    for u, v, *weight in given:
        ends = ("None" if u is None else u, "None" if v is None else v)
        if graph.has_edge(*ends):
            raise SpaceError(f"{what} joins {u!r} and {v!r} twice; remove one of the edges")
        graph.add_edge(*ends, weight=weight[0] if weight else 1.0)
    return graph


def _is_edge(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) in (2, 3) and all(isinstance(v, Hashable) for v in value)


def adjacency(graph: nx.Graph) -> FloatArray:
    """Return the symmetric matrix of edge weights, (m, m); 0 where there is no edge."""
    return np.asarray(nx.to_numpy_array(graph, dtype=np.float64))
