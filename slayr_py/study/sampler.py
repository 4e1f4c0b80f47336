"""An Optuna sampler: suggest a Sobol design first, then fit the model and maximise the acquisition.

Trial t draws all random numbers from the stream (seed, t) and evaluates point t of the initial design. Workers that
share a storage therefore never evaluate the same point of the design, and a resumed study makes the suggestions that it
would have made without the interruption.
"""

from __future__ import annotations

import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_args

import numpy as np
import optuna
from ConfigSpace import Configuration, ConfigurationSpace
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial
from typing_extensions import Unpack

from slayr_py.acquisition import Acquisition, from_name as acquisition_from_name
from slayr_py.arguments import check_flag, check_integer
from slayr_py.errors import DataError, InferenceError, SpaceError, did_you_mean
from slayr_py.inference import (
    FitKeywords,
    GaussianProcess,
    Posterior,
    Priors,
    Warp,
    as_stan_seed,
)
from slayr_py.kernels import NOISE, Kernel, LogNormal, Stack, from_name as kernel_from_name
from slayr_py.search import KernelSearch
from slayr_py.space import Encoder, Fixed
from slayr_py.study.distributions import check_request, space_to_distributions, to_configuration, to_params
from slayr_py.study.feasibility import Failures, FeasibilityModels
from slayr_py.study.fit_cache import FitCache
from slayr_py.study.inferred_space import InferredSpaces, groups
from slayr_py.study.kernel_searches import LoopSearch, as_search, search_record
from slayr_py.study.loop_fits import LoopFits
from slayr_py.study.proposal import LOOP_OPTIONS, Fitted, Phase, Proposer
from slayr_py.study.storage.attributes import (
    CONTEXT_KEY,
    is_history,
    kernel_record,
    store_numbers,
    store_suggestion,
    suggestion_record,
)
from slayr_py.study.storage.binding import bind_study
from slayr_py.study.storage.fit_records import store_fit
from slayr_py.study.storage.optuna_private import stored_trial
from slayr_py.study.storage.trials import Observations, excluded, left_out, observations, pending, trial_configuration
from slayr_py.study.storage.workers import missing_lock, search_lock
from slayr_py.study.suggesting import suggest_all

NOISELESS = LogNormal(-4.0, 0.5)
"""Prior of ``sigma_n`` for objectives without noise. A wider one lets points that nearly coincide, which the loop
evaluates when it has converged, drive ``sigma_n`` to where the covariance is singular up to rounding."""

_SMALLEST_DESIGN = 4
_LARGEST_DESIGN = 10
_ANY = {"x": (0.0, 1.0)}  # a space to check options with
_FILLING = 64  # size of the Sobol sequence in which to look for a new point


class SamplerKeywords(FitKeywords, total=False):
    """The arguments of `StanGPSampler` after the space, all of them optional."""

    kernel: str | Kernel | Stack | KernelSearch
    acquisition: str | Acquisition
    n_initial: int | None
    seed: int | None
    warm_starts: bool
    priors: Priors | None
    warp: Warp
    initial_configs: Sequence[Mapping[str, Any]] | None
    noisy: bool
    failures: Failures
    fixed: Mapping[str, Any] | None
    on_progress: Callable[[Phase], None] | None


