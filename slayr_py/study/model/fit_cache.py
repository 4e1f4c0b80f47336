"""Cache of posteriors, so that several suggestions from the same trials share one fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from optuna import Study

from slayr_py.inference import FitOptions, Posterior
from slayr_py.space import FloatArray
from slayr_py.study.storage.trials import Observations, Results

_LARGEST = 32  # posteriors; more than one suggestion with several objectives and constraints needs


def fit_key(
    study: Study, name: str, data: Observations | Results, numbers: Sequence[FloatArray], seed: int, options: FitOptions
) -> Hashable:
    """Return what determines a fit; ``numbers`` are the values and errors of the trials.

    Several studies in memory may have the same name, so it takes the configurations to tell them apart.
    """
    arrays = b"".join(array.tobytes() for array in (*(config.get_array() for config in data.configs), *numbers))
    return study.study_name, name, tuple(data.numbers), arrays, seed, options


class FitCache:
    """The latest posteriors by what determines them. A copy in another process starts empty."""

    def __init__(self) -> None:
        self._posteriors: OrderedDict[Hashable, Posterior] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        """Omit the posteriors, which are large."""
        return FitCache, ()

    def get(self, key: Hashable, fit: Callable[[], Posterior]) -> Posterior:
        """Return the posterior of a key; fit it unless it is one of the latest."""
        if key not in self._posteriors:
            self._posteriors[key] = fit()
            while len(self._posteriors) > _LARGEST:
                self._posteriors.popitem(last=False)
        self._posteriors.move_to_end(key)
        return self._posteriors[key]
