"""Cache of posteriors, so that several suggestions from the same trials share one fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

from slayr_py.inference import Posterior

_LARGEST = 32


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
