"""Candidates for the search: configurations from the whole space and from near the best observed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.identity import distinct
from slayr_py.acquisition.neighbourhood import Neighbourhood
from slayr_py.acquisition.optimum_prior import OptimumPrior
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Encoder, Fixed, FloatArray

_ENUMERATED = 10_000  # discrete spaces of at most so many genotypes are enumerated
_BATCHES = 50  # at most so many batches of genotypes are drawn to get enough valid ones
_INCUMBENT = 50  # perturbations of the incumbent; chosen by hand, as the next two
_OTHERS = 4  # further best observations that are perturbed
_OTHER = 10  # perturbations of each of them
_OF_PRIOR = 4  # the number of candidates from a prior is this part of the others'
SIZES = (-3.0, -0.5)
"""Range of the decimal logarithm of a perturbation's standard deviation on the unit cube."""

_HOPS = 0.5  # mean number of steps between levels or integers in a perturbation


@dataclass(frozen=True)
class Candidates:
    """Valid configurations with their genotypes.

    Attributes
    ----------
    genotypes : (m, D) float64
    encoded : Encoded
        Their configurations.
    """

    genotypes: FloatArray
    encoded: Encoded

    def __len__(self) -> int:
        return len(self.genotypes)

    def __getitem__(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        return Candidates(self.genotypes[rows], self.encoded[rows])

    @classmethod
    def of(cls, encoder: Encoder, genotypes: FloatArray, fixed: Fixed | None = None) -> Candidates:
        """Give the genotypes the fixed values, and keep those that no forbidden clause excludes."""
        return cls._valid(encoder, genotypes, fixed)[0]

    @classmethod
    def _valid(
        cls, encoder: Encoder, genotypes: FloatArray, fixed: Fixed | None
    ) -> tuple[Candidates, NDArray[np.bool_]]:
        encoded, allowed = encoder.resolve(genotypes, fixed)
        return cls(genotypes if fixed is None else fixed.put(genotypes), encoded)[allowed], allowed

    @classmethod
    def at(cls, encoded: Encoded, rng: np.random.Generator, fixed: Fixed | None = None) -> Candidates:
        """Return known configurations as candidates. The genotype of an inactive parameter is arbitrary."""
        encoder = encoded.encoder
        assert isinstance(encoder, Encoder)
        return cls(np.where(encoded.active, encoded.unit_values, encoder.uniform(len(encoded), rng, fixed)), encoded)

    def concatenate(self, other: Candidates) -> Candidates:
        """Return these candidates, and then the others."""
        genotypes = np.vstack([self.genotypes, other.genotypes])
        return Candidates(genotypes, self.encoded.concatenate(other.encoded))

    def join(self, other: Candidates) -> Candidates:
        """Return the distinct configurations of two sets of candidates."""
        both = self.concatenate(other)
        return both[distinct(both.encoded)]

    def near(
        self,
        rows: NDArray[np.intp],
        rng: np.random.Generator,
        fixed: Fixed | None = None,
        sizes: tuple[float, float] = SIZES,
    ) -> tuple[Candidates, NDArray[np.intp]]:
        """Return the valid perturbations of these rows, and the row of each."""
        encoder = self.encoded.encoder
        assert isinstance(encoder, Encoder)
        near, allowed = self._valid(encoder, perturb(encoder, self.genotypes[rows], rng, sizes), fixed)
        return near, rows[allowed]


def best_first(values: FloatArray, doubtful: NDArray[np.bool_] | None) -> NDArray[np.intp]:
    """Return the rows of values (n,) from the smallest one on; ``doubtful`` ones (n,) come last."""
    last = np.zeros(len(values), dtype=np.bool_) if doubtful is None else doubtful
    return np.lexsort((values, last))


def candidates(
    posterior: Posterior,
    rng: np.random.Generator,
    wanted: int,
    fixed: Fixed | None = None,
    doubtful: NDArray[np.bool_] | None = None,
    front: NDArray[np.intp] | None = None,
    prior: OptimumPrior | None = None,
    values: FloatArray | None = None,
) -> Candidates:
    """Return distinct configurations: uniform in the space, the best observed ones, and perturbations of these.

    With a prior, some are drawn from it in addition, because uniform ones may miss a narrow one. All of them get the
    fixed values. ``doubtful`` observations (n,), which are probably infeasible, come last. With several objectives, the
    best ones are the rows of ``front``, whose perturbations are equally many. ``values`` (n,) replace those observed.
    """
    encoder = posterior.encoder
    best = best_first(posterior.targets.y if values is None else values, doubtful)[: 1 + _OTHERS]
    times = np.where(np.arange(len(best)) == 0, _INCUMBENT, _OTHER)
    if front is not None and len(front):
        total = _INCUMBENT + _OTHERS * _OTHER
        best = front[:total]
        times = np.full(len(best), total // len(best))
    observed = posterior.train[np.concatenate([best, np.repeat(best, times)])]
    genotypes = Candidates.at(observed, rng, fixed).genotypes
    genotypes[len(best) :] = perturb(encoder, genotypes[len(best) :], rng)
    if fixed is not None:
        genotypes = np.vstack([genotypes, fixed.example])  # there may be few others
    pool = Candidates.of(encoder, genotypes, fixed)
    everything = enumeration(encoder, fixed)
    if everything is not None:
        return pool.join(Candidates.of(encoder, everything, fixed))
    if prior is not None:
        drawn = prior.genotypes(rng.random((wanted // _OF_PRIOR, len(encoder.dimensions))))
        pool = pool.join(Candidates.of(encoder, drawn, fixed))
        wanted += len(drawn)
    for _ in range(_BATCHES):
        known = len(pool)
        more = Candidates.of(encoder, encoder.uniform(wanted, rng, fixed), fixed)
        pool = pool.join(more)
        # Without a new one among as many as are known, there are few others: equalities may leave a hundred.
        if len(pool) >= wanted or len(more) >= len(pool) == known:
            break
    return pool


def perturb(
    encoder: Encoder, centres: FloatArray, rng: np.random.Generator, sizes: tuple[float, float] = SIZES
) -> FloatArray:
    """Perturb genotypes (m, D) by normal steps of random size and by steps to neighbouring levels.

    The code of Snoek, Larochelle & Adams (2012) also starts the optimisation near the incumbent.
    """
    neighbourhood = Neighbourhood(encoder)
    points = centres.copy()
    real = np.array([d.is_real for d in encoder.dimensions])
    size = 10 ** rng.uniform(*sizes, (len(centres), 1))
    steps = size * rng.standard_normal(centres.shape)
    points[:, real] = np.clip(centres + steps, 0.0, 1.0)[:, real]
    discrete = np.array([d.kind != "float" for d in encoder.dimensions])
    hops = discrete & (rng.random(centres.shape) < _HOPS / max(discrete.sum(), 1))
    for i, j in zip(*np.nonzero(hops), strict=True):
        neighbours = neighbourhood.neighbours(j, centres[i, j])
        if len(neighbours):
            points[i, j] = neighbours[rng.integers(len(neighbours))]  # rng.choice takes five times as long
    return points


def enumeration(encoder: Encoder, fixed: Fixed | None = None) -> FloatArray | None:
    """Return all genotypes of a space with the fixed values, or None if there are too many."""
    known = {} if fixed is None else dict(zip(fixed.columns.tolist(), fixed.unit_values, strict=True))
    axes = [(choice.columns, choice.unit_values[choice.having(fixed)]) for choice in encoder.choices]
    for j in np.flatnonzero(~encoder.listed):
        d = encoder.dimensions[j]
        if j in known:
            values = np.array([known[j]])
        elif d.kind == "float" or d.upper - d.lower >= _ENUMERATED:
            return None
        else:
            values = d.unit_values(np.arange(d.lower, d.upper + 1))
        axes.append((np.array([j]), values[:, None]))
    sizes = [len(rows) for _, rows in axes]
    if np.prod(sizes, dtype=np.float64) > _ENUMERATED:
        return None
    genotypes = np.empty((int(np.prod(sizes)), len(encoder.dimensions)))
    for (columns, rows), chosen in zip(axes, np.indices(sizes).reshape(len(sizes), -1), strict=True):
        genotypes[:, columns] = rows[chosen]
    return genotypes
