"""The optimisation loop, in the order in which it happens.

`run_loop` is the loop of `minimize`: ask for a trial, evaluate the objective, tell the value, until it is time to stop.
A trial that starts asks the sampler of the study for a configuration: Optuna calls `sample_relative`, which calls
`suggest_next`. The same happens in Optuna's own ``study.optimize`` and in ask and tell.

Trial t draws all random numbers from the stream (seed, t) and evaluates point t of the initial design. Workers that
share a storage therefore never evaluate the same point of the design, and a resumed study makes the suggestions that it
would have made without the interruption.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from optuna import Study, Trial
from optuna.trial import FrozenTrial

from slayr_py.errors import InferenceError, level_outside
from slayr_py.space import Fixed
from slayr_py.study.model.space_model import SpaceModel
from slayr_py.study.storage.attributes import store_numbers, store_suggestion
from slayr_py.study.storage.optuna_private import optimizing
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.suggestion import SuggestionRecord
from slayr_py.study.storage.trials import ended, observations_of_all
from slayr_py.study.storage.workers import start_next_trial

Callback = Callable[[Study, FrozenTrial], None]
"""An Optuna callback, called after every trial; ``study.stop()`` ends the loop."""


class Evaluations(AbstractContextManager["Evaluations"], Protocol):
    """Evaluations of the objective: `slayr_py.study.run.evaluation`."""

    def may_start(self) -> bool:
        """Return whether another evaluation may start now: the budget, the time and the executor have room for it."""

    def start(self, trial: Trial) -> None:
        """Start to evaluate the configuration of a trial."""

    def finish(self) -> Iterator[FrozenTrial]:
        """Wait for an evaluation; store the values of all that are done, and yield the finished trials."""

    def __bool__(self) -> bool:
        """Return whether an evaluation is running."""


def run_loop(
    study: Study, evaluations: Evaluations, callbacks: Sequence[Callback], stops: Callable[[Study], bool]
) -> None:
    """Evaluate trials until the budget or the time is used up, the stopping rule holds, or a callback ends the loop."""
    if stops(study):
        return
    with optimizing(study), evaluations:
        while True:
            while evaluations.may_start():
                trial = start_next_trial(study)  # Optuna asks the sampler: `suggest_next`
                evaluations.start(trial)
            if not evaluations:
                return
            for finished in evaluations.finish():  # stores values and tells them to Optuna
                for callback in callbacks:
                    callback(study, finished)
                if stops(study):
                    study.stop()


def suggest_next(model: SpaceModel, study: Study, trial: FrozenTrial, seed: int) -> SuggestionRecord:
    """Suggest the configuration of a trial and store it: a point of the initial design, or what the model proposes."""
    fixed = model.fixed_for_suggestion(study, trial)
    _, search_stream, filling_stream = np.random.SeedSequence([seed, trial.number]).spawn(3)

    # Initial design
    design = model.design.with_history(study, seed)
    if trial.number < len(design):
        config = model.design.evaluate_at(study, trial, design[trial.number], filling_stream, fixed)
        return store_suggestion(study, trial, {"phase": "initial", "config": config, **_fixed(fixed, config)})

    # Fit until the diagnostics pass, search under the posterior, with more draws if the result is uncertain
    before = ended(study)  # first: a trial that ends in between is pending as well as observed
    observed = observations_of_all(study, model.space)
    why = "no finished trial with a finite value yet"
    if observed[0].configs:
        try:
            scaled = model.at_scales(study, observed)
            gp = scaled.surrogate_of(study).model(study, trial, observed[0], seed)
            with scaled.propose(study, trial, observed, before, design, search_stream, fixed) as proposal:
                fitted = proposal.fit(gp, seed)
                suggestion = proposal.search(fitted)
                if more_draws := proposal.fit_more_draws(fitted, suggestion):
                    fitted = more_draws
                    suggestion = proposal.search(fitted)
                fitted.store(study, trial, model.options.warm_starts)

                # Under the search lock: search again if another process has chosen meanwhile, then store
                suggestion = proposal.settle(fitted, suggestion)
                record = proposal.record(fitted, suggestion)
                store_numbers(study, trial, record)
                return store_suggestion(study, trial, {**record, **_fixed(fixed, record["config"])})
        except InferenceError as error:
            why = str(error)
            text = f"trial {trial.number}: the fit failed, so a space-filling point is suggested: {why}"
            warnings.warn(text, RuntimeWarning, stacklevel=level_outside())

    # Nothing to fit, or the fit has failed
    with search_lock(study):
        config = model.design.fill(study, trial, filling_stream, fixed)
        record = {"phase": "random", "config": config, "error": why, **_fixed(fixed, config)}
        return store_suggestion(study, trial, record)


def _fixed(fixed: Fixed | None, config: Mapping[str, Any]) -> SuggestionRecord:
    """Return the entry of a suggestion record with the values that were not searched, as the objective gets them."""
    return {} if fixed is None else {"fixed": {name: config[name] for name in fixed.values}}
