"""Limits of diagnostics on crafted draws, attempts and retries, and fits whose runs are made to fail."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.errors import InferenceError
from slayr_py.inference import Diagnostics, gaussian_process
from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut, arviz, convergence, leave_one_out, pareto_smooth
from slayr_py.inference.diagnostics.checks import diagnose, divergence_limit, reason
from slayr_py.inference.sampling.attempts import Attempt, next_retry, planned
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.run import run
from slayr_py.inference.sampling.seeds import retry_seed, stan_seed
from slayr_py.space import Encoder

CHAINS, DRAWS = 4, 200
ARGUMENTS = {"method": "nuts", "chains": CHAINS, "draws": DRAWS, "max_treedepth": 10, "ess": 100}


def draws(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(CHAINS, DRAWS, 1))


def crafted(**statistics: np.ndarray) -> Run:
    """A NUTS run with the given statistics and good values of all others."""
    quiet = np.zeros((CHAINS, DRAWS))
    energy = np.random.default_rng(1).normal(size=(CHAINS, DRAWS))
    sampler = {"energy": energy, "diverging": quiet, "tree_depth": quiet + 3} | statistics
    return Run({"mu": draws()}, {}, ARGUMENTS, sampler)


def diagnosed(run: Run, mu: np.ndarray, loo: LeaveOneOut | None = None) -> Diagnostics:
    return diagnose({"mu": mu}, run.arguments, run.sampler, run.pareto_k, run.importance_ess, loo)


def first(n: int, value: float, other: float = 0.0) -> np.ndarray:
    return np.where(np.arange(CHAINS * DRAWS) < n, value, other).reshape(CHAINS, DRAWS)


SLOW = np.repeat(np.random.default_rng(2).normal(size=(CHAINS, DRAWS // 20, 1)), 20, axis=1)
APART = draws() + np.arange(CHAINS)[:, None, None]
TAILS = np.repeat(np.abs(draws(3))[:, ::100], 100, axis=1) * np.sign(draws(4))  # signs mix, sizes stay
DRIFTING = np.cumsum(np.random.default_rng(5).normal(size=(CHAINS, DRAWS)), axis=1)
TABLE = [
    ("rhat_max", crafted(), APART, r"R-hat \d\.\d+ > 1\.058: the chains disagree"),
    ("ess_bulk_min", crafted(), SLOW, r"bulk ESS \d+ < 100: more draws"),
    ("ess_tail_min", crafted(), TAILS, r"tail ESS \d+ < 50: more draws"),
    ("divergences", crafted(diverging=first(9, 1.0)), draws(), r"9 of 800 transitions diverged, more than 8\.0"),
    ("max_treedepth_hits", crafted(tree_depth=first(1, 10.0)), draws(), "1 of 800 transitions reached the largest"),
    ("ebfmi_min", crafted(energy=DRIFTING), draws(), r"E-BFMI 0\.\d+ < 0\.2: more warm-up"),
]


def test_a_good_run_passes():
    check = diagnosed(crafted(diverging=first(8, 1.0)), draws())
    assert check.ok and check.messages == () and check.outside == () and check.notes == ()
    assert divergence_limit(800) == 8.0


@pytest.mark.parametrize(("name", "faulty", "mu", "words"), TABLE, ids=[row[0] for row in TABLE])
def test_each_limit_of_nuts(name, faulty, mu, words):
    check = diagnosed(faulty, mu)
    assert not check.ok and name in check.outside
    (message,) = (m for m in check.messages if re.match(words, m))
    assert ": " not in reason(message) and message.startswith(reason(message))


@pytest.mark.parametrize(
    ("pareto_k", "ess", "outside", "words"),
    [
        (0.71, 60.0, ("pareto_k",), r"Pareto k 0.71 > 0.7: the laplace approximation"),
        (0.69, 49.0, ("ess_bulk_min",), "only 49 < 50 effective draws of the laplace approximation"),
        (0.7, 50.0, (), None),
    ],
)
def test_each_limit_of_an_approximation(pareto_k, ess, outside, words):
    run = Run({"mu": draws()}, {}, {"method": "laplace", "draws": 800}, pareto_k=pareto_k, importance_ess=ess)
    check = diagnosed(run, draws())
    assert check.outside == outside and check.ok == (not outside)
    assert words is None or words in check.messages[0]


def test_undefined_diagnostics_fail():
    short = replace(crafted(), sampler={name: values[:, :3] for name, values in crafted().sampler.items()})
    assert {"rhat_max", "ess_bulk_min", "ess_tail_min"} <= set(diagnosed(short, draws()[:, :3]).outside)


def test_an_influential_observation_is_a_note_and_not_a_failure():
    loo = LeaveOneOut(np.zeros(4), np.array([0.1, 0.9, np.inf, 0.8]), 0.7)
    check = diagnosed(crafted(), draws(), loo)
    assert check.ok and check.loo_pareto_k_max == 0.9 and check.loo_influential == 2
    assert check.limits["loo_pareto_k_max"] == 0.7 and "2, leave-one-out k-hat up to 0.90 > 0.70" in check.notes[0]
    none = diagnosed(crafted(), draws(), LeaveOneOut(np.zeros(2), np.full(2, np.inf), 0.2))
    assert np.isnan(none.loo_pareto_k_max) and none.notes == () and "loo_pareto_k_max" not in none.limits


def test_tail_shapes_of_observations_equal_those_of_arviz(branin_posterior, branin_data):
    check, loo = branin_posterior.check(), branin_posterior.loo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = arviz().loo(branin_posterior.to_arviz(), pointwise=True)
    np.testing.assert_array_equal(loo.coords["pareto_k"], other.pareto_k)
    assert check.loo_pareto_k_max == float(other.pareto_k.max())
    assert check.limits["loo_pareto_k_max"] == loo.attrs["pareto_k_limit"] == other.good_k
    assert check.loo_influential == int((other.pareto_k > other.good_k).sum())


@pytest.mark.parametrize(("chains", "n"), [(1, 4), (2, 2), (4, 1)])
def test_leave_one_out_needs_five_draws(chains, n, branin_posterior):
    few = branin_posterior.idata.isel(chain=[0] * chains, draw=slice(n))
    assert leave_one_out(few) is None


def test_leave_one_out_accepts_three_draws_per_chain_without_output(branin_posterior, capfd):
    assert leave_one_out(branin_posterior.idata.isel(draw=slice(3))).elpd.shape == (20,)
    assert capfd.readouterr() == ("", "")


def test_an_observation_without_a_tail_does_not_change_the_others(branin_posterior):
    tree = branin_posterior.idata.copy(deep=True)
    tree["log_likelihood"]["y"][..., 3] = -2.5
    changed, whole = leave_one_out(tree), leave_one_out(branin_posterior.idata)
    assert changed.pareto_k[3] == np.inf and changed.elpd[3] == pytest.approx(-2.5)
    others = np.arange(20) != 3
    np.testing.assert_array_equal(changed.elpd[others], whole.elpd[others])
    np.testing.assert_array_equal(changed.pareto_k[others], whole.pareto_k[others])


@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_the_tail_shape_of_pareto_ratios_is_estimated(k):
    # Ratios u^-k have the shape k; that of 190 of 4000 has a standard error of (1 + k) / sqrt(190), less for the prior.
    log_ratio = k * np.random.default_rng(0).exponential(size=4000)
    weights, shape = pareto_smooth(log_ratio)
    assert shape == pytest.approx(k, abs=3 * (1 + k) / np.sqrt(190))
    assert weights.sum() == pytest.approx(1) and weights[log_ratio.argmax()] == weights.max()


def test_tails_are_those_of_the_5_and_95_percent_quantiles():
    x = np.random.default_rng(0).normal(size=(4, 200))
    quantiles = [float(arviz().ess(x, method="quantile", prob=p)) for p in (0.05, 0.95)]
    assert convergence({"x": x})["ess_tail_min"] == pytest.approx(min(quantiles), rel=1e-12)


def test_diagnostics_survive_a_round_trip_and_old_ones_can_be_read():
    check = diagnosed(crafted(), APART, LeaveOneOut(np.zeros(2), np.array([0.1, 0.9]), 0.7))
    stored = json.loads(json.dumps(check.asdict(), allow_nan=False))
    back = Diagnostics.fromdict(stored)
    assert replace(back, pareto_k=0.0) == replace(check, pareto_k=0.0) and back.outside == check.outside
    for new in ("limits", "loo_pareto_k_max", "loo_influential"):
        del stored[new]
    old = Diagnostics.fromdict(stored)
    assert old.messages == check.messages and not old.ok and old.notes == () and np.isnan(old.loo_pareto_k_max)


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
    approximation, warm, cold = planned(OPTIONS.updated(method="pathfinder"), start, 1)
    assert [a.kind for a in (approximation, warm, cold)] == [None, "warm", "cold"]
    assert warm.after(approximation) == "NUTS from a warm start"
    assert cold.after(approximation) == "NUTS with warm-up 300"
    assert cold.after(warm) == "a cold start with warm-up 300"


def test_no_retry_has_the_seed_of_a_round():
    parts = {stan_seed(7, part) for part in range(20)} | {stan_seed(7 + i) for i in range(20)}
    retries = [stan_seed(retry_seed(7, i)) for i in (1, 2, 3)]
    assert len(set(retries)) == 3 and not parts & set(retries)


class Faulty:
    """The real `run`, except that its first calls return only divergent transitions, or raise an error."""

    def __init__(self, failures: int, error: str | None = None) -> None:
        self.failures, self.error, self.calls = failures, error, []

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
@pytest.mark.parametrize("retries", [0, 1])
def test_when_all_attempts_fail_the_last_is_returned(small, monkeypatch, retries):
    monkeypatch.setattr(gaussian_process, "run", Faulty(9))
    posterior = small(retries=retries)
    assert not posterior.check().ok and "diverged" in posterior.check().messages[0]
    assert len(posterior.record["abandoned"]) == retries
    assert posterior.record["arguments"]["target_acceptance"] == pytest.approx((0.8, 0.9)[retries])


@pytest.mark.stan
def test_a_failed_warm_start_is_followed_by_a_cold_start_and_retries(small, monkeypatch):
    start = small().warm_start()
    monkeypatch.setattr(gaussian_process, "run", Faulty(2))
    posterior = small(start=start, retries=1)
    assert [(a["start"], a["then"]) for a in posterior.record["abandoned"]] == [
        ("warm", "a cold start with warm-up 150"),
        ("cold", "again with target acceptance 0.9"),
    ]


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
def test_if_stan_fails_in_a_retry_the_previous_fit_is_returned(small, monkeypatch):
    diverging, broken = Faulty(9), Faulty(9, "chain 1: died")
    calls = []

    def run(*arguments, **options):
        calls.append(options["seed"])
        return (diverging if len(calls) == 1 else broken)(*arguments, **options)

    monkeypatch.setattr(gaussian_process, "run", run)
    posterior = small(retries=3)
    assert len(calls) == 2 and not posterior.check().ok
    assert posterior.record["arguments"]["target_acceptance"] == 0.8
    assert [(a["why"][0][:6], a["then"]) for a in posterior.record["abandoned"]] == [
        (posterior.record["abandoned"][0]["why"][0][:6], "again with target acceptance 0.9"),
        ("chain ", "back to the previous fit"),
    ]


@pytest.mark.stan
def test_retries_repair_a_fit_with_a_short_warm_up(small):
    posterior = small(warmup=2, retries=6)
    abandoned = posterior.record["abandoned"]
    assert posterior.check().ok and abandoned and posterior.record["arguments"]["warmup"] > 2
    assert all(entry["why"] and entry["then"] for entry in abandoned)


@pytest.mark.parametrize("wrong", [-1, 0.5, True, "1", None])
def test_illegal_retries(small, wrong):
    with pytest.raises(sl.DataError, match="retries must be an integer >= 0"):
        small(retries=wrong)
