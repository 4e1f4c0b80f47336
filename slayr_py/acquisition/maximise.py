"""Find the configuration that maximises a criterion on a mixed, possibly conditional space.

1. Score many candidates: uniform ones, and perturbations of the best observed configurations.
2. Climb from the best few: L-BFGS-B with the analytic gradient over all their active real coordinates at once, the
   discrete ones held, then the best step among all discrete neighbours, until no start moves.
3. Take the best configuration that has not been evaluated yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ConfigSpace import Configuration
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from slayr_py.acquisition.criteria import Acquisition, State, from_name
from slayr_py.errors import DataError
from slayr_py.inference import Posterior
from slayr_py.inference.prediction import Predictor, mixture_moments
from slayr_py.space import Encoded, Encoder
from slayr_py.space.dimension import FloatArray

_DRAWS = 128  # thinned draws that a suggestion averages over
_UNIFORM, _LOCAL, _PARENTS = 768, 256, 5  # candidates of the first stage, and how many of the best observed breed
_STARTS, _ROUNDS, _ITERATIONS = 6, 4, 60
_BLOCK = 256  # candidates scored at a time
_SPREAD = 0.1  # standard deviation of a perturbation on the unit cube
_ATTEMPTS = 16  # batches of uniform candidates tried for one that is allowed and new


class Suggestion(NamedTuple):
    """A configuration to evaluate next.

    Attributes
    ----------
    config : Configuration
    value : float
        The criterion there, on standardised targets.
    mean, sd : float
        Prediction of the latent function there, in the user's units.
    """

    config: Configuration
    value: float
    mean: float
    sd: float


def suggest(
    posterior: Posterior,
    acquisition: str | Acquisition = "ei",
    *,
    best: float,
    t: int,
    rng: np.random.Generator,
    pending: Iterable[Mapping[str, Any]] = (),
    exclude: Iterable[Mapping[str, Any]] = (),
) -> Suggestion:
    """Maximise a criterion over the posterior's space.

    Parameters
    ----------
    posterior : Posterior
    acquisition : str or Acquisition
    best : float
        Smallest value so far, in the user's units.
    t : int
        Iteration, from 1; the schedule of the confidence bound.
    rng : numpy.random.Generator
        Makes the candidates; the result depends on nothing else that is random.
    pending : iterable of configurations
        Being evaluated elsewhere: every draw is conditioned on its own mean there.
    exclude : iterable of configurations
        Never suggested again, unless the space has no other left.

    Raises
    ------
    DataError
        If best is not finite, or for an unknown acquisition.
    """
    if not np.isfinite(best):
        raise DataError(f"best must be finite, got {best!r}")
    # The matrices are small: one thread is as fast, and the last bits do not depend on how many the machine has.
    with threadpool_limits(limits=1, user_api="blas"):
        return _suggest(posterior, from_name(acquisition), best, t, rng, list(pending), list(exclude))


def _suggest(
    posterior: Posterior,
    criterion: Acquisition,
    best: float,
    t: int,
    rng: np.random.Generator,
    pending: list[Mapping[str, Any]],
    exclude: list[Mapping[str, Any]],
) -> Suggestion:
    encoder = posterior.encoder
    running = encoder.encode(pending)
    predictor = posterior.predictor(_DRAWS).with_pending(running)
    state = State((best - posterior.y_mean) / posterior.y_sd, t, len(encoder.names))
    search = _Search(encoder, predictor, criterion, state)
    taken = {_key(row) for row in [*_rows(encoder.encode(exclude)), *_rows(running)]}

    pool = _candidates(posterior, rng)
    scores = search.scores(pool)
    starts = pool[np.argsort(-scores, kind="stable")[:_STARTS]]
    moving = np.arange(len(starts))
    for _ in range(_ROUNDS):
        starts[moving] = search.climb(starts[moving])
        stepped = search.step(starts[moving])
        changed = np.any(stepped != starts[moving], axis=1)
        starts[moving] = stepped
        moving = moving[changed]
        if not len(moving):
            break
    finals = np.vstack([starts, pool])
    chosen = _best_new(encoder, finals, np.concatenate([search.scores(starts), scores]), taken)
    if chosen is None:
        chosen = _any_new(encoder, rng, taken)
    mean, variance = predictor.moments(chosen)
    value = criterion.value(mean, np.sqrt(variance), state)
    centre, spread = mixture_moments(mean, np.sqrt(variance))
    return Suggestion(
        encoder.decode(chosen)[0],
        float(value[0]),
        float(posterior.y_mean + posterior.y_sd * centre[0]),
        float(posterior.y_sd * spread[0]),
    )


class _Search:
    """Scores and moves genotypes; forbidden ones score minus infinity."""

    def __init__(self, encoder: Encoder, predictor: Predictor, criterion: Acquisition, state: State) -> None:
        self.encoder, self.predictor, self.criterion, self.state = encoder, predictor, criterion, state
        self.real = [i for i, d in enumerate(encoder.dimensions) if d.is_real]

    def scores(self, genotypes: FloatArray) -> FloatArray:
        encoded, allowed = self.encoder.resolve(genotypes)
        values = np.full(len(genotypes), -np.inf)
        for i in range(0, len(genotypes), _BLOCK):
            mean, variance = self.predictor.moments(encoded[i : i + _BLOCK])
            values[i : i + _BLOCK] = self.criterion.score(mean, variance, self.state)
        return np.where(allowed, values, -np.inf)

    def climb(self, genotypes: FloatArray) -> FloatArray:
        """Follow the gradient in the active real coordinates; integers move continuously and are snapped at the end.

        The criterion of one start does not depend on the others, so their sum is maximised in one run. A start that
        snapping or a forbidden clause makes worse stays where it was.
        """
        if not self.real:
            return genotypes
        encoded, _ = self.encoder.resolve(genotypes)
        shape = (len(genotypes), len(self.real))
        active = encoded.active[:, self.real]

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            values = encoded.values.copy()
            values[:, self.real] = np.where(active, flat.reshape(shape), 0.0)
            moments = self.predictor.moments_with_gradient(Encoded(values, encoded.active, self.encoder))
            score, gradient = self.criterion.score_gradient(moments, self.state)
            return -float(score.sum()), -np.where(active, gradient, 0.0).ravel()

        start = genotypes[:, self.real].ravel()
        options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS}
        result = minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * len(start), options=options
        )
        climbed = genotypes.copy()
        climbed[:, self.real] = result.x.reshape(shape)
        return self._better(genotypes, climbed)

    def step(self, genotypes: FloatArray) -> FloatArray:
        """Move every start to its best discrete neighbour, if that is better."""
        owners, neighbours = [], []
        encoded, _ = self.encoder.resolve(genotypes)
        for i, genotype in enumerate(genotypes):
            for j, dimension in enumerate(self.encoder.dimensions):
                if encoded.active[i, j]:
                    for coordinate in dimension.neighbours(genotype[j]):
                        changed = genotype.copy()
                        changed[j] = coordinate
                        owners.append(i)
                        neighbours.append(changed)
        if not neighbours:
            return genotypes
        candidates = np.array(neighbours)
        scores = self.scores(candidates)
        best = genotypes.copy()
        for i in range(len(genotypes)):
            own = np.flatnonzero(np.array(owners) == i)
            if len(own):
                best[i] = candidates[own[np.argmax(scores[own])]]
        return self._better(genotypes, best)

    def _better(self, old: FloatArray, new: FloatArray) -> FloatArray:
        return np.where((self.scores(new) > self.scores(old))[:, None], new, old)


def _candidates(posterior: Posterior, rng: np.random.Generator) -> FloatArray:
    """Uniform genotypes, and perturbed copies of the best observed configurations."""
    encoder, n_dimensions = posterior.encoder, len(posterior.encoder.dimensions)
    uniform = encoder.from_uniform(rng.random((_UNIFORM, n_dimensions)))
    y = np.asarray(posterior.data["y"])
    parents = np.argsort(y, kind="stable")[:_PARENTS]
    values = np.where(
        posterior.train.active, posterior.train.values, encoder.from_uniform(rng.random((len(y), n_dimensions)))
    )
    local = values[parents[rng.integers(len(parents), size=_LOCAL)]]
    fresh = encoder.from_uniform(rng.random(local.shape))
    # A few coordinates change at a time: real ones by a normal step of random size, others to any level.
    change = rng.random(local.shape) < np.maximum(0.3, 1.0 / n_dimensions)
    size = _SPREAD * 10 ** rng.uniform(-2, 0.5, (_LOCAL, 1))
    for j, dimension in enumerate(encoder.dimensions):
        moved = (
            np.clip(local[:, j] + size[:, 0] * rng.standard_normal(_LOCAL), 0, 1) if dimension.is_real else fresh[:, j]
        )
        local[:, j] = np.where(change[:, j], moved, local[:, j])
    return np.vstack([uniform, local])


def _best_new(encoder: Encoder, genotypes: FloatArray, scores: FloatArray, taken: set[bytes]) -> Encoded | None:
    encoded, allowed = encoder.resolve(genotypes)
    keys = [_key(row) for row in _rows(encoded)]
    for i in np.argsort(-scores, kind="stable"):
        if allowed[i] and keys[i] not in taken:
            return encoded[[int(i)]]
    return None


def _any_new(encoder: Encoder, rng: np.random.Generator, taken: set[bytes]) -> Encoded:
    """A uniform configuration, new if one turns up; in an exhausted space an old one is all there is."""
    last = None
    for _ in range(_ATTEMPTS):
        encoded, allowed = encoder.resolve(encoder.from_uniform(rng.random((_UNIFORM, len(encoder.dimensions)))))
        for i in np.flatnonzero(allowed):
            last = encoded[[int(i)]]
            if _key(next(iter(_rows(last)))) not in taken:
                return last
    if last is None:
        raise DataError("no configuration found that the forbidden clauses allow")
    return last


def _rows(encoded: Encoded) -> Sequence[tuple[FloatArray, Any]]:
    return list(zip(encoded.values, encoded.active, strict=True))


def _key(row: tuple[FloatArray, Any]) -> bytes:
    """Identity of a configuration up to rounding of its coordinates."""
    values, active = row
    return bytes(np.round(values, 12).tobytes() + active.tobytes())
