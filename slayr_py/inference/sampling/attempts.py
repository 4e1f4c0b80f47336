"""Attempts at a fit: their order, the settings of each retry, and the loop that makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypedDict, TypeVar

from slayr_py.errors import InferenceError
from slayr_py.inference.diagnostics.checks import Diagnostics, reason
from slayr_py.inference.sampling.options import FitKeywords, FitOptions, Method
from slayr_py.inference.sampling.seeds import retry_seed
from slayr_py.inference.sampling.warm_start import WarmStart

Kind = Literal["carried", "warm", "cold"]

CARRIED_PARAMETERS = 15
"""Most parameters of a program for which a posterior is carried: in more dimensions importance sampling fails."""


@dataclass(frozen=True)
class Attempt:
    """One attempt at a fit.

    Attributes
    ----------
    options : FitOptions
    seed : int
    start : WarmStart, optional
        What the attempt takes over from an earlier fit.
    """

    options: FitOptions
    seed: int
    start: WarmStart | None = None

    @property
    def kind(self) -> Kind | None:
        """Whether the chains start "warm" or "cold", or the posterior is "carried"; None for other methods."""
        if self.options.method == "carried":
            return "carried"
        if self.options.method != "nuts":
            return None
        return "warm" if self.start else "cold"

    def after(self, other: Attempt) -> str:
        """Describe what this attempt changes compared with the one before: ``a cold start with warm-up 300``."""
        if self.kind == "warm":
            return "NUTS from a warm start"
        if self.kind == "carried":
            return "importance sampling from the draws of all chains"
        new = self.options
        old = other.options
        if other.kind != "cold":
            return f"{'NUTS' if other.kind is None else 'a cold start'} with warm-up {new.warmup}"
        changes = [
            ("warm-up", old.warmup, new.warmup),
            ("target acceptance", old.target_acceptance, new.target_acceptance),
            ("largest tree", old.max_treedepth, new.max_treedepth),
        ]
        return "again with " + ", ".join(f"{name} {value:g}" for name, before, value in changes if value != before)


class AbandonedAttempt(TypedDict):
    """Entry of ``record["abandoned"]``."""

    method: Method
    start: Kind | None
    why: list[str]
    then: str
    seconds: float


class Fitted(Protocol):
    """Result of an attempt."""

    def check(self) -> Diagnostics:
        """Return the diagnostics."""

    def warm_start(self) -> WarmStart:
        """Return what a later fit can take over."""


_Fitted = TypeVar("_Fitted", bound=Fitted)


def fit_until_ok(
    fit: Callable[[Attempt], _Fitted], options: FitOptions, start: WarmStart | None, seed: int
) -> tuple[_Fitted, list[AbandonedAttempt]]:
    """Make the planned attempts, then up to ``options.retries`` retries, until the diagnostics of one pass.

    With method "carried", importance sampling from the draws of all chains follows each NUTS attempt whose diagnostics
    fail: it weights the modes between which the chains do not move.

    Parameters
    ----------
    fit : callable
        Makes one attempt; raises `InferenceError` if Stan fails.
    options : FitOptions
    start : WarmStart, optional
    seed : int
        Seed of the planned attempts; those of the retries derive from it.

    Returns
    -------
    fitted
        Result of the last attempt that NUTS finished, even if its diagnostics fail, unless those of another pass.
    abandoned : list of AbandonedAttempt
        The other attempts.

    Raises
    ------
    InferenceError
        If Stan fails in all attempts.
    """
    attempts = planned(options, start, seed)
    retry = 0
    abandoned: list[AbandonedAttempt] = []
    sampled: tuple[_Fitted, Attempt] | None = None  # the last result of NUTS, and the attempt
    while True:
        attempt = attempts.pop(0)
        started = time.perf_counter()
        of_nuts = attempt.options.method == "nuts"
        raised = False
        try:
            fitted = fit(attempt)
        except InferenceError as error:
            if not attempts and sampled is None:
                raise
            why = [str(error)]
            raised = True
        else:
            check = fitted.check()
            if check.ok:
                return fitted, abandoned
            why = [reason(message) for message in check.messages]
            if of_nuts:
                sampled = fitted, attempt
                if options.method == "carried" and _can_carry(draws := fitted.warm_start()):
                    attempts.insert(0, Attempt(options, attempt.seed, draws))
        if not attempts and sampled and retry < options.retries and not (raised and of_nuts):
            retry += 1
            attempts.append(next_retry(sampled[1], sampled[0].check().outside, seed, retry))
        if not attempts and not raised and (sampled is None or sampled[0] is fitted):
            return fitted, abandoned
        abandoned.append(
            {
                "method": attempt.options.method,
                "start": attempt.kind,
                "why": why,
                "then": attempts[0].after(attempt) if attempts else "back to the fit by NUTS",
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        if not attempts and sampled:
            return sampled[0], abandoned


def planned(options: FitOptions, start: WarmStart | None, seed: int) -> list[Attempt]:
    """Return the attempts before any retry: an approximation if requested, a warm start if given, a cold start.

    The mode (method "map") is the only attempt, since no diagnostics can reject it.
    """
    requested = Attempt(options, seed, start if options.method == "carried" else None)
    if options.method == "map":
        return [requested]
    cold = Attempt(options.updated(method="nuts"), seed)
    sampled = [replace(cold, start=start), cold] if start else [cold]
    if options.method == "nuts" or (options.method == "carried" and (start is None or not _can_carry(start))):
        return sampled
    return [requested, *sampled]


def _can_carry(start: WarmStart) -> bool:
    s, p = start.draws.shape
    return bool(p <= CARRIED_PARAMETERS and s > p)


def next_retry(failed: Attempt, outside: Iterable[str], seed: int, retry: int) -> Attempt:
    """Return a cold NUTS attempt with settings changed to address the diagnostics that failed.

    Double the warm-up if the chains disagree, mix badly or explore the energy badly. Move the target acceptance halfway
    to 1, hence take smaller steps, if transitions diverged. Allow one more tree level, hence trajectories of twice the
    length, if transitions reached the largest tree.

    Parameters
    ----------
    failed : Attempt
    outside : iterable of str
        `Diagnostics.outside` of its result.
    seed : int
        Seed of the first attempt.
    retry : int
        Number of this retry, from 1.
    """
    failures = set(outside)
    options = failed.options
    changes: FitKeywords = {}
    if failures & {"rhat_max", "ess_bulk_min", "ess_tail_min", "ebfmi_min"}:
        changes["warmup"] = 2 * options.warmup
    if "divergences" in failures:
        changes["target_acceptance"] = (1 + options.target_acceptance) / 2
    if "max_treedepth_hits" in failures:
        changes["max_treedepth"] = options.max_treedepth + 1
    return Attempt(options.updated(**changes), retry_seed(seed, retry))
