"""Store the fit of a trial in the study: the record to run it again, and the warm start of the next fit.

A process that reads the warm start continues exactly where the previous one stopped, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError
from slayr_py.inference import GaussianProcess, Posterior, WarmStart
from slayr_py.space import jsonable
from slayr_py.study.storage.attributes import FIT_KEY, START_KEY, study_record
from slayr_py.study.storage.optuna_private import set_trial_attribute
from slayr_py.study.storage.trials import to_ranges


def store_fit(
    study: Study, trial: FrozenTrial, posterior: Posterior, observed: Sequence[int], warm_starts: bool
) -> None:
    """Store the record of a fit and the warm start of the next one, without what the study already contains."""
    record: dict[str, Any] = {**posterior.record, "trials": to_ranges(observed)}
    about = study_record(study) or {}
    if record["space"] == {key: about.get(key) for key in record["space"]}:
        del record["space"]
    for earlier in study.get_trials(deepcopy=False):
        if record["start"] is not None and earlier.user_attrs.get(START_KEY) == record["start"]:
            record["start"] = {"trial": earlier.number}
            break
    set_trial_attribute(study, trial, FIT_KEY, jsonable(record))
    if warm_starts and record["arguments"]["method"] in ("nuts", "carried"):
        set_trial_attribute(study, trial, START_KEY, posterior.warm_start().asdict())


def last_warm_start(study: Study, trial: FrozenTrial, gp: GaussianProcess, chains: int) -> WarmStart | None:
    """Return the warm start stored by the latest fit before a trial, or None if this model cannot use it."""
    for earlier in sorted(study.get_trials(deepcopy=False), key=lambda one: -one.number):
        if earlier.number < trial.number and START_KEY in earlier.user_attrs:
            try:
                start = WarmStart.fromdict(earlier.user_attrs[START_KEY])
                gp.check_start(start, chains)
            except DataError:
                return None
            return start
    return None
