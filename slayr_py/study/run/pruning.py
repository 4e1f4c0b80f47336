"""`Prune`: stop trials whose final value is probably not the best."""

from __future__ import annotations

import math
import threading
import warnings
from dataclasses import dataclass, field
from typing import Any

from optuna import Study
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial, TrialState

from slayr_py.arguments import check_integer, check_probability
from slayr_py.errors import DataError, level_outside
from slayr_py.study.model.curve_points import NoForecast
from slayr_py.study.model.forecasts import Forecast, Forecasts
from slayr_py.study.sampler import declared_space_of
from slayr_py.study.storage.attributes import is_history, study_record, suggestion_record
from slayr_py.study.storage.curves import PRUNE_KEY, prune_record
from slayr_py.study.storage.objectives import check_one_objective
from slayr_py.study.storage.optuna_private import set_trial_attribute, stored_trial

_GROWTH = 1.1  # of the number of steps from one decision to the next
_LEARNED = 0.5  # largest factor by which the curve of a suggestion changes the probability when its trial is stopped


@dataclass(frozen=True)
class Prune(BasePruner):
    """Stop a trial when its final value is probably not the best one.

    A Gaussian process of configuration and step is fitted to the curves of all trials: complete, pruned and running
    ones. A trial is pruned when the probability that its final value will be better than the best value so far is
    below ``probability``. A trial that a `StanGPSampler` has suggested with its model is pruned only when its own curve
    says so too: it has at least halved that probability, or alone gives one below ``probability``. It is pruned without
    that below the square of ``probability``. A trial with a level of a categorical parameter that no complete trial has
    is pruned only if its own curve alone gives a probability below this square: the other curves say little about it.
    With ``fixed=`` or a context of `slayr_py.study.ask`, the best value is that of the trials with the same fixed
    values.

    Parameters
    ----------
    probability : float, default 0.05
        In (0, 1).
    n_startup_trials : int, default 3
        Number of complete trials with reported values before the first decision, at least 3.
    seed : int, optional
        Of the hyperparameters' draws; by default that of the study or, if it stores none, 0.

    Raises
    ------
    DataError
        If an argument is illegal.

    Notes
    -----
    Use it as ``minimize(objective, space, pruner=sl.Prune(0.05))`` with an ``objective(config, trial)``, or in any
    Optuna study with one objective: ``optuna.create_study(pruner=sl.Prune())``. The objective calls
    ``trial.report(value, step)`` and, if ``trial.should_prune()``, raises ``optuna.TrialPruned``.

    The steps of all trials have one unit and end at the same last step, whose value the objective returns. If the
    complete trials end at steps that differ by more than a factor of two, no trial is pruned, with a warning. Reported
    values that are NaN or infinite are ignored. A curve counts with at most 8 points, evenly spaced in the logarithm
    of the step. A decision is due when the step has grown by a tenth since the last one; between them
    ``should_prune()`` is False.

    Each decision is stored in the trial, see `slayr_py.study.curve_table`. A `StanGPSampler` learns from a pruned trial
    what its curve says about its final value, as an observation with a known error.
    """

    probability: float = 0.05
    n_startup_trials: int = 3
    seed: int | None = None
    _memory: _Memory = field(default_factory=lambda: _Memory(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        probability = check_probability("probability", self.probability)
        object.__setattr__(self, "probability", probability)
        object.__setattr__(
            self, "n_startup_trials", check_integer("n_startup_trials", self.n_startup_trials, minimum=3)
        )
        if self.seed is not None:
            object.__setattr__(self, "seed", check_integer("seed", self.seed, minimum=0))

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Return whether to stop a trial, and store the decision: Optuna calls it in ``trial.should_prune()``.

        Raises
        ------
        DataError
            If the study has several objectives.
        """
        check_one_objective(study, "sl.Prune supports one: leave the pruner out")
        step = trial.last_step
        stored = stored_trial(study, trial)
        record = prune_record(stored)  # Optuna passes the attributes of the start of the trial
        decisions = record.get("decisions", [])
        if step is None or (decisions and 1 + step < _GROWTH * (1 + decisions[-1]["step"])):
            return False
        declared = declared_space_of(study)
        fixed = None if declared is None else declared.fixed_for_comparison(study, stored)
        try:
            forecast = self.forecasts_of(study).forecast(study, trial, fixed)
        except NoForecast as reason:
            if reason.kind and record.get("why") != str(reason):
                self._memory.warn(f"trial {trial.number} is not pruned: {reason}", reason.kind)
                set_trial_attribute(study, trial, PRUNE_KEY, {**record, "why": str(reason)})
            return False
        is_suggested = suggestion_record(stored).get("phase") == "model"
        is_pruned = self._stops(forecast, is_suggested)
        decided = {**_record(forecast, is_pruned, self.probability), "decisions": [*decisions, _entry(forecast)]}
        set_trial_attribute(study, trial, PRUNE_KEY, decided)
        return is_pruned

    def _stops(self, forecast: Forecast, is_suggested: bool) -> bool:
        """Return whether to stop a trial, from which the model that has suggested it has to learn."""
        if forecast.probability >= self.probability:
            return False
        certain = self.probability**2
        if forecast.is_new:
            return forecast.by_curve < certain
        is_certain = forecast.probability < certain
        curve_says_so = forecast.by_curve < self.probability or forecast.probability < _LEARNED * forecast.without
        return not is_suggested or is_certain or curve_says_so

    def forecasts_of(self, study: Study) -> Forecasts:
        """Return the model of the curves of a study."""
        return self._memory.forecasts(self, study)


def check_pruner(pruner: BasePruner | None, n_objectives: int, warp: str) -> None:
    """Check a pruner for a study.

    Raises
    ------
    DataError
        If it is not a pruner, the study has several objectives, or the warp excludes known errors.
    """
    if pruner is None:
        return
    if not isinstance(pruner, BasePruner):
        raise DataError(f"pruner is {pruner!r:.200}; give a pruner such as sl.Prune(0.05)")
    if n_objectives > 1:
        raise DataError("a pruner is not supported with several objectives; leave pruner= out")
    if isinstance(pruner, Prune) and warp not in ("auto", "none"):
        raise DataError(
            f"warp={warp!r} cannot be combined with sl.Prune, since pruned trials are observations with known errors; "
            "use warp='none', or warp='auto', which leaves the warp out when a trial has been pruned"
        )


def warn_without_reports(study: Study) -> None:
    """Issue a warning if trials of a study with a pruner are complete and none has reported a value."""
    trials = study.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE and not is_history(trial)]
    reported = (value for trial in trials for value in trial.intermediate_values.values())
    if complete and not any(map(math.isfinite, reported)):
        warnings.warn(
            f"pruner= had no effect: none of {len(complete)} complete trials has reported a finite value; call "
            "trial.report(value, step) in the objective",
            UserWarning,
            stacklevel=level_outside(),
        )


def _record(forecast: Forecast, is_pruned: bool, threshold: float) -> dict[str, Any]:
    return {"pruned": is_pruned, "threshold": threshold, "evidence": list(forecast.evidence)}


def _entry(forecast: Forecast) -> dict[str, Any]:
    entry = forecast._asdict()
    del entry["evidence"]
    return entry


class _Memory:
    """The model of the study that was asked for last, and the warnings that were issued.

    Another process starts with an empty memory.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[str, Forecasts] = {}  # at most one
        self._warned: set[str] = set()

    def __reduce__(self) -> tuple[type[_Memory], tuple[()]]:
        return _Memory, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Memory:
        return _Memory()

    def forecasts(self, pruner: Prune, study: Study) -> Forecasts:
        """Return the model of a study."""
        with self._lock:
            # Studies in different storages may have the same name.
            name = f"{study.study_name} {study.get_trials(deepcopy=False)[0].datetime_start}"
            if name not in self._models:
                declared = declared_space_of(study)
                encoder = None if declared is None else declared.encoder
                seed = pruner.seed
                if seed is None:
                    record = study_record(study)
                    seed = 0 if record is None else int(record["seed"])
                self._models = {name: Forecasts(encoder, seed, pruner.n_startup_trials)}
            return self._models[name]

    def warn(self, text: str, kind: str) -> None:
        """Issue a warning unless one of its kind was issued before."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, UserWarning, stacklevel=level_outside())
