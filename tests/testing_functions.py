"""Every Stan function and its NumPy twin, for `tests/stan/test_functions.py`.

Each row of the table has a Stan expression over declared arguments and its expected value. All rows form one program.
"""

from __future__ import annotations

import numpy as np
from ConfigSpace import ConfigurationSpace
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import gammaln
from scipy.stats import beta as beta_distribution, multivariate_normal, norm

from slayr_py.inference.expectation_propagation import propagate
from slayr_py.inference.sampling.programs import program_folder
from slayr_py.inference.warp import log_slope, unwarped, warped
from slayr_py.kernels import Matern
from slayr_py.space import Encoder

RNG = np.random.default_rng(20)
N = 6
M = 4
D = 3
ENCODER = Encoder(ConfigurationSpace({name: (0.0, 1.0) for name in "abc"}))
X = RNG.random((N, D))
X_NEW = RNG.random((M, D))
X[1] = X[0]  # coinciding points
X_NEW[0] = X[2]
TRAIN = ENCODER.encode(X)
NEW = ENCODER.encode(X_NEW)
LENGTHSCALE = RNG.lognormal(size=D)
SIGMA_F = 1.7
SIGMA_N = 0.3
MU = -0.4
THETA = {"lengthscale": LENGTHSCALE, "sigma_f": SIGMA_F}
Y = RNG.normal(size=N)
WARP = np.array(0.7)
K = Matern(2).gram(TRAIN, TRAIN, THETA) + SIGMA_N**2 * np.eye(N)
L = np.linalg.cholesky(K)
B = Matern(2).gram(TRAIN, NEW, THETA)
V = solve_triangular(L, B, lower=True)
K_NEW = Matern(2).gram(NEW, NEW, THETA)
INVERSE = np.linalg.inv(K)
SHAPES = RNG.lognormal(size=N)
PATH = np.diag([1.0, 2.0, 1.0]) - np.diag([1.0, 1.0], 1) - np.diag([1.0, 1.0], -1)
COMPLETE = 4 * np.eye(4) - 1
BASIS = [np.linalg.eigh(laplacian)[1] for laplacian in (PATH, COMPLETE)]
VERTICES = RNG.integers(3, size=(N, 2))
U = np.hstack([basis[VERTICES[:, p]] for p, basis in enumerate(BASIS)])
LOWER = np.tril_indices(N, -1)
COLUMN_MAJOR = np.lexsort((LOWER[0], LOWER[1]))
PAIRS = (LOWER[0][COLUMN_MAJOR], LOWER[1][COLUMN_MAJOR])
SQ = (X[PAIRS[0]] - X[PAIRS[1]]) ** 2


def leave_one_out():
    """Return means and standard deviations by the slow definition: delete each row and invert."""
    mean = np.empty(N)
    variance = np.empty(N)
    for i in range(N):
        rest = np.arange(N) != i
        weights = np.linalg.inv(K[np.ix_(rest, rest)]) @ K[rest, i]
        mean[i] = MU + weights @ (Y[rest] - MU)
        variance[i] = K[i, i] - weights @ K[rest, i]
    return mean, np.sqrt(variance)


OTHERS = leave_one_out()
OBSERVED = "(y, shapes, 0.2, 0)"
BINARY = "(signs(y), shapes, 0.2, 1)"
NOISE = SIGMA_N**2 + 0.2**2 + SHAPES**2
PROBIT = [values[0] for values in propagate(np.sign(Y), K[None], np.array([MU]))[:2]]


def probit_marginal():
    """Return the Laplace approximation of the log probability of the signs of Y, by Newton steps."""
    root = np.linalg.cholesky(K)
    signs = np.sign(Y)
    v = np.zeros(N)
    for _ in range(40):
        z = signs * (MU + root @ v)
        ratio = np.exp(norm.logpdf(z) - norm.logcdf(z))
        curvature = np.eye(N) + root.T @ np.diag(ratio * (ratio + z)) @ root
        v -= np.linalg.solve(curvature, v - root.T @ (signs * ratio))
    value = norm.logcdf(signs * (MU + root @ v)).sum() - 0.5 * v @ v
    return value - 0.5 * np.linalg.slogdet(curvature)[1]


