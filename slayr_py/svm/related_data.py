"""Check and standardise the related data of a pre-training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError
from slayr_py.space import Encoded, Encoder, FloatArray, rows_of


@dataclass(frozen=True)
class RelatedTargets:
    """Standardised values (N,), or labels as -1 and 1."""

    values: FloatArray
    mean: float
    sd: float
    classes: tuple[Any, ...] = ()

    @property
    def baseline(self) -> float:
        """Error of predicting the mean, 1, or the larger class, the share of the smaller one."""
        if not self.classes:
            return 1.0
        return float(np.minimum(*np.mean(self.values[:, None] == (-1, 1), axis=0)))

    @classmethod
    def of(cls, y: ArrayLike, n: int) -> RelatedTargets:
        """Check and standardise values.

        Raises
        ------
        DataError
            As :func:`~slayr_py.svm.pretrain`.
        """
        given = np.asarray(y)
        if given.shape != (n,):
            raise DataError(f"y has shape {given.shape} for {n} configurations; one value each is needed")
        if n < 3:
            raise DataError(f"pre-training needs at least 3 observations, got {n}")
        if given.dtype.kind in "bUS" or (given.dtype.kind == "O" and all(isinstance(v, str | bool) for v in given)):
            classes = tuple(sorted(set(given.tolist()), key=str))
            if len(classes) != 2:
                raise DataError(f"labels need two classes, got {len(classes)}: {list(classes)[:10]}")
            return cls(np.where(given == classes[1], 1.0, -1.0), 0.0, 1.0, classes)
        try:
            if given.dtype.kind not in "iufO":  # NumPy would convert dates and complex numbers
                raise TypeError(f"y is of type {given.dtype}")
            values = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"y must be numbers, or labels of two classes; got {y!r:.200}") from error
        if not np.isfinite(values).all():
            bad = int(np.argmin(np.isfinite(values)))
            raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before pre-training")
        unit = float(np.max(np.abs(values))) or 1.0  # the square of 1e200 is infinite
        mean = unit * float(np.mean(values / unit))
        sd = unit * float(np.std(values / unit, ddof=1))
        if sd <= 4 * np.finfo(float).eps * unit:
            raise DataError(f"y is constant, {values[0]:g}: a kernel cannot be learned from it")
        return cls((values - mean) / sd, mean, sd)


def clip_to_space(configs: Any, encoder: Encoder, messages: list[str]) -> Any:
    """Move real values outside the space to its bounds, and add a message about their number."""
    if isinstance(configs, Encoded):
        return configs
    real = {d.name: d for d in encoder.dimensions if d.is_real}
    moved = 0
    rows: list[Any] = []
    for row in rows_of(configs, encoder.dimensions, encoder.space):
        if not isinstance(row, Mapping):
            return configs
        values = dict(row)
        for name in real.keys() & values.keys():
            if isinstance(values[name], int | float | np.number) and np.isfinite(values[name]):
                low = real[name].lower
                high = real[name].upper
                if not low <= values[name] <= high:
                    values[name] = low if values[name] < low else high
                    moved += 1
        rows.append(values)
    if moved:
        messages.append(f"{moved} value{'s' * (moved > 1)} outside the ranges of the space moved to the bounds")
    return rows
