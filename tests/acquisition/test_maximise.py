from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Integer
from testing_spaces import conditional_space

import slayr_py as sl
from slayr_py.acquisition import (
    OptimumPrior,
    criterion_values,
    expected_improvement,
    from_name,
    maximisation,
    suggest,
    suggest_tradeoff,
)
from slayr_py.acquisition.criteria import State
from slayr_py.acquisition.effort import DEFAULT
from slayr_py.acquisition.maximisation import _spread
from slayr_py.acquisition.refinement import refine
from slayr_py.space import Encoder

QUICK = {"chains": 2, "warmup": 100, "draws": 50}


def test_suggestion_is_as_good_as_a_fine_grid(branin_posterior, branin_data):
    _, _, y = branin_data
    found = suggest(branin_posterior, "ei", best=y.min(), t=1, rng=np.random.default_rng(0))
    axis = np.linspace(0, 1, 40)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    encoder = branin_posterior.encoder
    encoded, _ = encoder.resolve(grid)
    mean, variance = branin_posterior.predictor(256).moments(encoded)
    best = (y.min() - branin_posterior.y_mean) / branin_posterior.y_sd
    assert found.value >= expected_improvement(mean, np.sqrt(variance), best).max() * (1 - 0.03)


@pytest.mark.parametrize("acquisition", ["ei", "lcb"])
def test_suggestion_is_better_than_random_configurations(mixed_posterior, acquisition):
    encoder = mixed_posterior.encoder
    best = np.min(mixed_posterior.data["y"])
    y = mixed_posterior.y_mean + mixed_posterior.y_sd * best
    found = suggest(mixed_posterior, acquisition, best=y, t=1, rng=np.random.default_rng(0))
    encoded, _ = encoder.resolve(encoder.from_uniform(np.random.default_rng(1).random((5_000, len(encoder.names)))))
    predictor = mixed_posterior.predictor(256)
    for rows in np.array_split(np.arange(5_000), 12):
        mean, variance = predictor.moments(encoded[rows])
        value = from_name(acquisition).value(mean, np.sqrt(variance), State(best, 1, len(encoder.names)))
        # The search may lose 3% of an improvement; see benchmarks/speed/search.py.
        assert value.max() <= found.value * 1.03


@pytest.mark.parametrize("acquisition", ["ei", "log_ei", "pi", "lcb"])
def test_every_criterion_suggests_a_legal_configuration(mixed_posterior, acquisition):
    y = mixed_posterior.y_mean + mixed_posterior.y_sd * np.asarray(mixed_posterior.data["y"])
    found = suggest(mixed_posterior, acquisition, best=y.min(), t=4, rng=np.random.default_rng(3))
    found.config.check_valid_configuration()
    prediction = mixed_posterior.predict([found.config])
    assert found.mean == pytest.approx(prediction.mean[0], rel=0.3, abs=0.3)
    assert found.sd == pytest.approx(prediction.sd[0], rel=0.3)


