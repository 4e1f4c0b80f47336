"""The optimisation loop's heart as an Optuna sampler: a Sobol design first, then fit, maximise, suggest.

Trial number t draws everything from the stream (seed, t), and its place in the initial design is t itself. So several
workers on one storage never hand out the same point of the design, and a study that was stopped goes on with the very
suggestions it would have made.
"""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from ConfigSpace import Configuration, ConfigurationSpace
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial

from slayr_py.acquisition import Acquisition
from slayr_py.acquisition import from_name as acquisition_from_name
from slayr_py.errors import DataError, InferenceError, SpaceError
from slayr_py.inference import GaussianProcess, Posterior
from slayr_py.inference.sampling.attempts import check_retries
from slayr_py.inference.sampling.run import Method, check_options
from slayr_py.kernels import from_name as kernel_from_name
from slayr_py.space import Encoder, encoder_to_json
from slayr_py.study.distributions import space_to_distributions, to_configuration, to_params
from slayr_py.study.proposal import Phase, Proposer, as_stan_seed
from slayr_py.study.storage.attributes import (
    STUDY_KEY,
    SUGGESTION_KEY,
    kernel_record,
    leave_suggestion,
    space_difference,
    study_record,
    suggestion_record,
)
from slayr_py.study.storage.trials import excluded, observations, pending
from slayr_py.study.storage.workers import turn

_FILLING = 64  # points among which one is looked for that was not tried yet


