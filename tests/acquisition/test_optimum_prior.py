from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from ConfigSpace.hyperparameters import (
    BetaIntegerHyperparameter,
    NormalFloatHyperparameter,
    NormalIntegerHyperparameter,
    OrdinalHyperparameter,
)
from scipy import stats
from testing_spaces import conditional_space

import slayr_py as sl
from slayr_py.acquisition import OptimumPrior, from_name, suggest
from slayr_py.acquisition.criteria import State
from slayr_py.acquisition.marginals import UNIFORM_SHARE
from slayr_py.acquisition.optimum_prior import SHARE_OF_SPACE
from slayr_py.inference import Moments
from slayr_py.space import Encoder


def laboratory():
    space = ConfigurationSpace({"x": (0.0, 10.0), "n": (1, 5), "base": ["a", "b", "c"]})
    size = OrdinalHyperparameter("size", ["small", "medium", "large"])
    space.add(Float("lr", (1e-4, 1e-1), log=True), Integer("units", (8, 512), log=True), size)
    return space


BELIEFS = {
    "x": sl.Normal(7.0, 1.0),
    "n": sl.Gamma(9.0, 3.0),
    "base": {"a": 7, "b": 2, "c": 1},
    "lr": sl.LogNormal(-7.0, 1.0),
    "units": sl.LogNormal(4.0, 0.5),
    "size": {"small": 0.5, "medium": 0.3, "large": 0.2},
}


def prior_of(beliefs, space=None):
    return OptimumPrior.of(beliefs, Encoder(space or laboratory()))


def encoded_at(prior, **values):
    encoder = prior.encoder
    config = {**encoder.space.get_default_configuration(), **values}
    return encoder.encode([config])


def log_product(prior, **values):
    """Return the logarithm of the product of the beliefs, without the share of the space."""
    density = np.exp(prior.values(encoded_at(prior, **values)))
    return np.log((density - SHARE_OF_SPACE) / (1 - SHARE_OF_SPACE))


def test_the_density_is_relative_to_the_scale_of_the_space():
    """On a logarithmic scale it is the density of the logarithm; uniform densities are mixed in twice."""
    prior = prior_of({"lr": BELIEFS["lr"], "x": BELIEFS["x"], "base": BELIEFS["base"]})
    values = prior.values(encoded_at(prior, lr=2e-3, x=6.2, base="a"))
    width = np.log(1e3)
    inside = np.diff(stats.norm(-7, 1).cdf(np.log([1e-4, 1e-1])))[0]
    lr = stats.norm(-7, 1).pdf(np.log(2e-3)) * width / inside
    x = stats.norm(7, 1).pdf(6.2) * 10 / np.diff(stats.norm(7, 1).cdf([0, 10]))[0]
    product = np.prod([(1 - UNIFORM_SHARE) * p + UNIFORM_SHARE for p in (lr, x)]) * 3 * 0.7
    expected = np.log((1 - SHARE_OF_SPACE) * product + SHARE_OF_SPACE)
    np.testing.assert_allclose(values, expected, atol=2e-4)
    np.testing.assert_allclose(prior.tempered(0.25).values(encoded_at(prior, lr=2e-3, x=6.2, base="a")), values / 4)


def test_a_narrow_belief_in_a_range_that_does_not_start_at_zero():
    prior = prior_of({"x": sl.Normal(8.0, 1e-4)}, ConfigurationSpace({"x": (2.0, 10.0)}))
    belief = stats.norm(8, 1e-4)
    for x in (7.9999, 8.0, 8.0002):
        density = belief.pdf(x) * 8 / np.diff(belief.cdf([2, 10]))[0]
        expected = np.log((1 - UNIFORM_SHARE) * density + UNIFORM_SHARE)
        np.testing.assert_allclose(log_product(prior, x=x), expected, atol=1e-3)


def test_the_factor_is_bounded_where_every_belief_is_wrong():
    """Thirty narrow beliefs at 0: their product is 1e-30 at 1, and the factor is the share of the space."""
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(30)})
    prior = prior_of({name: sl.Normal(0.0, 0.05) for name in space}, space)
    far = prior.encoder.encode([dict.fromkeys(space, 1.0)])
    values, gradients = prior.values_and_gradients(far)
    assert values == pytest.approx(np.log(SHARE_OF_SPACE)) and np.all(np.abs(gradients) < 1e-20)


