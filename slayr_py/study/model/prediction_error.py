"""Error of what suggestions have predicted, by which the functions drawn from a posterior vary more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeGuard

import numpy as np
from optuna import Study

from slayr_py.inference import Posterior
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.suggestion import Predicted, SuggestionRecord
from slayr_py.study.storage.trials import Observations


def inflation_of(study: Study, posterior: Posterior, observed: Observations, objective: int = 0) -> float:
    """Return the factor on the posterior standard deviations of the function: `prediction_error`, and at least 1."""
    return max(1.0, prediction_error(study, posterior, observed, objective))


def prediction_error(study: Study, posterior: Posterior, observed: Observations, objective: int = 0) -> float:
    """Return the root mean squared standardised error of what each suggestion predicted before its evaluation.

    It is about 1 for a model that is as certain as it should be. The unit of an error is the root of the sum of squares
    of the predicted standard deviation, of the spread of a new observation there under the present posterior, and of
    the known error of the value. It is 0 before the first suggestion by a model.
    """
    trials = trials_of(study)
    records = [_predicted(suggestion_record(trials[number]), objective) for number in observed.numbers]
    known = {row: record for row, record in enumerate(records) if record is not None}
    if not known:
        return 0.0
    rows = list(known)
    mean = np.array([record["mean"] for record in known.values()])
    sd = np.array([record["sd"] for record in known.values()])
    noise = posterior.predict(posterior.train[rows]).with_noise().centre_and_spread()[1]
    error = observed.y[rows] - mean
    scale = np.hypot(np.hypot(sd, noise), observed.y_sd[rows])  # squares of tiny or huge values would not be finite
    standardised = np.divide(error, scale, out=np.zeros_like(error), where=(error != 0) | (scale != 0))
    return float(np.sqrt(np.mean(np.square(standardised))))


def _predicted(record: SuggestionRecord, objective: int) -> Predicted | None:
    """Return what a suggestion predicted of an objective; None if it is not by a model, or damaged."""
    parts = record.get("objectives")
    predicted = (record if parts is None else parts[objective]).get("predicted")
    return predicted if _is_prediction(predicted) else None


def _is_prediction(record: object) -> TypeGuard[Predicted]:
    numbers = [record.get(name) for name in ("mean", "sd")] if isinstance(record, Mapping) else [None]
    return all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
