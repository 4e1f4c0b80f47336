"""The fit methods of the package, which are registered when this module imports them."""

from __future__ import annotations

from collections.abc import Mapping

from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut
from slayr_py.inference.diagnostics.checks import Diagnostics, diagnose
from slayr_py.inference.sampling.approximations import Laplace as Laplace, Mode as Mode, Pathfinder as Pathfinder
from slayr_py.inference.sampling.carried import Carried as Carried
from slayr_py.inference.sampling.method import METHODS as METHODS
from slayr_py.inference.sampling.nuts import Nuts as Nuts
from slayr_py.inference.sampling.output import Run
from slayr_py.space import FloatArray


def diagnose_run(run: Run, hyperparameters: Mapping[str, FloatArray], loo: LeaveOneOut | None = None) -> Diagnostics:
    """Return the diagnostics of a run by the checks of its method, for free hyperparameters (c, s, ...)."""
    checks = METHODS[run.arguments["method"]].checks
    return diagnose(checks, hyperparameters, run.arguments, run.sampler, run.pareto_k, run.importance_ess, loo)
