"""Acquisition functions averaged over posterior draws, and their maximisation on mixed spaces."""

from slayr_py.acquisition.boxes import MOST_OBJECTIVES as MOST_OBJECTIVES, hypervolume, non_dominated as non_dominated
from slayr_py.acquisition.candidates import enumeration as enumeration
from slayr_py.acquisition.criteria import (
    Acquisition,
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
    ProbabilityOfImprovement,
    from_name,
    names,
)
from slayr_py.acquisition.feasibility import (
    Feasibility,
    infeasible as infeasible,
    log_probability_feasible as log_probability_feasible,
)
from slayr_py.acquisition.front_draws import (
    FrontDraws as FrontDraws,
    FrontTask as FrontTask,
    draw_fronts as draw_fronts,
)
from slayr_py.acquisition.functions import (
    beta_schedule,
    expected_improvement,
    log_expected_improvement,
    lower_confidence_bound,
    probability_of_improvement,
)
from slayr_py.acquisition.identity import distinct as distinct, keys as keys
from slayr_py.acquisition.marginals import BELIEF_FAMILIES as BELIEF_FAMILIES
from slayr_py.acquisition.maximise import criterion_values, suggest
from slayr_py.acquisition.near_optima import extend_pool as extend_pool
from slayr_py.acquisition.optimum import Optima as Optima, sample_optima as sample_optima
from slayr_py.acquisition.optimum_prior import (
    Beliefs as Beliefs,
    OptimumPrior,
    ignored_beliefs as ignored_beliefs,
    prior_text as prior_text,
)
from slayr_py.acquisition.plateaus import Outcomes as Outcomes
from slayr_py.acquisition.regret import sample_regret
from slayr_py.acquisition.search import SearchKeywords as SearchKeywords, Suggestion
from slayr_py.acquisition.tradeoff import suggest_tradeoff

__all__ = [
    "Acquisition",
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "LowerConfidenceBound",
    "OptimumPrior",
    "ProbabilityOfImprovement",
    "Suggestion",
    "beta_schedule",
    "criterion_values",
    "expected_improvement",
    "from_name",
    "hypervolume",
    "log_expected_improvement",
    "lower_confidence_bound",
    "names",
    "probability_of_improvement",
    "suggest",
    "suggest_tradeoff",
]
