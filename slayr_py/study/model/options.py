"""Options of the sampler: their names, defaults and checks that need no search space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd
from optuna import Study
from typing_extensions import Unpack

from slayr_py.acquisition import MOST_OBJECTIVES, Acquisition, Beliefs, from_name as acquisition_from_name
from slayr_py.arguments import check_flag, check_integer, check_number
from slayr_py.errors import DataError, did_you_mean
from slayr_py.inference import FitKeywords, FitOptions, Priors, Warp, given_priors
from slayr_py.kernels import NOISE, Kernel, LogNormal, Stack
from slayr_py.search import KernelSearch
from slayr_py.space import Within
from slayr_py.study.model.feasibility import Failures
from slayr_py.study.model.session import Phase
from slayr_py.study.storage.costs import check_cost_name
from slayr_py.study.storage.objectives import given_reference, goals_of, has_several

LOOP_OPTIONS = FitOptions(method="carried", warmup=300, draws=50, ess=50, retries=1, pointwise=False)
"""Fit options of the loop. Few draws are enough because the acquisition is a mean over draws, and a fit adds draws
until its effective sample size reaches ``ess``."""

NOISELESS = LogNormal(-4.0, 0.5)
"""Prior of ``sigma_n`` for objectives without noise, in studies without past experiments. The default of a model is for
data that may be noisy. A wider prior lets points that nearly coincide, which the loop evaluates when it has converged,
drive ``sigma_n`` to where the covariance is singular up to rounding."""

LARGEST_NOISE = float(NOISELESS.at_score(np.array(2.58)))
"""99.5% quantile of that prior, 0.067: a larger ``sigma_n`` is noise."""

EXACT_CONSTRAINTS = LogNormal(-9.0, 0.5)
"""Prior of ``sigma_n`` for the constraints of objectives without noise. Larger noise keeps the probability near 1/2 at
a border, where the loop evaluates most configurations when a constraint is active at the minimum."""

DEFAULT_BETA = 5.0
"""Weight of a prior of the optimum in studies without a budget: a tenth of the default budget of `minimize`."""

_ELSEWHERE = {
    "constraints": "give the excesses of each trial, slayr_py.study.tell(study, trial, value, constraints={name: "
    "excess}): a constraint holds where this is at most 0. Constraints on parameters are within=[...]",
    "inducing": "leave it out: beyond 1,000 observations a study fits the mode of the hyperparameters",
    "likelihood": "leave it out: failures='learn' models failed trials by a probit likelihood",
    "maximize": "use direction='maximize'",
    "y_sd": "give the error of each value, as in slayr_py.study.tell(study, trial, value, sd=0.1)",
}
"""Arguments of `GaussianProcess` and `minimize` that studies lack, with their replacements."""

OTHER_LIBRARIES = {
    **dict.fromkeys(("n_trials", "n_calls", "n_iter", "max_evals", "max_iter"), "budget="),
    **dict.fromkeys(("n_jobs", "batch_size", "n_workers", "max_workers"), "n_parallel="),
    **dict.fromkeys(
        (
            "n_startup_trials",
            "n_initial_points",
            "n_random_starts",
            "init_points",
            "num_initial_points",
            "initial_design_numdata",
        ),
        "n_initial=",
    ),
    **dict.fromkeys(("random_state", "random_seed"), "seed="),
    **dict.fromkeys(("acq_func", "acq", "acquisition_function", "acqf"), "acquisition="),
    **dict.fromkeys(("base_estimator", "covar_module", "surrogate"), "kernel="),
    **dict.fromkeys(("dimensions", "pbounds", "bounds", "search_space", "domain"), "space="),
    **dict.fromkeys(("callback",), "callbacks=[...]"),
    **dict.fromkeys(("verbose", "show_progress_bar", "disp"), "progress="),
    **dict.fromkeys(("x0", "X_init"), "initial_configs=, or history= with values"),
    **dict.fromkeys(("y0", "initial_data"), "history="),
    "graphs": "slayr_py.space.Encoder(space, graphs=...) as the space",
    **dict.fromkeys(
        ("constraints_func", "constraint"),
        "constraints= for numbers that the objective returns, within= for parameters",
    ),
    **dict.fromkeys(
        (
            "inequality_constraints",
            "equality_constraints",
            "nonlinear_inequality_constraints",
            "space_constraint",
            "parameter_constraints",
        ),
        'within=["x1 + x2 <= 1"]',
    ),
    **dict.fromkeys(("candidates", "choices"), "within= with a table, whose rows can be evaluated"),
    **dict.fromkeys(("terminator", "improvement_evaluator", "error_evaluator"), "stop=sl.Regret(epsilon)"),
    **dict.fromkeys(("f", "func"), "objective, the first argument"),
    "allow_duplicate_points": "noisy=True",
    "catch": "failures=",
    "min_n_trials": "n_initial=",
    "noise": "noisy=True, or known errors of the values: y_sd in history= and sd in tell",
    "train_Yvar": "history= with a column y_sd, or sd in tell: standard deviations, not variances",
    **dict.fromkeys(("deterministic_objective", "exact_feval"), "noisy= (its opposite)"),
    "fixed_features": "fixed=",
    "context": "fixed=, or the context of slayr_py.study.ask",
    **dict.fromkeys(("ref_point", "objective_thresholds"), "reference_point="),
    "outcome_constraints": "constraints= for numbers that the objective returns",
    "cost_withGradients": "cost=",
    "study": "storage= and study_name=",
    "sampler": "slayr_py.study.StanGPSampler in optuna.create_study",
}
"""Names that users of Optuna, scikit-optimize, BoTorch, Ax, GPyOpt, BayBE and bayes_opt type, with ours; the tables of
the page ``docs/other-libraries.md`` have the same."""

WITHOUT_COUNTERPART = {
    **dict.fromkeys(
        ("acq_optimizer", "n_points", "n_restarts_optimizer"), "candidates, then gradient steps and changes of levels"
    ),
    **dict.fromkeys(
        ("independent_sampler", "warn_independent_sampling"), "all parameters of a space have the same model"
    ),
    "initial_point_generator": "the design is a Sobol sequence, or spread inside the constraints",
    "xi": "tolerance= is the smallest useful improvement, in the objective's units",
    "kappa": "the weight follows from LowerConfidenceBound(delta=...)",
    "model_queue_size": "Result.posterior() is the last fit",
    "bounds_transformer": "the bounds stay",
    **dict.fromkeys(("X_pending", "pending_experiments"), "running trials are taken into account"),
    "de_duplication": "no configuration is suggested twice, unless noisy=True",
}
"""Names of the same libraries that we have no argument for, with the reason; the tables have the same after "none"."""

_HYPERVOLUME = ("ei", "log_ei")  # acquisitions that several objectives take: their form is the hypervolume's

SMALLEST_DESIGN = 4  # size of a default design for one parameter, and one more for every two parameters; chosen by hand
LARGEST_DESIGN = 10  # size for 12 and more parameters; chosen by hand
_LARGEST_GIVEN_DESIGN = 10_000  # a larger n_initial= is a mistake


class SamplerKeywords(FitKeywords, total=False):
    """The options of `StanGPSampler` as keyword arguments, all of them optional; `SamplerOptions` has the defaults."""

    kernel: str | Kernel | Stack | KernelSearch
    acquisition: str | Acquisition
    n_initial: int | None
    seed: int | None
    warm_starts: bool
    priors: Priors | None
    warp: Warp
    initial_configs: Sequence[Mapping[str, Any]] | pd.DataFrame | None
    noisy: bool
    failures: Failures
    fixed: Mapping[str, Any] | None
    within: Within | None
    prior: Beliefs | None
    prior_beta: float | None
    interior: bool | None
    default: bool
    reference_point: Mapping[str, float] | Sequence[float] | None
    tolerance: float | None
    cost: str | None
    on_progress: Callable[[Phase], None] | None


@dataclass(frozen=True)
class SamplerOptions:
    """Options of a sampler, which `StanGPSampler` describes.

    Raises
    ------
    DataError
        For an unknown acquisition, warp or treatment of failures, or an illegal seed, size or flag.
    """

    kernel: str | Kernel | Stack | KernelSearch = "auto"
    acquisition: str | Acquisition = "ei"
    n_initial: int | None = None
    seed: int | None = None
    warm_starts: bool = True
    priors: Priors | None = None
    warp: Warp = "auto"
    initial_configs: Sequence[Mapping[str, Any]] | pd.DataFrame | None = None
    noisy: bool = False
    failures: Failures = "learn"
    fixed: Mapping[str, Any] | None = None
    within: Within | None = None
    prior: Beliefs | None = None
    prior_beta: float | None = None
    interior: bool | None = None
    default: bool = False
    reference_point: Mapping[str, float] | Sequence[float] | None = None
    tolerance: float | None = None
    cost: str | None = None
    on_progress: Callable[[Phase], None] | None = None
    fit: FitOptions = LOOP_OPTIONS

    def __post_init__(self) -> None:
        acquisition_from_name(self.acquisition)
        if self.seed is not None:
            object.__setattr__(self, "seed", check_integer("seed", self.seed, minimum=0))
        if self.n_initial is not None:
            size = check_integer("n_initial", self.n_initial, maximum=_LARGEST_GIVEN_DESIGN)
            object.__setattr__(self, "n_initial", size)
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", check_number("tolerance", self.tolerance))
            self._check_improvement("tolerance", "which is compared with the expected improvement")
        if self.prior_beta is not None:
            object.__setattr__(self, "prior_beta", check_number("prior_beta", self.prior_beta))
            if self.prior is None:
                raise DataError("prior_beta is the weight of a prior=, but there is none; give one, or leave it out")
        if self.prior is not None:
            self.criterion.logarithmic()  # raises if a prior cannot multiply it
        for name in ("default", "warm_starts", "noisy"):
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))
        if self.interior is not None:
            object.__setattr__(self, "interior", check_flag("interior", self.interior))
        if self.interior and self.prior is not None:
            raise DataError("interior=True and prior= are both beliefs about the optimum; leave one of them out")
        if self.interior and not self.criterion.is_logarithm:
            raise DataError(
                f"acquisition {self.criterion.name!r} is not supported with interior=True, whose factor multiplies an "
                "improvement; use acquisition='ei', or leave interior= out"
            )
        if self.cost is not None:
            check_cost_name(self.cost)
            self._check_improvement("cost", "which divides the expected improvement")
        given_priors(self.priors)  # raises unless it is a mapping
        if self.on_progress is not None and not callable(self.on_progress):
            raise DataError(f"on_progress is {self.on_progress!r:.200}; give a function of one Phase")
        _check_choice("warp", self.warp, get_args(Warp))
        _check_choice("failures", self.failures, get_args(Failures))

    def _check_improvement(self, option: str, why: str) -> None:
        """Raise `DataError` unless the acquisition determines an expected improvement."""
        if self.criterion.gain(0.0) is None:
            raise DataError(
                f"acquisition {self.criterion.name!r} is not supported with {option}=, {why}; use acquisition='ei', or "
                f"leave {option}= out"
            )

    @classmethod
    def of(cls, **keywords: Unpack[SamplerKeywords]) -> SamplerOptions:
        """Return the options with the values of keyword arguments.

        Raises
        ------
        TypeError
            For an unknown option.
        DataError
            For an illegal value.
        """
        check_names(keywords)
        fit: Any = {name: value for name, value in keywords.items() if name in FitKeywords.__annotations__}
        options: Any = {name: value for name, value in keywords.items() if name not in fit}
        return cls(**options, fit=LOOP_OPTIONS.updated(**fit))

    def check_objectives(self, study: Study) -> None:
        """Check that the options suit the number of objectives of a study.

        Raises
        ------
        DataError
            For more than four objectives; for several with a kernel search, a tolerance, or an acquisition or a
            reference point that is not for them; for a reference point with one objective.
        """
        if not has_several(study):
            if self.reference_point is not None:
                raise DataError("reference_point is for several objectives: leave it out, or give directions=")
            return
        if len(study.directions) > MOST_OBJECTIVES:
            raise DataError(
                f"study {study.study_name!r} has {len(study.directions)} objectives, more than the {MOST_OBJECTIVES} "
                "for which the hypervolume is affordable: combine some of them, or make them constraints"
            )
        if isinstance(self.kernel, KernelSearch) or self.kernel == "search":
            raise DataError("a kernel search is not supported with several objectives; give a kernel or a stack")
        if self.criterion.name not in _HYPERVOLUME:
            raise DataError(
                f"acquisition {self.criterion.name!r} is not supported with several objectives, whose criterion is the "
                "expected hypervolume improvement; leave acquisition= out"
            )
        if self.tolerance:
            raise DataError("tolerance is not supported with several objectives; leave it out")
        if self.reference_point is not None:
            given_reference(self.reference_point, goals_of(study))

    def inside(self, n_objectives: int) -> bool | None:
        """Return whether the optimum is believed to be inside the ranges; None: unless plateaus exist.

        By default that of one objective is, unless there is another belief, even in the suggestions without it. The
        ends of a front are often at bounds. A search leaves the belief out where no factor can multiply the criterion.
        """
        if self.interior is None:
            return None if n_objectives == 1 and self.prior is None else False
        return self.interior

    @property
    def beta(self) -> float:
        """Return the weight of the prior: in trial n, from 1, its exponent is beta / n."""
        return DEFAULT_BETA if self.prior_beta is None else self.prior_beta

    @property
    def criterion(self) -> Acquisition:
        """Return the acquisition as an object."""
        return acquisition_from_name(self.acquisition)

    @property
    def noise_priors(self) -> Priors:
        """Return the prior of the noise by name; empty for a noisy objective, whose models have the default prior.

        `SpaceModel.surrogate_with_history` has the default prior too.
        """
        return {} if self.noisy else {NOISE.name: NOISELESS}

    @property
    def constraint_priors(self) -> Priors:
        """Return the prior of the noise of constraints by name; empty for a noisy objective, as `noise_priors`."""
        return {} if self.noisy else {NOISE.name: EXACT_CONSTRAINTS}

    @property
    def all_priors(self) -> Priors:
        """Return the priors of the user, with the default prior of the noise unless the user gives one."""
        return {**self.noise_priors, **(self.priors or {})}

    def design_size(self, parameters: int) -> int:
        """Return the size of the Sobol design of a space with this number of parameters."""
        if self.n_initial is not None:
            return self.n_initial
        return min(LARGEST_DESIGN, SMALLEST_DESIGN + parameters // 2)


def check_names(options: Mapping[str, Any], others: Iterable[str] = ()) -> None:
    """Raise `TypeError` for a keyword argument that is not an option of the sampler, and name the nearest.

    ``others`` are further arguments of the function that was called.
    """
    for name in options:
        if name in _ELSEWHERE:
            raise TypeError(f"{name}= is not an option of a study; {_ELSEWHERE[name]}")
        if name in OTHER_LIBRARIES:
            raise TypeError(f"{name}= is an argument of another library; use {OTHER_LIBRARIES[name]}")
        if name in WITHOUT_COUNTERPART:
            raise TypeError(
                f"{name}= is an argument of another library without a counterpart: {WITHOUT_COUNTERPART[name]}"
            )
        if name not in SamplerKeywords.__annotations__:
            raise TypeError(f"unknown option {name!r}{did_you_mean(name, [*others, *SamplerKeywords.__annotations__])}")


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise DataError(f"unknown {name} {value!r}{did_you_mean(value, choices)}")
