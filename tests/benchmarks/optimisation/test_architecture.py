"""The space, graphs, schedule and FLOPs of the search for architectures, regularised evolution, and its table."""

from __future__ import annotations

from math import exp, prod
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import Configuration, ConfigurationSpace

import slayr_py as sl
from benchmarks.common.problems import PROBLEMS, Problem
from benchmarks.optimisation import architecture
from benchmarks.optimisation.evolution import Evolution
from benchmarks.optimisation.peers import initial_design, peer
from benchmarks.optimisation.runs import read_trials
from examples import architecture_search as example

CHAIN = {
    **{"inputs2": "(0, 1)", "inputs3": "(1, 2)", "inputs4": "(2, 3)", "output": 3},
    **{f"op{state}{side}": "identity" for state in (1, 2, 3, 4) for side in "ab"},
}


@pytest.fixture(scope="module")
def encoder():
    return sl.space.Encoder(example.make_space(), example.make_graphs())


def test_the_space_has_as_many_architectures_as_the_paper(encoder):
    assert prod(len(d.levels) for d in encoder.dimensions if d.levels) == 8_153_726_976
    ranges = {d.name: (d.lower, d.upper, d.log) for d in encoder.dimensions if d.is_real}
    assert ranges == {
        "learning_rate": (1e-3, 1e-1, True),
        "momentum": (0.8, 1.0, False),
        "weight_decay": (1e-6, 1e-2, True),
        **dict.fromkeys(("first_point", "second_point"), (0.0, 1.0, False)),
        "reduction": (0.1, 0.9, False),
    }


def test_graphs_of_inputs_are_those_of_the_paper(encoder):
    assert set(encoder.graphs["inputs2"].edges) == {("(-1, 0)", "(-1, 1)"), ("(-1, 1)", "(0, 1)")}
    third = encoder.graphs["inputs3"]
    assert third.has_edge("(-1, 0)", "(-1, 1)") and not third.has_edge("(-1, 0)", "(-1, 2)")
    edges = {name: graph.number_of_edges() for name, graph in encoder.graphs.items()}
    assert edges == {"inputs2": 2, "inputs3": 6, "inputs4": 11, "output": 2} | {
        f"op{state}{side}": 28 for state in (1, 2, 3, 4) for side in "ab"
    }
    assert "(-1, 0)" not in encoder.graphs["inputs4"] and len(encoder.graphs["inputs4"]) == 9


def test_the_learning_rate_is_reduced_twice():
    config = {"learning_rate": 0.1, "reduction": 0.5, "first_point": 0.4, "second_point": 0.5}
    rates = [example.learning_rate(config, epoch, 10) for epoch in range(1, 11)]
    assert rates == [0.1] * 4 + [0.05] * 3 + [0.025] * 3
    at_once = config | {"first_point": 0.0, "second_point": 0.0}
    assert [example.learning_rate(at_once, epoch, 3) for epoch in (1, 2, 3)] == [0.025] * 3


def test_flops_are_counted_by_hand():
    stem_and_linear = 2 * 8 * 64 * 9 + 2 * 16 * 10
    pixels = 64 + 16 + 4
    sums = 4 * 8 * pixels
    assert example.flops(example.architecture_of(CHAIN)) == stem_and_linear + sums
    added = {
        **{"conv1": 2 * 64, "conv3": 2 * 64 * 9, "conv5": 2 * 64 * 25},
        **{"separable3": 2 * (8 * 9 + 64), "separable5": 2 * (8 * 25 + 64)},
        **{"maxpool3": 8 * 8, "maxpool5": 8 * 24, "identity": 0},
    }
    assert set(added) == set(example.OPERATIONS)
    for name, per_pixel in added.items():
        found = example.architecture_of(CHAIN | {"op2b": name})
        assert example.flops(found) == stem_and_linear + sums + per_pixel * pixels
    largest = CHAIN | {name: "conv5" for name in CHAIN if name.startswith("op")}
    assert example.largest_flops() == example.flops(example.architecture_of(largest)) == 2_162_624


def test_states_without_effect_are_not_counted():
    unused = CHAIN | {"inputs4": "(-1, 1)", "output": 1, "op2a": "conv5", "op3b": "conv5"}
    architecture_without = example.architecture_of(unused)
    assert architecture_without.used == [1, 4] and architecture_without.inputs[4] == (-1, 1)
    assert example.flops(architecture_without) < example.flops(example.architecture_of(CHAIN))
    assert example.architecture_of(CHAIN | {"inputs4": "(0, 3)", "inputs3": "(-1, 0)"}).used == [3, 4]


def test_the_study_minimises_the_logarithm(encoder):
    objective = example.make_objective(lambda config: 0.25)
    largest = CHAIN | {name: "conv5" for name in CHAIN if name.startswith("op")}
    assert exp(objective(largest)) == pytest.approx(0.27)


def test_evolution_mutates_one_number_and_one_level(encoder):
    space = example.make_space()
    problem = Problem(space, lambda config: config["momentum"], float("nan"))
    optimiser = Evolution(problem, 3)
    asked = []
    for _ in range(60):
        asked.append(optimiser.ask())
        optimiser.tell(asked[-1], problem.objective(asked[-1]))
    real = set(encoder.real_names)
    for number, child in enumerate(asked[50:], start=50):
        changes = [{name for name in space if child[name] != parent[name]} for parent in asked[number - 50 : number]]
        (changed,) = [names for names in changes if len(names) == 2]
        assert len(changed & real) == 1
    values = [config["momentum"] for config in asked]
    assert np.mean(values[50:]) < np.mean(values[:50]) - 0.02  # children of the best of fifteen


def test_evolution_takes_other_spaces():
    for space in (PROBLEMS["branin"].space, ConfigurationSpace({"a": ["x", "y"]})):
        optimiser = Evolution(Problem(space, lambda config: 0.0, 0.0), 0)
        for _ in range(52):
            asked = optimiser.ask()
            Configuration(space, values=asked)  # raises an error for illegal values
            optimiser.tell(asked, 0.0)


def test_slayr_is_given_the_graphs():
    problem = Problem(example.make_space(), lambda config: 0.0, float("nan"), graphs=example.make_graphs())
    own = peer("slayr").start(problem, 0).study.sampler.strategy.encoder
    assert own.matches(sl.space.Encoder(problem.space, problem.graphs))
    assert len(initial_design(problem.space, 0)) == 10


def test_the_page_of_the_sources_has_the_stored_results():
    top = Path(__file__).resolve().parents[3]
    page = (top / "docs" / "sources.md").read_text(encoding="utf-8")
    trials = read_trials(top / "benchmarks" / "optimisation" / "results", architecture.SAMPLERS, "architecture")
    assert architecture.table(trials, architecture.SAMPLERS) in page, "copy the table of architecture --report"
