from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from slayr_py import DataError, svm
from slayr_py.svm.eigenpairs import decompose

RNG = np.random.default_rng(7)
X = RNG.normal(size=(300, 4))
NEW = RNG.normal(size=(20, 4))
K = rbf_kernel(X, gamma=0.1)
CROSS = rbf_kernel(NEW, X, gamma=0.1)


def test_features_are_the_columns_of_q():
    values, vectors = np.linalg.eigh(K)
    factorization = svm.KernelFactorization(svm.RBF(0.1)).fit(X)
    r = len(factorization.eigenvalues_)
    q = np.sqrt(values[::-1][:r]) * vectors[:, ::-1][:, :r]
    features = svm.KernelFactorization(svm.RBF(0.1)).fit_transform(X)
    np.testing.assert_allclose(np.abs(features[:, :50]), np.abs(q[:, :50]), atol=1e-10)
    np.testing.assert_allclose(features.T @ features, np.diag(factorization.eigenvalues_), atol=1e-11 * values[-1])
    np.testing.assert_allclose(features, factorization.transform(X), atol=1e-7)
    table = svm.KernelFactorization(rank=2).set_output(transform="pandas").fit_transform(X)
    assert list(table.columns) == ["kernelfactorization0", "kernelfactorization1"]


def test_inner_products_of_new_points_are_the_nystroem_extension():
    factorization = svm.KernelFactorization(svm.RBF(0.1), rank=60).fit(X)
    features = factorization.transform(NEW)
    values = factorization.eigenvalues_
    vectors = factorization.eigenvectors_
    pseudo_inverse = (vectors / values) @ vectors.T
    np.testing.assert_allclose(features @ features.T, CROSS @ pseudo_inverse @ CROSS.T, atol=1e-10)
    # With a training point the extension is the kernel itself, up to the dropped eigenvalues.
    full = svm.KernelFactorization(svm.RBF(0.1))
    np.testing.assert_allclose(full.fit(X).transform(NEW) @ full.fit_transform(X).T, CROSS, atol=1e-6)


