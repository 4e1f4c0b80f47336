"""The order of attempts, retries, and fits whose runs are made to fail."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from testing_fits import QUICK
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.errors import InferenceError
from slayr_py.inference import gaussian_process
from slayr_py.inference.diagnostics import checks
from slayr_py.inference.sampling.ladder import Attempt, fit_until_ok, next_retry, plan_attempts
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.run import run
from slayr_py.inference.sampling.seeds import retry_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import Encoder

OPTIONS = FitOptions(warmup=300, target_acceptance=0.8, max_treedepth=10)


@pytest.mark.parametrize(
    ("outside", "changes", "words"),
    [
        (["rhat_max"], {"warmup": 600}, "again with warm-up 600"),
        (["ess_bulk_min", "ess_tail_min"], {"warmup": 600}, "again with warm-up 600"),
        (["ebfmi_min"], {"warmup": 600}, "again with warm-up 600"),
        (["divergences"], {"target_acceptance": 0.9}, "again with target acceptance 0.9"),
        (["max_treedepth_hits"], {"max_treedepth": 11}, "again with largest tree 11"),
        (
            ["rhat_max", "divergences"],
            {"warmup": 600, "target_acceptance": 0.9},
            "again with warm-up 600, target acceptance 0.9",
        ),
    ],
)
def test_a_retry_addresses_the_diagnostics_that_failed(outside, changes, words):
    failed = Attempt(OPTIONS, 5)
    retry = next_retry(failed, outside, 5, 1)
    assert asdict(retry.options) == asdict(OPTIONS) | {k: pytest.approx(v) for k, v in changes.items()}
    assert retry.after(failed) == words and retry.start is None


def test_the_target_acceptance_stays_below_one():
    attempt = Attempt(OPTIONS, 5)
    for wanted in (0.9, 0.95, 0.975):
        attempt = next_retry(attempt, ["divergences"], 5, 1)
        assert attempt.options.target_acceptance == pytest.approx(wanted)


def test_an_attempt_describes_what_it_changes(branin_posterior):
    start = branin_posterior.warm_start()
    approximation, warm, cold = plan_attempts(OPTIONS.updated(method="pathfinder"), start, 1)
    assert [a.kind for a in (approximation, warm, cold)] == [None, "warm", "cold"]
    assert warm.after(approximation) == "NUTS from a warm start"
    assert cold.after(approximation) == "NUTS with warm-up 300"
    assert cold.after(warm) == "a cold start with warm-up 300"


def start_of(draws: int, parameters: int = 2) -> WarmStart:
    return WarmStart({"z": np.zeros((4, 2))}, np.ones(4), np.ones(2), np.zeros((draws, parameters)))


def test_the_prior_comes_before_chains_where_its_density_is_known():
    options = OPTIONS.updated(method="carried")
    attempts = plan_attempts(options, start_of(200), 1, lambda start: True)
    kinds = [(attempt.options.method, attempt.kind) for attempt in attempts]
    assert kinds == [("carried", "carried"), ("carried", "cold"), ("nuts", "warm"), ("nuts", "cold")]
    changes = [later.after(before) for before, later in pairwise(attempts)]
    assert changes[:2] == ["importance sampling from the prior", "NUTS from a warm start"]
    without = plan_attempts(options, None, 1, lambda start: True)
    assert [attempt.kind for attempt in without] == ["cold", "cold"]


class StandIn:
    """Result of an attempt whose diagnostics fail with the given names; "stan" is a failure of Stan, "" is good."""

    def __init__(self, outcome: str) -> None:
        self.outcome = outcome
        self.outside = tuple(outcome.split())
        self.ok = not self.outside
        self.messages = tuple(f"{name} > limit: remedy" for name in self.outside)

    def check(self) -> StandIn:
        return self

    def warm_start(self) -> WarmStart:
        return start_of(200)


LADDERS = [
    # method, start, retries, outcomes of the attempts -> kinds of the attempts, kept attempt, what followed each other
    ("nuts", None, 1, [""], ["cold"], 0, []),
    ("nuts", 200, 1, ["rhat_max", ""], ["warm", "cold"], 1, ["a cold start with warm-up 300"]),
    (
        "nuts",
        200,
        2,
        ["stan", "rhat_max", "divergences", "divergences"],
        ["warm", "cold", "cold", "cold"],
        3,
        ["a cold start with warm-up 300", "again with warm-up 600", "again with target acceptance 0.9"],
    ),
    (
        "nuts",
        None,
        2,
        ["max_treedepth_hits", "stan"],
        ["cold", "cold"],
        0,
        ["again with largest tree 11", "back to the fit by NUTS"],
    ),
    ("nuts", None, 3, ["stan"], ["cold"], None, []),
    ("map", 200, 3, [""], [None], 0, []),
    ("map", None, 3, ["stan"], [None], None, []),
    ("laplace", None, 0, ["pareto_k", ""], [None, "cold"], 1, ["NUTS with warm-up 300"]),
    ("pathfinder", 200, 1, ["stan", "stan", "stan"], [None, "warm", "cold"], None, []),
    (
        "pathfinder",
        200,
        0,
        ["pareto_k", "rhat_max", "stan"],
        [None, "warm", "cold"],
        1,
        ["NUTS from a warm start", "a cold start with warm-up 300", "back to the fit by NUTS"],
    ),
    ("carried", 200, 1, [""], ["carried"], 0, []),
    ("carried", None, 1, [""], ["cold"], 0, []),
    (
        "carried",
        200,
        1,
        ["pareto_k", "ess_bulk_min", "stan", "rhat_max", "pareto_k", "divergences", "stan"],
        ["carried", "warm", "carried", "cold", "carried", "cold", "carried"],
        5,
        [
            "NUTS from a warm start",
            "importance sampling from the draws of all chains",
            "a cold start with warm-up 300",
            "importance sampling from the draws of all chains",
            "a cold start with warm-up 600",
            "importance sampling from the draws of all chains",
            "back to the fit by NUTS",
        ],
    ),
    (
        "carried",
        2,
        0,
        ["ess_bulk_min", ""],
        ["warm", "carried"],
        1,
        ["importance sampling from the draws of all chains"],
    ),
    (
        "carried",
        2,
        0,
        ["ess_bulk_min", "pareto_k", "divergences", "pareto_k"],
        ["warm", "carried", "cold", "carried"],
        2,
        [
            "importance sampling from the draws of all chains",
            "a cold start with warm-up 300",
            "importance sampling from the draws of all chains",
            "back to the fit by NUTS",
        ],
    ),
]


@pytest.mark.parametrize(("method", "draws", "retries", "outcomes", "kinds", "kept", "then"), LADDERS)
def test_order_and_record_of_attempts(method, draws, retries, outcomes, kinds, kept, then):
    made = []

    def fit(attempt):
        made.append((attempt, StandIn(outcomes[len(made)])))
        if made[-1][1].outcome == "stan":
            raise InferenceError("chain 1: died")
        return made[-1][1]

    options = OPTIONS.updated(method=method, retries=retries)
    start = None if draws is None else start_of(draws)
    if kept is None:
        with pytest.raises(InferenceError, match="chain 1: died"):
            fit_until_ok(fit, options, start, 5)
    else:
        fitted, abandoned = fit_until_ok(fit, options, start, 5)
        assert fitted is made[kept][1] and [entry["then"] for entry in abandoned] == then
        for entry, (attempt, stand_in) in zip(abandoned, made, strict=False):
            assert (entry["method"], entry["start"]) == (attempt.options.method, attempt.kind)
            failed = [f"{name} > limit" for name in stand_in.outside]
            assert entry["why"] == (["chain 1: died"] if stand_in.outcome == "stan" else failed)
    assert [attempt.kind for attempt, _ in made] == kinds and len(made) == len(outcomes)
    again = sum(words.startswith("again") for words in then)
    assert {attempt.seed for attempt, _ in made} >= {5, *(retry_seed(5, retry) for retry in range(1, 1 + again))}


class Faulty:
    """Replacement of `run` whose first calls return only divergent transitions, or raise an error."""

    def __init__(self, failures: int, error: str | None = None) -> None:
        self.failures = failures
        self.error = error
        self.calls = []

    def __call__(self, *arguments, **options):
        self.calls.append(options)
        if len(self.calls) <= self.failures and self.error:
            raise InferenceError(self.error)
        result = run(*arguments, **options)
        if len(self.calls) > self.failures:
            return result
        return replace(result, sampler=result.sampler | {"diverging": np.ones_like(result.sampler["diverging"])})


@pytest.fixture(scope="module")
def small():
    configs = Encoder(plain_space()).sobol(6, 1)
    y = [1.0, 3.0, 2.0, 5.0, 4.0, 2.5]
    return lambda **more: sl.GaussianProcess(plain_space()).fit(
        configs, y, **{"chains": 2, "warmup": 150, "draws": 60, "ess": 10, "seed": 4, **more}
    )


@pytest.mark.stan
def test_a_fit_with_divergences_is_retried_with_smaller_steps(small, monkeypatch):
    faulty = Faulty(2)
    monkeypatch.setattr(gaussian_process, "run", faulty)
    posterior = small(retries=3)
    assert posterior.check().ok and len(faulty.calls) == 3
    one, two = posterior.record["abandoned"]
    assert (one["method"], one["start"], one["then"]) == ("nuts", "cold", "again with target acceptance 0.9")
    assert two["then"] == "again with target acceptance 0.95" and one["seconds"] > 0
    assert re.fullmatch(r"(\d+) of \1 transitions diverged, more than \d\.\d", one["why"][0])
    arguments = posterior.record["arguments"]
    assert arguments["target_acceptance"] == pytest.approx(0.95) and arguments["seed"] == retry_seed(4, 2)
    json.dumps(posterior.record, allow_nan=False)
    # A fit with the recorded arguments gives the same draws without retries.
    monkeypatch.setattr(gaussian_process, "run", run)
    same = small(seed=arguments["seed"], target_acceptance=arguments["target_acceptance"])
    assert same.record["draws_sha256"] == posterior.record["draws_sha256"]


@pytest.mark.stan
def test_the_error_of_an_abandoned_attempt_is_recorded_and_that_of_the_last_is_raised(small, monkeypatch):
    start = small().warm_start()
    monkeypatch.setattr(gaussian_process, "run", Faulty(1, "chain 1: died"))
    (given_up,) = small(start=start).record["abandoned"]
    assert given_up["why"] == ["chain 1: died"] and given_up["seconds"] >= 0
    monkeypatch.setattr(gaussian_process, "run", Faulty(1, "chain 1: died"))
    with pytest.raises(InferenceError, match="chain 1: died"):
        small(retries=1)


@pytest.mark.stan
def test_retries_repair_a_fit_with_a_short_warm_up(small):
    posterior = small(warmup=2, retries=6)
    abandoned = posterior.record["abandoned"]
    assert posterior.check().ok and abandoned and posterior.record["arguments"]["warmup"] > 2
    assert all(entry["why"] and entry["then"] for entry in abandoned)


@pytest.mark.stan
@pytest.mark.parametrize("method", ["pathfinder", "laplace"])
def test_an_approximation_with_large_pareto_k_falls_back_to_nuts(branin_data, method, monkeypatch):
    monkeypatch.setattr(checks, "PARETO_K_LIMIT", -np.inf)
    space, configs, y = branin_data
    posterior = sl.GaussianProcess(space).fit(configs, y, method=method, seed=3, **QUICK)
    assert posterior.record["arguments"]["method"] == "nuts" and posterior.n_draws == 100
    (abandoned,) = posterior.record["abandoned"]
    assert abandoned["method"] == method and "Pareto k" in abandoned["why"][0]
    assert json.loads(json.dumps(posterior.record))["abandoned"] == [abandoned]
