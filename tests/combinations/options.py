"""Options that change the model, the observations or the loop, and what must hold when one of them is on.

Every pair of them is a row of the table in `combinations.test_combinations`: a new option fills its row by its laws,
which are checked beside every other option.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from combinations import fit_laws, study_laws
from combinations.scenarios import POINTS, ROWS, Scenario, space_of
from testing_kernels import pretrained

import slayr_py as sl
from slayr_py.kernels import Composite, Pretrained

Law = Callable[[Scenario], None]


@dataclass(frozen=True)
class Option:
    """An option.

    Attributes
    ----------
    name : str
        As in the table of the guide.
    switch : callable
        Turns the option on.
    arguments : tuple of str
        Names of the arguments of public functions that stand for it.
    in_fits, in_studies : tuple of laws, or None
        What must hold beside the laws of all fits and of all studies; None if they lack the option.
    """

    name: str
    switch: Callable[[Scenario], Scenario]
    arguments: tuple[str, ...]
    in_fits: tuple[Law, ...] | None = ()
    in_studies: tuple[Law, ...] | None = ()


@cache  # a kernel keeps its features
def learned_kernel(has_conditions: bool, has_levels: bool, *parts: object) -> Pretrained:
    return pretrained(space_of(None, has_conditions, has_levels), *parts)


def changing(**changes: object) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, **changes)


def adding_within(constraint: object) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, within=[*(scenario.within or ()), constraint])


def with_learned_kernel(scenario: Scenario) -> Scenario:
    """Use a pre-trained kernel, in an expression if there is one."""
    kinds = (scenario.branches, scenario.levels)
    if scenario.kernel == "auto":
        return replace(scenario, kernel=learned_kernel(*kinds, (0, 1, 2)))
    learned = {"PRE": learned_kernel(*kinds, 2, None)}
    return replace(scenario, kernel=Composite(f"{scenario.kernel} + PRE", learned))


def with_main_effects(scenario: Scenario) -> Scenario:
    """Use the additive kernel, in a stack with the kernel of another option."""
    return replace(
        scenario, kernel="additive" if scenario.kernel == "auto" else sl.stack([scenario.kernel, "additive"])
    )


def with_another_kernel(scenario: Scenario) -> Scenario:
    return replace(scenario, kernel=sl.stack([scenario.kernel, "MAT12[x] + SE"]))


def with_inducing_points(scenario: Scenario) -> Scenario:
    """Use a kernel of sparse fits, and every configuration as an inducing point: the fit is then exact."""
    is_automatic = scenario.kernel == "auto" and (scenario.branches or scenario.levels)
    return replace(scenario, inducing=POINTS, kernel="MAT32" if is_automatic else scenario.kernel)


OPTIONS = (
    Option(
        "space with conditions",
        changing(branches=True),
        ("space",),
        in_fits=(fit_laws.an_inactive_parameter_does_not_matter,),
    ),
    Option(
        "levels",
        changing(levels=True),
        ("space",),
        in_fits=(fit_laws.an_ordinal_is_the_integer_of_its_rank,),
    ),
    Option(
        "chosen scale",
        changing(rescaled=True),
        ("space",),
        in_studies=(study_laws.the_fit_has_the_chosen_scale,),
    ),
    Option("warp", changing(warp="log"), ("warp",)),
    Option("warp from the best value", changing(warp="best"), ("warp",)),
    Option("known errors", changing(errors=True), ("y_sd", "sd")),
    Option(
        "repeated configurations",
        changing(repeated=True),
        ("configs", "y", "initial_configs"),
        in_fits=(fit_laws.repeated_observations_are_one_with_less_noise,),
    ),
    Option(
        "maximisation",
        changing(maximize=True),
        ("maximize", "direction"),
        in_fits=(fit_laws.maximising_is_minimising_the_negative,),
        in_studies=(study_laws.maximising_is_minimising_the_negative,),
    ),
    Option("composite kernel", changing(kernel="MAT52 + LIN[x]"), ("kernel",), in_fits=(fit_laws.components_add_up,)),
    Option("pre-trained kernel", with_learned_kernel, ("kernel",), in_fits=(fit_laws.the_gram_matrix_is_positive,)),
    Option("additive kernel", with_main_effects, ("kernel",), in_fits=(fit_laws.components_add_up,)),
    Option("stack", with_another_kernel, ("kernel",), in_fits=(fit_laws.stacking_weights_are_optimal,)),
    Option(
        "several objectives",
        changing(several=True),
        ("directions", "reference_point"),
        in_fits=None,
    ),
    Option("inducing points", with_inducing_points, ("inducing",), in_studies=None),
    Option("binary observations", changing(likelihood="probit"), ("likelihood",), in_studies=None),
    Option("noisy objective", changing(noisy=True), ("noisy",), in_fits=None),
    Option(
        "constraints",
        changing(constraint=1.0),
        ("constraints",),
        in_fits=None,
        in_studies=(study_laws.the_unit_of_a_constraint_does_not_matter,),
    ),
    Option(
        "ranges of constraints",
        changing(constraint=1.0, ranged=True),
        ("constraints",),
        in_fits=None,
        in_studies=(study_laws.the_unit_of_a_constraint_does_not_matter, study_laws.a_range_has_one_model),
    ),
    Option(
        "failures",
        changing(failures=True),
        ("failures", "state"),
        in_fits=None,
        in_studies=(study_laws.failures_change_only_the_feasibility,),
    ),
    Option(
        "running evaluations",
        changing(running=True),
        ("n_parallel", "executor", "q"),
        in_fits=None,
        in_studies=(study_laws.a_batch_of_one_is_a_suggestion,),
    ),
    Option(
        "cost",
        changing(cost=1.0),
        ("cost",),
        in_fits=None,
        in_studies=(study_laws.the_unit_of_a_cost_does_not_matter,),
    ),
    Option("optimum inside the ranges", changing(interior=True), ("interior",), in_fits=None),
    Option(
        "penalties",
        changing(penalty=True),
        ("value",),
        in_fits=None,
        in_studies=(study_laws.a_penalty_is_a_failure,),
    ),
    Option("pruned trials", changing(pruned=True), ("pruner",), in_fits=None),
    Option(
        "history",
        changing(past=4),
        ("history",),
        in_fits=None,
        in_studies=(study_laws.history_is_a_set_of_observations,),
    ),
    Option(
        "fixed values",
        changing(fixed={"z": 1.5}),
        ("fixed", "context"),
        in_fits=None,
        in_studies=(study_laws.fixed_values_stay_fixed,),
    ),
    Option(
        "constraints on inputs",
        adding_within("z + 2*x <= 4"),
        ("within",),
        in_fits=None,
        in_studies=(study_laws.constraints_on_inputs_hold,),
    ),
    Option(
        "list of rows",
        adding_within(ROWS),
        ("within",),
        in_fits=None,
        in_studies=(study_laws.every_configuration_has_a_row,),
    ),
    Option(
        "knowledge of the optimum",
        changing(prior={"z": sl.Normal(1.5, 2.0)}, default=True),
        ("prior", "prior_beta", "default"),
        in_fits=None,
        in_studies=(study_laws.the_prior_moves_the_suggestion, study_laws.the_default_is_the_first_own_trial),
    ),
)

REFUSED = {
    ("warp", "pruned trials"): "warp='log' cannot be combined with sl.Prune.*; use warp='none', or warp='auto'",
    ("warp from the best value", "pruned trials"): "warp='best' cannot be combined with sl.Prune.*; use warp='none'",
    (
        "optimum inside the ranges",
        "knowledge of the optimum",
    ): "interior=True and prior= are both beliefs about the optimum; leave one of them out",
    ("several objectives", "pruned trials"): "a pruner is not supported with several objectives; leave pruner= out",
    ("warp", "known errors"): "warp='log' cannot be combined with known errors .*; use warp='none', or warp='auto'",
    ("warp", "inducing points"): "warp='log' is not supported with inducing=; use warp='none', or leave inducing= out",
    ("warp", "binary observations"): "warp='log' is not supported with likelihood='probit'; use warp='none'",
    (
        "warp from the best value",
        "known errors",
    ): "warp='best' cannot be combined with known errors .*; use warp='none'",
    ("warp from the best value", "inducing points"): "warp='best' is not supported with inducing=; use warp='none'",
    ("warp from the best value", "binary observations"): "warp='best' is not supported with likelihood='probit'",
    ("known errors", "inducing points"): "y_sd is not supported with inducing=.*; leave y_sd out",
    ("known errors", "binary observations"): "y_sd is not supported with likelihood='probit'; leave it out",
    ("maximisation", "binary observations"): "maximize is not supported with likelihood='probit'; leave it out",
    ("pre-trained kernel", "inducing points"): "kernel 'pretrained' is not supported with inducing=; use an expression",
    ("additive kernel", "inducing points"): "kernel 'additive' is not supported with inducing=; use an expression",
    ("stack", "inducing points"): "a stack is not supported with inducing=; use a single kernel",
    ("stack", "binary observations"): "a stack is not supported with likelihood='probit'; use a single kernel",
    ("inducing points", "binary observations"): "likelihood='probit' is not supported with inducing=; leave inducing=",
}
"""Pairs of options that the same function takes and refuses, and the messages."""

ELSEWHERE = {
    "acquisition": "a criterion reads the moments of any predictor: tests/acquisition/test_criteria.py",
    "budget": "when the loop ends",
    "callbacks": "run between trials",
    "max_consecutive_failures": "when the loop ends",
    "max_cost": "when the loop ends: tests/study/run/test_costs.py",
    "max_seconds": "when an evaluation ends",
    "n_initial": "the size of the design",
    "objective": "evaluated by the loop",
    "on_progress": "shows the work",
    "priors": "data of every program; on in every scenario",
    "progress": "shows the work",
    "seed": "on in every scenario",
    "start": "where chains start, not what they sample",
    "stop": "when the loop ends: tests/study/run/test_stopping.py",
    "storage": "where a study is kept",
    "study": "has the options of its sampler",
    "study_name": "where a study is kept",
    "timeout": "when the loop ends",
    "tolerance": "the value to improve on, as fixed by a criterion: tests/study/model/test_proposal.py",
    "trial": "of a study",
    "warm_starts": "where chains start, not what they sample",
    "options": "the fields of FitOptions",
    "fit": "the fields of FitOptions",
    "method": "how the hyperparameters are sampled",
    "chains": "how the hyperparameters are sampled",
    "warmup": "how the hyperparameters are sampled",
    "draws": "how the hyperparameters are sampled",
    "target_acceptance": "how the hyperparameters are sampled",
    "max_treedepth": "how the hyperparameters are sampled",
    "ess": "how the hyperparameters are sampled",
    "retries": "how the hyperparameters are sampled",
    "pointwise": "which groups a fit has",
}
"""Arguments of public functions that do not change what is modelled, and why they have no row."""