@pytest.mark.parametrize("rank", [10, np.int64(37), 38, 150, 300, 0.5, 0.99, 0.9999999])
def test_ranks_agree_with_lapack(rank):
    values = np.linalg.eigvalsh(K)[::-1]
    pairs = decompose(K, rank)
    r = int(rank) if rank >= 1 else 1 + int(np.flatnonzero(np.cumsum(values) >= rank * np.trace(K))[0])
    assert len(pairs.values) == min(r, len(decompose(K).values))
    np.testing.assert_allclose(pairs.values, values[: len(pairs.values)], atol=1e-12 * values[0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(len(pairs.values)), atol=1e-12)
    largest = np.abs(pairs.vectors).max(axis=0)
    first = np.argmax(np.abs(pairs.vectors) > 0.5 * largest, axis=0)
    assert (pairs.vectors[first, np.arange(len(first))] > 0).all()


@pytest.mark.parametrize("rank", [5, 12, 0.6])
def test_no_copy_of_a_repeated_eigenvalue_is_missing(rank):
    rng = np.random.default_rng(1)
    group = rng.permutation(np.repeat(np.arange(25), rng.integers(3, 9, 25)))
    sizes = np.sort(np.bincount(group))[::-1]
    r = rank if rank >= 1 else 1 + np.searchsorted(np.cumsum(sizes), rank * len(group))
    one_hot = np.eye(25)[group]
    np.testing.assert_allclose(decompose(one_hot @ one_hot.T, rank).values, sizes[:r], rtol=1e-12)


@pytest.mark.parametrize("rank", [None, 20, 0.9])
@pytest.mark.parametrize("gram", [K, X @ X.T], ids=["full rank", "rank 4"])
def test_eigenpairs_are_repeatable_bit_for_bit(gram, rank):
    first = decompose(gram, rank)
    second = decompose(gram.copy(), rank)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_zero_eigenvalues_are_dropped():
    for rank in (None, 10, 200, 0.999999):
        assert len(decompose(X @ X.T, rank).values) == 4
    twice = svm.KernelFactorization(svm.RBF(5.0)).fit(np.vstack([X, X]))
    assert len(twice.eigenvalues_) == 300


@pytest.mark.parametrize("rank", [None, 5, 0.9])
def test_rounding_is_clipped_and_indefinite_matrices_are_refused(rank):
    basis = np.linalg.qr(RNG.normal(size=(200, 200)))[0]
    values = np.r_[np.linspace(2, 1, 50), np.zeros(149), -1e-11]
    assert decompose((basis * values) @ basis.T, rank).values.min() > 0.9
    for worst in (-1e-6, -0.3, -7.0):
        values[-1] = worst
        indefinite = (basis * values) @ basis.T
        with pytest.raises(DataError, match=rf"indefinite: .* eigenvalue {worst:.6g}"):
            decompose((indefinite + indefinite.T) / 2, rank)


def test_tolerance_of_negative_eigenvalues():
    gram = np.diag([1.0, 1.0, -1e-4])
    assert svm.KernelFactorization("precomputed", tol=1e-3).fit_transform(gram).shape == (3, 2)
    for machine in (svm.KernelFactorization("precomputed"), svm.KernelSVC("precomputed", tol=0.1)):
        with pytest.raises(DataError, match=r"-0\.0001 .* larger tol of KernelFactorization, in a pipeline"):
            machine.fit(gram, [0, 1, 1])
    make_pipeline(svm.KernelFactorization("precomputed", tol=1e-3), SVC(kernel="linear")).fit(gram, [0, 1, 1])


def test_cross_validation_selects_rows_and_columns_of_a_gram_matrix():
    iris, species = load_iris(return_X_y=True)
    gram = rbf_kernel(iris, gamma=0.5)
    for kernel in ("precomputed", svm.Precomputed()):
        ours = cross_val_score(svm.KernelSVC(kernel), gram, species, cv=5)
        np.testing.assert_allclose(ours, cross_val_score(SVC(kernel="precomputed"), gram, species, cv=5))
        pipeline = make_pipeline(svm.KernelFactorization(kernel), SVC(kernel="linear"))
        np.testing.assert_allclose(ours, cross_val_score(pipeline, gram, species, cv=5))


def test_a_user_defined_kernel():
    class MinMax(svm.Linear):
        def between(self, a, b):
            return np.minimum(a[:, None], b[None]).sum(axis=2)

    counts = np.abs(X)
    features = svm.KernelFactorization(MinMax()).fit_transform(counts)
    np.testing.assert_allclose(features @ features.T, MinMax()(counts), atol=1e-10)


ASYMMETRIC = K[:5, :5] + np.triu(np.ones((5, 5)), 1)
WITH_NAN = np.where(np.eye(5)[::-1] * (np.arange(5) == 3), np.nan, K[:5, :5])


@pytest.mark.parametrize(
    ("kernel", "gram", "rank", "match"),
    [
        ("precomputed", K[:5], None, r"square.* \(5, 300\)"),
        ("precomputed", ASYMMETRIC, None, r"not symmetric: .* at \(0, \d\)"),
        ("precomputed", K + np.outer(np.arange(300) == 200, np.arange(300) == 290), None, r"1\.\d* at \(200, 290\)"),
        ("precomputed", WITH_NAN, None, r"kernel value at \(1, 3\) is nan"),
        ("precomputed", np.diag([1.0, -0.25]), None, "indefinite: .* -0.25"),
        ("precomputed", np.zeros((3, 3)), None, "all kernel values are 0"),
        ("linear", np.zeros((3, 2)), None, "all kernel values are 0"),
        ("sigmoid", X, None, "'sigmoid' is not a Mercer kernel"),
        (None, X, None, "unknown kernel None"),
        *[("rbf", X, rank, rf"1 to n = 300, .* got {rank!r}") for rank in (0, 301, -1, True, 0.0, 1.0, 2.5, "full")],
    ],
)
def test_invalid_input_of_fit_raises(kernel, gram, rank, match):
    with pytest.raises(DataError, match=match):
        svm.KernelFactorization(kernel, rank=rank).fit(gram)


@pytest.mark.parametrize(
    ("kernel", "train", "new", "error", "match"),
    [
        ("rbf", X, NEW[:, :3], ValueError, "X has 3 features, but KernelFactorization is expecting 4"),
        ("rbf", X, np.full((2, 4), np.nan), ValueError, "NaN"),
        ("precomputed", K[:9, :9], K[:2, :7], DataError, r"shape \(2, 7\); with 9 training points it must be \(2, 9\)"),
        ("precomputed", K[:9, :9], K[:2, :9] * np.inf, DataError, r"\(0, 0\) is inf"),
    ],
)
def test_invalid_input_of_transform_raises(kernel, train, new, error, match):
    with pytest.raises(error, match=match):
        svm.KernelFactorization(kernel).fit(train).transform(new)
