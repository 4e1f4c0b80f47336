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


@dataclass(frozen=True)
class Attempt:
    """One attempt at a fit.

    Attributes
    ----------
    options : FitOptions
    seed : int
    start : WarmStart, optional
        Initial states, step sizes and metric of the NUTS chains.
    """

    options: FitOptions
    seed: int
    start: WarmStart | None = None

    @property
    def kind(self) -> Literal["warm", "cold"] | None:
        """Whether the chains start "warm" or "cold"; None for a method without chains."""
        if self.options.method != "nuts":
            return None
        return "warm" if self.start else "cold"

    def after(self, other: Attempt) -> str:
        """Describe what this attempt changes compared with the one before: ``a cold start with warm-up 300``."""
        if self.kind == "warm":
            return "NUTS from a warm start"
        new, old = self.options, other.options
        if other.kind != "cold":
            return f"{'a cold start' if other.kind else 'NUTS'} with warm-up {new.warmup}"
        changes = [
            ("warm-up", old.warmup, new.warmup),
            ("target acceptance", old.target_acceptance, new.target_acceptance),
            ("largest tree", old.max_treedepth, new.max_treedepth),
        ]
        return "again with " + ", ".join(f"{name} {value:g}" for name, before, value in changes if value != before)


class AbandonedAttempt(TypedDict):
    """Entry of ``record["abandoned"]``."""

    method: Method
    start: Literal["warm", "cold"] | None
    why: list[str]
    then: str
    seconds: float


class Fitted(Protocol):
    """Result of an attempt."""

    def check(self) -> Diagnostics:
        """Return the diagnostics."""


_Fitted = TypeVar("_Fitted", bound=Fitted)


def fit_until_ok(
    fit: Callable[[Attempt], _Fitted], options: FitOptions, start: WarmStart | None, seed: int
) -> tuple[_Fitted, list[AbandonedAttempt]]:
    """Make the planned attempts, then up to ``options.retries`` retries, until the diagnostics of one pass.

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
        Result of the last attempt, even if its diagnostics fail. If Stan fails in a retry: that of the attempt before.
    abandoned : list of AbandonedAttempt
        The attempts before it, or, if Stan failed in a retry, all attempts.

    Raises
    ------
    InferenceError
        If Stan fails in the last planned attempt.
    """
    attempts, retry = planned(options, start, seed), 0
    abandoned: list[AbandonedAttempt] = []
    failed: _Fitted | None = None  # the last result from which a retry followed
    while True:
        attempt, started = attempts.pop(0), time.perf_counter()
        try:
            fitted = fit(attempt)
        except InferenceError as error:
            if not attempts and failed is None:
                raise
            why = [str(error)]
        else:
            check = fitted.check()
            if check.ok or (not attempts and retry == options.retries):
                return fitted, abandoned
            why = [reason(message) for message in check.messages]
            if not attempts:
                retry, failed = retry + 1, fitted
                attempts.append(next_retry(attempt, check.outside, seed, retry))
        abandoned.append(
            {
                "method": attempt.options.method,
                "start": attempt.kind,
                "why": why,
                "then": attempts[0].after(attempt) if attempts else "back to the previous fit",
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        if not attempts and failed is not None:
            return failed, abandoned


def planned(options: FitOptions, start: WarmStart | None, seed: int) -> list[Attempt]:
    """Return the attempts before any retry: an approximation if requested, a warm start if given, a cold start.

    The mode (method "map") is the only attempt, since no diagnostics can reject it.
    """
    requested = Attempt(options, seed)
    if options.method == "map":
        return [requested]
    cold = Attempt(options.updated(method="nuts"), seed)
    sampled = [replace(cold, start=start), cold] if start else [cold]
    return sampled if options.method == "nuts" else [requested, *sampled]


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
    failures, options = set(outside), failed.options
    changes: FitKeywords = {}
    if failures & {"rhat_max", "ess_bulk_min", "ess_tail_min", "ebfmi_min"}:
        changes["warmup"] = 2 * options.warmup
    if "divergences" in failures:
        changes["target_acceptance"] = (1 + options.target_acceptance) / 2
    if "max_treedepth_hits" in failures:
        changes["max_treedepth"] = options.max_treedepth + 1
    return Attempt(options.updated(**changes), retry_seed(seed, retry))
