"""Laws of fits: each compares a fit with formulas over its draws, or with a fit to the same data in another form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from combinations.scenarios import POINTS, Scenario
from combinations.textbook import Mixture, close, covariance
from scipy.stats import multivariate_normal

import slayr_py as sl

Law = Callable[[Scenario], None]


def mixture_of(scenario: Scenario) -> Mixture:
    return Mixture.of(scenario.posterior, scenario.y, scenario.y_sd, scenario.maximize)


def predictions_are_those_of_a_textbook(scenario: Scenario) -> None:
    """Compare moments and quantiles, in NumPy and Stan."""
    new = scenario.encoder.encode(scenario.new)
    mixture = mixture_of(scenario)
    mean, sd = mixture.moments(new)
    tolerance = 1e-4 if scenario.inducing else 1e-5  # the jitter of inducing points, the quadrature under a warp
    for engine in ("numpy",) if scenario.inducing else ("numpy", "stan"):
        prediction = scenario.posterior.predict(scenario.new, engine=engine)
        close(prediction.mean, mean, tolerance)
        close(prediction.sd, sd, tolerance)
    quantile = scenario.posterior.predict(scenario.new).quantile(0.2)
    close(mixture.cumulative(new, quantile), np.full(len(new), 0.2), tolerance)


def densities_are_those_of_a_textbook(scenario: Scenario) -> None:
    """Compare leave-one-out and marginal densities of the program."""
    if scenario.inducing or scenario.posterior.is_stack:
        return  # no program, or programs that other scenarios have
    y = replace(scenario, order=[1, 0, *range(2, POINTS)]).y
    posterior = scenario.posterior
    here = mixture_of(scenario).draws
    close(posterior.idata["log_likelihood"]["y"].values[0], [draw.leave_one_out() for draw in here])
    # Other values at the same configurations: the density of the hyperparameters' prior cancels.
    other = scenario.fit(scenario.configs, y, scenario.y_sd)
    there = Mixture.of(other, y, scenario.y_sd, scenario.maximize).draws
    difference = posterior.idata["sample_stats"]["lp"].values[0] - other.idata["sample_stats"]["lp"].values[0]
    close(difference, [one.log_marginal() - two.log_marginal() for one, two in zip(here, there, strict=True)])


def order_and_units_do_not_matter(scenario: Scenario) -> None:
    """Permute the observations and change the unit of the values; the draws are the same."""
    other = replace(scenario, order=[3, 0, 7, 2, 5, 1, 6, 4], scale=256.0, shift=-7e3, pointwise=False)
    here = scenario.posterior.predict(scenario.new)
    there = other.posterior.predict(scenario.new)
    tolerance = 1e-3 if scenario.inducing else 1e-6  # the mode of a sparse fit is found to four digits
    close(there.mean, 256.0 * here.mean - 7e3, tolerance)
    close(there.sd, 256.0 * here.sd, tolerance)
    close(there.quantile([0.1, 0.9]), 256.0 * here.quantile([0.1, 0.9]) - 7e3, tolerance)


def an_ordinal_is_the_integer_of_its_rank(scenario: Scenario) -> None:
    """Declare the rank of the ordinal as an integer; kernels that were learned know the levels."""
    if "Pretrained" in repr(scenario.kernel):
        return
    other = replace(scenario, counted=True, pointwise=False)
    here = scenario.posterior.predict(scenario.new)
    there = other.posterior.predict(other.new)
    close(there.mean, here.mean)
    close(there.sd, here.sd)


def probabilities_are_those_of_orthants(scenario: Scenario) -> None:
    """Compare with P(y, success) / P(y): probabilities that correlated normal variates have given signs."""
    posterior = scenario.posterior
    new = scenario.encoder.encode(scenario.new)
    signs = np.where(scenario.y, 1.0, -1.0)

    def orthant(points, signs: np.ndarray, theta) -> float:
        K = covariance(posterior.kernel, points, points, theta) + np.eye(len(points))
        mean = np.full(len(points), -theta["mu"])
        normal = multivariate_normal(signs * mean, np.outer(signs, signs) * K, seed=1, maxpts=5_000, abseps=1e-5)
        return float(normal.cdf(np.zeros(len(points))))

    expected = []
    for row in range(posterior.n_draws):
        theta = {name: values[row] for name, values in posterior.draws.items()}
        both = [orthant(posterior.train.concatenate(new[[j]]), np.append(signs, 1.0), theta) for j in range(len(new))]
        expected.append(np.array(both) / orthant(posterior.train, signs, theta))
    # Expectation propagation is accurate to about a percent.
    np.testing.assert_allclose(posterior.probability(scenario.new), np.mean(expected, axis=0), atol=0.02)


def order_does_not_matter(scenario: Scenario) -> None:
    other = replace(scenario, order=[3, 0, 7, 2, 5, 1, 6, 4], pointwise=False).posterior
    close(other.probability(scenario.new), scenario.posterior.probability(scenario.new), 1e-5)


def maximising_is_minimising_the_negative(scenario: Scenario) -> None:
    changed = {"maximize": not scenario.maximize, "scale": -scenario.scale, "shift": -scenario.shift}
    mirrored = replace(scenario, **changed, pointwise=False)
    here = scenario.posterior.predict(scenario.new)
    there = mirrored.posterior.predict(scenario.new)
    close(here.mean, -there.mean, 1e-12)
    close(here.sd, there.sd, 1e-12)
    close(here.quantile(0.8), -there.quantile(0.2), 1e-12)


def repeated_observations_are_one_with_less_noise(scenario: Scenario) -> None:
    """Replace the observations 2 and 5 of one configuration by their weighted mean, with the same draws."""
    if scenario.likelihood == "probit":
        return
    new = scenario.encoder.encode(scenario.new)
    mixture = mixture_of(scenario)
    merged = []
    for draw in mixture.draws:
        weights = 1 / draw.noise[[2, 5]]
        targets = draw.targets.copy()
        noise = draw.noise.copy()
        targets[2] = weights @ draw.targets[[2, 5]] / weights.sum()
        noise[2] = 1 / weights.sum()
        merged.append(draw._replace(targets=targets, noise=noise).without(5))
    mean, sd = mixture._replace(draws=merged).moments(new)
    prediction = scenario.posterior.predict(scenario.new)
    close(prediction.mean, mean, 1e-4 if scenario.inducing else 1e-5)
    close(prediction.sd, sd, 1e-4 if scenario.inducing else 1e-5)


def stacking_weights_are_optimal(scenario: Scenario) -> None:
    """The mean ratio of the densities of a part to those of the mixture is 1, or less at a weight of 0."""
    posterior = scenario.posterior
    weights = posterior.weights.to_numpy()
    densities = [np.exp(part.idata["log_likelihood"]["y"].values[0]).mean(axis=0) for part in posterior.posteriors]
    ratios = np.mean(np.array(densities) / (weights @ np.array(densities)), axis=1)
    assert np.all(ratios <= 1 + 1e-3)
    close(ratios[weights > 1e-3], 1, 1e-3)


def components_add_up(scenario: Scenario) -> None:
    for part in scenario.posterior.posteriors:
        if scenario.warp != "none":
            with pytest.raises(sl.DataError, match="a fit with a warp cannot be split into components.*warp='none'"):
                part.components(scenario.new)
        elif scenario.inducing is None:
            components = part.components(scenario.new)
            close(components.mean.sum(axis=0) + components.offset, part.predict(scenario.new).mean)


def an_inactive_parameter_does_not_matter(scenario: Scenario) -> None:
    """Predict at a configuration with and without an empty cell of an inactive parameter."""
    config = {"x": 0.3, "z": 2.0, "kind": "a"} | ({"size": "m", "colour": "red"} if scenario.levels else {})
    here = scenario.posterior.predict([config])
    there = scenario.posterior.predict(pd.DataFrame([config | {"depth": np.nan}]))
    np.testing.assert_array_equal(here.mean, there.mean)
    np.testing.assert_array_equal(here.sd, there.sd)


def the_gram_matrix_is_positive(scenario: Scenario) -> None:
    points = scenario.encoder.encode([*scenario.configs, *scenario.new])
    for part in scenario.posterior.parts:
        theta = {name: values[0] for name, values in part.draws.items()}
        K = part.model.kernel.gram(points, points, theta)
        assert np.linalg.eigvalsh(K).min() > -1e-9 * K.max()


def laws_of(scenario: Scenario) -> tuple[Law, ...]:
    """Return the laws of a fit, which depend on its likelihood."""
    if scenario.likelihood == "probit":
        return probabilities_are_those_of_orthants, order_does_not_matter
    return predictions_are_those_of_a_textbook, densities_are_those_of_a_textbook, order_and_units_do_not_matter
