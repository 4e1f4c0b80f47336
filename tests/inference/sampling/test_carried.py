"""Posteriors carried from one fit to the next by importance sampling."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from testing_spaces import plain_space

import slayr_py as sl
from slayr_py.inference import gaussian_process, replay
from slayr_py.inference.diagnostics.checks import CARRIED_ESS, PARETO_K_LIMIT, TEMPERED_ESS
from slayr_py.inference.model import Model
from slayr_py.inference.sampling import carried, method
from slayr_py.inference.sampling.carried import CARRIED_PARAMETERS, carries_to
from slayr_py.inference.sampling.ladder import plan_attempts
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.run import run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import Encoder

OPTIONS = FitOptions(method="carried", warmup=300, draws=50, ess=50, pointwise=False)


@pytest.fixture(scope="module")
def grown():
    """Return a model, 20 configurations with values, and a NUTS fit of the first 19."""
    space = plain_space()
    gp = sl.GaussianProcess(space, warp="log")
    configs = Encoder(space).sobol(20, 3)
    y = np.array([np.exp(2 * np.sin(sum(float(v) for v in c.values()))) for c in configs])
    return gp, configs, y, gp.fit(configs[:19], y[:19], options=OPTIONS, seed=2)


def assert_near_means(posterior, reference, largest):
    """Compare the means of all unconstrained parameters, in standard deviations of the reference."""
    here, there = (p.idata["unconstrained_posterior"].to_dataset() for p in (posterior, reference))
    for name in there:
        axes = ("chain", "draw")
        apart = np.abs(here[name].mean(axes) - there[name].mean(axes)) / there[name].std(axes)
        assert float(apart.max()) < largest, name


@pytest.mark.stan
def test_a_carried_posterior_is_that_of_all_observations(grown):
    gp, configs, y, before = grown
    assert before.record["arguments"]["start"] == "cold"  # from the prior
    posterior = gp.fit(configs, y, options=OPTIONS, seed=5, start=before.warm_start())
    arguments = posterior.record["arguments"]
    check = posterior.check()
    assert (arguments["method"], arguments["start"]) == ("carried", "carried") and not posterior.record["abandoned"]
    assert check.ok and check.pareto_k <= PARETO_K_LIMIT and check.ess_bulk_min >= CARRIED_ESS
    assert posterior.n_draws == 200 and "log_likelihood" not in posterior.idata.children
    reference = gp.fit(configs, y, draws=2000, seed=1)
    # Error of the mean of at least 100 effective draws: 0.1 standard deviations. The largest of 6 coordinates
    # exceeds 4 errors once in 2,500 runs.
    assert_near_means(posterior, reference, 0.4)


@pytest.mark.stan
@pytest.mark.parametrize("case", ["Matérn with a warp", "frequency modulation", "additive", "composite"])
def test_fits_from_the_prior_agree_with_chains(case, monkeypatch):
    space, kernel, warp = {
        "Matérn with a warp": (plain_space(), "auto", "log"),
        "frequency modulation": (ConfigurationSpace({"a": (0.0, 1.0), "c": ["x", "y", "z"]}), "fm", "none"),
        "additive": (plain_space(), "additive", "none"),
        "composite": (plain_space(), "MAT52 + LIN * C", "none"),
    }[case]
    gp = sl.GaussianProcess(space, kernel=kernel, warp=warp)
    configs = Encoder(space).sobol(15, 3)
    y = np.array([np.sin(sum(6 * v if isinstance(v, float) else len(str(v)) for v in c.values())) for c in configs])
    with monkeypatch.context() as patch:
        patch.delattr(method, "run_folder")  # neither a process nor its files
        posterior = gp.fit(configs, y, options=OPTIONS, seed=2)
    arguments = posterior.record["arguments"]
    assert (arguments["method"], arguments["start"], arguments["density"]) == ("carried", "cold", "numpy")
    check = posterior.check()
    assert check.ok and check.ess_bulk_min >= CARRIED_ESS
    assert posterior.warm_start().chains == OPTIONS.chains
    assert replay(json.loads(json.dumps(posterior.record)), posterior.data).identical
    reference = gp.fit(configs, y, chains=2, draws=500, seed=1, pointwise=False)
    # As above; the reference has at least 100 effective draws too, so that the error is larger by a root of 2.
    assert_near_means(posterior, reference, 0.57)


@pytest.mark.stan
def test_a_carried_fit_is_repeated_from_its_record(grown):
    gp, configs, y, before = grown
    first = gp.fit(configs, y, options=OPTIONS, seed=5, start=before.warm_start())
    again = replay(json.loads(json.dumps(first.record)), first.data)
    assert again.identical and again.agrees
    start = first.warm_start()
    assert WarmStart.fromdict(json.loads(json.dumps(start.asdict()))).asdict() == start.asdict()
    assert start.draws.shape == (200, 6) and start.chains == 4
    then = gp.fit(configs, y, options=OPTIONS, seed=6, start=start)
    assert then.record["arguments"]["method"] == "carried"


@pytest.mark.stan
@pytest.mark.parametrize("shift", [0.0, 3.0], ids=["importance sampling", "tempering"])
def test_pointwise_densities_are_those_of_the_same_draws(grown, shift, monkeypatch):
    monkeypatch.setattr(carried, "_FEW_PARAMETERS", 0)
    gp, configs, y, before = grown
    start = before.warm_start()
    start = replace(start, draws=start.draws + shift)
    plain = gp.fit(configs, y, options=OPTIONS, seed=5, start=start)
    pointwise = gp.fit(configs, y, options=OPTIONS.updated(pointwise=True), seed=5, start=start)
    assert pointwise.record["arguments"]["density"] == "numpy"
    assert ("temperatures" in pointwise.record["arguments"]) == (shift > 0)
    expected = plain.with_pointwise()
    for group in ("posterior", "log_likelihood", "posterior_predictive"):
        xr.testing.assert_identical(pointwise.idata[group].to_dataset(), expected.idata[group].to_dataset())
    assert replay(json.loads(json.dumps(pointwise.record)), pointwise.data).identical


@pytest.mark.stan
def test_a_part_of_a_stack_with_many_parameters_needs_no_chains():
    space = ConfigurationSpace({name: (0.0, 1.0) for name in "abcdef"})
    gp = sl.GaussianProcess(space, "SE * RQ + MAT52")  # 21 parameters
    configs = Encoder(space).sobol(20, 3)
    y = np.array([np.sin(6 * c["a"]) + c["b"] for c in configs])
    options = FitOptions(method="carried", draws=50, pointwise=True)
    posterior = gp.fit(configs, y, options=options, seed=1)
    assert posterior.record["arguments"]["method"] == "carried" and not posterior.record["abandoned"]
    assert posterior.idata["log_likelihood"]["y"].shape == (1, 200, 20)


@pytest.mark.stan
@pytest.mark.parametrize("remedy", ["the prior", "tempering"])
def test_where_importance_sampling_fails_the_prior_helps_or_draws_are_tempered(grown, remedy, monkeypatch):
    if remedy == "tempering":
        monkeypatch.setattr(carried, "_FEW_PARAMETERS", 0)
    gp, configs, y, before = grown
    start = before.warm_start()
    near = gp.fit(configs, y, options=OPTIONS, seed=5, start=start)
    far = gp.fit(configs, y, options=OPTIONS, seed=5, start=replace(start, draws=start.draws + 3.0))
    arguments = far.record["arguments"]
    assert (arguments["method"], arguments["start"]) == ("carried", "carried") and far.check().ok
    assert ("temperatures" in arguments) == (remedy == "tempering")
    # Error of the difference of means of at least 50 and 100 effective draws: 0.17 standard deviations.
    assert_near_means(far, near, 0.7)


@pytest.mark.stan
def test_further_runs_from_the_prior_may_pass(grown, monkeypatch):
    """Tempering follows if the first run fails, and starts with the draws of the others, passed or not."""
    gp, configs, y, _ = grown
    runs = []

    def improved(job, density, rng, original=carried._improved_prior):
        population, passed = original(job, density, rng)
        runs.append(passed)
        if len(runs) == 1:
            return population._replace(wide=population.draws[:50]), False
        return population, passed

    monkeypatch.setattr(carried, "_improved_prior", improved)
    posterior = gp.fit(configs, y, options=OPTIONS, seed=3)
    assert "temperatures" in posterior.record["arguments"] and not posterior.record["abandoned"]
    assert len(runs) == 4 and any(runs[1:])


@pytest.mark.stan
def test_a_start_far_from_the_posterior_is_followed_by_the_prior(grown):
    gp, configs, y, before = grown
    start = before.warm_start()
    far = replace(start, draws=start.draws + 40.0)
    posterior = gp.fit(configs, y, options=OPTIONS, seed=6, start=far)
    arguments = posterior.record["arguments"]
    assert (arguments["method"], arguments["start"]) == ("carried", "cold") and posterior.check().ok
    (abandoned,) = posterior.record["abandoned"]
    assert (abandoned["start"], abandoned["then"]) == ("carried", "importance sampling from the prior")


@pytest.mark.stan
def test_draws_of_chains_that_fail_are_weighted(grown, monkeypatch):
    gp, configs, y, before = grown

    def divergent(program, data, options, *, start, **others):
        if options.method == "carried" and start is None:
            raise sl.InferenceError("the prior does not help")
        result = run(program, data, options, start=start, **others)
        if not result.sampler:
            return result
        return replace(result, sampler=result.sampler | {"diverging": np.ones_like(result.sampler["diverging"])})

    monkeypatch.setattr(gaussian_process, "run", divergent)
    start = before.warm_start()
    posterior = gp.fit(configs, y, options=OPTIONS, seed=5, start=replace(start, draws=start.draws + 40.0))
    assert posterior.record["arguments"]["method"] == "carried" and posterior.check().ok
    _, _, abandoned = posterior.record["abandoned"]
    assert abandoned["start"] == "warm" and abandoned["then"] == "importance sampling from the draws of all chains"


def tree() -> ConfigurationSpace:
    """Return a space with a branch for each of two levels."""
    space = ConfigurationSpace(seed=1)
    kind = Categorical("kind", ["u", "v"])
    branches = {"u": Float("a", (0.0, 1.0)), "v": Float("b", (0.0, 1.0))}
    space.add(kind, Float("c", (0.0, 1.0)), Categorical("d", ["x", "y"]), *branches.values())
    space.add(*(EqualsCondition(child, kind, value) for value, child in branches.items()))
    return space


@pytest.mark.stan
@pytest.mark.parametrize("case", ["conditions", "13 columns", "six graphs"])
def test_many_hyperparameters_are_carried_by_tempering(case):
    space = {
        "conditions": tree,
        "13 columns": lambda: ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(13)}),
        "six graphs": lambda: ConfigurationSpace({"x": (0.0, 1.0), **{f"c{i}": ["u", "v"] for i in range(6)}}),
    }[case]()
    gp = sl.GaussianProcess(space, warp="log")
    configs = Encoder(space).sobol(13, 3)
    y = np.array([np.exp(sum(float(v) for v in c.values() if not isinstance(v, str)) ** 0.5) for c in configs])
    before = gp.fit(configs[:12], y[:12], options=OPTIONS, seed=2)
    posterior = gp.fit(configs, y, options=OPTIONS, seed=5, start=before.warm_start())
    arguments = posterior.record["arguments"]
    assert arguments["method"] == "carried" and arguments["temperatures"][-1] == 1
    check = posterior.check()
    assert check.ok and check.limits["ess_bulk_min"] == TEMPERED_ESS <= check.ess_bulk_min
    again = replay(json.loads(json.dumps(posterior.record)), posterior.data)
    assert again.identical and again.agrees
    reference = gp.fit(configs, y, chains=2, draws=500, seed=1, pointwise=False)
    # Error of the mean of at least 50 effective draws: 0.14 standard deviations. The largest of 19 coordinates
    # exceeds 4 errors once in 800 runs.
    assert_near_means(posterior, reference, 0.57)


def test_plan():
    points = {"z": np.zeros((4, 2))}
    start = WarmStart(points, np.ones(4), np.ones(2), np.zeros((200, 2)))
    kinds = [attempt.kind for attempt in plan_attempts(OPTIONS, start, 1)]
    assert kinds == ["carried", "warm", "cold"]
    assert [attempt.kind for attempt in plan_attempts(OPTIONS, None, 1)] == ["cold"]
    large = replace(start, draws=np.zeros((200, CARRIED_PARAMETERS + 1)))
    earlier = replace(start, draws=np.zeros((0, 0)))
    for without in (large, earlier):
        assert [attempt.kind for attempt in plan_attempts(OPTIONS, without, 1)] == ["warm", "cold"]
    model = Model(tree())
    train = model.encoder.encode(model.encoder.sobol(9, 1))
    data = model.stan_data(train, np.zeros(9), train[:0], pointwise=False)
    kinds = [attempt.kind for attempt in plan_attempts(OPTIONS, large, 1, carries_to("hierarchical_gp", data))]
    assert kinds == ["carried", "cold", "warm", "cold"]
    without = carries_to("a program of a user", data)
    assert [attempt.kind for attempt in plan_attempts(OPTIONS, large, 1, without)] == ["warm", "cold"]


@pytest.mark.stan
def test_a_binary_posterior_from_the_prior_is_that_of_chains():
    gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}), likelihood="probit")
    x = np.linspace(0, 1, 12)[:, None]
    success = np.arange(12) % 5 != 3
    posterior = gp.fit(x, success, options=OPTIONS, seed=1)
    arguments = posterior.record["arguments"]
    assert (arguments["method"], arguments["start"], arguments["density"]) == ("carried", "cold", "numpy")
    assert posterior.check().ok and not posterior.record["abandoned"]
    again = replay(json.loads(json.dumps(posterior.record)), posterior.data)
    assert again.identical and again.agrees
    reference = gp.fit(x, success, chains=2, draws=500, seed=1, pointwise=False)
    for name, draws in reference.draws.items():
        here, there = posterior.draws[name], draws
        if name != "mu":
            here, there = np.log(here), np.log(there)
        if there.std() > 0:  # sigma_n is fixed
            # Error of the mean of at least 50 effective draws: 0.14 standard deviations; four errors.
            assert np.abs(here.mean(axis=0) - there.mean(axis=0)).max() < 0.57 * there.std(), name


@pytest.mark.parametrize("draws", [(200, 6), (0, 0)])
def test_a_start_is_stored_without_loss_in_few_bytes(draws):
    rng = np.random.default_rng(1)
    start = WarmStart({"z": rng.normal(size=(4, 6))}, np.ones(4), np.eye(6), rng.normal(size=draws))
    text = json.dumps(start.asdict())
    again = WarmStart.fromdict(json.loads(text))
    assert again.asdict() == start.asdict() and len(text) < 5 * start.draws.size + 1000
    np.testing.assert_array_equal(again.draws, start.draws)
    np.testing.assert_array_equal(again.points["z"], start.points["z"])
    for damaged in ({"shape": [3, 2], "base64": "AAAA"}, None):
        with pytest.raises(sl.DataError, match="not a warm start"):
            WarmStart.fromdict(start.asdict() | {"draws": damaged})
