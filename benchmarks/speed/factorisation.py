"""Compare time and accuracy of ``svm.KernelFactorization`` with ``eigh`` and scikit-learn's ``Nystroem``.

    python -m benchmarks.speed.factorisation --repeats 3

``fit`` and ``transform`` are timed with a radial kernel on n standard normal points in ten dimensions. Its eigenvalues
decay slowly, so that at full rank all of them matter. ``Nystroem`` has the same rank; ``numpy.linalg.eigh`` keeps the
same number of eigenpairs. All take turns on one thread. The training points are transformed as if they were new.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.common.command_line import begin, command_parser
from slayr_py import svm

GAMMA = 0.1


def ours(X: np.ndarray, rank: int | None) -> np.ndarray:
    return svm.KernelFactorization(svm.RBF(GAMMA), rank=rank).fit(X).transform(X)


def nystroem(X: np.ndarray, rank: int | None) -> np.ndarray:
    return Nystroem(gamma=GAMMA, n_components=rank or len(X), random_state=0).fit(X).transform(X)


def plain(X: np.ndarray, rank: int | None) -> np.ndarray:
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=GAMMA))
    keep = slice(-(rank or len(X)), None)
    return rbf_kernel(X, X, gamma=GAMMA) @ vectors[:, keep] / np.sqrt(values[keep])


METHODS: dict[str, Callable[[np.ndarray, int | None], np.ndarray]] = {
    "slayr": ours,
    "eigh": plain,
    "Nystroem": nystroem,
}


def errors_of(X: np.ndarray, features: np.ndarray) -> tuple[float, float]:
    """Return the largest error of an inner product (the kernel's maximum is 1) and the relative Frobenius error."""
    gram = rbf_kernel(X, gamma=GAMMA)
    difference = features @ features.T - gram
    return float(np.abs(difference).max()), float(np.linalg.norm(difference) / np.linalg.norm(gram))


def measure(n: int, rank: int | None, repeats: int) -> list[dict[str, object]]:
    """Return one row per method: seconds, ratio to slayr_py in the same repeat, errors."""
    X = np.random.default_rng(n).normal(size=(n, 10))
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    errors = {}
    for repeat in range(repeats):
        for name, method in METHODS.items():
            start = time.perf_counter()
            features = method(X, rank)
            seconds[name].append(time.perf_counter() - start)
            if repeat == 0:
                errors[name] = errors_of(X, features)
    rows = []
    for name in METHODS:
        ratio = np.array(seconds[name]) / np.array(seconds["slayr"])
        spread = f"{np.median(ratio):.2g} ({ratio.min():.2g} to {ratio.max():.2g})"
        row = {"n": n, "rank": rank or "full", "method": name, "seconds": f"{np.median(seconds[name]):.3g}"}
        largest, relative = errors[name]
        rows.append(row | {"ratio": spread, "largest error": f"{largest:.1e}", "relative error": f"{relative:.1e}"})
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = command_parser(__file__, __doc__)
    parser.add_argument("--repeats", type=int, default=3, help="measurements per method")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 5000], help="values of n")
    parser.add_argument("--rank", type=int, default=100, help="rank of the truncated features")
    options = begin(parser, arguments)
    with threadpool_limits(1):
        for n in options.sizes:
            for rank in (None, options.rank):
                print(pd.DataFrame(measure(n, rank, options.repeats)).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
