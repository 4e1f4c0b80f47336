from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float
from ConfigSpace.hyperparameters import BetaFloatHyperparameter, NormalIntegerHyperparameter
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from slayr_py.errors import SpaceError
from slayr_py.space import Encoder, active_names
from slayr_py.study import space_to_distributions
from slayr_py.study.storage.distributions import to_configuration, to_params
from slayr_py.study.storage.flat_space import to_space


def test_every_kind_of_parameter_has_its_distribution(mixed):
    assert space_to_distributions(mixed) == {
        "degree": IntDistribution(1, 8, log=True),
        "flag": CategoricalDistribution((True, False)),
        "kernel": CategoricalDistribution(("rbf", "poly", "linear")),
        "rate": FloatDistribution(1e-4, 1.0, log=True),
        "size": CategoricalDistribution(("s", "m", "l")),
        "version": CategoricalDistribution((3,)),
    }
    assert list(space_to_distributions(mixed)) == list(mixed)


def test_a_dictionary_and_an_encoder_are_spaces():
    space = {"a": (0.0, 1.0), "b": ["x", "y"]}
    wanted = {"a": FloatDistribution(0.0, 1.0), "b": CategoricalDistribution(("x", "y"))}
    assert space_to_distributions(space) == space_to_distributions(Encoder(space)) == wanted


def test_priors_on_parameters_keep_their_bounds():
    space = ConfigurationSpace()
    space.add(
        BetaFloatHyperparameter("a", alpha=2, beta=3, lower=-1.0, upper=4.0),
        NormalIntegerHyperparameter("b", mu=5, sigma=2, lower=1, upper=9),
    )
    assert space_to_distributions(space) == {"a": FloatDistribution(-1.0, 4.0), "b": IntDistribution(1, 9)}


def test_choices_are_plain_python_objects():
    space = ConfigurationSpace()
    space.add(Categorical("n", list(np.array([1, 2, 4]))), Categorical("word", list(np.array(["a", "b"]))))
    choices = [c for d in space_to_distributions(space).values() for c in d.choices]
    assert [type(c) for c in choices] == [int, int, int, str, str]


def test_an_empty_space_and_an_unstorable_choice_are_named():
    with pytest.raises(SpaceError, match="empty"):
        space_to_distributions(ConfigurationSpace())
    space = ConfigurationSpace()
    space.add(Categorical("layers", [(64, 64), (128,)]))
    with pytest.raises(SpaceError, match=r"'layers' has the choice \(64, 64\), .* use strings or numbers"):
        space_to_distributions(space)


def test_params_are_contained_and_come_back(mixed):
    distributions = space_to_distributions(mixed)
    for config in Encoder(mixed).sobol(64, 0):
        params = to_params(config)
        assert all(distributions[k]._contains(distributions[k].to_internal_repr(v)) for k, v in params.items())
        assert {type(value) for value in params.values()} <= {bool, int, float, str}
        assert ("degree" in params) == (params["kernel"] == "poly")
        assert to_params(to_configuration(mixed, params)) == pytest.approx(params)
        assert set(active_names(mixed, params)) == set(params)


def test_bounds_with_more_digits_than_configspace_keeps_are_respected():
    low = 0.12345678949
    high = 0.98765432151
    space = ConfigurationSpace({"x": (low, high)})
    for u in (0.0, 1.0):
        config = Encoder(space).decode(Encoder(space).resolve(np.array([[u]]))[0])[0]
        assert low <= to_params(config)["x"] <= high


def test_trials_that_are_no_configurations_give_none(mixed):
    whole = {"kernel": "rbf", "rate": 0.1, "size": "s", "flag": True}
    assert dict(to_configuration(mixed, whole))["version"] == 3  # a constant need not have been suggested
    assert to_configuration(mixed, {**whole, "degree": 2, "other": 1}) is not None  # inactive and unknown: left out
    assert to_configuration(mixed, {**whole, "rate": 7.0}) is None
    assert to_configuration(mixed, {**whole, "kernel": "poly"}) is None  # degree is missing
    assert to_configuration(mixed, {**whole, "size": "l", "flag": False}) is None  # forbidden


def test_small_values_keep_the_digits_that_configspace_rounds():
    space = ConfigurationSpace(seed=1)
    space.add(Float("x", (1e-11, 1e-6), log=True))
    for config in space.sample_configuration(8):
        exact = float(space["x"].to_value(config.get_array()[0]))
        assert config["x"] != exact == to_params(config)["x"]


@pytest.mark.parametrize("value", [0.0, 5.0, 1.1])
def test_values_outside_a_grid_or_between_its_points_give_none(value):
    space = to_space({"s": FloatDistribution(0.5, 1.5, step=0.25)})
    assert to_configuration(space, {"s": 1.25}) is not None and to_configuration(space, {"s": value}) is None
