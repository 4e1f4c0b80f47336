"""Diagnostics of a fit and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut, convergence, energy_fractions
from slayr_py.space import FloatArray

ESS_PER_CHAIN = 50
EBFMI_LIMIT = 0.2
DIVERGENT_SHARE = 0.005
PARETO_K_LIMIT = 0.7
CARRIED_ESS = 100.0
"""Smallest accepted effective number of draws of a posterior carried from an earlier fit."""

_AT_LEAST = frozenset({"ess_bulk_min", "ess_tail_min", "ebfmi_min"})  # lower limits; the others are upper limits

INFLUENTIAL = "leave-one-out is unreliable there; the posterior draws are not affected"
"""Meaning of a large tail shape of an observation."""

_NUTS_MESSAGES = {
    "rhat_max": "R-hat {value:.3f} > {limit:.3f}: the chains disagree; more warm-up",
    "ess_bulk_min": "bulk ESS {value:.0f} < {limit:.0f}: more draws",
    "ess_tail_min": "tail ESS {value:.0f} < {limit:.0f}: more draws",
    "divergences": "{value} of {transitions} transitions diverged, more than {limit:.1f}: higher target_acceptance",
    "max_treedepth_hits": "{value} of {transitions} transitions reached the largest tree: higher max_treedepth",
    "ebfmi_min": "E-BFMI {value:.2f} < {limit}: more warm-up, or a tighter prior",
}
_APPROXIMATION_MESSAGES = {
    "pareto_k": "Pareto k {value:.2f} > {limit}: the {method} approximation misses part of the posterior; use "
    "method='nuts'",
    "ess_bulk_min": "only {value:.0f} < {limit:.0f} effective draws of the {method} approximation: use method='nuts'",
}


def rhat_limit(chains: int, ess: int) -> float:
    """Return the R-hat limit for chains whose effective sample size is just sufficient; 1.03 for 50 per chain.

    Chains with few effective samples cannot agree closely: R-hat^2 - 1 is the number of chains over the effective
    sample size, up to a factor near 1 (Vats & Knudson 2021, "Revisiting the Gelman-Rubin diagnostic"). The factor is 3
    here, because R-hat compares twice as many half chains and the limit applies to the worst of all hyperparameters.
    """
    return float(np.sqrt(1 + 3 * chains / ess))


def divergence_limit(transitions: int) -> float:
    """Return the limit on divergent transitions: two standard deviations above a share of 0.5%.

    A short run can have one or two divergences by chance, which carry no information.
    """
    expected = DIVERGENT_SHARE * transitions
    return float(expected + 2 * np.sqrt(expected))


def importance_ess_limit(draws: int, method: str) -> float:
    """Return the smallest acceptable effective number of distinct draws after importance resampling."""
    return CARRIED_ESS if method == "carried" else min(50.0, draws / 8)


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of one fit, computed by ArviZ over all hyperparameters; NaN if the method does not define one.

    Attributes
    ----------
    rhat_max : float
        Largest rank-normalised split R-hat (Vehtari et al. 2021); 1 when the chains agree.
    ess_bulk_min, ess_tail_min : float
        Smallest effective sample sizes of the bulk and of the 5% and 95% quantiles. For importance sampling
        ("carried", "pathfinder", "laplace") ``ess_bulk_min`` is the effective number of distinct draws.
    divergences : int
        Transitions at which the energy error of the integrator diverged.
    max_treedepth_hits : int
        Transitions that reached the largest tree.
    ebfmi_min : float
        Smallest energy Bayesian fraction of missing information over the chains.
    pareto_k : float
        Tail shape of the importance ratios of "carried", "pathfinder" and "laplace".
    ok : bool
        Whether all diagnostics are within their limits.
    messages : tuple of str
        One message per diagnostic outside its limit, with value, limit and remedy.
    limits : dict of str to float
        Limits by the names of the diagnostics.
    loo_pareto_k_max : float
        Largest tail shape of the importance ratios that leave out one observation (Vehtari, Gelman & Gabry 2017); NaN
        if no tail can be fitted, for example with fewer than five draws.
    loo_influential : int
        Number of observations whose tail shape exceeds its limit.
    kernel_notes : tuple of str
        What the posterior says about the kernel, see `Kernel.notes`.

    Notes
    -----
    Influential observations are a note and never a failure. The page "Diagnostics" of the documentation gives the
    reasons and the sources of the limits.
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
    kernel_notes: tuple[str, ...] = ()

    @property
    def outside(self) -> tuple[str, ...]:
        """Names of the diagnostics outside their limits."""
        return _outside(vars(self), self.limits)

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages that do not make the fit fail."""
        if not self.loo_influential:
            return self.kernel_notes
        limit = self.limits["loo_pareto_k_max"]
        return (
            *self.kernel_notes,
            f"influential observations: {self.loo_influential}, leave-one-out k-hat up to "
            f"{self.loo_pareto_k_max:.2f} > {limit:.2f}: {INFLUENTIAL}",
        )

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able form; NaN becomes None."""
        plain = asdict(self) | {"messages": list(self.messages), "kernel_notes": list(self.kernel_notes)}
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in plain.items()}

    @classmethod
    def fromdict(cls, values: dict[str, Any]) -> Diagnostics:
        """Read the form of :meth:`asdict`, also of earlier versions with fewer entries."""
        plain: dict[str, Any] = {k: float("nan") if v is None else v for k, v in values.items()}
        texts = {name: tuple(plain.get(name, ())) for name in ("messages", "kernel_notes")}
        return cls(**(plain | texts))

    def __str__(self) -> str:
        if np.isfinite(self.rhat_max):
            return f"rhat {self.rhat_max:.3f} ess {self.ess_bulk_min:.0f} div {self.divergences}"
        return f"k-hat {self.pareto_k:.2f}" if np.isfinite(self.pareto_k) else "point estimate"


def reason(message: str) -> str:
    """Return a message of `Diagnostics` without its remedy."""
    return message.partition(": ")[0]


def diagnose(
    hyperparameters: Mapping[str, FloatArray],
    arguments: Mapping[str, Any],
    sampler: Mapping[str, FloatArray],
    pareto_k: float = float("nan"),
    importance_ess: float = float("nan"),
    loo: LeaveOneOut | None = None,
) -> Diagnostics:
    """Return the diagnostics of a run with c chains and s draws per chain.

    Parameters
    ----------
    hyperparameters : mapping of str to (c, s, ...) float64
    arguments : mapping
        Arguments of the run: ``method`` and ``draws``; for NUTS also ``chains``, ``ess`` and ``max_treedepth``.
    sampler : mapping of str to (c, s) float64
        NUTS statistics under ArviZ' names; ignored for other methods.
    pareto_k, importance_ess : float
        Importance ratios of an approximation, as in `Resampled`.
    loo : LeaveOneOut, optional
        Leave-one-out of the same run.
    """
    method = arguments["method"]
    nan = float("nan")
    numbers: dict[str, Any] = {
        "rhat_max": nan,
        "ess_bulk_min": importance_ess,
        "ess_tail_min": nan,
        "divergences": 0,
        "max_treedepth_hits": 0,
        "ebfmi_min": nan,
        "pareto_k": pareto_k,
    }
    limits: dict[str, float] = {}
    templates = _NUTS_MESSAGES
    transitions = 0
    if method == "nuts":
        transitions = sampler["energy"].size
        wanted = int(arguments["ess"] or ESS_PER_CHAIN * arguments["chains"])
        numbers |= convergence(hyperparameters) | {
            "divergences": int(sampler["diverging"].sum()),
            "max_treedepth_hits": int((sampler["tree_depth"] >= arguments["max_treedepth"]).sum()),
            "ebfmi_min": float(np.min(energy_fractions(sampler["energy"]))),
        }
        limits = {
            "rhat_max": rhat_limit(arguments["chains"], wanted),
            "ess_bulk_min": wanted,
            "ess_tail_min": wanted / 2,
            "divergences": divergence_limit(transitions),
            "max_treedepth_hits": 0,
            "ebfmi_min": EBFMI_LIMIT,
        }
    elif method != "map":
        templates = _APPROXIMATION_MESSAGES
        limits = {"pareto_k": PARETO_K_LIMIT, "ess_bulk_min": importance_ess_limit(arguments["draws"], method)}
    messages = tuple(
        templates[name].format(value=numbers[name], limit=limits[name], method=method, transitions=transitions)
        for name in _outside(numbers, limits)
    )
    return Diagnostics(**numbers, ok=not messages, messages=messages, **_influence(limits, loo))


def _outside(numbers: Mapping[str, Any], limits: Mapping[str, float]) -> tuple[str, ...]:
    """Return the names of the numbers outside their limits; NaN is outside."""
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