def test_a_uniform_belief_changes_nothing():
    prior = prior_of({"x": sl.Beta(1, 1), "n": sl.Beta(1, 1), "base": {"a": 2, "b": 2, "c": 2}})
    u = np.random.default_rng(0).random((50, len(prior.encoder.names)))
    np.testing.assert_allclose(prior.values(prior.encoder.resolve(u)[0]), 0.0, atol=1e-12)
    np.testing.assert_allclose(prior.genotypes(u), prior.encoder.from_uniform(u), atol=1e-12)


def test_draws_have_the_belief():
    """Quantiles of floats, and shares of integers and levels, within 4 standard errors of 4,096 random draws."""
    prior = prior_of(BELIEFS)
    u = np.random.default_rng(1).random((4096, len(prior.encoder.names)))
    configs = prior.encoder.decode(prior.encoder.resolve(prior.genotypes(u))[0])
    lr = stats.truncnorm((np.log(1e-4) + 7), (np.log(1e-1) + 7), -7, 1)
    assert stats.kstest([np.log(c["lr"]) for c in configs], lr.cdf).pvalue > 1e-4
    x = stats.truncnorm(-7, 3, 7, 1)
    assert stats.kstest([c["x"] for c in configs], x.cdf).pvalue > 1e-4
    n = np.diff(stats.gamma(9, scale=1 / 3).cdf(np.arange(0.5, 6)))
    shares = {"base": [0.7, 0.2, 0.1], "size": [0.5, 0.3, 0.2], "n": n / n.sum()}
    for name, expected in shares.items():
        values = [1, 2, 3, 4, 5] if name == "n" else list(BELIEFS[name])
        found = [np.mean([c[name] == value for c in configs]) for value in values]
        error = np.sqrt(np.multiply(expected, np.subtract(1, expected)) / 4096)
        assert np.all(np.abs(np.subtract(found, expected)) < 4 * error + 1e-3), name


