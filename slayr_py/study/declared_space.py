"""Suggest configurations of a declared space."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial
from typing_extensions import Unpack

from slayr_py.acquisition import ignored_beliefs
from slayr_py.errors import EnqueuedError, did_you_mean, level_outside
from slayr_py.inference import FitKeywords, Posterior
from slayr_py.progress_bar import Bar
from slayr_py.space import Space, as_encoder, jsonable
from slayr_py.study.loop import suggest_next
from slayr_py.study.model.options import SamplerOptions
from slayr_py.study.model.proposer import FittedModels
from slayr_py.study.model.session import Session
from slayr_py.study.model.space_model import SpaceModel, stan_seed_of
from slayr_py.study.storage.attributes import (
    ASKED_KEY,
    OUTSIDE_KEY,
    store_suggestion,
    store_treatment_of_failures,
    suggestion_record,
)
from slayr_py.study.storage.binding import bind_study
from slayr_py.study.storage.distributions import space_to_distributions, to_configuration, to_params
from slayr_py.study.storage.objectives import Goal
from slayr_py.study.storage.optuna_private import enqueued_values, set_trial_attribute, stored_trial
from slayr_py.study.storage.reading import reading_once
from slayr_py.study.storage.requests import check_request
from slayr_py.study.storage.suggesting import draw_independent, suggest_or_fail
from slayr_py.study.storage.trials import Observations, observations_of_all

_SHOWN_AFTER = 5.0  # seconds after which a batch has a progress bar


class DeclaredSpace(SpaceModel):
    """The strategy of a sampler with a space: one model suggests all parameters, and the study records the space.

    Parameters
    ----------
    space : ConfigurationSpace or Encoder
    options : SamplerOptions
    session : Session

    Raises
    ------
    SpaceError
        For an empty space; see also `SpaceModel`.
    """

    def __init__(self, space: Space, options: SamplerOptions, session: Session) -> None:
        encoder = as_encoder(space, options.within)
        self.distributions = space_to_distributions(encoder.space)
        super().__init__(encoder, options, session)
        self.kernel_record = self.surrogate.record()
        self._latest: tuple[Hashable, dict[str, Any]] = (None, {})

    def bind(self, study: Study) -> int:
        """Record the space in a new study, or compare it with the recorded space; return the study's seed.

        Whether failures are modelled is recorded too: penalties are failures if they are.

        Raises
        ------
        SpaceError
            If the study was started with another space.
        DataError
            If the study was started with another seed or prior.
        """
        options = {
            "kernel": self.kernel_record,
            "acquisition": self.options.criterion.name,
            "n_initial": self.design.size,
            "noisy": self.options.noisy,
            "prior": None if self.prior is None else jsonable(self.prior.record),
            "cost": self.options.cost,
        }
        seed = bind_study(study, self.encoder, self.options.seed, options)
        store_treatment_of_failures(study, ignores=self.options.failures == "ignore")
        return seed

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Bind the sampler to the study; record the configuration of a trial that the user enqueued completely."""
        self.bind(study)
        if self.prior is None and (ignored := ignored_beliefs(self.encoder)):
            self.session.warn(
                f"the space has distributions or weights of {', '.join(ignored)}, which are ignored; use them as a "
                "belief about the optimum with prior='space'",
                about="prior",
            )
        enqueued = enqueued_values(trial)
        for name in enqueued.keys() - self.space.keys():
            text = f"trial {trial.number} was enqueued with {name!r}, which is not declared, so the model ignores it"
            self.session.warn(text + did_you_mean(name, self.space), about=name)
        config = to_configuration(self.space, enqueued) if enqueued else None
        if config is not None:
            # Optuna does not ask for a suggestion later, and other workers must not repeat this one.
            store_suggestion(study, trial, {"phase": "enqueued", "config": to_params(config)})

    def relative_space(self, study: Study) -> dict[str, BaseDistribution]:
        """Return no parameters: Optuna then passes every request to `sample_independent`, which compares the ranges.

        Optuna itself would answer a request with another range that contains the suggestion.
        """
        return {}

    def relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest one configuration and store it; return its active parameters that are in ``search_space``."""
        seed = self.bind(study)
        record = suggestion_record(trial)
        # A resumed trial of a killed process may already have its suggestion.
        if "config" not in record:
            with reading_once(study):
                self.warn_of_trials(study)
                record = suggest_next(self, study, trial, seed)
                self.warn_of_repetition(study, trial, record)
        self._latest = _identity(study, trial), {**record["config"], **enqueued_values(trial)}
        return {name: value for name, value in record["config"].items() if name in search_space}

    def independent(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """Return the suggested value of a parameter.

        A parameter that is active only because of enqueued values that no configuration has together is drawn at
        random.

        Raises
        ------
        SpaceError
            If the parameter is not declared, was declared with another range, or is inactive in this trial.
        """
        identity, suggested = self._latest
        if identity != _identity(study, trial):
            # Optuna's trial was read before its suggestion was stored, by another sampler or in another thread.
            stored = stored_trial(study, trial)
            suggested = {**suggestion_record(stored).get("config", {}), **enqueued_values(stored)}
        check_request(self.space, trial.number, name, distribution, {**suggested, **trial.params})
        if name in suggested:
            return suggested[name]
        return draw_independent(study, trial, name, distribution, self.bind(study))

    def after_evaluation(self, study: Study, trial: FrozenTrial) -> None:
        """Mark a trial that violates a constraint on inputs, with a warning at the first: it is never the best one.

        Optuna evaluates enqueued values and those of its `PartialFixedSampler` whether or not they are legal.
        """
        if self.encoder.region is None or (config := to_configuration(self.space, trial.params)) is None:
            return
        self.is_unchecked(study, trial)  # not to be compared again for a warning
        if broken := self.encoder.outside([config])[0]:
            set_trial_attribute(study, trial, OUTSIDE_KEY, broken)
            self.session.warn(
                f"trial {trial.number}: {broken}; the model learns from it, but it is never the best one. Neither are "
                "later trials outside the constraints on inputs, which are marked without a warning",
                about=f"outside {study.study_name}",
            )

    def ask_batch(self, study: Study, q: int) -> list[Trial]:
        """Start q trials and suggest all their parameters; others replace trials that were enqueued wrongly."""
        trials: list[Trial] = []
        with Bar(total=q, unit="suggestion", delay=_SHOWN_AFTER, leave=False) as bar:
            while missing := q - len(trials):
                for trial in [study.ask() for _ in range(missing)]:
                    try:
                        suggest_or_fail(study, trial, self.space, self.encoder)
                    except EnqueuedError as error:
                        text = f"trial {trial.number} fails: {error}"
                        warnings.warn(text, RuntimeWarning, stacklevel=level_outside())
                    else:
                        trial.set_user_attr(ASKED_KEY, True)
                        trials.append(trial)
                        bar.update()
        return trials

    def fit_all(self, study: Study, seed: int | None, goal: Goal, **fit: Unpack[FitKeywords]) -> Posterior:
        """Fit the model to an objective of a study's finished trials: see `StanGPSampler.fit`."""
        self.warn_of_trials(study)
        return self.fit(study, stan_seed_of(self.bind(study)) if seed is None else seed, goal, **fit)

    @contextmanager
    def next_models(self, study: Study) -> Iterator[tuple[Sequence[Observations], FittedModels] | None]:
        """Fit the models of the next suggestion, which reuses these fits; yield None during the initial design.

        The design ends when as many trials have finished as it has configurations: a running trial may be abandoned.
        The sampler makes no suggestion until the ``with`` block ends.

        Raises
        ------
        InferenceError
            If Stan fails.
        ToolchainError
            If Stan cannot be run here.
        """
        with self.session.lock:
            seed = self.bind(study)
            trials = study.get_trials(deepcopy=False)
            finished = sum(trial.state.is_finished() for trial in trials)
            observed = observations_of_all(study, self.space)
            if finished < len(self.design.with_history(study, seed)) or not observed[0].configs:
                yield None
                return
            scaled = self.at_scales(study, observed)
            gp = scaled.surrogate_of(study).latest(study, observed[0])
            yield observed, scaled.proposer.fit(gp, study, len(trials), observed, seed)


def _identity(study: Study, trial: FrozenTrial) -> Hashable:
    return study.study_name, trial.number, trial.datetime_start
