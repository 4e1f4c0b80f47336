"""Warm starts in the loop: what the fit of one trial leaves in the study for that of the next.

A stored start is all a process needs to go on where another one stopped, bit for bit.
"""

from __future__ import annotations

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError
from slayr_py.inference import GaussianProcess, WarmStart
from slayr_py.study.record import START_KEY


def leave_start(study: Study, trial: FrozenTrial, start: WarmStart) -> None:
    """Store where the next fit can begin."""
    study._storage.set_trial_user_attr(trial._trial_id, START_KEY, start.asdict())


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
