"""Diagnostics of a fit and their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut, convergence, energy_fractions, fewest_draws
from slayr_py.space import FloatArray

ESS_PER_CHAIN = 50  # effective draws that a fit needs by default; `rhat_limit` is 1.03 then
EBFMI_LIMIT = 0.2  # as in RStan; CmdStan warns below 0.3
DIVERGENT_SHARE = 0.005  # of the transitions; chosen by hand: few divergences in a short run do not indicate a problem
PARETO_K_LIMIT = 0.7  # above it, the error falls too slowly with the number of draws (Vehtari et al. 2024)
CARRIED_ESS = 100.0
"""Smallest accepted effective number of draws of a posterior carried from an earlier fit by importance sampling."""
TEMPERED_ESS = 50.0
"""Smallest accepted effective number of draws of any coordinate of a posterior carried by tempering, as of chains."""

INFLUENTIAL = "leave-one-out is unreliable there; the posterior draws are not affected"
"""Meaning of a large tail shape of an observation."""

Facts = Mapping[str, Any]
"""Arguments of a run, with ``transitions`` of its chains and ``loo_pareto_k_limit`` of its leave-one-out densities."""


@dataclass(frozen=True)
class Check:
    """A number of `Diagnostics` and its limit.

    Attributes
    ----------
    name : str
        Field of `Diagnostics`.
    short : str
        Name in tables in the terminal.
    title : str
        Name in messages and reports.
    form : str
        Format specification of the number.
    side : {"<=", ">="}
        Whether the limit is the largest or the smallest accepted number.
    limit : callable
        Maps the facts of a run to the limit.
    advice : str
        Meaning or remedy of a number outside its limit.
    limit_form : str, optional
        Format specification of the limit, if it differs from ``form``.
    statement : str
        Template of the message before the advice.
    note : bool
        Whether a number outside its limit is only reported, without failing the fit.
    adds_up : bool
        Whether several fits have the sum of their numbers instead of the worst one.
    """

    name: str
    short: str
    title: str
    form: str
    side: Literal["<=", ">="]
    limit: Callable[[Facts], float]
    advice: str
    limit_form: str | None = None
    statement: str = "{title} {value} {beyond} {limit}"
    note: bool = False
    adds_up: bool = False

    def passes(self, value: float, limit: float) -> bool:
        """Return whether a number is within its limit; NaN is not."""
        return value >= limit if self.side == ">=" else value <= limit

    def message(self, value: float, limit: float, facts: Facts) -> str:
        """Describe a number outside its limit: ``bulk ESS 31 < 50: more draws``."""
        return f"{self.statement}: {self.advice}".format(
            title=self.title,
            value=format(value, self.form),
            beyond="<" if self.side == ">=" else ">",
            limit=format(limit, self.limit_form or self.form),
            facts=facts,
        )

    def worst(self, values: Sequence[float]) -> float:
        """Return the number of several fits: the worst one that is not NaN, or the sum."""
        if self.adds_up:
            return sum(values)
        known = [value for value in values if not np.isnan(value)]
        choose = min if self.side == ">=" else max
        return float(choose(known, default=np.nan))

    def limit_of_all(self, numbers: Sequence[tuple[float, float]]) -> float:
        """Return a limit for `worst`, from the number and the limit of each fit.

        The limits of fits differ: that of R-hat depends on the number of chains. The worst number is outside this limit
        if the number of a fit is outside its own, of a note outside the strictest limit.
        """
        limits = [limit for _, limit in numbers]
        exceeded = limits if self.note else [limit for value, limit in numbers if not self.passes(value, limit)]
        if self.adds_up and not exceeded:
            return sum(limits)
        strict, loose = (max, min) if self.side == ">=" else (min, max)
        return strict(exceeded) if exceeded else loose(limits)

    def limit_text(self, limit: float) -> str:
        """Describe the limit: ``ess_bulk >= 50``."""
        return f"{self.short} {self.side} {limit:{self.limit_form or self.form}}{' (a note only)' if self.note else ''}"


def rhat_limit(chains: int, ess: int) -> float:
    """Return the R-hat limit for chains whose effective sample size is just sufficient; 1.03 for 50 per chain.

    Chains with few effective samples cannot agree closely. R-hat^2 - 1 is the number of chains divided by the effective
    sample size, up to a factor near 1 (Vats & Knudson 2021, "Revisiting the Gelman-Rubin diagnostic"). The factor is 3
    here, because R-hat compares twice as many half chains and the limit applies to the worst hyperparameter.
    """
    return float(np.sqrt(1 + 3 * chains / ess))


def divergence_limit(transitions: int) -> float:
    """Return the limit on divergent transitions: two standard deviations above a share of 0.5%.

    A short run can have one or two divergences by chance.
    """
    expected = DIVERGENT_SHARE * transitions
    return float(expected + 2 * np.sqrt(expected))


def _required_ess(facts: Facts) -> int:
    return int(facts["ess"] or ESS_PER_CHAIN * facts["chains"])


_ESS_BULK = Check("ess_bulk_min", "ess_bulk", "bulk ESS", ".0f", ">=", _required_ess, "more draws")

CHAIN_CHECKS = (
    Check(
        "rhat_max",
        "rhat",
        "R-hat",
        form=".3f",
        side="<=",
        limit=lambda run: rhat_limit(run["chains"], _required_ess(run)),
        advice="the chains disagree; more warm-up",
    ),
    _ESS_BULK,
    Check("ess_tail_min", "ess_tail", "tail ESS", ".0f", ">=", lambda run: _required_ess(run) / 2, "more draws"),
    Check(
        "divergences",
        "div",
        "divergences",
        form="",
        side="<=",
        limit=lambda run: divergence_limit(run["transitions"]),
        advice="higher target_acceptance",
        limit_form=".1f",
        statement="{value} of {facts[transitions]} transitions diverged, more than {limit}",
        adds_up=True,
    ),
    Check(
        "max_treedepth_hits",
        "treedepth",
        "tree depth hits",
        form="",
        side="<=",
        limit=lambda run: 0,
        advice="higher max_treedepth",
        limit_form=".0f",
        statement="{value} of {facts[transitions]} transitions reached the largest tree",
        adds_up=True,
    ),
    Check(
        "ebfmi_min", "ebfmi", "E-BFMI", ".2f", ">=", lambda run: EBFMI_LIMIT, "more warm-up, or a tighter prior", "g"
    ),
)
"""Checks of Markov chains."""

_PARETO_K = Check(
    "pareto_k",
    "pareto_k",
    "Pareto k",
    form=".2f",
    side="<=",
    limit=lambda run: PARETO_K_LIMIT,
    advice="the {facts[method]} approximation misses part of the posterior; use method='nuts'",
    limit_form="g",
)

LIKELIHOOD_RATIOS = replace(
    _PARETO_K, advice="the chains follow Laplace's approximation, which misses part of the posterior; more draws"
)
"""Check of chains whose draws are resampled to the binary likelihood by expectation propagation."""

INFLUENCE = Check(
    "loo_pareto_k_max",
    "k_loo",
    "k_loo",
    form=".2f",
    side="<=",
    limit=lambda run: run["loo_pareto_k_limit"],
    advice=INFLUENTIAL,
    statement="influential observations: {facts[loo_influential]}, leave-one-out k-hat up to {value} {beyond} {limit}",
    note=True,
)
"""Note on leave-one-out densities, for every method that draws."""

CHECKS = {check.name: check for check in (*CHAIN_CHECKS, INFLUENCE, _PARETO_K)}
"""All checks by name, in the order of tables."""


def importance_checks(smallest_ess: Callable[[Facts], float]) -> tuple[Check, Check]:
    """Return the checks of draws by importance sampling.

    Parameters
    ----------
    smallest_ess : callable
        Maps the facts of a run to the smallest accepted effective number of its draws.
    """
    effective = replace(
        _ESS_BULK,
        limit=smallest_ess,
        statement="only {value} {beyond} {limit} effective draws of the {facts[method]} approximation",
        advice="use method='nuts'",
    )
    return _PARETO_K, effective


APPROXIMATION_CHECKS = importance_checks(lambda run: min(50.0, run["draws"] / 8))
CARRIED_CHECKS = importance_checks(lambda run: TEMPERED_ESS if "temperatures" in run else CARRIED_ESS)


def importance_limits(checks: tuple[Check, Check], draws: int) -> Callable[[float, float], bool]:
    """Return a function that tells whether a Pareto shape and an effective number of draws are within their limits."""
    shape, effective = checks
    facts = {"draws": draws}
    return lambda pareto_k, ess: (
        shape.passes(pareto_k, shape.limit(facts)) and effective.passes(ess, effective.limit(facts))
    )


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
        Tail shape of the importance ratios of "carried", "pathfinder" and "laplace", and of NUTS for a binary model.
    ok : bool
        Whether all diagnostics are within their limits.
    messages : tuple of str
        One message per diagnostic outside its limit, with value, limit and remedy; one for all that need more draws.
    limits : dict of str to float
        Limits by the names of the diagnostics.
    loo_pareto_k_max : float
        Largest tail shape of the importance ratios that leave out one observation (Vehtari, Gelman & Gabry 2017); NaN
        if no tail can be fitted, for example with fewer than five draws.
    loo_influential : int
        Number of observations whose tail shape exceeds its limit.
    kernel_notes : tuple of str
        Notes on the kernel that follow from the posterior, see `Kernel.notes`, and on hyperparameters whose posterior
        is outside the range of their prior, see `Hyperparameter.outside_prior`.

    Notes
    -----
    Influential observations are reported in a note and never fail the fit. The page "Diagnostics" of the documentation
    explains the limits and their sources.
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
        return tuple(
            name
            for name, limit in self.limits.items()
            if not CHECKS[name].note and not CHECKS[name].passes(vars(self)[name], limit)
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Messages that do not make the fit fail."""
        if not self.loo_influential:
            return self.kernel_notes
        limit = self.limits[INFLUENCE.name]
        return (*self.kernel_notes, INFLUENCE.message(self.loo_pareto_k_max, limit, vars(self)))

    def asdict(self) -> dict[str, Any]:
        """Return a JSON-able form; NaN becomes None."""
        plain = asdict(self) | {"messages": list(self.messages), "kernel_notes": list(self.kernel_notes)}
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in plain.items()}

    @classmethod
    def fromdict(cls, values: dict[str, Any]) -> Diagnostics:
        """Read the form of :meth:`asdict`."""
        plain: dict[str, Any] = {k: float("nan") if v is None else v for k, v in values.items()}
        texts = {name: tuple(plain[name]) for name in ("messages", "kernel_notes")}
        return cls(**(plain | texts))

    def __str__(self) -> str:
        if np.isfinite(self.rhat_max) or "rhat_max" in self.limits:
            return f"rhat {self.rhat_max:.3f} ess {self.ess_bulk_min:.0f} div {self.divergences}"
        return f"k-hat {self.pareto_k:.2f}" if np.isfinite(self.pareto_k) else "point estimate"


