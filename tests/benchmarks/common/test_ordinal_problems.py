from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, EqualsCondition, Float, OrdinalHyperparameter
from optuna.samplers import RandomSampler

from benchmarks.common.ordinal_problems import ORDINALS
from benchmarks.common.problems import PROBLEMS
from benchmarks.optimisation.peers import Optuna, initial_design
from slayr_py.space import Encoder


@pytest.mark.parametrize("name", ORDINALS)
def test_every_ordinal_has_an_effect(name):
    problem = ORDINALS[name]
    ordinals = [p for p in problem.space.values() if isinstance(p, OrdinalHyperparameter)]
    configs = [dict(config) for config in Encoder(problem.space).sobol(16, 1)]
    assert ordinals
    for parameter in ordinals:
        ends = ({parameter.name: parameter.sequence[0]}, {parameter.name: parameter.sequence[-1]})
        assert any(len({problem.objective(config | end) for end in ends}) == 2 for config in configs)


def test_levels_of_a_function_are_its_numbers():
    problem = ORDINALS["hartmann6, 2 of 6, and 4 categories"]
    config = dict(Encoder(problem.space).sobol(1, 1)[0])
    assert problem.objective(config) == PROBLEMS["hartmann6"].objective(config)
    assert list(problem.space["x1"].sequence) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert sorted(problem.space["x5"].choices) == pytest.approx(np.linspace(0, 1, 4))


def test_a_peer_of_optuna_is_told_ranks_and_returns_levels():
    space = ORDINALS["process"].space
    peer = Optuna(RandomSampler(seed=1), space)
    for params in initial_design(space, 1):
        peer.tell(params, 1.0)
    suggested = peer.ask()
    assert suggested["feed"] in space["feed"].sequence
    peer.tell(suggested, 2.0)
    assert not peer.open
    assert isinstance(peer.study.trials[-1].params["feed"], int)
    assert peer.study.trials[0].params["feed"] == list(space["feed"].sequence).index(
        initial_design(space, 1)[0]["feed"]
    )


def test_a_peer_of_optuna_refuses_ordinals_with_conditions():
    space = ConfigurationSpace()
    space.add(OrdinalHyperparameter("size", [1, 2, 4]), Float("x", (0.0, 1.0)))
    space.add(EqualsCondition(space["x"], space["size"], 4))
    with pytest.raises(ValueError, match="size"):
        Optuna(RandomSampler(seed=1), space)