class StanGPSampler(BaseSampler):
    """Suggest configurations of a declared space by a Gaussian process fitted with Stan.

    Parameters
    ----------
    space : ConfigurationSpace or Encoder
        The search space, conditions and forbidden clauses included; an `Encoder` of it carries graphs of one's own. It
        is the declared space that is modelled, not the intersection of what trials happened to suggest.
    kernel : str or kernel, default "auto"
        A name or an object of `slayr_py.kernels`; "auto" looks at the space.
    acquisition : str or Acquisition, default "ei"
        A name or an object of `slayr_py.acquisition`.
    n_initial : int, default 10
        Size of the scrambled Sobol design; trial number t < n_initial gets its t-th point. Points that coincide, as
        they do in small discrete spaces, are evaluated once.
    seed : int, optional
        Non-negative; everything random follows from it. Without one the study keeps the seed it has, and a new study
        draws one and stores it.
    method, chains, warmup, draws, target_acceptance, max_treedepth, ess, retries, priors
        As in `GaussianProcess` and its `fit`.
    warm_starts : bool, default True
        Each fit begins where that of the last trial ended, whose posterior lacks one observation only.
    initial_configs : sequence of mappings, optional
        The initial design itself, in place of the Sobol design; `n_initial` is then its length.
    noisy : bool, default False
        The objective answers differently when it is asked again. Configurations may then be suggested again, and what
        an improvement has to beat is the smallest posterior mean at an observed configuration instead of the smallest
        observed value.
    on_progress : callable, optional
        Receives a `Phase` whenever the work changes.

    Raises
    ------
    SpaceError
        An empty space, or an initial configuration that is not of the space.
    DataError
        An unknown kernel, acquisition or method, or an illegal option.

    Notes
    -----
    A study remembers its space and seed. Resuming it with another space raises `SpaceError`, with another seed
    `DataError`; kernel, graphs, acquisition, design, noisiness and fit options may change between runs: the study
    records what it was started with, every trial what it was suggested with. Failed, pruned and infinite trials are
    never fitted. Parameters outside the declared space are drawn at random, from the same seeds. Only one objective is
    supported.
    """

    def __init__(
        self,
        space: ConfigurationSpace | Encoder,
        kernel: Any = "auto",
        acquisition: str | Acquisition = "ei",
        n_initial: int = 10,
        seed: int | None = None,
        *,
        method: Method = "nuts",
        chains: int = 4,
        warmup: int = 300,
        draws: int = 50,
        target_acceptance: float = 0.8,
        max_treedepth: int = 10,
        ess: int | None = 50,
        retries: int = 1,
        warm_starts: bool = True,
        priors: Mapping[str, Any] | None = None,
        initial_configs: Sequence[Mapping[str, Any]] | None = None,
        noisy: bool = False,
        on_progress: Callable[[Phase], None] | None = None,
    ) -> None:
        self.encoder = space if isinstance(space, Encoder) else Encoder(space)
        self.space = self.encoder.space
        self.distributions = space_to_distributions(self.space)
        self.kernel = kernel_from_name(kernel, self.encoder)
        self.kernel_record = kernel_record(
            self.kernel, self.encoder, automatic=isinstance(kernel, str) and kernel == "auto"
        )
        self.acquisition = acquisition_from_name(acquisition)
        self.seed = _checked_seed(seed)
        self.n_initial = _positive("n_initial", n_initial)
        self.fit_options: dict[str, Any] = {
            "method": method,
            **check_options(
                method,
                chains=chains,
                warmup=warmup,
                draws=draws,
                target_acceptance=target_acceptance,
                max_treedepth=max_treedepth,
                ess=ess,
            ),
            "retries": check_retries(retries),
        }
        self.initial_configs: list[Configuration] | None = None
        if initial_configs is not None:
            self.initial_configs = [self.encoder.configuration(config) for config in initial_configs]
            self.n_initial = len(self.initial_configs)
        for name, flag in (("noisy", noisy), ("warm_starts", warm_starts)):
            if not isinstance(flag, bool):
                raise DataError(f"{name} must be True or False, not {flag!r}")
        self.noisy, self.warm_starts = noisy, warm_starts
        self.on_progress = on_progress
        self.gp = GaussianProcess(self.encoder, kernel=self.kernel, priors=priors)
        self._proposer = Proposer(
            self.gp, self.acquisition, self.fit_options, self.warm_starts, self.noisy, self._tell, self._warn_once
        )
        self._prepared = False
        self._warned: set[str] = set()
        self._designs: dict[int, list[Configuration]] = {}
        # Threads of one process take turns, so that the next one sees the last one's suggestion as pending.
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock behind when the sampler is copied to another process."""
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make a new lock."""
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # What Optuna calls

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Check that study and sampler belong together; note a trial whose every parameter the user enqueued."""
        self.bind(study)
        fixed = trial.system_attrs.get("fixed_params")
        config = to_configuration(self.space, fixed) if fixed else None
        if config is not None:
            # Optuna asks for no suggestion then, so this is the only moment to say what other workers must not repeat.
            leave_suggestion(study, trial, {"phase": "enqueued", "config": to_params(config)})

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Give the declared space, whatever other trials suggested."""
        return dict(self.distributions)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest the active parameters of one configuration."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        with self._lock:
            seed, record = self.bind(study), suggestion_record(trial)
            # A trial that a killed process has left may have its suggestion already.
            if "config" not in record or record.get("phase") == "enqueued":
                record = self._suggest(study, trial, seed)
        return {name: value for name, value in record["config"].items() if name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw a parameter at random: one outside the declared space, or asked for with another range."""
        self._raise_error_if_multi_objective(study)
        seed = self.bind(study)
        # Not of the trial itself, which is a copy made before the suggestion.
        attributes = study._storage.get_trial_user_attrs(trial._trial_id)
        suggested = attributes.get(SUGGESTION_KEY, {}).get("config", {})
        if param_name in suggested:
            self._warn_once(
                f"parameter {param_name!r} was declared as {self.distributions[param_name]} and is asked for as "
                f"{param_distribution}, which does not contain the suggested {suggested[param_name]!r}: it is drawn at "
                "random. Ask for it as the space declares it",
                about=param_name,
            )
        stream = np.random.SeedSequence([seed, trial.number, zlib.crc32(param_name.encode())])
        draw = RandomSampler(seed=int(stream.generate_state(1)[0]))
        return draw.sample_independent(study, trial, param_name, param_distribution)

    # The loop

    def bind(self, study: Study) -> int:
        """Check that this sampler may go on with a study, record it in a new one, and give the study's seed.

        Raises
        ------
        SpaceError
            The study was started with another space.
        DataError
            The study was started with another seed.
        """
        record = study_record(study)
        if record is None:
            seed = self.seed if self.seed is not None else int(np.random.SeedSequence().generate_state(1)[0])
            study.set_user_attr(
                STUDY_KEY,
                {
                    **encoder_to_json(self.encoder),
                    "seed": seed,
                    "kernel": self.kernel_record,
                    "acquisition": self.acquisition.name,
                    "n_initial": self.n_initial,
                    "noisy": self.noisy,
                },
            )
            # Two workers may start a study at once: the later record stands, and every trial reads it anew.
            record = study_record(study)
            assert record is not None
        if difference := space_difference(record["space"], self.space):
            raise SpaceError(
                f"study {study.study_name!r} was started with another space: {difference}; "
                "go on with its own space, or choose another study name"
            )
        if self.seed is not None and record["seed"] != self.seed:
            raise DataError(
                f"study {study.study_name!r} was started with seed {record['seed']}, not {self.seed}; "
                "leave the seed out to go on with it, or choose another study name"
            )
        return int(record["seed"])

    def prepare(self) -> None:
        """Find or build what a fit needs (CmdStan, the compiled program), once.

        Raises
        ------
        ToolchainError
            No compiler or no CmdStan.
        """
        if not self._prepared:
            self._tell(Phase("compiling", None))
            self.gp.prepare(lambda detail: self._tell(Phase("compiling", None, detail=detail)))
            self._prepared = True

    def design(self, seed: int) -> list[Configuration]:
        """Give the initial design of a study, without repetitions; trial t gets the t-th of them."""
        if self.initial_configs is not None:
            return self.initial_configs
        if seed not in self._designs:
            distinct = {repr(to_params(config)): config for config in self.encoder.sobol(self.n_initial, seed)}
            self._designs[seed] = list(distinct.values())
        return self._designs[seed]

    def fit(self, study: Study, seed: int | None = None) -> Posterior:
        """Fit the model to a study's finished trials.

        Parameters
        ----------
        study : optuna.Study
            With at least one complete trial.
        seed : int, optional
            Of the Stan run; by default it follows from the study's seed.

        Returns
        -------
        Posterior
            Of the values to be minimised: negated ones where the study maximises.

        Raises
        ------
        DataError
            No trial can be fitted.
        InferenceError
            Stan failed.
        """
        observed = observations(study, self.space)
        if not observed.configs:
            raise DataError(f"study {study.study_name!r} has no finished trial with a finite value: nothing to fit")
        self.prepare()
        if seed is None:
            seed = as_stan_seed(np.random.SeedSequence(self.bind(study)))
        return self.gp.fit(observed.configs, observed.y, seed=seed, **self.fit_options)

    def _suggest(self, study: Study, trial: FrozenTrial, seed: int) -> dict[str, Any]:
        """Suggest a configuration and leave in the trial how it came about."""
        t = trial.number
        of_fit, of_acquisition, of_filling = np.random.SeedSequence([seed, t]).spawn(3)
        design = self.design(seed)
        if t < len(design):
            # Somebody may have enqueued the very point; whoever gives a design of their own wants it as it is.
            repeated = self.initial_configs is None and to_params(design[t]) in self._taken(study, trial)
            config = self._space_filling(study, trial, of_filling) if repeated else to_params(design[t])
            return leave_suggestion(study, trial, {"phase": "initial", "config": config})

        observed = observations(study, self.space)
        why = "no finished trial with a finite value yet"
        if observed.configs:
            try:
                self.prepare()
                return self._proposer(study, trial, observed, design, (of_fit, of_acquisition))
            except InferenceError as error:
                why = str(error)
                warnings.warn(
                    f"trial {t}: the fit failed, so a space-filling point is taken instead: {why}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        with turn(study):
            config = self._space_filling(study, trial, of_filling)
            return leave_suggestion(study, trial, {"phase": "random", "config": config, "error": why})

    def _space_filling(self, study: Study, trial: FrozenTrial, stream: np.random.SeedSequence) -> dict[str, Any]:
        """Give a point of another Sobol sequence, the first of some that was not tried yet."""
        try:
            points = self.encoder.sobol(_FILLING, as_stan_seed(stream))
        except SpaceError:  # forbidden clauses leave hardly any
            points = self.encoder.sobol(1, as_stan_seed(stream))
        taken = self._taken(study, trial)
        return to_params(next((point for point in points if to_params(point) not in taken), points[0]))

    def _taken(self, study: Study, trial: FrozenTrial) -> list[dict[str, Any]]:
        """Give what is evaluated now and, unless it may be asked again, what was."""
        tried = [] if self.noisy else excluded(study, self.space)
        return [to_params(config) for config in (*pending(study, self.space, trial), *tried)]

    def _warn_once(self, text: str, about: str = "") -> None:
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(text, UserWarning, stacklevel=3)

    def _tell(self, phase: Phase) -> None:
        if self.on_progress is not None:
            self.on_progress(phase)


def _checked_seed(seed: int | None) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DataError(f"seed must be a non-negative integer or None, not {seed!r}")
    return int(seed)


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(f"{name} must be a positive integer, not {value!r}")
    return int(value)


def sampler_of(study: Study) -> StanGPSampler | None:
    """Give the study's sampler if it is one of ours."""
    sampler: optuna.samplers.BaseSampler = study.sampler
    return sampler if isinstance(sampler, StanGPSampler) else None