@pytest.mark.parametrize("acquisition", ["ei", "lcb"])
def test_gradients_of_the_landscape_are_finite_differences(landscape_of, acquisition):
    space = laboratory()
    prior = prior_of({**BELIEFS, "n": {1: 1, 2: 3, 3: 5, 4: 2, 5: 1}}, space).tempered(0.7)
    real = np.array([d.is_real for d in prior.encoder.dimensions])
    landscape = landscape_of(
        prior.encoder,
        lambda values, active: -np.sum(values[:, real] ** 2, axis=1),
        lambda values, active: -2 * values[:, real],
        prior=prior,
    ).relax()
    object.__setattr__(landscape.merit, "criterion", from_name(acquisition).logarithmic())
    points = prior.encoder.from_uniform(np.random.default_rng(3).random((40, len(real))))
    points[:, real] = np.clip(points[:, real] + 0.011, 0.01, 0.99)  # apart from the kinks at integers
    values, gradients = landscape.values_and_gradients(points)
    step = 1e-6
    for j in np.flatnonzero(real):
        moved = np.where(np.arange(len(real)) == j, step, 0.0)
        slopes = (landscape.values(points + moved) - landscape.values(points - moved)) / (2 * step)
        np.testing.assert_allclose(gradients[:, j], slopes, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(values, landscape.values(points), atol=1e-12)


def test_the_factor_of_an_inactive_parameter_is_one():
    encoder = Encoder(conditional_space())
    prior = OptimumPrior.of({"degree": {2: 8, 3: 1, 4: 1, 5: 1}}, encoder)
    encoded, _ = encoder.resolve(encoder.uniform(60, np.random.default_rng(0)))
    active = encoded.active[:, encoder.names.index("degree")]
    values, gradients = prior.values_and_gradients(encoded)
    assert active.any() and not active.all()
    np.testing.assert_allclose(values[~active], 0, atol=1e-15)
    assert np.all(values[active] != 0)
    assert np.all(gradients[~active] == 0)


def test_the_confidence_bound_is_the_logarithm_of_a_promised_improvement():
    """Far above 0 it is log(best - bound); it increases with the bound, and its slope is a finite difference."""
    bound = from_name("lcb")
    log_bound = bound.logarithmic()
    mean = np.linspace(-3.0, 6.0, 300)[None]
    variance = np.full(mean.shape, 0.04)
    state = State(0.2, 3, 2)
    values = log_bound.transformed(mean, variance, state)
    promised = 0.2 + bound.transformed(mean, variance, state)
    np.testing.assert_allclose(values[promised > 0.1], np.log(promised[promised > 0.1]), atol=1e-4)
    assert np.all(np.diff(values) < 0)
    slope = np.stack([np.ones(mean.shape), np.zeros(mean.shape)], axis=-1)
    gradient = log_bound.transformed_with_gradient(Moments(mean, variance, slope, 0 * slope), state)[1]
    step = 1e-6
    numeric = (
        log_bound.transformed(mean + step, variance, state) - log_bound.transformed(mean - step, variance, state)
    ) / (2 * step)
    np.testing.assert_allclose(gradient[:, 0], numeric, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        log_bound.value(mean, np.sqrt(variance), state), bound.value(mean, np.sqrt(variance), state)
    )


def test_a_strong_belief_moves_the_suggestion(branin_posterior, branin_data):
    _, _, y = branin_data
    encoder = branin_posterior.encoder
    name = encoder.names[0]
    d = encoder.dimensions[0]
    centre = d.lower + 0.8 * (d.upper - d.lower)
    prior = OptimumPrior.of({name: sl.Normal(centre, 0.01 * (d.upper - d.lower))}, encoder)
    options = {"best": y.min(), "t": 1}
    plain = suggest(branin_posterior, rng=np.random.default_rng(0), **options)
    found = suggest(branin_posterior, rng=np.random.default_rng(0), prior=prior.tempered(3.0), **options)
    assert abs(plain.config[name] - centre) > 0.05 * (d.upper - d.lower)
    assert abs(found.config[name] - centre) < 0.05 * (d.upper - d.lower)
    assert found.value < plain.value and not found.note


@pytest.mark.stan
@pytest.mark.parametrize("noisy", [False, True])
def test_a_belief_that_removes_every_improvement_is_left_out(noisy, branin_data):
    """It is concentrated at the observed configuration that is surest to be worse: the improvement is below 1e-8.

    At the mode: a single draw with unusual hyperparameters, which other machines have, would leave more. Of a noisy
    objective, improvements down to 1e-100 are compared, but a belief does not choose between them.
    """
    space, configs, y = branin_data
    posterior = sl.GaussianProcess(space).fit(configs, y, method="map")
    there = posterior.predict(configs)
    worst = configs[int(np.argmax((there.mean - y.min()) / there.sd))]
    prior = OptimumPrior.of({name: sl.Normal(value, 0.01) for name, value in worst.items()}, posterior.encoder)
    options = {"best": y.min(), "t": 1}
    if noisy:
        centre = there.centre_and_spread()[0]
        options |= {
            "best": centre.min(),
            "recommended": [configs[row] for row in np.argsort(centre)[:2]],
            "error": 100.0,
        }
    plain = suggest(posterior, rng=np.random.default_rng(0), **options)
    found = suggest(posterior, rng=np.random.default_rng(0), prior=prior.tempered(1e5), **options)
    assert "so that the prior is left out" in found.note
    assert found.value == pytest.approx(plain.value, rel=0.03)


def test_beliefs_of_the_space():
    space = ConfigurationSpace(seed=1)
    space.add(
        NormalFloatHyperparameter("a", mu=3, sigma=1, lower=0, upper=10),
        BetaIntegerHyperparameter("b", 2, 3, lower=1, upper=10),
        NormalIntegerHyperparameter("m", mu=30, sigma=20, lower=1, upper=100, log=True),
        Categorical("c", ["x", "y"], weights=[3, 1]),
        Float("d", (0.0, 1.0)),
    )
    prior = OptimumPrior.of("space", Encoder(space))
    assert prior.record == {"a": "NormalFloat", "b": "BetaInteger", "c": "weights", "m": "NormalInteger"}
    ours = OptimumPrior.of({"a": sl.Normal(3, 1), "c": {"x": 3, "y": 1}}, prior.encoder)
    for at in ({"a": 2.5, "c": "y"}, {"a": 9.0, "c": "x"}):
        difference = log_product(prior, **at) - log_product(ours, **at)
        np.testing.assert_allclose(difference, log_product(prior) - log_product(ours), atol=2e-3)
    with pytest.raises(sl.DataError, match="no parameter of the space has a distribution; use Normal"):
        prior_of("space")


LEVELS = {"a": 1, "b": 1, "c": 1}
BAD = {
    "not a mapping": ([1], "prior is \\[1\\]; give beliefs by parameter"),
    "empty": ({}, "prior is {}; give beliefs"),
    "another word": ("spaces", "prior is 'spaces'; give beliefs by parameter, .* or 'space'"),
    "unknown parameter": ({"lrr": sl.Normal(0, 1)}, "unknown parameter 'lrr'; did you mean 'lr'"),
    "not a distribution": ({"x": 3.0}, "the belief about 'x' is 3.0; give a distribution such as"),
    "unknown level": ({"base": {**LEVELS, "d": 1}}, "'base' has no value 'd'"),
    "a level without a weight": ({"base": {"a": 1, "b": 1}}, "'base' has no weight for 'c'; give one"),
    "a negative weight": ({"base": {**LEVELS, "a": -1}}, "the weight of 'a' of 'base' is -1; give a positive number"),
    "a zero weight": ({"base": {**LEVELS, "a": 0}}, "is 0, which would exclude it for ever; give it a small number"),
    "not a number": ({"base": {**LEVELS, "a": "much"}}, "the weight of 'a' of 'base' is 'much'; give a positive"),
    "two weights": ({"n": {1: 1, "1": 1, 2: 1, 3: 1, 4: 1, 5: 1}}, "'n' has two weights for 1; give one"),
    "weights of a float": ({"x": {0.5: 1}}, "'x' is a float, but its belief has weights; give a distribution"),
    "weights on a logarithmic scale": ({"units": dict.fromkeys(range(8, 513), 1)}, "takes no weights; give a dist"),
    "a distribution of levels": ({"size": sl.Normal(1, 1)}, "'size' has levels, .*; give a weight for each level"),
    "mass outside": ({"lr": sl.LogNormal(7, 1)}, "probability of .* between its bounds 0.0001 and 0.1; correct the"),
    "mass below 0": ({"x": sl.Normal(-50, 2)}, "probability of 0 between its bounds 0.0 and 10.0"),
    "no spread": ({"x": sl.Normal(5, 0)}, "without spread; use fixed={'x': ...}"),
    "several values": ({"x": sl.Normal([1, 2], 1)}, "give a distribution of a single number"),
    "a simplex": ({"x": sl.Dirichlet(1)}, "give a distribution of a single number"),
}


@pytest.mark.parametrize("beliefs, message", BAD.values(), ids=BAD)
def test_illegal_beliefs(beliefs, message):
    with pytest.raises((sl.DataError, sl.SpaceError), match=message):
        prior_of(beliefs)


def test_a_belief_about_a_constant_is_refused():
    with pytest.raises(sl.SpaceError, match="'c' is a constant; leave it out"):
        prior_of({"c": {1: 1}}, ConfigurationSpace({"x": (0.0, 1.0), "c": 1}))


def test_a_design_inside_constraints_follows_the_belief():
    space = ConfigurationSpace({f"x{i}": (0.0, 1.0) for i in range(3)})
    encoder = Encoder(space, within=["x0 + x1 + x2 == 1"])
    points = OptimumPrior.of({"x0": sl.Normal(0.8, 0.05)}, encoder).design(6, 1)
    assert len(points) == 6
    assert all(abs(sum(point.values()) - 1) < 1e-9 for point in points)
    assert np.mean([point["x0"] for point in points]) > 0.6  # the uniform mean is 1/3


def test_a_branch_keeps_its_probability_under_a_belief_about_its_child():
    """The density of a child integrates to 1, so that its belief does not favour its branch."""
    space = ConfigurationSpace({"kind": ["a", "b"]})
    depth = Float("depth", (0.0, 1.0))
    space.add(depth)
    space.add(EqualsCondition(depth, space["kind"], "b"))
    prior = prior_of({"depth": sl.Normal(0.9, 0.1)}, space)
    depths = np.linspace(0, 1, 2001)
    encoded = prior.encoder.encode([{"kind": "b", "depth": float(value)} for value in depths])
    assert np.trapezoid(np.exp(prior.values(encoded)), depths) == pytest.approx(1, abs=1e-4)
