"""Whole loops on mixed and conditional spaces, through public names, with fits that are quick rather than good."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Float,
    ForbiddenEqualsClause,
    ForbiddenGreaterThanRelation,
    ForbiddenLessThanRelation,
)
from testing_spaces import conditional_space, mixed_space

import slayr_py as sl
from slayr_py.study.storage.attributes import STUDY_KEY, SUGGESTION_KEY

pytestmark = pytest.mark.stan

TINY: dict[str, Any] = {"method": "map", "progress": False}


def loss(config: Mapping[str, Any]) -> float:
    numbers = [math.log(abs(value) + 1e-4) for value in config.values() if not isinstance(value, str)]
    words = [len(value) for value in config.values() if isinstance(value, str)]
    return (sum(numbers) - 1.0) ** 2 + 0.1 * sum(words)


@pytest.mark.parametrize(
    ("make", "kernel", "reason"),
    [
        (mixed_space, "fm", "the space has categorical parameters and no conditions"),
        (conditional_space, "hierarchical", "the space has conditions"),
    ],
)
def test_every_configuration_is_valid_none_is_repeated_and_a_resumed_study_is_the_same(make, kernel, reason, tmp_path):
    def run(name: str, *budgets: int) -> sl.Result:
        url = f"sqlite:///{tmp_path / name}.db"
        for budget in budgets:
            result = sl.minimize(loss, make(), budget=budget, n_initial=4, seed=3, storage=url, study_name="s", **TINY)
        return result

    whole = run("whole", 5)
    encoder = sl.space.Encoder(whole.space)
    for trial in whole.study.trials:
        encoder.configuration(trial.params).check_valid_configuration()
    assert len({repr(sorted(trial.params.items())) for trial in whole.study.trials}) == 5
    suggestions = [trial.user_attrs[SUGGESTION_KEY] for trial in whole.study.trials]
    assert [suggestion["phase"] for suggestion in suggestions] == ["initial"] * 4 + ["model"]
    assert {suggestion["kernel"] for suggestion in suggestions[4:]} == {kernel}
    recorded = whole.study.user_attrs[STUDY_KEY]["kernel"]
    assert recorded["name"] == kernel and recorded["chosen"] == "auto" and recorded["reason"] == reason
    assert f"kernel={whole.study.sampler.strategy.surrogate.kernel!r}" in repr(whole)
    assert run("parts", 3, 4, 5).trials.equals(whole.trials)


def test_a_space_in_which_everything_is_forbidden_is_reported_before_anything_is_evaluated():
    space = ConfigurationSpace()
    k = Categorical("k", ["a", "b"])
    x = Float("x", (0.0, 1.0))
    y = Float("y", (0.0, 1.0))
    space.add(k, x, y)
    # ConfigSpace wants its default to stay legal, so the diagonal is: no design ever meets it.
    space.add(ForbiddenEqualsClause(k, "b"), ForbiddenLessThanRelation(x, y), ForbiddenGreaterThanRelation(x, y))
    calls: list[Mapping[str, Any]] = []
    with pytest.raises(sl.SpaceError, match="forbid"):
        sl.minimize(lambda config: calls.append(config) or 1.0, space, budget=4, n_initial=2, seed=1, **TINY)
    assert calls == []
