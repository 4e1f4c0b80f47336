"""The prior of the noise of objectives that are not declared noisy."""

import warnings

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.study.model.options import LARGEST_NOISE

SQUARE = ConfigurationSpace({"x": (-1.0, 1.0), "z": (-1.0, 1.0)})


def bowl(config):
    return (config["x"] - 0.3) ** 2 + config["z"] ** 2


def rippled(config):
    """Return the bowl with ripples that are narrower than the distance of sixty trials."""
    x, z = config["x"], config["z"]
    return bowl(config) + 0.4 * np.sin(97 * x + 50 * z) * np.cos(83 * z - 31 * x)


def fitted(objective, **options):
    """Return the messages about noise of a study with a single suggestion, and the draws of its model."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sl.minimize(objective, SQUARE, budget=61, n_initial=60, seed=1, progress=False, **options)
    messages = [str(each.message) for each in caught if "noise" in str(each.message)]
    return messages, result.posterior().parts[0].draws


@pytest.mark.stan
def test_details_between_the_trials_are_described_by_noise_and_reported():
    messages, draws = fitted(rippled)
    assert len(messages) == 1 and "details between the trials" in messages[0] and "noisy=True" in messages[0]
    assert np.quantile(draws["sigma_n"], 0.01) > LARGEST_NOISE
    # Without noise the model interpolates the ripples, with shorter length-scales.
    exact = {"sigma_n": sl.LogNormal(-4.0, 0.5)}
    silent, interpolating = fitted(rippled, priors=exact)
    assert not silent
    assert np.median(draws["lengthscale"]) > 2 * np.median(interpolating["lengthscale"])


@pytest.mark.stan
def test_a_smooth_function_has_no_noise():
    messages, draws = fitted(bowl)
    assert not messages and np.quantile(draws["sigma_n"], 0.99) < LARGEST_NOISE