class StanGPSampler(BaseSampler):
    """Suggest configurations of a declared space by a Gaussian process fitted with Stan.

    Parameters
    ----------
    space : ConfigurationSpace or Encoder, optional
        The search space, with conditions and forbidden clauses; an `Encoder` also has graphs. The declared space is
        modelled, not the intersection of the trials' parameters. Without one, the parameters are inferred from the
        complete trials, as Optuna's own samplers do: see Notes.
    kernel : str, Kernel, Stack or KernelSearch, default "auto"
        A name, an expression such as "LIN * PER + SE", or an object of `slayr_py.kernels`; "auto" chooses by the space.
        Of a `slayr_py.stack`, every kernel is fitted for each suggestion, and the acquisition is averaged with the
        weights of stacking; models of failures and constraints have its first kernel.

        "search" searches for expressions with 20 fits whenever the observations have doubled, from twice the size of
        the initial design on but not below 30, and then averages the best three and the kernel of "auto", which is used
        alone until the first search and for failures and constraints. A `slayr_py.search.KernelSearch` of the space
        does so with its own settings. A search sees standardised targets, transformed by the warp at the median of its
        prior, and ignores ``y_sd``. Priors of ``mu``, ``sigma_f``, ``sigma_n`` and ``warp`` hold for all kernels,
        others for that of "auto".
    acquisition : str or Acquisition, default "ei"
        A name or an object of `slayr_py.acquisition`.
    n_initial : int, optional
        Size of the scrambled Sobol design, by default 4 and one more for every two parameters, at most 10. Trial
        t < n_initial evaluates its point t. Points that coincide, as in small discrete spaces, are evaluated once.
    seed : int, optional
        Non-negative; fixes all random numbers. By default a resumed study keeps its seed, and a new study draws one and
        stores it.
    warm_starts : bool, default True
        Start each fit from the last one, whose posterior is similar because it lacks only one observation.
    priors : mapping of str to Prior, optional
        As in `GaussianProcess`. Unless ``noisy``, the default of ``sigma_n`` is LogNormal(-4, 0.5).
    warp : {"auto", "none", "log"}
        As in `GaussianProcess`: "auto" and "log" compress bad values, which are the large ones of a minimised and the
        small ones of a maximised objective. The model can then describe good configurations better.
    initial_configs : sequence of mappings, optional
        An initial design to use instead of the Sobol design; `n_initial` is then its length.
    noisy : bool, default False
        The objective returns different values for the same configuration. Configurations may then be suggested again,
        and the value to improve on is the smallest posterior mean at an observed configuration instead of the smallest
        observed value.
    failures : {"learn", "ignore"}
        "learn": once there are successes and failures, a probit Gaussian process with the same kernel models the
        probability of success, and the acquisition is multiplied by it. "ignore": failed configurations are only not
        suggested again.
    fixed : mapping of str to value, optional
        Parameters that keep these values in the suggestions of this sampler: the acquisition is maximised over the
        others, and improvement is measured from the best configuration with these values. The space of the study does
        not change, and trials with other values inform the model.
    on_progress : callable, optional
        Receives a `Phase` whenever a new step of the work starts.
    method, chains, warmup, draws, target_acceptance, max_treedepth, ess, retries, pointwise
        Options of the fits: see `GaussianProcess.fit`. Defaults: "carried", 4, 300, 50, 0.8, 10, 50, 1, False.

    Attributes
    ----------
    fit_options : FitOptions

    Raises
    ------
    SpaceError
        For an empty space, an initial configuration that does not belong to it, or an illegal fixed value.
    DataError
        For an unknown kernel, acquisition or method, or an illegal option.

    Notes
    -----
    A study stores its space and seed. Resuming it with another space raises `SpaceError`, with another seed
    `DataError`. Kernel, graphs, acquisition, design, noisiness and fit options may change between runs: the study
    records those it was started with, and each trial those of its own suggestion. Studies with several objectives are
    not supported.

    The objective's model is fitted to complete trials with finite values only. Each constraint that trials report
    (`Trial.set_constraint`) is modelled by a Gaussian process, and the acquisition is multiplied by the probability
    that none is violated. A trial's user attribute ``y_sd`` is the known standard deviation of its value's error.

    A trial that asks for a parameter that is not declared, that was declared with another range, or that is inactive in
    its configuration raises `SpaceError`, since the model would know nothing of the value. Optuna answers fixed
    parameters of enqueued trials and ranges with a single value without a sampler: the trial then has what it
    evaluated. A complete trial that never asked for an active parameter is left out of the fit, with a warning.

    Without a space, objectives written for Optuna run unchanged. The parameters that all complete trials have are
    modelled together; those that occur in the same part of the trials, such as in one branch of the objective, are
    modelled by themselves, since conditions are unknown. Steps are kept. All else is drawn at random, including the
    first trial. The study stores no space, so it has no `Result`, and `fit` fits the parameters that all trials have.
    """

    def __init__(
        self,
        space: ConfigurationSpace | Encoder | None = None,
        kernel: str | Kernel | Stack | KernelSearch = "auto",
        acquisition: str | Acquisition = "ei",
        n_initial: int | None = None,
        seed: int | None = None,
        *,
        warm_starts: bool = True,
        priors: Priors | None = None,
        warp: Warp = "auto",
        initial_configs: Sequence[Mapping[str, Any]] | None = None,
        noisy: bool = False,
        failures: Failures = "learn",
        fixed: Mapping[str, Any] | None = None,
        on_progress: Callable[[Phase], None] | None = None,
        **fit: Unpack[FitKeywords],
    ) -> None:
        # Threads suggest one after another, so that each knows the pending suggestions of the others.
        self._lock = threading.RLock()
        self._warned: set[str] = set()
        self._inferred: InferredSpaces[StanGPSampler] | None = None
        self.seed = None if seed is None else check_integer("seed", seed, minimum=0)
        self.on_progress = on_progress
        if space is None:
            if isinstance(kernel, Stack):
                raise DataError("a stack of kernels needs a declared space: StanGPSampler(space, kernel=...)")
            if isinstance(kernel, KernelSearch) or (isinstance(kernel, str) and kernel == "search"):
                raise DataError("a kernel search needs a declared space: StanGPSampler(space, kernel='search')")
            if initial_configs is not None:
                raise DataError("initial_configs needs a space: enqueue the configurations with study.enqueue_trial")
            if fixed is not None:
                raise DataError("fixed needs a space: use optuna.samplers.PartialFixedSampler")
            self._options: dict[str, Any] = {
                **{"kernel": kernel, "acquisition": acquisition, "n_initial": n_initial, "warm_starts": warm_starts},
                **{"priors": priors, "warp": warp, "noisy": noisy, "failures": failures, **fit},
            }
            self._model_of(ConfigurationSpace(_ANY), check_only=True)
            drawn = int(np.random.SeedSequence().generate_state(1)[0])
            self._inferred = InferredSpaces(self._model_of, drawn if self.seed is None else self.seed)
            return
        self.encoder = space if isinstance(space, Encoder) else Encoder(space)
        self.space = self.encoder.space
        self.distributions = space_to_distributions(self.space)
        search = as_search(kernel, self.encoder)
        own = "auto" if isinstance(kernel, KernelSearch) or search is not None else kernel
        fitted = own.on(self.encoder) if isinstance(own, Stack) else kernel_from_name(own, self.encoder)
        self.kernel: Kernel | Stack | KernelSearch = fitted if search is None else search
        if search is not None and isinstance(fitted, Kernel):
            self.kernel_record = search_record(search, fitted)
        else:
            automatic = isinstance(kernel, str) and kernel == "auto"
            self.kernel_record = kernel_record(fitted, self.encoder, automatic)
        self.acquisition = acquisition_from_name(acquisition)
        if n_initial is None:
            n_initial = min(_LARGEST_DESIGN, _SMALLEST_DESIGN + len(self.encoder.names) // 2)
        self.n_initial = check_integer("n_initial", n_initial)
        self.fit_options = LOOP_OPTIONS.updated(**fit)
        self.fixed = self.encoder.fix(fixed, "fixed: ") if fixed is not None else None
        self.initial_configs: list[Configuration] | None = None
        if initial_configs is not None:
            kept = {} if self.fixed is None else self.fixed.values
            self.initial_configs = [self.encoder.configuration({**config, **kept}) for config in initial_configs]
            self.n_initial = len(self.initial_configs)
        self.noisy = check_flag("noisy", noisy)
        self.warm_starts = check_flag("warm_starts", warm_starts)
        of_noise: Priors = {} if self.noisy else {NOISE.name: NOISELESS}
        chosen: Priors = {**of_noise, **(priors or {})}
        self.gp = GaussianProcess(self.encoder, fitted, chosen, warp)
        self._search: LoopSearch | None = None
        if search is not None:
            self._search = LoopSearch(search, self.gp, chosen, self.n_initial, self._report, self._warn_once)
        if failures not in get_args(Failures):
            raise DataError(f"unknown failures {failures!r}{did_you_mean(failures, get_args(Failures))}")
        self.failures: Failures = failures
        fits = FitCache()
        first = fitted.kernels[0] if isinstance(fitted, Stack) else fitted
        feasibility = FeasibilityModels(self.encoder, kernel_from_name(first), of_noise, failures, fits)
        self._proposer = Proposer(
            self.acquisition,
            self.fit_options,
            self.warm_starts,
            self.noisy,
            feasibility,
            fits,
            self._report,
            self._warn_once,
        )
        self._prepared = False
        self._declared = True
        self._designs: dict[int, list[Configuration]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Omit the lock, which cannot be copied to another process."""
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Create a new lock."""
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # Methods called by Optuna

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Bind the sampler to the study; record the configuration of a trial that the user enqueued completely."""
        if self._inferred is not None:
            return
        self.bind(study)
        fixed = trial.system_attrs.get("fixed_params") or {}
        for name in fixed.keys() - self.space.keys():
            text = f"trial {trial.number} was enqueued with {name!r}, which is not declared: the model ignores it"
            self._warn_once(text + did_you_mean(name, self.space), about=name)
        config = to_configuration(self.space, fixed) if fixed else None
        if config is not None:
            # Optuna does not ask for a suggestion later, and other workers must not repeat this one.
            store_suggestion(study, trial, {"phase": "enqueued", "config": to_params(config)})

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return no parameters: Optuna then passes every request to `sample_independent`, which compares the ranges.

        Optuna itself would answer a request with another range that contains the suggestion. Without a declared space,
        return the parameters that all complete trials have.
        """
        return groups(study)[0] if self._inferred is not None else {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest one configuration and store it; return its active parameters that are in ``search_space``."""
        check_one_objective(study)
        if (lack := missing_lock(study)) is not None:
            self._warn_once(lack, about="search lock")
        with self._lock:
            if self._inferred is not None:
                return self._inferred.relative(study, trial, search_space)
            seed = self.bind(study)
            record = suggestion_record(trial)
            # A resumed trial of a killed process may already have its suggestion.
            if "config" not in record or record.get("phase") == "enqueued":
                self._warn_of_left_out_trials(study)
                record = self._suggest(study, trial, seed)
        return {name: value for name, value in record["config"].items() if name in search_space}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return the suggested value of a declared parameter.

        A parameter that is active only because another one was fixed is drawn at random. Without a declared space any
        parameter may be requested.

        Raises
        ------
        SpaceError
            If the parameter is not declared, was declared with another range, or is inactive in this trial.
        """
        check_one_objective(study)
        if self._inferred is not None:
            with self._lock:
                return self._inferred.independent(study, trial, param_name, param_distribution)
        seed = self.bind(study)
        stored = stored_trial(study, trial)
        suggested = suggestion_record(stored).get("config", {})
        given = {**suggested, **(stored.system_attrs.get("fixed_params") or {}), **stored.params}
        check_request(self.space, trial.number, param_name, param_distribution, given)
        if param_name in suggested:
            return suggested[param_name]
        stream = np.random.SeedSequence([seed, trial.number, zlib.crc32(param_name.encode())])
        draw = RandomSampler(seed=int(stream.generate_state(1)[0]))
        return draw.sample_independent(study, trial, param_name, param_distribution)

    def ask_batch(self, study: Study, q: int) -> list[Trial]:
        """Start q trials, each with a suggestion that takes the others into account.

        All suggestions share one fit: every draw of the hyperparameters is conditioned on its own mean at the
        configurations that are still evaluated.

        Parameters
        ----------
        study : optuna.Study
            Its sampler is this one.
        q : int

        Returns
        -------
        list of optuna.Trial
            Finish each with `tell`.

        Raises
        ------
        DataError
            If q is not a positive integer, or the sampler has no declared space.
        """
        q = check_integer("q", q)
        if self._inferred is not None:
            raise DataError("a batch needs a declared space: StanGPSampler(space)")
        trials = [study.ask() for _ in range(q)]
        for trial in trials:
            suggest_all(trial, self.space)
        return trials

    # Steps of the loop

    def bind(self, study: Study) -> int:
        """Record this sampler in a new study, or check that it fits a recorded one; return the study's seed.

        Without a declared space, record nothing and return the sampler's seed.

        Raises
        ------
        SpaceError
            If the study was started with another space.
        DataError
            If the study was started with another seed.
        """
        if self._inferred is not None:
            return self._inferred.seed
        options = {
            "kernel": self.kernel_record,
            "acquisition": self.acquisition.name,
            "n_initial": self.n_initial,
            "noisy": self.noisy,
        }
        return bind_study(study, self.encoder, self.seed, options)

    def prepare(self) -> None:
        """Find or install CmdStan and compile the program, once; without a declared space this is done later.

        Raises
        ------
        ToolchainError
            If there is no compiler or no CmdStan.
        """
        if self._inferred is None and not self._prepared:
            self._report(Phase("compiling", None))
            model = self.gp if self._search is None else self._search
            model.prepare(lambda detail: self._report(Phase("compiling", None, detail=detail)))
            self._prepared = True

    def design(self, seed: int) -> list[Configuration]:
        """Return the initial design of a study without repetitions; trial t evaluates configuration t.

        Without a declared space it is empty.
        """
        if self._inferred is not None:
            return []
        if self.initial_configs is not None:
            return self.initial_configs
        if seed not in self._designs:
            distinct = {
                repr(to_params(config)): config for config in self.encoder.sobol(self.n_initial, seed, self.fixed)
            }
            self._designs[seed] = list(distinct.values())
        return self._designs[seed]

    def planned(self, study: Study, seed: int) -> list[Configuration]:
        """Return the configurations of the first trials by number, with the past experiments among them.

        Past experiments take the numbers of points of the Sobol design, which is that much shorter. They delay the
        initial configurations of the user, all of which are evaluated.
        """
        if self.initial_configs is None:
            return self.design(seed)
        planned = self.initial_configs.copy()
        for trial in filter(is_history, study.get_trials(deepcopy=False)):
            past = trial_configuration(trial, self.space)
            if trial.number < len(planned) and past is not None:
                planned.insert(trial.number, past)
        return planned

    def fit(self, study: Study, seed: int | None = None) -> Posterior:
        """Fit the model to a study's finished trials; with a kernel search, that of the last stored one.

        Parameters
        ----------
        study : optuna.Study
            Has at least one complete trial.
        seed : int, optional
            Seed of the Stan run; derived from the study's seed by default.

        Returns
        -------
        Posterior
            In the user's units and direction.

        Raises
        ------
        DataError
            If no trial can be fitted.
        InferenceError
            If Stan fails.
        """
        if self._inferred is not None:
            if (model := self._inferred.model(groups(study)[0])) is None:
                raise DataError(f"study {study.study_name!r} has no parameter in common to all trials: nothing to fit")
            stream = np.random.SeedSequence(self._inferred.seed)
            return model.fit(study, as_stan_seed(stream) if seed is None else seed)
        self._warn_of_left_out_trials(study)
        observed = observations(study, self.space)
        if not observed.configs:
            raise DataError(f"study {study.study_name!r} has no finished trial with a finite value: nothing to fit")
        self.prepare()
        if seed is None:
            seed = as_stan_seed(np.random.SeedSequence(self.bind(study)))
        options = self.fit_options.updated(pointwise=True)
        gp = self.gp if self._search is None else self._search.latest(study, observed)
        if gp.is_stack:
            loop_fits = LoopFits(gp, study, observed, FitCache(), self._warn_once)
            return loop_fits.fit(loop_fits.plan(options), np.random.SeedSequence(seed))[1]
        data: dict[str, Any] = {"y_sd": observed.errors, "maximize": observed.maximize}
        return gp.fit(observed.configs, observed.y, seed=seed, options=options, **data)

    @contextmanager
    def next_models(self, study: Study) -> Iterator[tuple[Observations, Fitted] | None]:
        """Fit the models of the next suggestion, which will use these fits; None before the end of the initial design.

        The sampler makes no suggestion until the ``with`` block ends.

        Raises
        ------
        InferenceError
            If Stan fails.
        ToolchainError
            If Stan cannot be run here.
        """
        with self._lock:
            seed = self.bind(study)
            number = len(study.get_trials(deepcopy=False))
            observed = observations(study, self.space)
            if number < len(self.planned(study, seed)) or not observed.configs:
                yield None
                return
            self.prepare()
            gp = self.gp if self._search is None else self._search.latest(study, observed)
            yield observed, self._proposer.fit(gp, study, number, observed, seed)

    def _suggest(self, study: Study, trial: FrozenTrial, seed: int) -> dict[str, Any]:
        """Suggest a configuration and store it in the trial with its origin."""
        t = trial.number
        fixed = self._fixed_in(trial)
        kept = {} if fixed is None else {"fixed": dict(fixed.values)}
        _, of_acquisition, of_filling = np.random.SeedSequence([seed, t]).spawn(3)
        design = self.planned(study, seed)
        if t < len(design):
            # The user may have enqueued this point. A design of the user is evaluated as it is.
            point = self._with_context(design[t], fixed)
            repeated = self.initial_configs is None and point in self._unavailable(study, trial)
            config = self._space_filling(study, trial, of_filling, fixed) if point is None or repeated else point
            return store_suggestion(study, trial, {"phase": "initial", "config": config, **kept})

        observed = observations(study, self.space)
        why = "no finished trial with a finite value yet"
        if observed.configs:
            try:
                self.prepare()
                gp = self.gp if self._search is None else self._search.model(study, trial, observed, seed)
                with self._proposer.proposal(
                    gp, study, trial, observed, design, seed, of_acquisition, fixed
                ) as proposal:
                    store_fit(study, trial, proposal.posterior, observed.numbers, self.warm_starts)
                    store_numbers(study, trial, proposal.record)
                    return store_suggestion(study, trial, proposal.record | kept)
            except InferenceError as error:
                why = str(error)
                warnings.warn(
                    f"trial {t}: the fit failed, so a space-filling point is suggested: {why}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        with search_lock(study):
            config = self._space_filling(study, trial, of_filling, fixed)
            return store_suggestion(study, trial, {"phase": "random", "config": config, "error": why, **kept})

    def _warn_of_left_out_trials(self, study: Study) -> None:
        """Warn once for every reason to leave complete trials out of the fit of a declared space."""
        if not self._declared:
            return
        for reason, numbers in left_out(study, self.space).items():
            which = f"trial {numbers[0]}" if len(numbers) == 1 else f"trials {', '.join(map(str, numbers))}"
            self._warn_once(f"{which} of study {study.study_name!r} {reason}: left out of the fit", about=reason)

    def _model_of(self, space: ConfigurationSpace, warm: bool = True, check_only: bool = False) -> StanGPSampler:
        """Return a sampler of an inferred space with the options of this one."""
        options = dict(self._options)
        if check_only:  # of the options that do not depend on the space
            if options["kernel"] != "auto":
                kernel_from_name(options["kernel"])
            options |= {"kernel": "auto", "priors": None}
        if not warm:
            options["warm_starts"] = False
        model = StanGPSampler(space, **options, on_progress=self._report)
        model._declared = False
        return model

    def fixed_with(self, context: Mapping[str, Any]) -> Fixed:
        """Return the fixed values of a trial with a context, which replaces those of the sampler.

        Raises
        ------
        SpaceError
            For an unknown parameter, an illegal value, or values that no configuration has together.
        """
        own = self.encoder.fix(context, "context: ")
        return own if self.fixed is None else self.encoder.fix({**self.fixed.values, **own.values}, "context: ")

    def _fixed_in(self, trial: FrozenTrial) -> Fixed | None:
        context = trial.user_attrs.get(CONTEXT_KEY)
        return self.fixed_with(context) if context else self.fixed

    def _with_context(self, point: Configuration, fixed: Fixed | None) -> dict[str, Any] | None:
        """Return a point of the design with the fixed values of a trial, or None if it would be illegal."""
        if fixed is self.fixed or fixed is None:
            return to_params(point)
        encoded = self.encoder.encode([point])
        genotype = np.where(encoded.active, encoded.unit_values, fixed.example)
        placed, allowed = self.encoder.resolve(genotype, fixed)
        return to_params(self.encoder.decode(placed)[0]) if allowed[0] else None

    def _space_filling(
        self, study: Study, trial: FrozenTrial, stream: np.random.SeedSequence, fixed: Fixed | None
    ) -> dict[str, Any]:
        """Return the first new point of another Sobol sequence."""
        try:
            points = self.encoder.sobol(_FILLING, as_stan_seed(stream), fixed)
        except SpaceError:  # forbidden clauses leave too few points
            points = self.encoder.sobol(1, as_stan_seed(stream), fixed)
        unavailable = self._unavailable(study, trial)
        return to_params(next((point for point in points if to_params(point) not in unavailable), points[0]))

    def _unavailable(self, study: Study, trial: FrozenTrial) -> list[dict[str, Any]]:
        """Return the configurations of running trials and, unless the objective is noisy, of finished ones."""
        # In this order: a trial that finishes between the two reads is in both lists, not in none.
        running = pending(study, self.space, trial)
        tried = [] if self.noisy else excluded(study, self.space)
        return [to_params(config) for config in (*running, *tried)]

    def _warn_once(self, text: str, about: str = "") -> None:
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(text, UserWarning, stacklevel=3)

    def _report(self, phase: Phase) -> None:
        if self.on_progress is not None:
            self.on_progress(phase)


def check_one_objective(study: Study) -> None:
    """Raise `DataError` if a study has several objectives."""
    if len(study.directions) > 1:
        raise DataError(f"study {study.study_name!r} has {len(study.directions)} objectives; only one is supported")


def sampler_of(study: Study) -> StanGPSampler | None:
    """Return the sampler of a study if it is a `StanGPSampler` with a declared space, else None."""
    sampler: optuna.samplers.BaseSampler = study.sampler
    return sampler if isinstance(sampler, StanGPSampler) and sampler._inferred is None else None
