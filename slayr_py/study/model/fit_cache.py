"""Cache of posteriors and choices of a model, so that several suggestions from the same trials share them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from optuna import Study

from slayr_py.inference import FitOptions, GaussianProcess, Posterior, WarmStart
from slayr_py.space import FloatArray
from slayr_py.study.storage.trials import Observations, Results

_Result = TypeVar("_Result")

_FITS = 32  # more than one suggestion with several objectives and a few constraints needs


def fit_key(
    study: Study, name: str, data: Observations | Results, numbers: Sequence[FloatArray], seed: int, options: FitOptions
) -> Hashable:
    """Return what determines a fit by one model; ``numbers`` are the values and errors of the trials.

    A cache serves one model, or ``name`` tells its models apart. Several studies in memory may have the same name, so
    it takes the configurations to tell them apart.
    """
    arrays = b"".join(array.tobytes() for array in (*(config.get_array() for config in data.configs), *numbers))
    return study.study_name, name, tuple(data.numbers), arrays, seed, options


def fit_to(
    gp: GaussianProcess, observed: Observations, options: FitOptions, seed: int = 1, start: WarmStart | None = None
) -> Posterior:
    """Fit a model to observations, with their known errors and direction."""
    return gp.fit(
        observed.configs,
        observed.y,
        seed=seed,
        start=start,
        options=options,
        y_sd=observed.errors,
        maximize=observed.maximize,
    )


class Cache(Generic[_Result]):
    """The latest results by what determines them, at most ``size``. A copy in another process starts empty."""

    def __init__(self, size: int = _FITS) -> None:
        self._size = size
        self._results: OrderedDict[Hashable, _Result] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        """Omit the results, which are large."""
        return type(self), (self._size,)

    def leave_room_for(self, further: int) -> None:
        """Keep as many results more than by default, such as the fits to constraints that one suggestion needs."""
        self._size = max(self._size, _FITS + further)

    def get(self, key: Hashable, compute: Callable[[], _Result]) -> _Result:
        """Return the result of a key; compute it unless it is one of the latest."""
        if key not in self._results:
            self._results[key] = compute()
            while len(self._results) > self._size:
                self._results.popitem(last=False)
        self._results.move_to_end(key)
        return self._results[key]


FitCache = Cache[Posterior]
"""A cache of posteriors."""