@pytest.mark.stan
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("warp", ["none", "auto", "log"])
def test_the_values_of_criteria_are_those_of_drawn_functions(warp, maximize):
    """With a warp the moments of the draws alone give 1e7 times the improvement, for a maximum the wrong sign."""
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    design = Encoder(space).sobol(12, seed=1)
    sign = -1.0 if maximize else 1.0
    y = sign * np.array([np.exp(2 * np.sin(12 * config["x"]) + np.cos(9 * config["y"])) for config in design])
    posterior = sl.GaussianProcess(space, warp=warp).fit(design, y, method="laplace", seed=1, maximize=maximize)
    best = sign * (sign * y).min()
    table = pd.DataFrame([dict(config) for config in Encoder(space).sobol(60, seed=2)]).assign(other="text")
    drawn = sign * (best - posterior.sample(table, n=20_000, seed=1))
    gained = np.maximum(drawn, 0)
    every = {"best": best, "effort": DEFAULT._replace(draws=10_000)}
    values = criterion_values(posterior, table, **every)
    miss = values * abs(posterior.y_sd) - gained.mean(axis=0)
    assert (np.abs(miss) < 6 * gained.std(axis=0) / np.sqrt(len(drawn)) + 1e-3 * gained.mean(axis=0).max()).all()
    likely = criterion_values(posterior, table, "pi", **every)
    np.testing.assert_allclose(likely, (drawn > 0).mean(axis=0), atol=0.02)
    found = suggest(posterior, best=best, t=1, rng=np.random.default_rng(0))
    assert criterion_values(posterior, [found.config], best=best) == pytest.approx([found.value])
    assert criterion_values(posterior, [found.config], best=best, pending=[found.config])[0] < 0.5 * found.value
    assert criterion_values(posterior, [], best=best).shape == (0,)
    with pytest.raises(sl.DataError, match="best must be finite, got nan"):
        criterion_values(posterior, table, best=np.nan)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"best": None}, "best must be finite, got None"),
        ({"best": True}, "best must be finite, got True"),
        ({"best": [0.3, 0.4]}, "best must be finite"),
        ({"best": np.array([0.3, 0.4])}, "best must be finite"),
        ({"recommended": 3}, "recommended has 3 configurations, 3 of them different"),
        (
            {"recommended": [0, 0]},
            "recommended has 2 configurations, 1 of them different; give the",
        ),
        ({"error": -1.0}, "error must be at least 0 and finite, got -1.0"),
        ({"t": "3"}, "t must be an integer >= 1, got '3'"),
        ({"t": 1.5}, "t must be an integer >= 1, got 1.5"),
        ({"effort": 200}, r"effort must be an Effort, such as Effort\(draws=200\), got 200"),
        ({"posterior": []}, r"posterior must be a single Posterior, got \[\]"),
    ],
)
def test_wrong_arguments_of_criterion_values_are_named(branin_posterior, branin_data, wrong, message):
    configs = branin_data[1]
    arguments = {"posterior": branin_posterior, "configs": configs, "best": 0.3, **wrong}
    if rows := wrong.get("recommended"):
        arguments["recommended"] = configs[:rows] if isinstance(rows, int) else [configs[row] for row in rows]
    with pytest.raises(sl.DataError, match=message):
        criterion_values(**arguments)


def test_configurations_that_are_pending_may_be_a_table(branin_posterior, branin_data):
    configs = [dict(config) for config in branin_posterior.encoder.sobol(2, seed=1)]
    table = pd.DataFrame(configs).assign(other="text")
    values = criterion_values(branin_posterior, table, best=branin_data[2].min(), pending=table)
    expected = criterion_values(branin_posterior, configs, best=branin_data[2].min(), pending=configs)
    np.testing.assert_array_equal(values, expected)


def test_starts_are_spread_over_levels():
    """At most three starts of a level come first, if the best candidates share one."""
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0), "level": ["a", "b", "c"]}))
    levels = [0, 0, 0, 0, 1, 0, 2, 1]
    genotypes = np.array([[level, 0.5] if encoder.names[0] == "level" else [0.5, level] for level in levels], float)
    assert _spread(encoder.resolve(genotypes)[0]).tolist() == [0, 1, 2, 4, 6, 7, 3, 5]


def test_fixed_values_are_kept_and_the_rest_is_maximised(branin_posterior, branin_data):
    space, _, y = branin_data
    name, other = list(space)
    value = space[name].lower + 0.3 * (space[name].upper - space[name].lower)
    options = {"best": y.min(), "t": 1}
    found = suggest(branin_posterior, rng=np.random.default_rng(0), fixed={name: value}, **options)
    assert found.config[name] == pytest.approx(value, rel=1e-12)
    alone = [
        suggest(branin_posterior, rng=np.random.default_rng(0), fixed={name: value, other: v}, **options).value
        for v in np.linspace(space[other].lower, space[other].upper, 30)
    ]
    # The last ascent ends when a step would gain less than this share.
    assert found.value >= max(alone) * (1 - DEFAULT.gains[1])
    with pytest.raises(sl.SpaceError, match="fixed: there is no parameter 'z'"):
        suggest(branin_posterior, rng=np.random.default_rng(0), fixed={"z": 1}, **options)


@pytest.mark.stan
def test_conditional_and_forbidden_spaces():
    space = conditional_space()
    configs = Encoder(space).sobol(10, 2)
    y = [c.get("gamma", 1.0) + np.log(c["C"]) for c in configs]
    posterior = sl.GaussianProcess(space).fit(configs, y, **QUICK)
    for seed, acquisition in enumerate(("ei", "lcb", "pi")):
        found = suggest(posterior, acquisition, best=min(y), t=1, rng=np.random.default_rng(seed), exclude=configs)
        found.config.check_valid_configuration()
        assert found.config not in configs


