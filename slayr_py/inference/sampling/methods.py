"""The fit methods by name."""

from __future__ import annotations

from collections.abc import Mapping

from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut
from slayr_py.inference.diagnostics.checks import Diagnostics, diagnose
from slayr_py.inference.sampling.approximations import Laplace, Mode, Pathfinder
from slayr_py.inference.sampling.carried import Carried
from slayr_py.inference.sampling.method import FitMethod
from slayr_py.inference.sampling.nuts import Nuts
from slayr_py.inference.sampling.options import Method
from slayr_py.inference.sampling.output import Run
from slayr_py.space import FloatArray

METHODS: dict[Method, FitMethod] = {
    method.name: method for method in (Nuts(), Carried(), Pathfinder(), Laplace(), Mode())
}
"""In the order of the names in `Method`."""


def diagnose_run(run: Run, hyperparameters: Mapping[str, FloatArray], loo: LeaveOneOut | None = None) -> Diagnostics:
    """Return the diagnostics of a run by the checks of its method, for free hyperparameters (c, s, ...)."""
    checks = METHODS[run.arguments["method"]].checks
    return diagnose(checks, hyperparameters, run.arguments, run.sampler, run.pareto_k, run.importance_ess, loo)
