"""What the fit of one trial leaves in the study: how to run it again, and where that of the next trial can begin.

A stored start is all a process needs to go on where another one stopped, bit for bit.
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
from slayr_py.study.storage.trials import to_ranges


def leave_fit(study: Study, trial: FrozenTrial, post: Posterior, observed: Sequence[int], warm_starts: bool) -> None:
    """Store the record of a fit, and where the next one can begin; what the study has already is not stored again."""
    record: dict[str, Any] = {**post.record, "trials": to_ranges(observed)}
    about = study_record(study) or {}
    if record["space"] == {key: about.get(key) for key in record["space"]}:
        del record["space"]
    for earlier in study.get_trials(deepcopy=False):
        if record["start"] is not None and earlier.user_attrs.get(START_KEY) == record["start"]:
            record["start"] = {"trial": earlier.number}
            break
    study._storage.set_trial_user_attr(trial._trial_id, FIT_KEY, jsonable(record))
    if warm_starts and record["arguments"]["method"] == "nuts":
        study._storage.set_trial_user_attr(trial._trial_id, START_KEY, post.warm_start().asdict())


def last_start(study: Study, trial: FrozenTrial, gp: GaussianProcess, chains: int) -> WarmStart | None:
    """Give what the last trial with a fit left, if the model is still of that form, or None."""
    for earlier in sorted(study.get_trials(deepcopy=False), key=lambda one: -one.number):
        if earlier.number < trial.number and START_KEY in earlier.user_attrs:
            try:
                start = WarmStart.fromdict(earlier.user_attrs[START_KEY])
                gp.check_start(start, chains)
            except DataError:
                return None
            return start
    return None
