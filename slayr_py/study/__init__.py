"""Optimisation with Optuna: the sampler, `minimize`, ask and tell, results and refits."""

import slayr_py.progress_bar  # noqa: F401  # before Optuna, see there
from slayr_py.study.asktell import ask, config_of, create_study, space_of, tell
from slayr_py.study.distributions import space_to_distributions
from slayr_py.study.loop import minimize
from slayr_py.study.proposal import Phase
from slayr_py.study.result import Result
from slayr_py.study.results.dashboard import save_to_dashboard
from slayr_py.study.results.importance_figure import importance_figure
from slayr_py.study.results.recommendation import Recommendation
from slayr_py.study.results.refits import posterior_of, replay_parts, replay_trial
from slayr_py.study.results.tables import convergence_figure, regret_table, search_table, suggestion_table
from slayr_py.study.sampler import StanGPSampler
from slayr_py.study.stopping import Regret, RegretEstimate

__all__ = [
    "Phase",
    "Recommendation",
    "Regret",
    "RegretEstimate",
    "Result",
    "StanGPSampler",
    "ask",
    "config_of",
    "convergence_figure",
    "create_study",
    "importance_figure",
    "minimize",
    "posterior_of",
    "regret_table",
    "replay_parts",
    "replay_trial",
    "save_to_dashboard",
    "search_table",
    "space_of",
    "space_to_distributions",
    "suggestion_table",
    "tell",
]
