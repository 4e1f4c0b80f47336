"""Diagnostics: whether a fit is to be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slayr_py.inference.output import Run
from slayr_py.inference.tree import convergence, energy_fractions
from slayr_py.space.dimension import FloatArray

ESS_PER_CHAIN = 50
EBFMI_LIMIT = 0.2
DIVERGENT_SHARE = 0.005
PARETO_K_LIMIT = 0.7


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

    def asdict(self) -> dict[str, Any]:
        """JSON-able form; NaN becomes None."""
        plain = asdict(self) | {"messages": list(self.messages)}
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in plain.items()}

    @classmethod
    def fromdict(cls, values: dict[str, Any]) -> Diagnostics:
        """Read what :meth:`asdict` wrote."""
        plain: dict[str, Any] = {k: float("nan") if v is None else v for k, v in values.items()}
        return cls(**(plain | {"messages": tuple(plain["messages"])}))

    def __str__(self) -> str:
        if np.isfinite(self.rhat_max):
            return f"rhat {self.rhat_max:.3f} ess {self.ess_bulk_min:.0f} div {self.divergences}"
        return f"k-hat {self.pareto_k:.2f}" if np.isfinite(self.pareto_k) else "point estimate"


def diagnose(run: Run, hyperparameters: dict[str, FloatArray]) -> Diagnostics:
    """Diagnostics of a run.

    Parameters
    ----------
    run : Run
    hyperparameters : dict of str to (c, s, ...) float64
    """
    method = run.arguments["method"]
    if method != "nuts":
        messages = []
        if run.pareto_k > PARETO_K_LIMIT:
            messages.append(
                f"Pareto k {run.pareto_k:.2f} > {PARETO_K_LIMIT}: the {method} approximation misses part of the "
                "posterior; use method='nuts'"
            )
        least = importance_ess_limit(run.arguments.get("draws", 0))
        if run.importance_ess < least:
            messages.append(
                f"only {run.importance_ess:.0f} < {least:.0f} effective draws of the {method} approximation"
            )
        nan = float("nan")
        return Diagnostics(nan, run.importance_ess, nan, 0, 0, nan, run.pareto_k, not messages, tuple(messages))
    worst = convergence(hyperparameters)
    chains, draws = run.sampler["energy"].shape
    divergences = int(run.sampler["diverging"].sum())
    hits = int((run.sampler["tree_depth"] >= run.arguments["max_treedepth"]).sum())
    ebfmi = float(np.min(energy_fractions(run.sampler["energy"])))
    wanted = wanted_ess(run.arguments)
    limit = rhat_limit(chains, wanted)
    messages = []
    if not worst["rhat_max"] <= limit:
        messages.append(f"R-hat {worst['rhat_max']:.3f} > {limit:.3f}: the chains disagree; more warm-up")
    for kind, least in (("bulk", wanted), ("tail", wanted / 2)):
        ess = worst[f"ess_{kind}_min"]
        if not ess >= least:
            messages.append(f"{kind} ESS {ess:.0f} < {least:.0f}: more draws")
    # More than two standard deviations above what that share gives by chance: in a short run one says nothing.
    expected = DIVERGENT_SHARE * chains * draws
    if divergences > expected + 2 * np.sqrt(expected):
        messages.append(f"{divergences} of {chains * draws} transitions diverged: higher target_acceptance")
    if hits:
        messages.append(f"{hits} transitions reached the largest tree: higher max_treedepth")
    if not ebfmi >= EBFMI_LIMIT:
        messages.append(f"E-BFMI {ebfmi:.2f} < {EBFMI_LIMIT}: more warm-up, or a tighter prior")
    return Diagnostics(
        rhat_max=worst["rhat_max"],
        ess_bulk_min=worst["ess_bulk_min"],
        ess_tail_min=worst["ess_tail_min"],
        divergences=divergences,
        max_treedepth_hits=hits,
        ebfmi_min=ebfmi,
        pareto_k=float("nan"),
        ok=not messages,
        messages=tuple(messages),
    )
