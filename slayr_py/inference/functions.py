r"""Functions drawn from a posterior that can be evaluated anywhere.

A joint draw at many thousands of configurations would need a factor of their covariance. Conditional simulation
factorises the covariance of M anchors Z only. The function is drawn jointly at the anchors and equals its conditional
mean elsewhere
(Le Gratiet, Cannamela & Iooss 2014, SIAM/ASA J. Uncertainty Quantification 2, section 3; Chiles & Delfiner 2012,
section 7.3.1). With the symbols of `slayr_py.inference.prediction`, and standard normal z,

    V_Z = L \ k(X, Z),   L_Z L_Z' = k(Z, Z) - V_Z' V_Z + nugget,   c = L_Z' \ z,
    f(x) = mu + k(x, X) (alpha - L' \ V_Z c) + k(x, Z) c.

Between the anchors f varies less than a draw from the posterior. :attr:`DrawnFunctions.lost` is the missing share of
the variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slayr_py.inference.modes.triangular import solve_lower, solve_upper
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.prediction.blocks import BLOCK
from slayr_py.inference.prediction.cholesky import cholesky
from slayr_py.inference.prediction.kernel_predictor import CACHED, KernelPredictor
from slayr_py.inference.warp import unwarped, warped
from slayr_py.kernels import Draws, Kernel
from slayr_py.space import Encoded, FloatArray

NUGGET = 1e-6
"""Variance added at the anchors, relative to the prior variance. Without it, nearly equal anchors of a smooth function
have weights so large that their sums lose all digits."""

_EXACT = 1e-9  # the same at an exact value, which a fit with noise explains up to a small variance


class Exact(NamedTuple):
    """A value without noise at one configuration, in the user's units."""

    point: Encoded
    value: float