@pytest.mark.stan
def test_evaluated_configurations_are_repeated_only_if_no_other_is_left():
    space = ConfigurationSpace([Categorical("a", [1, 2, 3]), Categorical("b", ["x", "y"])])
    encoder = Encoder(space)
    everything = [{"a": a, "b": b} for a in (1, 2, 3) for b in ("x", "y")]
    posterior = sl.GaussianProcess(encoder).fit(everything[:3], [1.0, 2.0, 3.0], **QUICK)
    for n in range(6):
        found = suggest(posterior, best=1.0, t=1, rng=np.random.default_rng(n), exclude=everything[:n])
        assert dict(found.config) in everything[n:]
    again = suggest(posterior, best=1.0, t=1, rng=np.random.default_rng(0), exclude=everything)
    assert dict(again.config) in everything


@pytest.mark.stan
def test_configurations_repeat_without_exclude():
    levels = [{"a": a} for a in "uvwxyz"]
    observed = [level for level in levels[:5] for _ in range(3)]
    y = [-2.0, -1.9, -2.1, *np.tile([1.0, 1.1, 0.9], 4)]
    posterior = sl.GaussianProcess(ConfigurationSpace({"a": list("uvwxyz")})).fit(observed, y, **QUICK)
    args = {"best": -2.0, "t": 1}
    twice = suggest(posterior, "pi", rng=np.random.default_rng(0), exclude=(), **args)
    once = suggest(posterior, "pi", rng=np.random.default_rng(0), exclude=observed, **args)
    assert twice.config["a"] == "u" and once.config["a"] == "z"


@pytest.mark.stan
@pytest.mark.parametrize("seed", range(3))
def test_the_last_configurations_of_a_larger_space_are_found(seed):
    space = ConfigurationSpace([Integer("i", (0, 9)), Integer("j", (1, 8), log=True), Categorical("c", list("abcd"))])
    everything = [{"i": i, "j": j, "c": c} for i in range(10) for j in range(1, 9) for c in "abcd"]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(everything))
    evaluated = [everything[k] for k in order[:-2]]
    left = [everything[k] for k in order[-2:]]
    y = [c["i"] + np.sin(c["j"]) for c in evaluated[:20]]
    posterior = sl.GaussianProcess(space).fit(evaluated[:20], y, method="map", seed=1)
    found = suggest(posterior, best=min(y), t=1, rng=rng, exclude=evaluated)
    assert dict(found.config) in left


def test_invalid_best_value_and_acquisition_raise(mixed_posterior):
    with pytest.raises(sl.DataError, match="best must be finite"):
        suggest(mixed_posterior, best=np.nan, t=1, rng=np.random.default_rng(0))
    with pytest.raises(sl.DataError, match="unknown acquisition"):
        suggest(mixed_posterior, "eii", best=0.0, t=1, rng=np.random.default_rng(0))


def test_an_unknown_argument_is_answered_with_the_nearest():
    for function in (suggest, suggest_tradeoff):
        needed = {"best": 0.0, "t": 1} if function is suggest else {"front": None, "reference": np.zeros(2)}
        with pytest.raises(TypeError, match="unknown argument 'excluded'; did you mean 'exclude'"):
            function(None, rng=np.random.default_rng(0), excluded=[], **needed)


def test_the_search_explores_where_the_improvement_vanishes(branin_posterior):
    """The improvement on a value far below all others is 0 in every digit: its maximum is noise."""
    found = suggest(branin_posterior, best=-1e6, t=1, rng=np.random.default_rng(0))
    assert "not at the maximum of the acquisition: it is only" in found.note and found.value < 1e-8
    encoder = branin_posterior.encoder
    candidates = encoder.sobol(200, 1)
    assert found.sd > 0.97 * branin_posterior.predict(candidates).sd.max()
    assert not suggest(branin_posterior, best=10.0, t=1, rng=np.random.default_rng(0)).note


