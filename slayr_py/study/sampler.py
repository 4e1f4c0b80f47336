"""`StanGPSampler`: the sampler as Optuna sees it, over a strategy for declared or for inferred spaces."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ConfigSpace import ConfigurationSpace
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState
from typing_extensions import Unpack

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError, SpaceError, level_outside, listed
from slayr_py.inference import FitKeywords, Posterior
from slayr_py.space import WITHIN, Encoder, Fixed, Space, Within, function_names, space_from_json
from slayr_py.study.declared_space import DeclaredSpace
from slayr_py.study.inferred_space import InferredSpace
from slayr_py.study.model.options import SamplerKeywords, SamplerOptions
from slayr_py.study.model.session import Session
from slayr_py.study.storage.attributes import ERROR_KEY, mark_failure, mark_start, study_record
from slayr_py.study.storage.objectives import goal_of
from slayr_py.study.storage.optuna_private import inner_sampler, partly_fixed, whole_study
from slayr_py.study.storage.search_lock import missing_lock
from slayr_py.study.storage.suggesting import fix_given
from slayr_py.study.storage.trials import has_unknown_error
from slayr_py.threads import ignoring_underflow


@ignoring_underflow
class StanGPSampler(BaseSampler):
    """Suggest configurations of a declared space by a Gaussian process fitted with Stan.

    Parameters
    ----------
    space : ConfigurationSpace, Encoder or mapping, optional
        The search space, with conditions and forbidden clauses; an `Encoder` also has graphs. The declared space is
        modelled, not the intersection of the trials' parameters. Without one, the parameters are inferred from the
        complete trials, as Optuna's own samplers do: see Notes.
    kernel : str, Kernel, Stack or KernelSearch, default "auto"
        A name, an expression such as "LIN * PER + SE", or an object of `slayr_py.kernels`; "auto" chooses by the space.
        It also chooses logarithmic scales of numbers whose range from 0 or a positive number spans two decades, if they
        predict the values much better, unless ``prior`` or a prior of the kernel refers to the declared ones.
        A stack fits every kernel for each suggestion and averages the acquisition with the stacking weights. Models of
        failures and constraints use its first kernel.

        "search" searches for expressions with 20 fits at 2, 4, 8, ... times the size of the initial design, but not
        below 30 observations. It then averages the best three and the kernel of "auto". That kernel is used alone until
        the first search, and for failures and constraints. A `slayr_py.search.KernelSearch` of the space has its own
        settings. A search sees standardised targets, transformed by the warp at the median of its prior, and ignores
        ``y_sd``. Priors of ``mu``, ``sigma_f``, ``sigma_n`` and ``warp`` hold for all kernels, other priors only for
        the kernel of "auto".
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
        As in `GaussianProcess`. The default of ``sigma_n`` is LogNormal(-4, 0.5), unless the objective is ``noisy``
        or the study has past experiments.
    warp : {"auto", "none", "log", "best"}, default "auto"
        As in `GaussianProcess`: "log" compresses bad values, which are the large ones of a minimised and the small ones
        of a maximised objective. The model can then describe good configurations better. "best" compresses the distance
        to the best value, for objectives whose good values differ by orders of magnitude. "auto" is "log" until "best"
        predicts the values much better, which the notes of a fit then say; it stays "log" with several objectives, a
        stack or a search of kernels, ``noisy=True`` or a prior of ``warp``. Known errors (``y_sd``) turn "auto" into
        "none", and are an error with "log" and "best".
    initial_configs : sequence of mappings, optional
        An initial design to use instead of the Sobol design; `n_initial` is then its length.
    noisy : bool, default False
        The objective returns different values for the same configuration. Configurations may then be suggested again,
        the value to improve on is the smallest posterior mean at an observed configuration instead of the smallest
        observed value, and expected improvement is that of the posterior mean by a noisy evaluation, relative to this
        configuration or, of several objectives, to the front.
    failures : {"learn", "ignore"}, default "learn"
        "learn": once there are successes and failures, a probit Gaussian process with the same kernel models the
        probability of success, and the acquisition is multiplied by it. Complete trials whose values of the only
        objective are over 100 times as far from the best one as those of all others, such as penalties, count as
        failures too. "ignore": failed configurations are not suggested again, and nothing is learnt from them; the
        model sees far values at most twice as far as the others.
    fixed : mapping of str to value, optional
        Parameters that keep these values in the suggestions of this sampler: the acquisition is maximised over the
        others, and improvement is measured from the best configuration with these values. The space of the study does
        not change, and trials with other values inform the model.
    within : sequence of str, Linear, callable or DataFrame, or a DataFrame, optional
        Constraints on the parameters that every suggestion satisfies, such as ``"x1 + x2 + x3 == 1"`` or
        ``"temperature * time <= 6000"``, functions that take a configuration and return whether it is allowed, or
        tables of what can be evaluated: see `Encoder`. A study stores the texts, the names of functions, and the rows.
    prior : mapping of str to Prior or weights, or "space", optional
        Belief about the location of the optimum, as in ``prior={"lr": sl.LogNormal(-7, 1), "optimizer": {"adam": 0.7,
        "sgd": 0.3}}``: a distribution of a number, truncated to its range, or positive weights of all levels or
        integers. `Beta` describes the position between the bounds, on the scale of the parameter. "space" takes the
        distributions and weights of ConfigSpace's own parameters, which are ignored otherwise, with a warning. In
        the n-th trial, the acquisition is multiplied by the density to the power ``prior_beta`` / n. A quarter of the
        Sobol design is drawn from the belief, the first points. A resumed study needs the same one.
    prior_beta : float, optional
        Weight of the prior: by default a tenth of the budget in `minimize`, and 5 in studies without a budget.
    interior : bool, optional
        Whether the optimum is believed to be inside the ranges of the floats. A value that is nearer to a bound than
        that of the best trial then needs a larger expected improvement, at a bound up to 20 times as large, so that
        fewer faces and corners are evaluated. A best trial at several bounds ends the belief. By default it is for one
        objective and an acquisition that is an improvement, without a ``prior``, and as long as the objective has no
        plateaus. True holds with plateaus and with several objectives too. Give False if the best value of a float may
        be at its bound.
    default : bool, default False
        Evaluate the default configuration of the space first, with the fixed values; then the rest of the initial
        design. ``initial_configs`` follow it.
    reference_point : sequence or mapping of str to float, optional
        For several objectives: the worst values that are of interest, in the order of the objectives or by name. Only
        configurations that are better in all objectives gain hypervolume. By default each suggestion takes the worst
        values of the front so far and the front's range, or a spread of all values, more.
    tolerance : float, optional
        Smallest useful improvement, in the objective's unit. Where the largest expected improvement is smaller, the
        search maximises the expected improvement on the best value less the tolerance instead: it then prefers other
        regions to further digits of the best value. For the acquisitions "ei" and "log_ei".
    cost : str, optional
        Name of the cost of an evaluation: a positive number that trials have as a user attribute of this name.
        "seconds" is measured by `minimize`. A Gaussian process of its logarithm is fitted to complete trials and to
        trials that failed because of their configuration, from three on. The search then maximises the expected
        improvement, or that of the hypervolume, per unit of expected cost. Pruned trials have only a part of the cost
        and are left out. For the acquisitions "ei" and "log_ei".
    on_progress : callable, optional
        Receives a `Phase` whenever a new step of the work starts.
    method, chains, warmup, draws, target_acceptance, max_treedepth, ess, retries, pointwise
        Options of the fits: see `GaussianProcess.fit`. Defaults: "carried", 4, 300, 50, 0.8, 10, 50, 1, False.
        Audits and the parts of a stack are not retried.

    Attributes
    ----------
    options : SamplerOptions
        The options, with the defaults for those that were not given.
    strategy : DeclaredSpace or InferredSpace
        Suggests configurations with a declared space, or without one.

    Raises
    ------
    SpaceError
        For an empty space, an initial configuration that does not belong to it, a default configuration that violates
        ``within``, an illegal fixed value, or an unknown parameter or level of a prior.
    DataError
        For an unknown kernel, acquisition or method, or an illegal option.
    TypeError
        For an argument with an unknown name; the message has the nearest one.

    Notes
    -----
    A study stores its space, seed and prior. Resuming it with another space raises `SpaceError`, with another seed or
    prior `DataError`. Kernel, graphs, acquisition, design, noisiness and fit options may change between runs: the study
    records those it was started with, and each trial those of its own suggestion.

    A study may have two to four objectives (``optuna.create_study(directions=[...])``). Each is modelled by a Gaussian
    process of its own with the same kernel and options, and the expected hypervolume improvement is maximised, which
    replaces "ei". It is exact for all combinations of their posterior draws: see the page on several objectives.

    The objective's model is fitted to complete trials with finite values only, without penalties. Each constraint that
    trials report (`Trial.set_constraint`) is modelled by a Gaussian process, and the acquisition is multiplied by the
    probability that none is violated. A trial's user attribute ``y_sd`` is the known standard deviation of its value's
    error; NaN or None means that it is unknown.

    A trial that asks for a parameter that is not declared, that was declared with another range, or that is inactive in
    its configuration raises `SpaceError`, since the model would know nothing of the value. Optuna answers fixed
    parameters of enqueued trials and ranges with a single value without a sampler: the trial then has what it
    evaluated, and the other parameters are suggested given these values. So are those of an Optuna
    `PartialFixedSampler` around this sampler. A complete trial that never asked for an active parameter is left out of
    the fit, with a warning.

    With Optuna's `HyperbandPruner` the trials of all brackets inform the model.

    Without a space, objectives written for Optuna run unchanged. The parameters that all complete trials have are
    modelled together; those that occur in the same part of the trials, such as in one branch of the objective, are
    modelled by themselves, since conditions are unknown. Steps are kept. All else is drawn at random, including the
    first trial. The study stores no space: `Result` is given one, in which it fits the model, and `fit` fits the
    parameters that all trials have.
    """

    def __init__(self, space: Space | None = None, **options: Unpack[SamplerKeywords]) -> None:
        self.options = SamplerOptions.of(**options)
        self.session = Session(self.options.on_progress)
        self.strategy: DeclaredSpace | InferredSpace
        if space is None:
            self.strategy = InferredSpace(self.options, self.session)
        else:
            self.strategy = DeclaredSpace(space, self.options, self.session)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Bind the sampler to the study; record the configuration of a trial that the user enqueued completely.

        Raises
        ------
        ToolchainError
            If Stan cannot be run here: before the first trial is evaluated.
        """
        study = whole_study(study)
        self.options.check_objectives(study)
        self.session.check_toolchain()
        mark_start(study, trial)
        self.strategy.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that are suggested together: with a declared space none.

        Every request for a declared parameter then passes through `sample_independent`, which compares its range.
        """
        return self.strategy.relative_space(whole_study(study))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest one configuration and store it; return its active parameters that are in ``search_space``."""
        study = whole_study(study)
        self.options.check_objectives(study)
        if (lack := missing_lock(study)) is not None:
            self.session.warn(lack, about="search lock")
        with self.session.lock:
            return self.strategy.relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return the suggested value of a parameter.

        A declared parameter that is active only because of enqueued values that no configuration has together is drawn
        at random. Without a declared space any parameter may be requested.

        Raises
        ------
        SpaceError
            If the parameter is not declared, was declared with another range, or is inactive in this trial.
        """
        study = whole_study(study)
        self.options.check_objectives(study)
        return self.strategy.independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Mark a failed trial, unless no other failure is possible than by its evaluation; warn of an unknown error.

        A complete trial that violates a constraint on inputs is marked too, with a warning: see `DeclaredSpace`.
        Optuna does not call this method for trials of killed processes, from which nothing is to be learnt.
        """
        if state == TrialState.FAIL:
            mark_failure(whole_study(study), trial)
        if state == TrialState.COMPLETE:
            self.strategy.after_evaluation(whole_study(study), trial)
        if state == TrialState.COMPLETE and has_unknown_error(trial):
            given = trial.user_attrs[ERROR_KEY]
            warnings.warn(
                f"trial {trial.number} has the user attribute {ERROR_KEY!r} = {given!r:.80}: its value counts as one "
                "without a known error",
                UserWarning,
                stacklevel=level_outside(),
            )

    def ask_batch(self, study: Study, q: int) -> list[Trial]:
        """Start q trials, each with a suggestion that takes the others into account.

        All suggestions share one fit: every draw of the hyperparameters is conditioned on its own mean at the
        configurations that are still evaluated. A progress bar appears after five seconds.

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
            If q is not a positive integer, the study has another sampler, or this one has no declared space.
        """
        if inner_sampler(study) is not self:
            raise DataError(f"the study's sampler is {study.sampler}, not this one; set study.sampler to it")
        return self.strategy.ask_batch(study, check_integer("q", q))

    def fit(
        self,
        study: Study,
        seed: int | None = None,
        objective: int | str | None = None,
        **fit: Unpack[FitKeywords],
    ) -> Posterior:
        """Fit the model to a study's finished trials; with a kernel search, the model of the last stored one.

        Parameters
        ----------
        study : optuna.Study
            Has at least one complete trial.
        seed : int, optional
            Seed of the Stan run; derived from the study's seed by default.
        objective : int or str, optional
            Number or name of one of several objectives.
        **fit
            Options of `slayr_py.GaussianProcess.fit` instead of the loop's, such as ``method="nuts"`` and ``draws``.

        Returns
        -------
        Posterior
            In the user's units and direction.

        Raises
        ------
        DataError
            If no trial can be fitted, an option is illegal, or the study has several objectives and none is
            given.
        InferenceError
            If Stan fails.
        """
        return self.strategy.fit_all(study, seed, goal_of(study, objective), **fit)


