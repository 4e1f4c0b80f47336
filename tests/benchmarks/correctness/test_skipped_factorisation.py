"""Exact eigenvalues of graph kernels, and the errors of both ways to the features."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from mpmath import mp

from benchmarks.correctness.skipped_factorisation import errors, exact
from slayr_py import svm
from slayr_py.svm.eigenpairs import decompose


def test_skipping_the_factorisation_is_more_precise():
    graph = nx.path_graph(3)
    small = svm.Diffusion(graph, beta=1.0)
    with mp.workdps(30):
        values, gram = exact(graph, small)
        assert [float(value) for value in values] == pytest.approx(np.exp([0.0, -1.0, -3.0]), rel=1e-15)
        np.testing.assert_allclose(np.array(gram.tolist(), dtype=float), small(list(graph)), atol=1e-15)
        smooth = svm.Diffusion(graph, beta=8.0)
        values, gram = exact(graph, smooth)
        by_laplacian, _ = errors(smooth.eigenpairs(), values, gram)
        by_gram, _ = errors(decompose(smooth(list(graph))), values, gram)
    assert by_laplacian < 1e-12 < 1e-8 < by_gram
