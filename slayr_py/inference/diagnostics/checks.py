"""Diagnostics: whether a fit is to be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut, convergence, energy_fractions
from slayr_py.inference.sampling.output import Run
from slayr_py.space.dimension import FloatArray

ESS_PER_CHAIN = 50
EBFMI_LIMIT = 0.2
DIVERGENT_SHARE = 0.005
PARETO_K_LIMIT = 0.7

_AT_LEAST = frozenset({"ess_bulk_min", "ess_tail_min", "ebfmi_min"})  # of the others, less is better

INFLUENTIAL = "leave-one-out is unreliable there, the draws are not concerned"
"""What a large tail shape of an observation means."""

_OBJECTIONS = {
    "rhat_max": "R-hat {value:.3f} > {limit:.3f}: the chains disagree; more warm-up",
    "ess_bulk_min": "bulk ESS {value:.0f} < {limit:.0f}: more draws",
    "ess_tail_min": "tail ESS {value:.0f} < {limit:.0f}: more draws",
    "divergences": "{value} of {transitions} transitions diverged, more than {limit:.1f}: higher target_acceptance",
    "max_treedepth_hits": "{value} of {transitions} transitions reached the largest tree: higher max_treedepth",
    "ebfmi_min": "E-BFMI {value:.2f} < {limit}: more warm-up, or a tighter prior",
}
_OBJECTIONS_TO_AN_APPROXIMATION = {
    "pareto_k": "Pareto k {value:.2f} > {limit}: the {method} approximation misses part of the posterior; use "
    "method='nuts'",
    "ess_bulk_min": "only {value:.0f} < {limit:.0f} effective draws of the {method} approximation: use method='nuts'",
}


def wanted_ess(arguments: Mapping[str, Any]) -> int:
    """Effective samples that a NUTS run with these arguments is to have."""
    return int(arguments["ess"] or ESS_PER_CHAIN * arguments["chains"])


def rhat_limit(chains: int, ess: int) -> float:
    """Largest R-hat of chains with an effective sample size that is just enough; 1.03 for 50 a chain.

    Chains that share few effective samples cannot agree closely: R-hat^2 - 1 is the number of chains over the effective
    sample size, but for a factor near 1 (Vats & Knudson 2021, "Revisiting the Gelman-Rubin diagnostic"). The factor is
    3 here, as there are twice as many half chains, and the worst of all hyperparameters is looked at.
    """
    return float(np.sqrt(1 + 3 * chains / ess))


def divergence_limit(transitions: int) -> float:
    """Largest number of divergent transitions: two standard deviations above a share of 0.5%.

    In a short run that share gives one or two by chance, and these say nothing.
    """
    expected = DIVERGENT_SHARE * transitions
    return float(expected + 2 * np.sqrt(expected))


def importance_ess_limit(draws: int) -> float:
    """Effective number of different draws that importance resampling has to leave."""
    return min(50.0, draws / 8)


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of one fit, computed by ArviZ over all hyperparameters; NaN where a method has no such number.

    Attributes
    ----------
    rhat_max : float
        Largest rank-normalised split R-hat (Vehtari et al. 2021); 1 when the chains agree.
    ess_bulk_min, ess_tail_min : float
        Smallest effective sample sizes of the centre and of the 5% and 95% quantiles; of Pathfinder and Laplace the
        effective number of different draws.
    divergences : int
        Transitions at which the integrator lost the energy.
    max_treedepth_hits : int
        Transitions cut short at the largest tree.
    ebfmi_min : float
        Smallest energy Bayesian fraction of missing information of a chain.
    pareto_k : float
        Tail shape of the importance ratios of Pathfinder and Laplace.
    ok : bool
        Whether everything is within its limit.
    messages : tuple of str
        What is not, with its value, its limit and what helps.
    limits : dict of str to float
        The limit of each of the numbers here, by its name.
    loo_pareto_k_max : float
        Largest tail shape of the importance ratios that leave one observation out (Vehtari, Gelman & Gabry 2017); NaN
        where no tail can be fitted, as with fewer than five draws.
    loo_influential : int
        Number of observations where it is above its limit.

    Notes
    -----
    Influential observations are a note and never a failure: docs/diagnostics.md says why, and whence the limits.
    """

    rhat_max: float
    ess_bulk_min: float
    ess_tail_min: float
    divergences: int
    max_treedepth_hits: int
    ebfmi_min: float
    pareto_k: float
    ok: bool
    messages: tuple[str, ...]
    limits: dict[str, float] = field(default_factory=dict)
    loo_pareto_k_max: float = float("nan")
    loo_influential: int = 0

    @property
    def outside(self) -> tuple[str, ...]:
        """Names of the numbers that make the fit fail."""
        return _outside(vars(self), self.limits)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing of a fit that is all right."""
        if not self.loo_influential:
            return ()
        limit = self.limits["loo_pareto_k_max"]
        return (
            f"influential observations: {self.loo_influential}, leave-one-out k-hat up to "
            f"{self.loo_pareto_k_max:.2f} > {limit:.2f}: {INFLUENTIAL}",
        )

    def asdict(self) -> dict[str, Any]:
        """JSON-able form; NaN becomes None."""
        plain = asdict(self) | {"messages": list(self.messages)}
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in plain.items()}

    @classmethod
    def fromdict(cls, values: dict[str, Any]) -> Diagnostics:
        """Read what :meth:`asdict` wrote, also that of an earlier version, which knew less."""
        plain: dict[str, Any] = {k: float("nan") if v is None else v for k, v in values.items()}
        return cls(**(plain | {"messages": tuple(plain["messages"])}))

    def __str__(self) -> str:
        if np.isfinite(self.rhat_max):
            return f"rhat {self.rhat_max:.3f} ess {self.ess_bulk_min:.0f} div {self.divergences}"
        return f"k-hat {self.pareto_k:.2f}" if np.isfinite(self.pareto_k) else "point estimate"


def reason(message: str) -> str:
    """What a message of `Diagnostics` objects to, without what helps."""
    return message.partition(": ")[0]


def diagnose(run: Run, hyperparameters: dict[str, FloatArray], loo: LeaveOneOut | None = None) -> Diagnostics:
    """Diagnostics of a run.

    Parameters
    ----------
    run : Run
    hyperparameters : dict of str to (c, s, ...) float64
    loo : LeaveOneOut, optional
        Of the same run.
    """
    method, nan = run.arguments["method"], float("nan")
    numbers: dict[str, Any] = {
        "rhat_max": nan,
        "ess_bulk_min": run.importance_ess,
        "ess_tail_min": nan,
        "divergences": 0,
        "max_treedepth_hits": 0,
        "ebfmi_min": nan,
        "pareto_k": run.pareto_k,
    }
    limits: dict[str, float] = {}
    objections, transitions = _OBJECTIONS, 0
    if method == "nuts":
        transitions = run.sampler["energy"].size
        numbers |= convergence(hyperparameters) | {
            "divergences": int(run.sampler["diverging"].sum()),
            "max_treedepth_hits": int((run.sampler["tree_depth"] >= run.arguments["max_treedepth"]).sum()),
            "ebfmi_min": float(np.min(energy_fractions(run.sampler["energy"]))),
        }
        wanted = wanted_ess(run.arguments)
        limits = {
            "rhat_max": rhat_limit(run.chains, wanted),
            "ess_bulk_min": wanted,
            "ess_tail_min": wanted / 2,
            "divergences": divergence_limit(transitions),
            "max_treedepth_hits": 0,
            "ebfmi_min": EBFMI_LIMIT,
        }
    elif method != "map":
        objections = _OBJECTIONS_TO_AN_APPROXIMATION
        limits = {"pareto_k": PARETO_K_LIMIT, "ess_bulk_min": importance_ess_limit(run.arguments["draws"])}
    messages = tuple(
        objections[name].format(value=numbers[name], limit=limits[name], method=method, transitions=transitions)
        for name in _outside(numbers, limits)
    )
    return Diagnostics(**numbers, ok=not messages, messages=messages, **_influence(limits, loo))


def _outside(numbers: Mapping[str, Any], limits: Mapping[str, float]) -> tuple[str, ...]:
    """Names of those that are not within their limits, be it because they could not be computed."""
    return tuple(
        name
        for name, limit in limits.items()
        if name != "loo_pareto_k_max" and not (numbers[name] >= limit if name in _AT_LEAST else numbers[name] <= limit)
    )


def _influence(limits: dict[str, float], loo: LeaveOneOut | None) -> dict[str, Any]:
    shapes = loo.pareto_k[np.isfinite(loo.pareto_k)] if loo is not None else np.empty(0)
    if loo is None or not shapes.size:
        return {"limits": limits}
    return {
        "limits": limits | {"loo_pareto_k_max": loo.pareto_k_limit},
        "loo_pareto_k_max": float(shapes.max()),
        "loo_influential": int(np.sum(shapes > loo.pareto_k_limit)),
    }
