r"""Affinities of expressions: similarity of two kernels' priors over functions at some points.

The affinity of two kernels with fixed hyperparameters is the Bhattacharyya coefficient of their normal distributions of
noisy observations at p points, with A = K_1 + s^2 I, B = K_2 + s^2 I:

    BC = |A|^(1/4) |B|^(1/4) / |(A + B)/2|^(1/2),

1 minus the squared Hellinger distance. The affinity of two expressions is the mean over prior draws of their
hyperparameters [1]_. It is an inner product of functions, so matrices of affinities are positive semidefinite.

The hyperparameters of all expressions are quantiles of their priors at standard normal numbers. Equal leaves of
different expressions share these numbers, which depend on the leaf's text, its number among equal leaves, the
hyperparameter and the column. So SE[x1] has the same draws in SE[x1] and in LIN + SE[x1], while the two leaves of
SE + SE differ. The numbers of a split depend on its position. The signal variance is 1.

References
----------
.. [1] G. Malkomes, C. Schaff & R. Garnett (2016), Bayesian optimization for automated model selection.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slayr_py.kernels import MOST_LEAVES, Composite, Draws, Kernel, Pairs
from slayr_py.kernels.expressions import Node, leaves, spell
from slayr_py.space import Encoded, FloatArray

N_POINTS = 12
"""Points at which functions are compared. With 40 points, predictions of scores take four times as long and are not
better."""

N_DRAWS = 20
"""Draws of the hyperparameters."""

NOISE_VARIANCE = 0.5
"""Variance of the noise, in units of the function's variance. With the small noise of a fit, the affinity of any two
kernels is near 0. The rank correlation of predicted and true scores at 30 points was 0.19 with 0.01 and 0.34 with 1."""

_PAIRS_AT_ONCE = 64  # 1.5 MB of matrices


class Affinities:
    """Affinities of expressions at some of the observed points; each is computed once.

    Parameters
    ----------
    train : Encoded
        The n observed configurations. At most `N_POINTS` of them, drawn by the seed, are used.
    y : (n,) float64
        Standardised targets; they matter for the priors of periods, see :class:`~slayr_py.kernels.Composite`.
    given : mapping of str to Kernel
        Given leaves by name.
    seed : int
        Fixes points and draws.
    """

    def __init__(self, train: Encoded, y: FloatArray, given: Mapping[str, Kernel], seed: int) -> None:
        chosen = np.random.default_rng([seed, zlib.crc32(b"points")]).permutation(len(train))[:N_POINTS]
        self.points = train[np.sort(chosen)]
        self.given = given
        self.seed = seed
        self._informed = Composite("PER").informed_priors(train, y)
        self._normals: dict[str, FloatArray] = {}
        self._numbers: dict[str, int] = {}
        self._covariances: list[FloatArray] = []
        self._log_determinants: list[FloatArray] = []
        self._values = np.empty((0, 0))

    def between(self, a: Sequence[Node], b: Sequence[Node]) -> FloatArray:
        """Return the affinities of all pairs of canonical expressions, (n_a, n_b)."""
        rows = self._known(a)
        columns = self._known(b)
        self._compute(rows, columns)
        return np.asarray(self._values[np.ix_(rows, columns)])

    def covariance(self, node: Node) -> FloatArray:
        """Return the covariances of noisy observations at the points for each draw, (s, p, p)."""
        kernel = Composite.from_node(node, self.given, MOST_LEAVES)
        plan = kernel.plan(self.points.encoder)
        pairs = Pairs.cross(self.points, self.points, plan.given)
        values = plan.correlation(pairs, self._draws(node, kernel))
        return np.asarray(values + NOISE_VARIANCE * np.eye(len(self.points)))

    def _draws(self, node: Node, kernel: Composite) -> Draws:
        owners = _owners(node)
        draws = {"sigma_f": np.ones(N_DRAWS)}
        for h in kernel.hyperparameters(self.points.encoder):
            normals = [self._normals_of(_key(h.name, label, owners)) for label in h.labels or ()]
            draws[h.name] = self._informed.get(h.name, h.prior).at_score(np.column_stack(normals))
        return draws

    def _normals_of(self, key: str) -> FloatArray:
        """Return the standard normal numbers (s,) that belong to a text."""
        if key not in self._normals:
            rng = np.random.default_rng([self.seed, zlib.crc32(key.encode())])
            self._normals[key] = rng.standard_normal(N_DRAWS)
        return self._normals[key]

    def _known(self, nodes: Sequence[Node]) -> NDArray[np.intp]:
        """Return the numbers of expressions; new ones get covariances, and unknown affinities (NaN)."""
        texts = [spell(node) for node in nodes]
        new = {text: node for text, node in zip(texts, nodes, strict=True) if text not in self._numbers}
        if new:
            self._numbers |= {text: number for number, text in enumerate(new, start=len(self._numbers))}
            covariances = [self.covariance(node) for node in new.values()]
            self._covariances += covariances
            self._log_determinants += map(_log_determinant, covariances)
            self._values = np.pad(self._values, (0, len(new)), constant_values=np.nan)
        return np.array([self._numbers[text] for text in texts], dtype=np.intp)

    def _compute(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        """Compute the missing affinities of all pairs."""
        i, j = np.nonzero(np.isnan(self._values[np.ix_(rows, columns)]))
        pairs = np.unique(np.sort(np.column_stack([rows[i], columns[j]]), axis=1), axis=0)
        for start in range(0, len(pairs), _PAIRS_AT_ONCE):
            block = pairs[start : start + _PAIRS_AT_ONCE]
            middle = np.stack([(self._covariances[a] + self._covariances[b]) / 2 for a, b in block])
            ends = np.stack([self._log_determinants[a] + self._log_determinants[b] for a, b in block])
            value = np.exp(ends / 4 - _log_determinant(middle) / 2).mean(axis=1)
            self._values[block[:, 0], block[:, 1]] = self._values[block[:, 1], block[:, 0]] = value


def _owners(node: Node) -> list[str]:
    """Return the text of each leaf in reading order, with its number among equal leaves."""
    count: Counter[str] = Counter()
    owners = []
    for text in map(spell, leaves(node)):
        count[text] += 1
        owners.append(f"{text}#{count[text]}")
    return owners


def _key(name: str, label: str, owners: Sequence[str]) -> str:
    """Return the key of the draws of an entry of a hyperparameter; its label is text such as "2:SE[x1]"."""
    number, _, column = label.partition(":")
    return f"split {number}" if name == "split" else f"{name} {owners[int(number) - 1]} {column}"


def _log_determinant(matrices: FloatArray) -> FloatArray:
    """Return the log determinants of positive definite matrices, (..., p, p)."""
    factors = np.linalg.cholesky(matrices)
    return np.asarray(2 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1))
