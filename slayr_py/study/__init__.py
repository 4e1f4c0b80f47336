"""Optimisation with Optuna: the sampler, `minimize`, ask and tell, results and refits."""

import slayr_py.progress_bar  # noqa: F401  # before Optuna, see there
from slayr_py.study.model.kernel_searches import default_search
from slayr_py.study.model.options import LOOP_OPTIONS, SamplerKeywords as SamplerKeywords
from slayr_py.study.model.session import Phase
from slayr_py.study.results.curves import curve_table, curves_figure, pruning_text
from slayr_py.study.results.dashboard import save_to_dashboard
from slayr_py.study.results.figures import (
    convergence_figure,
    cost_figure,
    front_figure,
    hypervolume_figure,
    importance_figure,
)
from slayr_py.study.results.fit_text import attempts_text, fit_notes, fits_remarks, limits_text
from slayr_py.study.results.front import (
    front_table,
    hypervolume_of,
    reference_of,
    with_probabilities,
)
from slayr_py.study.results.loading import load
from slayr_py.study.results.optimum import Optimum
from slayr_py.study.results.recommendation import Recommendation, has_recommendation
from slayr_py.study.results.refits import cost_model_of, fitted_numbers, last_fitted, posterior_of, replay
from slayr_py.study.results.report.page import write_report
from slayr_py.study.results.result import Result
from slayr_py.study.results.tables import (
    FIT_COLUMNS,
    fit_table,
    fixed_values_text as fixed_values_text,
    found_kernels,
    front_trials,
    last_regret,
    last_regret_about as last_regret_about,
    regret_table,
    search_table,
    stopping_text as stopping_text,
    suggestion_table,
    trials_table,
)
from slayr_py.study.run.asktell import ask, ask_batch, config_of, create_study, tell
from slayr_py.study.run.constraints import (
    check_not_inputs as check_not_inputs,
    parse_constraints as parse_constraints,
)
from slayr_py.study.run.experiment_files import (
    FileForm,
    has_different_replicates as has_different_replicates,
    has_only_proposals as has_only_proposals,
    new_status as new_status,
    read_cells as read_cells,
    read_experiments,
    write_proposals as write_proposals,
)
from slayr_py.study.run.minimize import maximize, minimize
from slayr_py.study.run.objective import Objective, Values, as_value
from slayr_py.study.run.pruning import Prune
from slayr_py.study.run.stopping import Regret, RegretEstimate
from slayr_py.study.sampler import StanGPSampler, declared_space_of, space_of
from slayr_py.study.storage.attributes import (
    FAILURE_KEY,
    describe_kernel,
    is_history,
    kernel_record,
    study_record,
    suggestion_record,
)
from slayr_py.study.storage.columns import CONSTRAINT as CONSTRAINT, PENDING as PENDING
from slayr_py.study.storage.costs import cost_name, spent
from slayr_py.study.storage.distributions import space_to_distributions
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.objectives import goals_of, has_several
from slayr_py.study.storage.opening import open_storage, quiet_optuna, study_names, url_without_password
from slayr_py.study.storage.suggestion import SuggestionRecord as SuggestionRecord

__all__ = [
    "FileForm",
    "Optimum",
    "Phase",
    "Prune",
    "Recommendation",
    "Regret",
    "RegretEstimate",
    "Result",
    "StanGPSampler",
    "ask",
    "ask_batch",
    "config_of",
    "convergence_figure",
    "cost_figure",
    "cost_model_of",
    "create_study",
    "curve_table",
    "curves_figure",
    "front_figure",
    "front_table",
    "hypervolume_figure",
    "importance_figure",
    "load",
    "maximize",
    "minimize",
    "posterior_of",
    "read_experiments",
    "last_regret",
    "regret_table",
    "replay",
    "save_to_dashboard",
    "search_table",
    "space_of",
    "space_to_distributions",
    "suggestion_record",
    "suggestion_table",
    "tell",
]
