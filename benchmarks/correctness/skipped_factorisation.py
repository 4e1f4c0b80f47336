"""Compare both ways to the features of a graph kernel with 50 digits: eigenpairs of L, or a factorised Gram matrix.

    python -m benchmarks.correctness.skipped_factorisation

A graph kernel K = U f(lambda) U' has the eigenvectors U of the Laplacian L. `eigenpairs` of the kernel takes them from
L. The other way computes K in double precision and decomposes it, as for kernels that are known by their values only.
mpmath decomposes L with 50 digits, which gives the exact eigenvalues of K. The table has the largest relative error of
an eigenvalue among those that a way keeps, their number, and the largest error of an inner product of features,
relative to the largest value of K. Requires mpmath (pip install mpmath); seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

from benchmarks.common.command_line import begin, command_parser
from benchmarks.common.results import markdown
from slayr_py import svm
from slayr_py.svm.eigenpairs import Eigenpairs, decompose

DIGITS = 50
GRAPHS = {"path of 24 nodes": nx.path_graph(24), "karate club": nx.karate_club_graph()}
KERNELS = {
    "diffusion, beta = 1": (svm.Diffusion, 1.0),
    "diffusion, beta = 5": (svm.Diffusion, 5.0),
    "regularised Laplacian, beta = 1": (svm.RegularizedLaplacian, 1.0),
    "regularised Laplacian, beta = 1000": (svm.RegularizedLaplacian, 1000.0),
}


def exact(graph: nx.Graph, kernel: Any) -> tuple[list[Any], Any]:
    """Return the eigenvalues of K, descending, and K, as numbers of mpmath."""
    from mpmath import exp, mp

    weights = nx.to_numpy_array(graph, weight="weight")
    laplacian = mp.matrix((np.diag(weights.sum(axis=0)) - weights).tolist())
    values, vectors = mp.eigsy(laplacian)
    diffuses = isinstance(kernel, svm.Diffusion)
    response = [exp(-kernel.beta * v) if diffuses else 1 / (1 + kernel.beta * v) for v in values]
    return sorted(response, reverse=True), vectors * mp.diag(response) * vectors.T


def errors(pairs: Eigenpairs, values: Sequence[Any], gram: Any) -> tuple[float, float]:
    """Return the largest relative error of an eigenvalue, and of an inner product relative to the largest value."""
    from mpmath import mpf

    of_values = max(abs(mpf(float(own)) / true - 1) for own, true in zip(pairs.values, values, strict=False))
    features = pairs.vectors * np.sqrt(pairs.values)
    inner = features @ features.T
    n = len(inner)
    largest = max(abs(gram[i, j]) for i in range(n) for j in range(n))
    of_inner = max(abs(mpf(float(inner[i, j])) - gram[i, j]) for i in range(n) for j in range(n))
    return float(of_values), float(of_inner / largest)


def table() -> str:
    """Return one row for each graph and kernel, in Markdown."""
    from mpmath import mp

    lines = []
    with mp.workdps(DIGITS):
        for graph_name, graph in GRAPHS.items():
            for name, (kind, beta) in KERNELS.items():
                kernel = kind(graph, beta=beta)
                values, gram = exact(graph, kernel)
                skipped = kernel.eigenpairs()
                factorised = decompose(kernel(list(graph)))
                cells = []
                for pairs in (skipped, factorised):
                    of_values, of_inner = errors(pairs, values, gram)
                    cells += [f"{of_values:.1e} ({len(pairs.values)})", f"{of_inner:.1e}"]
                lines.append([graph_name, name, *cells])
    heads = ["graph", "kernel"]
    for way in ("skipped", "factorised"):
        heads += [f"{way}: eigenvalue (number)", f"{way}: inner product"]
    return markdown(heads, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    begin(command_parser(__file__, __doc__), arguments)
    print(table())


if __name__ == "__main__":
    main()