VALUES = {
    "X": ("matrix", X),
    "Xn": ("matrix", X_NEW),
    "sq": ("matrix", SQ),
    "l": ("vector", LENGTHSCALE),
    "sf": ("real", SIGMA_F),
    "sn": ("real", SIGMA_N),
    "m": ("real", MU),
    "y": ("vector", Y),
    "L": ("matrix", L),
    "V": ("matrix", V),
    "K_new": ("matrix", K_NEW),
    "B": ("matrix", B),
    "one": ("real", 1.0),
    "packed": ("vector", K[PAIRS]),
    "diagonal": ("vector", np.diag(K)),
    "U": ("matrix", U),
    "shapes": ("vector", SHAPES),
    "h": ("vector", np.sum(SQ / LENGTHSCALE**2, axis=1)),
    "empty": ("matrix", np.zeros((5, 0))),
    "no_scales": ("vector", np.zeros(0)),
    "far": ("matrix", np.array([[1e10, 0.0, 0.0], [0.0, 0.0, 0.0]])),
}


def order(p, theta=THETA):
    return Matern(p).gram(TRAIN, TRAIN, theta)[PAIRS]


def graph_kernel(laplacian, p, f):
    """Return U f(Lambda) U' at pairs of observed vertices of graph p."""
    eigenvalues, u = np.linalg.eigh(laplacian)
    matrix = u @ np.diag(f(eigenvalues)) @ u.T
    return matrix[VERTICES[PAIRS[0], p], VERTICES[PAIRS[1], p]]


SPECTRA = "{1, 2, 3, 4, 5, 5, 5}"  # distinct eigenvalues of the seven eigenvectors of a path of 3 and a clique of 4
WEIGHTS = f"vertex_weights(U, U, {SPECTRA}, 5, lower_triangle(6))"