def stan_sampler_of(study: Study) -> StanGPSampler | None:
    """Return the `StanGPSampler` of a study, also inside a `PartialFixedSampler`; None for any other sampler."""
    sampler = inner_sampler(study)
    return sampler if isinstance(sampler, StanGPSampler) else None


def declared_space_of(study: Study) -> DeclaredSpace | None:
    """Return the strategy of a study's `StanGPSampler` with a declared space; None for any other sampler."""
    sampler = stan_sampler_of(study)
    return sampler.strategy if sampler is not None and isinstance(sampler.strategy, DeclaredSpace) else None


def fixed_for_results(study: Study, encoder: Encoder) -> Fixed | None:
    """Return the fixed values that the results of a study have.

    Parameters
    ----------
    study : optuna.Study
    encoder : Encoder
        Of the posterior. Without a declared space it contains the values of a `PartialFixedSampler`.
    """
    if (declared := declared_space_of(study)) is not None:
        fixed = declared.fixed_for_run(study)
        return None if fixed is None else declared.encoder.rescaled(encoder.logarithmic).refix(fixed)
    with suppress(SpaceError):  # Optuna has evaluated an illegal value, with a warning
        return fix_given(encoder, partly_fixed(study))
    return None


def space_of(study: Study) -> ConfigurationSpace:
    """Return the declared space of a study.

    Raises
    ------
    SpaceError
        If the study was not created by this package.
    """
    if (declared := declared_space_of(study)) is not None:
        return declared.space
    record = study_record(study)
    if record is None:
        raise SpaceError(
            f"study {study.study_name!r} has no declared space: create it with slayr_py.study.create_study, or ask for "
            "trials with Optuna's study.ask()"
        )
    return space_from_json(record["space"])


def within_of(study: Study) -> Within | None:
    """Return the constraints on inputs of a study's sampler, with their functions; None if there are none."""
    declared = declared_space_of(study)
    region = None if declared is None else declared.encoder.region
    return None if region is None else region.given


def forgotten_functions(study: Study) -> str:
    """Describe the functions among the constraints on inputs that a loaded study lacks; empty if there are none.

    What is said of configurations that were not evaluated may violate them.
    """
    if declared_space_of(study) is not None:
        return ""
    stored = (study_record(study) or {}).get(WITHIN, [])
    names = [repr(name) for name in function_names(stored)]
    if not names:
        return ""
    return (
        f"functions among the constraints on inputs ({listed(names)}) are ignored, because a loaded study has only "
        "their names; the call that has started the study, repeated, has them"
    )


def warn_of_forgotten_functions(study: Study) -> None:
    """Warn of what `forgotten_functions` describes."""
    if forgotten := forgotten_functions(study):
        warnings.warn(forgotten, UserWarning, stacklevel=level_outside())