@pytest.mark.stan
@pytest.mark.parametrize("fixed_number", [False, True])
def test_a_noisy_front_moves_with_an_evaluation_without_numbers_too(fixed_number):
    """The only level of the front does not improve on itself; without its configuration, its luck would count."""
    space = ConfigurationSpace({"c": ["a", "b", "d"]} | ({"x": (0.0, 1.0)} if fixed_number else {}))
    configs = [{"c": level} | ({"x": 0.5} if fixed_number else {}) for level in "abdabd"]
    gp = sl.GaussianProcess(space, priors={"sigma_n": sl.LogNormal(-1, 0.1)}, warp="none")
    posteriors = [
        gp.fit(configs, y, method="laplace", seed=1) for y in ([0, 2, 3, 0.4, 2.4, 3.4], [1, 3, 2, 1.3, 3.3, 2.3])
    ]
    there = {"front": [[0.2, 1.15]], "reference": [4.0, 4.0], "noisy": True, "fixed": configs[0]}
    with_it, without = (
        suggest_tradeoff(posteriors, **there, configs=known, rng=np.random.default_rng(0)).value
        for known in (configs[:1], None)
    )
    assert with_it < 1e-6 < 0.01 < without


@pytest.mark.stan
def test_searches_leave_the_worst_values_alone():
    """On the scale of the best value, the draws of a warp disagree about the values of known points that are bad."""
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    design = Encoder(space).sobol(12, seed=1)
    y = np.exp([6 * config["x"] for config in design])
    posterior = sl.GaussianProcess(space, warp="log").fit(design, y, method="laplace", seed=1)
    exploring = suggest(posterior, best=y.min() - y.std(), t=1, rng=np.random.default_rng(0))
    assert "not at the maximum of the acquisition: it is only" in exploring.note
    bound = suggest(posterior, "lcb", best=y.min(), t=7, rng=np.random.default_rng(0))
    for found in (exploring.config, bound.config):
        distances = [np.hypot(config["x"] - found["x"], config["y"] - found["y"]) for config in design]
        assert min(distances) > 0.3 and found["x"] < 0.5


@pytest.mark.stan
def test_searches_improve_on_good_values_that_differ_by_orders_of_magnitude():
    """Improvements are tiny beside the targets, but probable."""
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    design = Encoder(space).sobol(24, seed=1)
    y = np.array([10 ** (16 * ((config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2)) for config in design])
    posterior = sl.GaussianProcess(space, warp="best").fit(design, y, method="laplace", seed=1)
    found = suggest(posterior, best=y.min(), t=1, rng=np.random.default_rng(0))
    assert found.value < 1e-8 and not found.note
    assert found.config["x"] == pytest.approx(0.3, abs=0.1) and found.config["y"] == pytest.approx(0.6, abs=0.1)
    prior = OptimumPrior.of({"x": sl.Normal(0.8, 0.1)}, posterior.encoder)
    believed = suggest(posterior, "lcb", best=y.min(), t=1, rng=np.random.default_rng(0), prior=prior)
    assert believed.config["x"] < 0.6


@pytest.mark.parametrize(("acquisition", "gains"), [("ei", [0.1, 1e-3]), ("pi", [0.1, 1e-3]), ("lcb", [0.01, 1e-4])])
def test_ascents_stop_at_gains_of_the_scale_of_the_criterion(
    branin_posterior, branin_data, monkeypatch, acquisition, gains
):
    """A logarithm gains a share of the criterion; the bound gains standard deviations of y."""
    used = []

    def noting(landscape, starts, gain, curvature=None):
        used.append(gain)
        return refine(landscape, starts, gain, curvature)

    monkeypatch.setattr(maximisation, "refine", noting)
    suggest(branin_posterior, acquisition, best=branin_data[2].min(), t=1, rng=np.random.default_rng(0))
    assert used == gains


@pytest.mark.stan
def test_posteriors_of_different_scales_are_refused():
    space = Encoder({"x": (0.1, 100.0), "y": (0.0, 1.0)})
    configs = space.sobol(6, 0)
    first, other = (
        sl.GaussianProcess(encoder, "matern").fit(configs, np.arange(6.0), method="map")
        for encoder in (space, space.rescaled(["x"]))
    )
    for terms in ({"feasibility": [other]}, {"cost": other}):
        with pytest.raises(sl.SpaceError, match="logarithmic scales"):
            suggest(first, best=1.0, t=1, rng=np.random.default_rng(0), **terms)
    with pytest.raises(sl.SpaceError, match="logarithmic scales"):
        suggest_tradeoff([first, other], front=[[1.0, 1.0]], reference=[6.0, 6.0], rng=np.random.default_rng(0))
