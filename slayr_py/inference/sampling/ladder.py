"""Order of the attempts at a fit, and the loop that repeats a fit until its diagnostics pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from slayr_py.errors import InferenceError
from slayr_py.inference.diagnostics.checks import Diagnostics, reason
from slayr_py.inference.sampling.carried import can_carry
from slayr_py.inference.sampling.method import FitMethod, Kind
from slayr_py.inference.sampling.methods import METHODS
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
        Draws, states and metric of an earlier fit.
    """

    options: FitOptions
    seed: int
    start: WarmStart | None = None

    @classmethod
    def recorded(cls, record: Mapping[str, Any]) -> Attempt:
        """Return the attempt that a run record describes."""
        arguments = record["arguments"]
        start = None if record["start"] is None else WarmStart.fromdict(record["start"])
        return cls(FitOptions.recorded(arguments), arguments["seed"], start)

    @property
    def method(self) -> FitMethod:
        """Fit method of the attempt."""
        return METHODS[self.options.method]

    @property
    def kind(self) -> Kind | None:
        """Whether the chains start "warm" or "cold", or the posterior is "carried"; None for other methods."""
        return self.method.kind(self.start)

    def after(self, other: Attempt) -> str:
        """Describe what this attempt changes compared with the one before: ``a cold start with warm-up 300``."""
        if self.kind == "warm":
            return "NUTS from a warm start"
        if self.kind == "carried":
            return "importance sampling from the draws of all chains"
        if not self.method.has_chains:
            return "importance sampling from the prior"
        new = self.options
        old = other.options
        if other.kind in (None, "cold") and not other.method.has_chains:
            return f"NUTS with warm-up {new.warmup}"
        if other.kind != "cold":
            return f"a cold start with warm-up {new.warmup}"
        changes = [
            ("warm-up", old.warmup, new.warmup),
            ("target acceptance", old.target_acceptance, new.target_acceptance),
            ("largest tree", old.max_treedepth, new.max_treedepth),
            ("draws", old.draws, new.draws),
        ]
        return "again with " + ", ".join(f"{name} {value:g}" for name, before, value in changes if value != before)


class AbandonedAttempt(TypedDict):
    """Entry of ``record["abandoned"]``."""

    method: Method
    start: Kind | None
    why: list[str]
    then: str
    seconds: float


class CheckedFit(Protocol):
    """Result of an attempt."""

    def check(self) -> Diagnostics:
        """Return the diagnostics."""

    def warm_start(self) -> WarmStart:
        """Return a start for a later fit."""


_Fitted = TypeVar("_Fitted", bound=CheckedFit)


@dataclass(frozen=True)
class Outcome(Generic[_Fitted]):
    """Outcome of an attempt.

    Attributes
    ----------
    attempt : Attempt
    fitted : optional
        None if Stan failed.
    why : tuple of str
        Reasons to abandon the attempt: the diagnostics outside their limits, or Stan's error.
    seconds : float
    error : InferenceError, optional
        Stan's error.
    """

    attempt: Attempt
    fitted: _Fitted | None
    why: tuple[str, ...]
    seconds: float
    error: InferenceError | None = None

    @classmethod
    def of(cls, attempt: Attempt, fit: Callable[[Attempt], _Fitted]) -> Outcome[_Fitted]:
        """Run an attempt and return its outcome; ``fit`` raises `InferenceError` if Stan fails."""
        started = time.perf_counter()
        try:
            fitted = fit(attempt)
        except InferenceError as error:
            return cls(attempt, None, (str(error),), time.perf_counter() - started, error)
        check = fitted.check()
        why = () if check.ok else tuple(reason(message) for message in check.messages)
        return cls(attempt, fitted, why, time.perf_counter() - started)

    @property
    def ok(self) -> bool:
        """Whether all diagnostics are within their limits."""
        return not self.why

    def entry(self, then: str) -> AbandonedAttempt:
        """Return the entry of ``record["abandoned"]``; ``then`` describes the next attempt."""
        return {
            "method": self.attempt.options.method,
            "start": self.attempt.kind,
            "why": list(self.why),
            "then": then,
            "seconds": round(self.seconds, 3),
        }


