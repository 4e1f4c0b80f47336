"""Where the search may begin: configurations all over the space, and some sprayed round the best observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slayr_py.acquisition.identity import distinct
from slayr_py.acquisition.neighbourhood import Neighbourhood
from slayr_py.inference import Posterior
from slayr_py.space import Encoded, Encoder
from slayr_py.space.dimension import FloatArray

_EVERYWHERE = 10_000  # valid configurations wanted from all over the space; one that has no more is enumerated
_BATCHES = 10  # each of so many genotypes, drawn until there are enough valid ones
_INCUMBENT, _OTHERS, _OTHER = 50, 4, 10  # sprayed round the incumbent; the next best, and round each of them
_SIZES = (-3.0, -0.5)  # decimal logarithm of a spray's standard deviation on the unit cube
_HOPS = 0.5  # steps between levels or integers that a sprayed point takes on average


@dataclass(frozen=True)
class Candidates:
    """Valid configurations.

    Attributes
    ----------
    genotypes : (m, D) float64
    encoded : Encoded
        What they stand for.
    """

    genotypes: FloatArray
    encoded: Encoded

    def __len__(self) -> int:
        return len(self.genotypes)

    def __getitem__(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        return Candidates(self.genotypes[rows], self.encoded[rows])

    @classmethod
    def of(cls, encoder: Encoder, genotypes: FloatArray) -> Candidates:
        """The genotypes that no forbidden clause excludes."""
        encoded, allowed = encoder.resolve(genotypes)
        return cls(genotypes, encoded)[allowed]

    def joined(self, other: Candidates) -> Candidates:
        """All configurations of both, each once."""
        genotypes = np.vstack([self.genotypes, other.genotypes])
        both = Candidates(genotypes, self.encoded.concatenate(other.encoded))
        return both[distinct(both.encoded)]


def candidates(posterior: Posterior, rng: np.random.Generator) -> Candidates:
    """Different configurations from all over the space, from round the best observed, and these themselves."""
    encoder = posterior.encoder
    best = np.argsort(np.asarray(posterior.data["y"]), kind="stable")[: 1 + _OTHERS]
    times = np.where(np.arange(len(best)) == 0, _INCUMBENT, _OTHER)
    observed = posterior.train[np.concatenate([best, np.repeat(best, times)])]
    # What is inactive in a configuration may lie anywhere in its genotype.
    genotypes = np.where(observed.active, observed.unit_values, _uniform(encoder, len(observed), rng))
    genotypes[len(best) :] = spray(encoder, genotypes[len(best) :], rng)
    found = Candidates.of(encoder, genotypes)
    everything = enumeration(encoder)
    if everything is not None:
        return found.joined(Candidates.of(encoder, everything))
    for _ in range(_BATCHES):
        found = found.joined(Candidates.of(encoder, _uniform(encoder, _EVERYWHERE, rng)))
        if len(found) >= _EVERYWHERE:
            break
    return found


def spray(encoder: Encoder, centres: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Genotypes close to the centres (m, D): a normal step of random size, and sometimes one to a level beside.

    Optimisation that begins near the incumbent as well is due to Snoek, Larochelle & Adams (2012), in their code.
    """
    neighbourhood, points = Neighbourhood(encoder), centres.copy()
    real = np.array([d.is_real for d in encoder.dimensions])
    size = 10 ** rng.uniform(*_SIZES, (len(centres), 1))
    steps = size * rng.standard_normal(centres.shape)
    points[:, real] = np.clip(centres + steps, 0.0, 1.0)[:, real]
    discrete = np.array([d.kind != "float" for d in encoder.dimensions])
    hops = discrete & (rng.random(centres.shape) < _HOPS / max(discrete.sum(), 1))
    for i, j in zip(*np.nonzero(hops), strict=True):
        beside = neighbourhood.beside(j, centres[i, j])
        if len(beside):
            points[i, j] = rng.choice(beside)
    return points


def enumeration(encoder: Encoder, limit: int = _EVERYWHERE) -> FloatArray | None:
    """All genotypes of a space that has no more than ``limit``, None of a larger one."""
    sizes = [np.inf if d.kind == "float" else d.upper - d.lower + 1 for d in encoder.dimensions]
    if np.prod(sizes, dtype=np.float64) > limit:
        return None
    axes = [d.coordinates(np.arange(d.lower, d.upper + 1)) for d in encoder.dimensions]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def _uniform(encoder: Encoder, n: int, rng: np.random.Generator) -> FloatArray:
    return encoder.from_uniform(rng.random((n, len(encoder.dimensions))))
