"""Convert numbers of dimensions to ConfigSpace's vectors, and numbers and vectors to configurations."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from ConfigSpace import Configuration, ConfigurationSpace
from ConfigSpace.hyperparameters import Constant

from slayr_py.space.dimension import Dimension, FloatArray
from slayr_py.space.rules import BoolArray


class Vectors:
    """Convert numbers (n, D), level indices and real values, to vectors (len(space), n).

    Attributes
    ----------
    rows : list of int
        Rows of the D dimensions in a vector.
    varies : (len(space),) bool
        Which parameters have a dimension.
    constants : dict of str to object
        Values of the parameters without a dimension.
    """

    def __init__(self, space: ConfigurationSpace, dimensions: tuple[Dimension, ...]) -> None:
        self.space = space
        self.dimensions = dimensions
        self.rows = [space.index_of[d.name] for d in dimensions]
        self.varies = np.isin(np.arange(len(space)), self.rows)
        self.constants: dict[str, object] = {name: h.value for name, h in space.items() if isinstance(h, Constant)}
        self._tables = {d.name: np.array([space[d.name].to_vector(v) for v in d.levels]) for d in dimensions}

    def of(self, numbers: FloatArray, names: Collection[str]) -> FloatArray:
        """Return vectors with values for the named dimensions and all constants, as if they were active."""
        vectors = np.ones((len(self.space), len(numbers)))  # 1 is the vector value of a constant
        for row, d, column in zip(self.rows, self.dimensions, np.ascontiguousarray(numbers.T), strict=True):
            if d.name in names:
                levels = self._tables[d.name]
                vectors[row] = self.space[d.name].to_vector(column) if d.is_real else levels[column.astype(np.intp)]
        return vectors

    def configurations(self, numbers: FloatArray, vectors: FloatArray, active: BoolArray) -> list[Configuration]:
        """Return configurations with exactly these vectors and values, without validation."""
        columns = {d.name: d.values(numbers[:, j]) for j, d in enumerate(self.dimensions)}
        columns |= {name: [value] * len(numbers) for name, value in self.constants.items()}
        on = {name: active[self.space.index_of[name]].tolist() for name in columns}
        configs = []
        for i, vector in enumerate(np.where(active, vectors, np.nan).T):
            config = Configuration(self.space, vector=vector.copy())
            # Values that ConfigSpace computes from the vector differ in their last digits.
            config._values = {name: column[i] for name, column in columns.items() if on[name][i]}
            configs.append(config)
        return configs