def fit_until_ok(
    fit: Callable[[Attempt], _Fitted],
    options: FitOptions,
    start: WarmStart | None,
    seed: int,
    carries: Callable[[WarmStart | None], bool] = can_carry,
) -> tuple[_Fitted, list[AbandonedAttempt]]:
    """Run the attempts of the ladder until the diagnostics of an attempt pass.

    Parameters
    ----------
    fit : callable
        Runs an attempt; raises `InferenceError` if Stan fails.
    options : FitOptions
    start : WarmStart, optional
    seed : int
        Seed of the planned attempts; the seeds of the retries derive from it.
    carries : callable
        Returns whether method "carried" can start from these draws, or from the prior if they are None.

    Returns
    -------
    fitted
        Result of the first attempt whose diagnostics pass; if none passes, of the last attempt that NUTS finished.
    abandoned : list of AbandonedAttempt
        The other attempts.

    Raises
    ------
    InferenceError
        If Stan fails in all attempts.
    """
    outcomes = _climb(ladder(options, start, seed, carries), fit)
    last = outcomes[-1]
    by_chains = [outcome for outcome in outcomes if outcome.attempt.method.has_chains and outcome.fitted is not None]
    accepted = last if last.ok or not by_chains else by_chains[-1]
    if accepted.fitted is None:
        assert accepted.error is not None
        raise accepted.error
    abandoned = [outcome.entry(later.attempt.after(outcome.attempt)) for outcome, later in pairwise(outcomes)]
    if accepted is not last:
        abandoned.append(last.entry("back to the fit by NUTS"))
    return accepted.fitted, abandoned


def _climb(
    attempts: Generator[Attempt, Outcome[_Fitted], None], fit: Callable[[Attempt], _Fitted]
) -> list[Outcome[_Fitted]]:
    """Run the attempts of a generator and send back their outcomes until it ends."""
    outcomes: list[Outcome[_Fitted]] = []
    attempt = next(attempts)
    while True:
        outcomes.append(Outcome.of(attempt, fit))
        try:
            attempt = attempts.send(outcomes[-1])
        except StopIteration:
            return outcomes


def ladder(
    options: FitOptions, start: WarmStart | None, seed: int, carries: Callable[[WarmStart | None], bool] = can_carry
) -> Generator[Attempt, Outcome[_Fitted], None]:
    """Yield the attempts in order until the diagnostics pass; each yield returns the outcome of its attempt.

    The planned attempts come first, then up to ``options.retries`` retries of NUTS. With method "carried", importance
    sampling from the draws of all chains follows each NUTS attempt whose diagnostics fail. It weights the modes between
    which the chains do not move. No retry follows a NUTS attempt in which Stan failed.
    """
    retries = iter(range(1, options.retries + 1))
    steps = plan_attempts(options, start, seed, carries)
    by_chains: tuple[Attempt, tuple[str, ...]] | None = None
    while steps:
        outcome = yield steps.pop(0)
        if outcome.ok:
            return
        has_chains = outcome.attempt.method.has_chains
        if has_chains and outcome.fitted is not None:
            by_chains = outcome.attempt, outcome.fitted.check().outside
            if METHODS[options.method].carries and carries(draws := outcome.fitted.warm_start()):
                steps.insert(0, Attempt(options, outcome.attempt.seed, draws))
        stan_failed = has_chains and outcome.fitted is None
        if not steps and by_chains and not stan_failed and (retry := next(retries, None)):
            steps.append(next_retry(*by_chains, seed, retry))


def plan_attempts(
    options: FitOptions, start: WarmStart | None, seed: int, carries: Callable[[WarmStart | None], bool] = can_carry
) -> list[Attempt]:
    """Return the attempts before any retry: the method itself if it can run, a warm start if given, a cold start.

    Method "carried" starts at the prior, where it can, before it leaves the draws to chains: chains that start at draws
    which it cannot carry seldom agree, and chains from a cold start take longest.

    A point estimate is the only attempt, since no diagnostics can reject it.
    """
    method = METHODS[options.method]
    requested = Attempt(options, seed, start if method.carries or method.point_estimate else None)
    if method.point_estimate:
        return [requested]
    cold = Attempt(options.updated(method="nuts"), seed)
    sampled = [replace(cold, start=start), cold] if start else [cold]
    if method.has_chains or (method.carries and not carries(start)):
        return sampled
    if start and carries(None):
        return [requested, replace(requested, start=None), *sampled]
    return [requested, *sampled]


def next_retry(failed: Attempt, outside: Iterable[str], seed: int, retry: int) -> Attempt:
    """Return a cold NUTS attempt with settings changed to address the diagnostics that failed.

    Double the warm-up if the chains disagree, mix badly or explore the energy badly. Move the target acceptance halfway
    to 1, hence take smaller steps, if transitions diverged. Allow one more tree level, hence trajectories of twice the
    length, if transitions reached the largest tree. Double the draws if the importance ratios of a binary model vary
    too much.

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
    if "pareto_k" in failures:
        changes["draws"] = 2 * options.draws
    return Attempt(options.updated(**changes), retry_seed(seed, retry))