def reason(message: str) -> str:
    """Return a message of `Diagnostics` without its remedy."""
    return message.partition(": ")[0]


def diagnose(
    checks: Sequence[Check],
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
    checks : sequence of Check
        Checks of the fit method.
    hyperparameters : mapping of str to (c, s, ...) float64
        Those that are not fixed.
    arguments : mapping
        Arguments of the run: ``method`` and ``draws``; for NUTS also ``chains``, ``ess`` and ``max_treedepth``.
    sampler : mapping of str to (c, s) float64
        NUTS statistics under ArviZ' names; empty for other methods.
    pareto_k, importance_ess : float
        Importance ratios of an approximation, or of the chains of a binary model, as in `Resampled`.
    loo : LeaveOneOut, optional
        Leave-one-out of the same run.
    """
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
    facts = dict(arguments)
    if sampler:
        facts["transitions"] = sampler["energy"].size
        # Hyperparameters that are all fixed have no Monte Carlo error.
        exact = {"rhat_max": 1.0} | dict.fromkeys(("ess_bulk_min", "ess_tail_min"), float(sampler["energy"].size))
        numbers |= (convergence(hyperparameters) if hyperparameters else exact) | {
            "divergences": int(sampler["diverging"].sum()),
            "max_treedepth_hits": int((sampler["tree_depth"] >= arguments["max_treedepth"]).sum()),
            "ebfmi_min": float(np.min(energy_fractions(sampler["energy"]))),
        }
        checks = [*checks, LIKELIHOOD_RATIOS] if np.isfinite(importance_ess) else checks
    shapes = loo.pareto_k[np.isfinite(loo.pareto_k)] if loo is not None else np.empty(0)
    if loo is not None and shapes.size:
        facts["loo_pareto_k_limit"] = loo.pareto_k_limit
        numbers["loo_pareto_k_max"] = float(shapes.max())
        numbers["loo_influential"] = int(np.sum(shapes > loo.pareto_k_limit))
        checks = [*checks, INFLUENCE]
    limits = {check.name: check.limit(facts) for check in checks}
    outside = [check for check in checks if not check.passes(numbers[check.name], limits[check.name])]
    short: tuple[str, ...] = ()
    if sampler and hyperparameters:
        chains, draws = next(iter(hyperparameters.values())).shape[:2]
        if draws < (fewest := fewest_draws(chains)):
            # The numbers that are undefined have one message.
            short = (f"too few draws to check convergence, {draws} < {fewest} per chain: more draws",)
            outside = [check for check in outside if not np.isnan(numbers[check.name])]
    messages = short + tuple(
        check.message(numbers[check.name], limits[check.name], facts) for check in outside if not check.note
    )
    return Diagnostics(**numbers, ok=not messages, messages=messages, limits=limits)
