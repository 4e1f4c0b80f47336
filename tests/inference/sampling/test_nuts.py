"""Rounds of draws until the effective sample size is reached, and the early end of a run that cannot reach it."""

from __future__ import annotations

from dataclasses import replace

import cmdstanpy
import numpy as np
import pytest

import slayr_py as sl
from slayr_py.inference.diagnostics.arviz_bridge import convergence
from slayr_py.inference.sampling.nuts import _cannot_reach
from slayr_py.inference.sampling.output import Run


def scores_of(posterior):
    raw = posterior.idata["unconstrained_posterior"].to_dataset()
    return {name: raw[name].values for name in map(str, raw.data_vars)}


@pytest.mark.stan
def test_sampling_continues_until_the_ess_is_reached(branin_data):
    space, configs, y = branin_data
    few, more = (
        sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=150, draws=40, ess=e, seed=3) for e in (1, 90)
    )
    rounds = more.record["arguments"]["rounds"]
    assert few.record["arguments"]["rounds"] == [40] and rounds[0] == 40 and len(rounds) > 1
    assert more.n_draws == 2 * sum(rounds) and sum(rounds) <= 16 * 40
    # The first draws equal those of the run without further rounds.
    assert np.array_equal(more.idata["posterior"]["mu"].values[:, :40], few.idata["posterior"]["mu"].values)
    assert convergence(scores_of(more))["ess_bulk_min"] >= 90


@pytest.mark.stan
@pytest.mark.parametrize("warmup, stages", [(19, (75, 25, 50)), (20, (3, 15, 2)), (100, (15, 75, 10))])
def test_a_short_warm_up_adapts_the_metric_and_its_stages_are_recorded(branin_data, warmup, stages):
    space, configs, y = branin_data
    posterior = sl.GaussianProcess(space).fit(configs, y, chains=1, warmup=warmup, draws=4, ess=None, retries=0, seed=3)
    _, call = posterior.record["calls"]
    assert tuple(int(call[name]) for name in ("init_buffer", "window", "term_buffer")) == stages
    (chain,) = posterior.record["adaptation"]
    assert np.all(np.array(chain["inv_metric"]) != 1) == (warmup >= 20)


@pytest.mark.stan
def test_the_number_of_rounds_is_limited(branin_data):
    space, configs, y = branin_data
    posterior = sl.GaussianProcess(space).fit(configs, y, chains=2, warmup=50, draws=10, ess=10_000, seed=3)
    assert sum(posterior.record["arguments"]["rounds"]) == 160 and not posterior.check().ok


def sampled(chains: np.ndarray, diverging: float = 0.0) -> Run:
    """A run with one parameter and these draws (c, s)."""
    statistics = {"diverging": np.broadcast_to(np.arange(chains.shape[1]) < diverging * chains.shape[1], chains.shape)}
    return Run({"z_mu": chains[..., None]}, {"z_mu": ()}, {"rounds": [chains.shape[1]]}, statistics)


def test_a_warm_start_stops_early_if_it_cannot_reach_the_ess():
    def cannot_reach(run, most):
        return _cannot_reach(run, convergence(run.unconstrained), ess=50, most=most)

    rng = np.random.default_rng(0)
    good = rng.normal(size=(4, 100))
    stuck = good * 1e-6 + np.arange(4)[:, None]
    assert not cannot_reach(sampled(good), most=1600)
    assert not cannot_reach(sampled(good, diverging=0.05), most=1600)
    assert cannot_reach(sampled(good, diverging=0.25), most=1600)
    assert not cannot_reach(sampled(stuck), most=1600)  # 4 effective draws could become 64
    assert cannot_reach(sampled(stuck), most=400)


@pytest.mark.stan
def test_a_warm_start_with_wrong_step_sizes_stops_after_one_round(branin_data):
    space, configs, y = branin_data
    gp = sl.GaussianProcess(space)
    start = gp.fit(configs, y, seed=1, chains=2, warmup=200, draws=100).warm_start()
    wild = replace(start, step_size=start.step_size * 50)
    posterior = gp.fit(configs, y, seed=2, chains=2, warmup=200, draws=50, ess=20, start=wild)
    (given_up,) = posterior.record["abandoned"]
    assert given_up["start"] == "warm" and any("of 100 transitions diverged" in why for why in given_up["why"])
    assert posterior.record["arguments"]["start"] == "cold"


@pytest.mark.stan
def test_a_round_that_fails_to_initialise_ends_the_run(branin_data, monkeypatch):
    space, configs, y = branin_data
    sample = cmdstanpy.CmdStanModel.sample
    calls = []

    def breaking(self, **options):
        calls.append(options)
        if len(calls) == 3:
            raise RuntimeError("initialization failed")
        return sample(self, **options)

    monkeypatch.setattr(cmdstanpy.CmdStanModel, "sample", breaking)
    posterior = sl.GaussianProcess(space).fit(configs, y, seed=1, chains=2, warmup=150, draws=30, ess=5000)
    assert len(calls) == 3 and len(posterior.record["arguments"]["rounds"]) == 2
    assert posterior.n_draws == 2 * sum(posterior.record["arguments"]["rounds"]) and not posterior.check().ok
