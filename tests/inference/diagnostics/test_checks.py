"""Limits of diagnostics on crafted draws, and diagnostics of a good and a bad fit."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from slayr_py.inference import Diagnostics, worst_of
from slayr_py.inference.diagnostics.arviz_bridge import (
    LeaveOneOut,
    arviz,
)
from slayr_py.inference.diagnostics.checks import CHECKS, divergence_limit, reason, rhat_limit
from slayr_py.inference.sampling.methods import diagnose_run
from slayr_py.inference.sampling.output import Run

DOCS = Path(__file__).parents[3] / "docs"
CHAINS = 4
DRAWS = 200
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
    return diagnose_run(run, {"mu": mu}, loo)


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


def test_the_documentation_names_the_checks():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", (DOCS / "diagnostics.md").read_text(), re.MULTILINE)
    assert dict(rows) == {name: check.short for name, check in CHECKS.items()}
    assert set(CHECKS) <= Diagnostics.__dataclass_fields__.keys()


def test_undefined_diagnostics_fail():
    short = replace(crafted(), sampler={name: values[:, :3] for name, values in crafted().sampler.items()})
    check = diagnosed(short, draws()[:, :3])
    assert {"rhat_max", "ess_bulk_min", "ess_tail_min"} <= set(check.outside) and not check.ok
    assert check.messages[0] == "too few draws to check convergence, 3 < 4 per chain: more draws"
    assert "nan" not in " ".join(check.messages) and str(check) == "rhat nan ess nan div 0"
    (alone,) = (m for m in diagnosed(short, draws()[:1, :7]).messages if "convergence" in m)
    assert "7 < 8 per chain" in alone


def test_hyperparameters_that_are_all_fixed_have_no_monte_carlo_error():
    check = diagnose_run(crafted(), {}, None)
    assert check.ok and (check.rhat_max, check.ess_bulk_min, check.ess_tail_min) == (1.0, 800.0, 800.0)


def test_an_influential_observation_is_a_note_and_not_a_failure():
    loo = LeaveOneOut(np.zeros(4), np.array([0.1, 0.9, np.inf, 0.8]), 0.7)
    check = diagnosed(crafted(), draws(), loo)
    assert check.ok and check.loo_pareto_k_max == 0.9 and check.loo_influential == 2
    assert check.limits["loo_pareto_k_max"] == 0.7 and "2, leave-one-out k-hat up to 0.90 > 0.70" in check.notes[0]
    none = diagnosed(crafted(), draws(), LeaveOneOut(np.zeros(2), np.full(2, np.inf), 0.2))
    assert np.isnan(none.loo_pareto_k_max) and none.notes == () and "loo_pareto_k_max" not in none.limits


def test_diagnostics_survive_a_round_trip_and_old_ones_can_be_read():
    check = diagnosed(crafted(), APART, LeaveOneOut(np.zeros(2), np.array([0.1, 0.9]), 0.7))
    stored = json.loads(json.dumps(check.asdict(), allow_nan=False))
    back = Diagnostics.fromdict(stored)
    assert replace(back, pareto_k=0.0) == replace(check, pareto_k=0.0) and back.outside == check.outside
    for new in ("limits", "loo_pareto_k_max", "loo_influential"):
        del stored[new]
    old = Diagnostics.fromdict(stored)
    assert old.messages == check.messages and not old.ok and old.notes == () and np.isnan(old.loo_pareto_k_max)


def test_several_fits_have_the_worst_number_of_every_check():
    nan, others = float("nan"), {"ok": True, "messages": ()}
    named = {str(value): Diagnostics(**dict.fromkeys(CHECKS, value), **others) for value in (1, 3, nan)}
    worst = vars(worst_of({name: named[name] for name in ("3", "1")}))
    assert {name: worst[name] for name in CHECKS} == {
        name: 4 if check.adds_up else 3 if check.side == "<=" else 1 for name, check in CHECKS.items()
    }
    assert np.isnan(worst_of({"nan": named["nan"]}).ess_bulk_min) and worst_of(named).ess_bulk_min == 1
    numbers = {field.name for field in fields(Diagnostics) if field.type in ("int", "float")}
    assert numbers == {*CHECKS, "loo_influential"}


def test_several_fits_fail_the_checks_that_one_of_them_fails():
    number = {"rhat_max": 1.02, "ess_bulk_min": 150.0, "divergences": 1}

    def fit(ok, rhat, ess, divergences, **changes):
        limits = {"rhat_max": rhat, "ess_bulk_min": ess, "divergences": divergences}
        others = {"messages": (), "limits": limits, "loo_pareto_k_max": 0.1, "ok": ok}
        return Diagnostics(**dict.fromkeys(CHECKS, 0.0) | number | others | changes)

    passing = fit(True, 1.03, 100, 1.5)
    other = fit(True, 1.01, 200, 1.5, rhat_max=1.0, ess_bulk_min=250.0)  # its limits are stricter
    assert passing.outside == other.outside == worst_of({"a": passing, "b": other}).outside == ()
    failing = fit(False, 1.01, 200, 0.5)
    assert (
        failing.outside
        == worst_of({"a": passing, "b": failing}).outside
        == (
            "rhat_max",
            "ess_bulk_min",
            "divergences",
        )
    )


def test_limits_of_rhat():
    assert rhat_limit(4, 200) == pytest.approx(1.03, abs=5e-4)
    assert rhat_limit(4, 100) > rhat_limit(4, 200) > rhat_limit(4, 4000) > 1


def test_diagnostics_of_a_good_fit(branin_posterior):
    check = branin_posterior.check()
    assert check.ok, check.messages
    assert check.rhat_max < 1.03 and check.ess_bulk_min > 100 and check.ebfmi_min > 0.3
    summary = arviz().summary(branin_posterior.idata, round_to="none")
    assert check.rhat_max == pytest.approx(summary["r_hat"].max(), abs=1e-9)
    assert check.ess_bulk_min == pytest.approx(summary["ess_bulk"].min())
    assert str(check).startswith("rhat 1.0")
