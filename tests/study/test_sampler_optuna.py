"""Run the tests that Optuna ships for samplers of third parties.

All of them pass without a declared space, but for ``SingleOnlySamplerTestCase``: several objectives are supported. With
a declared space those remain that ask for it, without steps, which ConfigSpace does not have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    MultiObjectiveSamplerTestCase,
    RelativeSamplerTestCase,
)
from testing_studies import search_briefly

from slayr_py.acquisition.effort import Effort
from slayr_py.inference import GaussianProcess, Posterior
from slayr_py.inference.sampling import approximations
from slayr_py.study import StanGPSampler

# There are more suggestions than configurations, of an objective that is not declared noisy. Branches are not declared.
pytestmark = [
    pytest.mark.filterwarnings("ignore:trial .* repeats the configuration"),
    pytest.mark.filterwarnings("ignore:only some trials have"),
]


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search briefly, fit from one start, and fit the same observations once: there are hundreds of suggestions."""
    fits: dict[str, Posterior] = {}
    fit = GaussianProcess.fit

    def fit_once(gp: GaussianProcess, configs: Any, y: Any, **options: Any) -> Posterior:
        key = repr((id(gp), configs, y))
        if key not in fits:
            fits[key] = fit(gp, configs, y, **options)
        return fits[key]

    effort = Effort(candidates=64, screens=((1, 8),), climbs=(1, 1), finals=(1, 1), draws=1)
    monkeypatch.setattr(GaussianProcess, "fit", fit_once)
    all_starts = approximations._cold_starts
    monkeypatch.setattr(approximations, "_cold_starts", lambda job: all_starts(job)[:1])
    search_briefly(monkeypatch, effort)


def declare(distributions: dict[str, BaseDistribution]) -> ConfigurationSpace:
    space = ConfigurationSpace()
    for name, distribution in distributions.items():
        if isinstance(distribution, FloatDistribution):
            space.add(Float(name, (distribution.low, distribution.high), log=distribution.log))
        elif isinstance(distribution, IntDistribution):
            space.add(Integer(name, (distribution.low, distribution.high), log=distribution.log))
        else:
            space.add(Categorical(name, list(distribution.choices)))
    return space


def fewer(test: Callable[..., None], steps: bool = True, **chosen: slice) -> Callable[..., None]:
    """Return a test of Optuna with chosen distributions, of all or of those without a step."""

    @functools.wraps(test)
    def shorter(*args: Any, **options: Any) -> None:
        test(*args, **options)

    shorter.pytestmark = [  # type: ignore[attr-defined]
        pytest.mark.parametrize(
            mark.args[0],
            [value for value in mark.args[1] if steps or getattr(value, "step", None) in (None, 1)][
                chosen.get(mark.args[0], slice(None))
            ],
        ).mark
        for mark in test.pytestmark  # type: ignore[attr-defined]
    ]
    return shorter


class TestBasic(BasicSamplerTestCase):
    @pytest.fixture
    def sampler(self, quick) -> Callable[[], BaseSampler]:
        return lambda: StanGPSampler(n_initial=2, seed=0, **quick)

    # The sampler suggests all parameters alike, one after the other: each kind of x beside one of y.
    test_combination_of_different_distributions_objective = fewer(
        BasicSamplerTestCase.test_combination_of_different_distributions_objective, suggest_method_y=slice(1)
    )
    test_dynamic_range_objective = fewer(
        BasicSamplerTestCase.test_dynamic_range_objective, **{"second_low,second_high": slice(1)}
    )


class TestRelative(RelativeSamplerTestCase):
    @pytest.fixture
    def sampler(self, quick) -> Callable[[], BaseSampler]:
        return lambda: StanGPSampler(n_initial=1, seed=0, **quick)

    test_sample_relative_numerical = fewer(
        RelativeSamplerTestCase.test_sample_relative_numerical, y_distribution=slice(1)
    )
    # A float with a step and an integer; the others are above.
    test_sample_relative_mixed = fewer(RelativeSamplerTestCase.test_sample_relative_mixed, x_distribution=slice(2, 4))


class TestMultiObjective(MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self, quick) -> Callable[[], BaseSampler]:
        return lambda: StanGPSampler(n_initial=2, seed=0, **quick)


class TestBasicDeclared(BasicSamplerTestCase):
    """Tests that ask for what is declared. The others ask for parameters with ranges that change, which raises."""

    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest, quick) -> Callable[[], BaseSampler]:
        spaces: dict[str, dict[str, Any]] = {
            "test_nan_objective_value": {"x": (0.1, 0.2)},
            "test_partial_fixed_sampling": {"x": (-1.0, 1.0), "y": (-1, 1), "z": (-1.0, 1.0)},
            "test_conditional_parameter_objective": {"x": [True, False], "y": (0.0, 1.0), "z": (0.0, 1.0)},
            "test_sample_single_distribution": {"other": (0.0, 1.0)},
        }
        space = ConfigurationSpace(spaces[request.node.originalname])
        if request.node.originalname == "test_conditional_parameter_objective":
            space.add(EqualsCondition(space["y"], space["x"], True), EqualsCondition(space["z"], space["x"], False))
        return lambda: StanGPSampler(space, n_initial=4, **quick)

    test_float = test_int = test_categorical = test_conditional_sample_independent = None
    test_single_parameter_objective = test_combination_of_different_distributions_objective = None
    test_dynamic_range_objective = None


class TestRelativeDeclared(RelativeSamplerTestCase):
    """The very parameters a test asks for are declared, and modelled from the second trial on."""

    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest, quick) -> Callable[[], BaseSampler]:
        asked = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        distributions = {name: asked.get(f"{name}_distribution") for name in ("x", "y")}
        space = ConfigurationSpace({"x": (-10.0, 10.0), "y": (-10.0, 10.0)})
        if request.node.originalname == "test_sample_relative_categorical":
            space = ConfigurationSpace({"x": [1, 10, 100], "y": [-1, -10, -100]})
        elif request.node.originalname == "test_sample_relative_mixed":
            space = declare({"x": distributions["x"]})
            space.add(Categorical("y", [-1, -10, -100]))
        elif None not in distributions.values():
            space = declare(distributions)
        return lambda: StanGPSampler(space, n_initial=1, seed=0, **quick)

    test_sample_relative_numerical = fewer(
        RelativeSamplerTestCase.test_sample_relative_numerical, steps=False, y_distribution=slice(1)
    )
    # A float and an integer; those on a logarithmic scale are above.
    test_sample_relative_mixed = fewer(
        RelativeSamplerTestCase.test_sample_relative_mixed, steps=False, x_distribution=slice(None, None, 2)
    )
