"""Convert spaces and encoders to plain JSON and back, for studies, run records and files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
from ConfigSpace import ConfigurationSpace
from ConfigSpace.exceptions import CyclicDependancyError

from slayr_py.errors import SpaceError
from slayr_py.space.dictionaries import as_space
from slayr_py.space.dimension import Dimension
from slayr_py.space.encoder import Encoder
from slayr_py.space.graphs import check_names, from_edges, to_edges
from slayr_py.space.within import Within, recorded

WITHIN = "within"
"""Entry of an encoder in JSON for constraints on inputs: texts, and ``{"function": name}`` for functions."""

LOGARITHMIC = "logarithmic"
"""Entry of an encoder in JSON for the numbers whose logarithmic scale the space does not declare."""

GRID = "slayr:grid"
"""Key of the `meta` field of an integer that numbers the values of a grid; it holds Optuna's distribution in JSON."""


def jsonable(value: object) -> Any:
    """Convert nested mappings, sequences and numbers to plain JSON; a number that is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str) else str(value)


def space_to_json(space: ConfigurationSpace | Mapping[str, Any]) -> dict[str, Any]:
    """Serialise a space in ConfigSpace's format; the `meta` fields may hold any object, so only `GRID` is kept."""
    serialised = as_space(space).to_serialized_dict()
    for parameter in serialised["hyperparameters"]:
        grid = (parameter["meta"] or {}).get(GRID)
        parameter["meta"] = None if grid is None else {GRID: str(grid)}
    plain = jsonable(serialised)
    assert isinstance(plain, dict)
    return plain


def space_from_json(serialised: Mapping[str, Any]) -> ConfigurationSpace:
    """Make a space from the result of `space_to_json`, or from ConfigSpace's own JSON format.

    Raises
    ------
    SpaceError
        If ConfigSpace cannot read it.
    """
    try:
        return ConfigurationSpace.from_serialized_dict(_copy(serialised))
    except CyclicDependancyError as error:
        raise SpaceError(f"the conditions of this space form a cycle: {_cycle(serialised)}") from error
    except Exception as error:  # ConfigSpace raises KeyError, TypeError, ValueError or its own errors
        raise SpaceError(f"this is not a ConfigSpace space in JSON: {type(error).__name__}: {error}") from error


def encoder_to_json(encoder: Encoder) -> dict[str, Any]:
    """Serialise an encoder: its space, and the requested graphs by name or as edges [level, level, weight].

    Levels in edges are given by their index. Constraints on inputs, of functions the names, and logarithmic scales that
    the space does not declare, see `Encoder.rescaled`, are added if there are any.
    """
    dimensions = {d.name: d for d in encoder.dimensions}
    graphs = {
        name: graph if isinstance(graph, str) else [list(edge) for edge in to_edges(dimensions[name], graph)]
        for name, graph in encoder.requested_graphs.items()
    }
    further = {WITHIN: encoder.within, LOGARITHMIC: list(encoder.logarithmic)}
    return {"space": space_to_json(encoder.space), "graphs": graphs, **{k: v for k, v in further.items() if v}}


def encoder_from_json(values: Mapping[str, Any], within: Within | None = None) -> Encoder:
    """Make an encoder from the result of `encoder_to_json`.

    Parameters
    ----------
    values : mapping
    within : sequence, optional
        Constraints on inputs in place of those of ``values``, among which functions have stand-ins that allow
        everything.

    Raises
    ------
    SpaceError
        If the values are not such a result.
    """
    try:
        space = space_from_json(values["space"])
        check_names(space, values["graphs"])
        graphs = dict(values["graphs"])
        for name, graph in graphs.items():
            if not isinstance(graph, str):
                graphs[name] = from_edges(Dimension.from_hyperparameter(space[name], on_graph=True), graph)
        logarithmic = [str(name) for name in values.get(LOGARITHMIC, ())]
        within = recorded(values.get(WITHIN, ())) if within is None else within
    except SpaceError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SpaceError(f"this is not an encoder in JSON: {type(error).__name__}: {error}") from error
    return Encoder(space, graphs, within).rescaled(logarithmic)


def _copy(node: Any, key: str = "") -> Any:
    """Copy, since ConfigSpace modifies its input; turn levels that JSON changed into lists back into tuples."""
    if isinstance(node, Mapping):
        return {name: _copy(item, name) for name, item in node.items()}
    if isinstance(node, list | tuple):
        if key in ("value", "default_value"):
            return tuple(_copy(item, key) for item in node)
        return [_copy(item, "value" if key in ("choices", "sequence", "values") else "") for item in node]
    return node


def _cycle(serialised: Mapping[str, Any]) -> str:
    def edges(condition: Mapping[str, Any]) -> list[tuple[str, str]]:
        if "conditions" in condition:
            return [edge for part in condition["conditions"] for edge in edges(part)]
        return [(condition["parent"], condition["child"])]

    graph = nx.DiGraph([edge for condition in serialised["conditions"] for edge in edges(condition)])
    names = [parent for parent, _ in nx.find_cycle(graph)]
    return " -> ".join([*names, names[0]])
