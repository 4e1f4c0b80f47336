"""Whether a run has a configuration to evaluate: an exact study of a finite space ends when all are evaluated."""

from __future__ import annotations

import warnings

from optuna import Study
from optuna.trial import TrialState

from slayr_py.errors import level_outside
from slayr_py.study.model.exhaustion import Everything
from slayr_py.study.results.noise import is_noisy
from slayr_py.study.sampler import declared_space_of
from slayr_py.study.storage.optuna_private import id_of_study
from slayr_py.study.storage.reading import reading_once, trials_of
from slayr_py.study.storage.workers import started_trials, worker_storage


class Untried:
    """The configurations of a study that its run may still evaluate."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._everything: Everything | None = None
        if (declared := declared_space_of(study)) is not None and not declared.options.noisy:
            self._everything = Everything(declared.encoder, declared.fixed_for_run(study))
            self._failures = declared.options.failures

    def are_left(self) -> bool:
        """Return whether there is one, or a trial that is enqueued or to be resumed, or a reason to repeat one."""
        if self._everything is None or self._everything.keys is None:
            return True
        with reading_once(self.study):
            if not self._everything.are_tried(self.study, self._failures):
                return True
            if is_noisy(self.study) or trials_of(self.study, (TrialState.WAITING,)):
                return True
        storage = worker_storage(self.study)
        return storage is not None and bool(storage.resumable(id_of_study(self.study)))

    def warn(self, budget: int) -> None:
        """Warn that the run ends before its budget is used up."""
        running = " or running" * bool(self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)))
        warnings.warn(
            f"study {self.study.study_name!r} ends after {started_trials(self.study)} of {budget} trials: "
            f"{self._everything} evaluated{running}; noisy=True repeats them",
            UserWarning,
            stacklevel=level_outside(),
        )
