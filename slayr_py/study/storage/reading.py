"""Read the trials of a study once for all that a step of a suggestion asks of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

_read: ContextVar[tuple[Study, list[FrozenTrial]] | None] = ContextVar("_read", default=None)


@contextmanager
def reading_once(study: Study) -> Iterator[None]:
    """Let `trials_of` return the trials of the beginning of the block.

    A database takes several milliseconds to return trials, and a suggestion asks for them a dozen times. Inside another
    block, a new one reads again: decisions that depend on what other processes have done meanwhile start one.
    """
    token = _read.set((study, study.get_trials(deepcopy=False)))
    try:
        yield
    finally:
        _read.reset(token)


def trials_of(study: Study, states: Collection[TrialState] = tuple(TrialState)) -> list[FrozenTrial]:
    """Return the trials of a study in one of some states: within `reading_once`, those that it has read."""
    read = _read.get()
    trials = read[1] if read is not None and read[0] is study else study.get_trials(deepcopy=False)
    return [trial for trial in trials if trial.state in states]
