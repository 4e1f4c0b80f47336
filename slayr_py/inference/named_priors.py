"""Priors of a vector of hyperparameters by the names of its entries or of the space's parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError, did_you_mean
from slayr_py.kernels import Hyperparameter, Prior, fixed_prior
from slayr_py.space import Layout

Priors = Mapping[str, Prior | ArrayLike | Mapping[str, Prior | float]]
"""Priors by hyperparameter. The prior of a vector may be a mapping from names of entries or parameters to priors. A
number fixes a hyperparameter or an entry."""

AnyPrior = TypeVar("AnyPrior")

_LEAF = re.compile(r"\d+:\w+\[(.*)\]", re.DOTALL)


def given_priors(priors: Mapping[str, AnyPrior] | None) -> dict[str, AnyPrior]:
    """Return the priors that a user gives as a dictionary; ``DataError`` unless they are a mapping or None."""
    if priors is not None and not isinstance(priors, Mapping):
        raise DataError(
            f"priors is {priors!r:.200}; give a mapping of hyperparameters, as in "
            'priors={"sigma_n": sl.LogNormal(-4, 0.5)}'
        )
    return dict(priors or {})


def vector_prior(h: Hyperparameter, given: Mapping[str, Prior | float], layout: Layout) -> Prior:
    """Return one prior with a number for each entry of a vector.

    Parameters
    ----------
    h : Hyperparameter
        Entries without a name in ``given`` keep its prior.
    given : mapping of str to Prior or float
        Priors by label of an entry, or by name of a parameter or column. A parameter or column names its entries in
        every leaf of an expression. A label takes precedence over a column, and a column over a categorical parameter.
    layout : Layout

    Raises
    ------
    DataError
        For a scalar, an unknown name, a prior whose parameters are not single numbers, or priors of several families.
    """
    if h.labels is None:
        raise DataError(
            f"the prior of the scalar {h.name!r} is the mapping {dict(given)!r}; give a single prior or number"
        )
    support = h.prior.support
    named = {name: prior if isinstance(prior, Prior) else fixed_prior(prior, support) for name, prior in given.items()}
    labels = h.labels
    places = _places(h.labels, layout)
    for name, prior in named.items():
        if name not in places:
            raise DataError(f"{h.name!r} has no entry {name!r} to put a prior on{did_you_mean(name, places)}")
        if any(np.ndim(value) for value in _numbers(prior).values()):
            raise DataError(
                f"the prior of {name!r} in {h.name!r} is {prior!r}; use a prior whose parameters are single numbers"
            )
    entries = [h.prior] * len(labels)
    for name, positions in places.items():
        for i in positions if name in named else ():
            entries[i] = named[name]
    return _join(h, entries) if named else h.prior


def _places(labels: Sequence[str], layout: Layout) -> dict[str, list[int]]:
    """Return positions in a vector by parameter, by column and by label, the most specific names last.

    The label of a leaf of an expression, such as "2:SE[act[relu]]", has the column in brackets.
    """
    leaves = [_LEAF.fullmatch(label) for label in labels]
    columns = [leaf[1] if leaf and leaf[1] in layout.column_names else None for leaf in leaves]
    columns = [label if label in layout.column_names else column for label, column in zip(labels, columns, strict=True)]
    by_parameter = {d.name: d.column_names for d in layout.dimensions}
    by_column = {name: [name] for name in layout.column_names}
    places: dict[str, list[int]] = {}
    for name, entries in (*by_parameter.items(), *by_column.items()):
        if positions := [i for i, column in enumerate(columns) if column in entries]:
            places[name] = positions
    return places | {label: [i] for i, label in enumerate(labels)}


def _join(h: Hyperparameter, entries: Sequence[Prior]) -> Prior:
    """Return one prior of a vector with the parameters of the prior of each entry."""
    families: dict[str, str] = {}
    for prior, label in zip(entries, h.labels or (), strict=True):
        families.setdefault(type(prior).__name__, label)
    if len(families) > 1:
        listed = ", ".join(f"{family} for {label!r}" for family, label in families.items())
        raise DataError(
            f"the priors of the entries of {h.name!r} are of several families, {listed}; use a single family"
        )
    rows = [
        {name: float(np.broadcast_to(np.asarray(value), (len(entries),))[i]) for name, value in _numbers(prior).items()}
        for i, prior in enumerate(entries)
    ]
    return replace(entries[0], **{name: [row[name] for row in rows] for name in rows[0]})


def _numbers(prior: Prior) -> dict[str, ArrayLike]:
    return {field.name: getattr(prior, field.name) for field in fields(prior)}