TABLE = [
    ("squared_differences(X, X, lower_triangle(6))", SQ),
    (
        "squared_differences(X, Xn, rectangle(6, 4))",
        ((X[:, None] - X_NEW[None]) ** 2).transpose(1, 0, 2).reshape(-1, D),
    ),
    ("squared_differences(X, X, self_pairs(6))", np.zeros((N, D))),
    ("squared_differences(X, X, self_pairs(0))", np.zeros((0, D))),
    ("matern(h, 2)", Matern(2).gram(TRAIN, TRAIN, {"lengthscale": LENGTHSCALE})[PAIRS]),
    ("base_kernel(h, SQUARED_EXPONENTIAL(), 0, rep_vector(0, 0))", np.exp(-0.5 * np.sum(SQ / LENGTHSCALE**2, axis=1))),
    (
        "base_kernel(h, RATIONAL_QUADRATIC(), 0, rep_vector(0.7, 1))",
        (1 + np.sum(SQ / LENGTHSCALE**2, axis=1) / 1.4) ** -0.7,
    ),
    (
        "base_kernel(h, MATERN(), 1, rep_vector(0, 0))",
        Matern(1).gram(TRAIN, TRAIN, {"lengthscale": LENGTHSCALE})[PAIRS],
    ),
    (f"{WEIGHTS} * ones_vector(5)", np.einsum("ij,ij->i", U[PAIRS[0]], U[PAIRS[1]])),
    (
        f"fm_pairs((X, X, U), (X, X, U), lower_triangle(6), LAPLACIAN(), {SPECTRA}, 5).2 * ones_vector(5)",
        np.einsum("ij,ij->i", U[PAIRS[0]], U[PAIRS[1]]),
    ),
    (f"mean_vertex_weights({{1, 1, 1, 2, 2}}, {SPECTRA})", np.array([[1 / 3, 1 / 3, 1 / 3, 1 / 4, 3 / 4]])),
    (
        f"graph_correlation({WEIGHTS}[ : , 1 : 3], [0, 1, 3]', rep_vector(0.5, 15), sf, rep_vector(1, 1), LAPLACIAN())",
        graph_kernel(PATH, 0, lambda x: 1 / (1.5 + SIGMA_F * x)),
    ),
    (
        f"graph_correlation({WEIGHTS}[ : , 4 : 5], [0, 4]', rep_vector(0.5, 15), sf, [0.2, 0.5, 0.3]', POWER())",
        graph_kernel(
            COMPLETE,
            1,
            lambda x: sum(w * (1.5 + SIGMA_F * x) ** -n for n, w in zip((1, 2, 3), (0.2, 0.5, 0.3), strict=True)),
        ),
    ),
    (
        f"graph_correlation({WEIGHTS}[ : , 4 : 5], [0, 4]', rep_vector(0.5, 15), sf, rep_vector(1, 1), DIFFUSION())",
        graph_kernel(COMPLETE, 1, lambda x: np.exp(-1.5 * SIGMA_F * x)),
    ),
    (
        "logit_beta_lpdf(y | shapes, shapes + 1)",
        beta_distribution(SHAPES, SHAPES + 1).logpdf(1 / (1 + np.exp(-Y))).sum()
        + np.sum(-Y - 2 * np.log1p(np.exp(-Y))),
    ),
    ("log_gamma_lpdf(y | shapes)", np.sum(SHAPES * Y - np.exp(Y) - gammaln(SHAPES))),
    ("gp_factor(packed, diagonal + square(sn))", np.linalg.cholesky(K + SIGMA_N**2 * np.eye(N))),
    (f"noise_variance({OBSERVED}, sn)", NOISE),
    (f"gp_targets({OBSERVED}, rep_vector(0.7, 1), sn, m, packed, diagonal).1", warped(Y, WARP)),
    (f"gp_targets({BINARY}, rep_vector(0, 0), sn, m, packed, diagonal).1", PROBIT[0]),
    (f"gp_targets({BINARY}, rep_vector(0, 0), sn, m, packed, diagonal).2", PROBIT[1]),
    (f"gp_log_marginal({BINARY}, rep_vector(0, 0), m, packed, diagonal, sn)", probit_marginal()),
    ("probit_leave_one_out((y, rep_vector(2, 6)), shapes / 10).2", np.sqrt(5 - SHAPES / 10)),
    ("probit_log_lik(signs(y), (y, shapes))", norm.logcdf(np.abs(Y) / SHAPES)),
    ("signs(y)", np.sign(Y)),
    ("score_of(0.3, y, abs(y))", (np.log(0.3) - Y) / np.abs(Y)),
    ("score_of(0.3, y, 0 * y)", np.zeros(N)),
    (
        "score_lpdf(m | 0.3, 2, [1, 2, 3])",
        norm.logpdf(MU) + 2 * (0.3 + 2 * MU) - 3 * np.exp(0.3 + 2 * MU) + 0.5 * MU**2,
    ),
    ("score_lpdf(y | y, shapes, rep_matrix(0, 6, 3))", norm.logpdf(Y).sum()),
    (
        "gp_log_marginal((y, rep_vector(0, 6), 0, 0), rep_vector(0, 0), m, packed, diagonal, sn)",
        multivariate_normal(np.full(N, MU), K + SIGMA_N**2 * np.eye(N)).logpdf(Y),
    ),
    (
        "gp_log_marginal((y, rep_vector(0, 6), 0, 0), rep_vector(0.7, 1), m, packed, diagonal, sn)",
        multivariate_normal(np.full(N, MU), K + SIGMA_N**2 * np.eye(N)).logpdf(warped(Y, WARP))
        + log_slope(Y, WARP).sum(),
    ),
    ("warped(y, rep_vector(0.7, 1))", warped(Y, WARP)),
    ("warped(y, rep_vector(0, 0))", Y),
    ("warped(y, [0.7, -0.2]')", warped(Y, WARP, -0.2)),
    ("unwarped(y, [0.7, -0.2]')", unwarped(Y, WARP, -0.2)),
    ("log_warp_slope(y, [0.7, -0.2]')", log_slope(Y, WARP, -0.2)),
    (
        "gp_log_marginal((y, rep_vector(0, 6), 0, 0), [0.7, -0.2]', m, packed, diagonal, sn)",
        multivariate_normal(np.full(N, MU), K + SIGMA_N**2 * np.eye(N)).logpdf(warped(Y, WARP, -0.2))
        + log_slope(Y, WARP, -0.2).sum(),
    ),
    ("unwarped(y, rep_vector(0.7, 1))", unwarped(Y, WARP)),
    ("unwarped(y, rep_vector(0, 0))", Y),
    ("log_warp_slope(y, rep_vector(0.7, 1))", log_slope(Y, WARP)),
    ("log_warp_slope(y, rep_vector(0, 0))", np.zeros(N)),
    ("gp_solve(L, to_vector(B), 4, 0)", V),
    ("gp_solve(L, to_vector(B), 4, 1)", np.zeros((N, M))),
    ("symmetric_matrix(packed, diagonal)", K),
    *[(f"matern_cov(sq, sf, l, {p})", order(p)) for p in (0, 1, 2, 3, 4, 9, 30)],
    ("matern_cov(sq, one, l, 2)", order(2, {"lengthscale": LENGTHSCALE})),
    ("to_matrix(matern_cov(squared_differences(X, Xn, rectangle(6, 4)), sf, l, 2), 6, 4)", B),
    ("matern_cov(empty, sf, no_scales, 2)", np.full(5, SIGMA_F**2)),
    ("matern_cov(far, sf, l, 3)", np.array([0.0, SIGMA_F**2])),
    ("gp_mean(V, L, y - m, m)", MU + B.T @ INVERSE @ (Y - MU)),
    ("gp_sd(V, rep_vector(square(sf), 4))", np.sqrt(np.diag(K_NEW - B.T @ INVERSE @ B))),
    ("gp_sd(V, rep_vector(0, 4))", np.zeros(4)),
    ("gp_cov(V, K_new)", K_NEW - B.T @ cho_solve((L, True), B)),
    ("gp_leave_one_out(gp_precision(L), y, m).1", OTHERS[0]),
    ("gp_leave_one_out(gp_precision(L), y, m).2", OTHERS[1]),
    ("gp_log_lik(y, gp_leave_one_out(gp_precision(L), y, m))", norm(*OTHERS).logpdf(Y)),
    ("log_normal(one, m, sf)", np.exp(MU + SIGMA_F)),
    ("log_normal(y, 2 * y, y .* y)", np.exp(2 * Y + Y**3)),
]


def stan_type(kind, shape):
    return {"real": "real", "vector": f"vector[{shape[0] if shape else 0}]"}.get(
        kind
    ) or f"matrix[{shape[0]}, {shape[1]}]"


def table_program() -> str:
    """Return the Stan program that computes every row."""
    includes = "".join(f"#include functions/{f.name}\n" for f in sorted((program_folder() / "functions").iterdir()))
    declared = "".join(f"{stan_type(kind, np.shape(value))} {name};\n" for name, (kind, value) in VALUES.items())
    rows = ""
    for i, (expression, wanted) in enumerate(TABLE):
        kind = ("real", "vector", "matrix")[np.ndim(wanted)]
        rows += f"{stan_type(kind, np.shape(wanted))} row_{i} = {expression};\n"
    return (
        f"functions {{\n{includes}}}\ndata {{\n{declared}}}\nparameters {{ real unused; }}\n"
        f"generated quantities {{\n{rows}}}\n"
    )