@dataclass(frozen=True)
class Expansion:
    """Functions ``mu + k(x, centres) @ weights`` with one kernel, on the scale of the transformed targets.

    Attributes
    ----------
    kernel : Kernel
    centres : Encoded
        N configurations.
    draws : mapping of str to (s, ...) float64
        Hyperparameters, ``mu`` and ``warp`` among them.
    weights : (s, N, j) float64
        Weights of j functions for each draw.
    pivot : float, optional
        Pivot of the warp, if it has one.
    """

    kernel: Kernel
    centres: Encoded
    draws: Draws
    weights: FloatArray
    pivot: float | None = None

    def __len__(self) -> int:
        return int(self.weights.shape[0] * self.weights.shape[2])

    def __call__(self, new: Encoded) -> FloatArray:
        """Return the values at m configurations, (s * j, m)."""
        cross = self.kernel.cross(new, self.centres, self.draws)
        values = self.draws["mu"][:, None, None] + cross @ self.weights
        return np.asarray(values.transpose(0, 2, 1).reshape(-1, len(new)))

    def at(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Expansion:
        """Return some of the functions of each of some draws."""
        draws = {name: values[rows] for name, values in self.draws.items()}
        return replace(self, draws=draws, weights=self.weights[rows][:, :, columns])

    @property
    def warp(self) -> FloatArray | None:
        """Parameter (s * j, 1) of the warp of each function; None without a warp."""
        if "warp" not in self.draws:
            return None
        return np.repeat(self.draws["warp"], self.weights.shape[2])[:, None]


@dataclass(frozen=True)
class DrawnFunctions:
    """Functions drawn from a posterior; call them with configurations for their values in the user's units.

    Attributes
    ----------
    expansions : tuple of Expansion
        Several for a stack, or to limit the memory.
    y_mean, y_sd : float
        Standardisation of the targets; ``y_sd`` is negative if larger values are better.
    lost : float
        Variance that the functions lack between the anchors, as a share of their variance over the test points.
    """

    expansions: tuple[Expansion, ...]
    y_mean: float
    y_sd: float
    lost: float

    def __len__(self) -> int:
        return sum(map(len, self.expansions))

    def __call__(self, new: Encoded) -> FloatArray:
        """Return the values of k functions at m configurations, (k, m), in the user's units."""
        values = np.empty((len(self), len(new)))
        first = 0
        for expansion in self.expansions:
            last = first + len(expansion)
            warp = expansion.warp
            block = max(1, CACHED // (len(expansion.weights) * len(expansion.centres)))
            for i in range(0, len(new), block):
                transformed = expansion(new[i : i + block])
                if warp is not None:
                    transformed = unwarped(transformed, warp, expansion.pivot)
                values[first:last, i : i + block] = transformed
            first = last
        return self.y_mean + self.y_sd * values

    def some(self, rows: NDArray[np.intp]) -> tuple[DrawnFunctions, NDArray[np.intp]]:
        """Return few functions with some of them (r,) among them, and the places of these, (r,).

        They are all combinations of a draw and of a place within a draw that the functions have.
        """
        expansions = []
        places = np.empty(len(rows), dtype=np.intp)
        first = 0
        known = 0
        for expansion in self.expansions:
            each = expansion.weights.shape[2]
            mine = (rows >= first) & (rows < first + len(expansion))
            if mine.any():
                draws, draw = np.unique((rows[mine] - first) // each, return_inverse=True)
                columns, column = np.unique((rows[mine] - first) % each, return_inverse=True)
                places[mine] = known + draw * len(columns) + column
                expansions.append(expansion.at(draws, columns))
                known += len(expansions[-1])
            first += len(expansion)
        return replace(self, expansions=tuple(expansions)), places


def draw_functions(
    posterior: Posterior,
    anchors: Encoded,
    n_draws: int,
    rng: np.random.Generator,
    each: int = 1,
    tests: Encoded | None = None,
    scale: float = 1.0,
    exact: Exact | None = None,
) -> DrawnFunctions:
    """Draw functions from a posterior.

    Parameters
    ----------
    posterior : Posterior
    anchors : Encoded
        M configurations at which the functions are drawn jointly.
    n_draws : int
        Number of draws of the hyperparameters, at most all.
    rng : numpy.random.Generator
    each : int
        Number of functions for each draw.
    tests : Encoded, optional
        Configurations at which ``lost`` is computed; 0 without.
    scale : float
        Factor on the differences of the functions from their mean under each draw, and so on their standard deviations.
    exact : Exact, optional
        A value that the functions have although the model has noise: they are conditioned on it, given the
        observations. With the posterior covariance c, f(x) + c(x, x') / c(x', x') (y - f(x')) replaces f(x).

    Raises
    ------
    InferenceError
        If a joint covariance is not positive definite up to rounding errors.
    """
    expansions = []
    present = 0.0
    missing = 0.0
    for predictor in _predictors(posterior, n_draws, len(anchors)):
        solved, factor = _factor(predictor, anchors)
        expansions.append(_expansion(predictor, anchors, solved, factor, each, rng, scale))
        if exact is not None:
            target = (exact.value - posterior.y_mean) / posterior.y_sd
            expansions[-1] = _through(predictor, expansions[-1], exact.point, target)
        if tests is not None:
            present += float(np.var(expansions[-1](tests), axis=1).sum()) / each
            missing += _missing_variance(predictor, anchors, solved, factor, tests)
    lost = missing / (present + missing) if missing > 0 else 0.0
    return DrawnFunctions(tuple(expansions), posterior.y_mean, posterior.y_sd, lost)


def _predictors(posterior: Posterior, n_draws: int, n_anchors: int) -> Iterator[KernelPredictor]:
    """Yield predictors of the draws, in blocks of limited memory."""
    for part, rows in posterior.rows_of(n_draws):
        block = max(1, BLOCK // max(len(part.factorisation.support), n_anchors) ** 2)
        for i in range(0, len(rows), block):
            yield part.predictor(rows[i : i + block])


def _factor(predictor: KernelPredictor, anchors: Encoded) -> tuple[FloatArray, FloatArray]:
    """Return V_Z' (s, M, n) and L_Z (s, M, M)."""
    solved, covariance = predictor.solved_and_covariance(anchors)
    prior = predictor.kernel.diagonal(anchors, predictor.draws).max(axis=1)
    diagonal = np.arange(len(anchors))
    covariance[:, diagonal, diagonal] += NUGGET * prior[:, None]
    return solved, cholesky(covariance, prior).lower


def _expansion(
    predictor: KernelPredictor,
    anchors: Encoded,
    solved: FloatArray,
    factor: FloatArray,
    each: int,
    rng: np.random.Generator,
    scale: float,
) -> Expansion:
    normals = scale * rng.standard_normal((len(factor), each, len(anchors)))
    anchor_weights = np.stack([solve_upper(f, z) for f, z in zip(factor, normals, strict=True)])  # (s, j, M)
    correction = np.stack([solve_upper(f, c) for f, c in zip(predictor.factor, anchor_weights @ solved, strict=True)])
    support_weights = predictor.weights[:, None] - correction
    weights = np.concatenate([support_weights, anchor_weights], axis=2).transpose(0, 2, 1)
    centres, weights = _merged(predictor.train.concatenate(anchors), weights)
    return Expansion(predictor.kernel, centres, predictor.draws, weights, predictor.targets.pivot)


def _through(predictor: KernelPredictor, expansion: Expansion, point: Encoded, target: float) -> Expansion:
    """Condition functions on a standardised target at one configuration."""
    solved, covariance = predictor.solved_and_covariance(point)
    variance = covariance[:, 0] + _EXACT * predictor.kernel.diagonal(point, predictor.draws)
    warp = predictor.draws.get("warp")
    value = np.array([[target]]) if warp is None else warped(np.array(target), warp, expansion.pivot)[:, None]
    change = (value - expansion(point).reshape(len(variance), -1)) / variance  # (s, j)
    support = np.stack(
        [solve_upper(f, v) for f, v in zip(predictor.factor, change[:, :, None] * solved, strict=True)]
    )  # (s, j, n)
    weights = np.concatenate([expansion.weights, -support.transpose(0, 2, 1), change[:, None]], axis=1)
    centres, weights = _merged(expansion.centres.concatenate(predictor.train).concatenate(point), weights)
    return replace(expansion, centres=centres, weights=weights)


def _merged(centres: Encoded, weights: FloatArray) -> tuple[Encoded, FloatArray]:
    """Return each of N centres once, with the sum of its weights (s, N, j): observations are often anchors too."""
    rows = np.hstack([centres.unit_values, centres.active])
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    starts = np.searchsorted(group.ravel()[order], np.arange(len(first)))
    return centres[first], np.add.reduceat(weights[:, order], starts, axis=1)


def _missing_variance(
    predictor: KernelPredictor, anchors: Encoded, solved: FloatArray, factor: FloatArray, tests: Encoded
) -> float:
    """Return the mean variance at test points given the values at the anchors, summed over draws."""
    solved_tests, covariance = predictor.solved_and_covariance(tests)
    before = np.einsum("stt->st", covariance)
    between = predictor.kernel.cross(tests, anchors, predictor.draws) - solved_tests @ solved.transpose(0, 2, 1)
    explained = [np.square(solve_lower(f, c)).sum(axis=1) for f, c in zip(factor, between, strict=True)]
    return float(np.maximum(before - np.stack(explained), 0.0).mean(axis=1).sum())
