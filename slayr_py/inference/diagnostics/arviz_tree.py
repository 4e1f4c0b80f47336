"""Data trees that the functions of the installed ArviZ accept.

ArviZ 1.x works on ``xarray.DataTree``; 0.23, the last version for Python 3.11, on its own ``InferenceData``. For 0.23
the tree is an :class:`InferenceTree`, a DataTree with the methods of an ``InferenceData`` that ArviZ calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import xarray as xr
from typing_extensions import override

from slayr_py.inference.diagnostics.arviz_bridge import arviz


def arviz_tree(groups: Mapping[str, xr.Dataset]) -> xr.DataTree:
    """Return a tree of groups with numbered chains and draws, of the kind that the installed ArviZ accepts.

    ArviZ is not imported. Call :func:`prepare` before you pass the tree to ArviZ.
    """
    return _kind().from_dict({name: _numbered(group) for name, group in groups.items()})


@cache
def _kind() -> type[xr.DataTree]:
    return InferenceTree if int(version("arviz").partition(".")[0]) < 1 else xr.DataTree


def groups_of(tree: xr.DataTree) -> dict[str, xr.Dataset]:
    """Return the groups of a tree by name."""
    return {name: group.to_dataset() for name, group in tree.children.items()}


def prepare(tree: xr.DataTree) -> xr.DataTree:
    """Let ArviZ before version 1 accept the tree as its ``InferenceData``, and return the tree."""
    if isinstance(tree, InferenceTree):
        arviz().InferenceData.register(InferenceTree)  # as for any abstract base class
    return tree


def to_arviz(tree: xr.DataTree) -> Any:
    """Return a copy of a tree; for ArviZ before version 1, as an ``InferenceData``."""
    return arviz().InferenceData(**groups_of(tree)) if isinstance(tree, InferenceTree) else tree.copy()


def _numbered(group: xr.Dataset) -> xr.Dataset:
    missing = [name for name in ("chain", "draw") if name in group.dims and name not in group.coords]
    return group.assign_coords({name: np.arange(group.sizes[name]) for name in missing})


class InferenceTree(xr.DataTree):  # type: ignore[no-untyped-call]
    """A DataTree that ArviZ before version 1 accepts as its ``InferenceData``.

    ArviZ expects that ``tree["posterior"]`` and ``tree.posterior`` are datasets, so both return a :class:`Group`. Nodes
    are in ``tree.children``, as in every DataTree.
    """

    __slots__ = ()

    @override
    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return Group.of(value) if isinstance(value, xr.DataTree) else value

    @override
    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return Group.of(value) if isinstance(value, xr.DataTree) else value

    @property
    @override
    def groups(self) -> GroupNames:
        """Paths of all nodes; if called, the names of the groups."""
        return GroupNames(super().groups)


class GroupNames(tuple[str, ...]):
    """``DataTree.groups``, which is a tuple of paths, and ``InferenceData.groups()``, which is a list of names."""

    __slots__ = ()

    def __call__(self) -> list[str]:
        """Return the names of the groups."""
        return [path.removeprefix("/") for path in self if path != "/"]


class Group(xr.Dataset):  # type: ignore[no-untyped-call]
    """The dataset of a node, with the methods by which a node returns its dataset.

    Assignment of a variable stores it in the node too.
    """

    __slots__ = ("_node",)

    _node: xr.DataTree

    @classmethod
    def of(cls, node: xr.DataTree) -> Group:
        """Return the dataset of a node."""
        group = cls(node.data_vars, node.coords, node.attrs)
        group._node = node
        return group

    @override
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        node = getattr(self, "_node", None)  # results of xarray's methods, such as copies, have none
        if node is not None:
            node[key] = self[key]

    def to_dataset(self, inherit: bool = True) -> xr.Dataset:
        """Return a plain dataset; the root has nothing to inherit."""
        return xr.Dataset(self.data_vars, self.coords, self.attrs)

    @property
    def dataset(self) -> xr.Dataset:
        """A plain dataset."""
        return self.to_dataset()

    @property
    def children(self) -> dict[str, xr.DataTree]:
        """No nodes: groups are leaves."""
        return {}
