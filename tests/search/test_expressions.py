"""Moves between expressions of kernels, and the grammar's prior."""

from __future__ import annotations

import itertools
from collections import Counter
from math import comb, log

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float
from testing_kernels import graphs_only_space
from testing_spaces import mixed_space, plain_space

from slayr_py.errors import DataError
from slayr_py.kernels import Composite
from slayr_py.kernels.expressions import Leaf, Product, Sum, canonical, leaves, parse, spell
from slayr_py.search.expressions import P_LEAF, base_leaves, expansions, log_prior, sample_expression
from slayr_py.space import Encoder

NAMES = ("SE", "RQ", "PER", "LIN")
BASE = tuple(map(Leaf, NAMES))


def texts(nodes):
    return [spell(node) for node in nodes]


def categories() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Categorical("act", ["relu", "tanh"]), Categorical("norm", ["none", "batch"]))
    return space


def odd_names() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(Float("a,b", (0, 1)), Float(' "q" ', (0, 1)), Float("c[0]", (0, 1)), Categorical("k(", ["u", "v"]))
    return space


def test_base_kernels_of_one_parameter():
    encoder = Encoder(ConfigurationSpace({"x": (0.0, 1.0)}))
    assert texts(base_leaves(encoder, NAMES)) == list(NAMES)


def test_base_kernels_of_several_parameters():
    encoder = Encoder(plain_space())
    assert texts(base_leaves(encoder, ["SE", "LIN", "C"], given=["PRE"])) == [
        *("SE", "LIN", "C", "PRE"),
        *("SE[x]", "LIN[x]", "SE[z]", "LIN[z]"),
    ]


def test_periodic_and_linear_base_kernels_leave_out_categorical_parameters():
    found = texts(base_leaves(Encoder(mixed_space()), NAMES))
    assert [text for text in found if "," in text] == ["PER[layers,lr,size,units]", "LIN[layers,lr,size,units]"]
    assert {"SE", "RQ", "SE[act]", "PER[size]", "LIN[lr]"} <= set(found)
    assert not {"PER", "LIN", "PER[act]", "LIN[act]"} & set(found)


def test_a_single_parameter_beside_categorical_ones_is_named_once():
    space = ConfigurationSpace()
    space.add(Float("x", (0, 1)), Categorical("act", ["relu", "tanh"]))
    assert texts(base_leaves(Encoder(space), ["PER"])) == ["PER[x]"]


@pytest.mark.parametrize("space", [plain_space, mixed_space, graphs_only_space, categories, odd_names])
def test_base_kernels_are_legal(space):
    encoder = Encoder(space())
    base = base_leaves(encoder, [*NAMES, "MAT12", "MAT32", "MAT52", "C"])
    assert len(set(base)) == len(base)
    for leaf in base:
        kernel = Composite(spell(leaf))
        assert kernel.node == leaf == canonical(leaf)
        kernel.check_encoder(encoder)


def test_without_a_base_kernel_there_is_nothing_to_search():
    with pytest.raises(DataError, match="no base kernel: PER, LIN, and all parameters are categorical"):
        base_leaves(Encoder(categories()), ["PER", "LIN"])
    with pytest.raises(DataError, match="no base kernel; name one or more"):
        base_leaves(Encoder(plain_space()), [])
    with pytest.raises(DataError, match="unknown base kernel 'PERI'; did you mean 'PER'"):
        base_leaves(Encoder(plain_space()), ["PERI"])


def test_moves_of_a_sum():
    found = set(texts(expansions(parse("LIN * PER + SE"), [Leaf("RQ")])))
    assert found == {
        # a term added
        "LIN * PER + RQ + SE",
        "(LIN + RQ) * PER + SE",
        "LIN * (PER + RQ) + SE",
        # a factor
        "(LIN * PER + SE) * RQ",
        "LIN * PER * RQ + SE",
        "LIN * PER + RQ * SE",
        # a factor with a constant
        "(C + RQ) * (LIN * PER + SE)",
        "(C + RQ) * LIN * PER + SE",
        "(C + RQ) * SE + LIN * PER",
        # another leaf
        "PER * RQ + SE",
        "LIN * RQ + SE",
        "LIN * PER + RQ",
        # a leaf deleted
        "PER + SE",
        "LIN + SE",
        "LIN * PER",
    }


def test_nothing_is_added_to_a_linear_factor_which_contains_a_constant():
    assert not any("C" in text for text in texts(expansions(parse("SE + PER"), [Leaf("LIN")])))


def test_moves_obey_their_laws():
    space = odd_names()
    base = base_leaves(Encoder(space), NAMES, given=["PRE"])
    known = {*base, Leaf("C")}
    for seed in range(40):
        node = sample_expression(np.random.default_rng(seed), base, 5)
        found = expansions(node, base, 5)
        assert found == expansions(node, base, 5)
        assert len(set(found)) == len(found)
        assert node not in found
        for near in found:
            assert near == canonical(near) == parse(spell(near), ["PRE"])
            assert len(leaves(near)) <= 5
            assert set(leaves(near)) <= known


def test_an_expression_in_any_form_has_the_neighbours_of_its_canonical_form():
    assert expansions(parse("SE + PER * LIN"), BASE) == expansions(parse("LIN * PER + SE"), BASE)


def test_kernels_of_all_parameters_come_first_in_each_kind_of_move():
    base = base_leaves(Encoder(plain_space()), ["SE", "RQ"])
    added = [text for text in texts(expansions(parse("PER + PER"), base)) if text.count("+") == 2 and "*" not in text]
    assert added == [f"PER + PER + {leaf}" for leaf in ("SE", "RQ", "SE[x]", "RQ[x]", "SE[z]", "RQ[z]")]


def all_expressions(base, size):
    """Canonical forms of all binary trees with a number of leaves."""
    if size == 1:
        return set(base)
    parts = {(a, b) for k in range(1, size) for a in all_expressions(base, k) for b in all_expressions(base, size - k)}
    return {canonical(join(pair)) for pair in parts for join in (Sum, Product)}


def test_moves_reach_every_expression_of_up_to_three_leaves():
    base = (Leaf("SE"), Leaf("PER"), Leaf("LIN", ("x",)))
    reached = set(base)
    new = set(base)
    while new:
        new = {near for node in new for near in expansions(node, base, 3)} - reached
        reached |= new
    every = set(itertools.chain.from_iterable(all_expressions(base, size) for size in (1, 2, 3)))
    assert every <= reached


def test_frequencies_of_the_prior():
    base = (Leaf("RQ"), Leaf("PER"))
    draws = 4000
    limit = 8
    rng = np.random.default_rng(3)
    found = [sample_expression(rng, base, limit) for _ in range(draws)]
    sizes = np.arange(1, limit + 1)
    trees = np.array([comb(2 * n - 2, n - 1) // n for n in sizes])
    wanted = trees * P_LEAF**sizes * (1 - P_LEAF) ** (sizes - 1)
    wanted /= wanted.sum()
    count = Counter(len(leaves(node)) for node in found)
    frequency = np.array([count[int(n)] for n in sizes]) / draws
    assert np.all(np.abs(frequency - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / draws))
    pairs = [node for node in found if len(leaves(node)) == 2]
    assert abs(np.mean([isinstance(node, Sum) for node in pairs]) - 0.5) < 4 * 0.5 / np.sqrt(len(pairs))
    singles = [node for node in found if isinstance(node, Leaf)]
    assert abs(np.mean([node == base[0] for node in singles]) - 0.5) < 4 * 0.5 / np.sqrt(len(singles))


def test_draws_of_the_prior_respect_the_limit_and_the_seed():
    def draw(limit):
        rng = np.random.default_rng(1)
        return [sample_expression(rng, BASE, limit) for _ in range(200)]

    assert set(draw(1)) <= set(BASE)
    assert max(len(leaves(node)) for node in draw(3)) == 3
    assert draw(4) == draw(4)
    assert all(node == canonical(node) for node in draw(6))


def test_the_prior_adds_up_to_one():
    n_base = 3
    total = 0.0
    for n in range(1, 300):
        trees = comb(2 * n - 2, n - 1) // n
        operators_and_leaves = n * np.log(n_base) + (n - 1) * np.log(2)
        chain = parse(" * ".join(["RQ"] * n))
        total += np.exp(log(trees) + operators_and_leaves + log_prior(chain, n_base))
    assert total == pytest.approx(1, abs=1e-6)
    assert log_prior(parse("SE + LIN * PER")) == log_prior(parse("SE * LIN * PER"))


def test_a_squared_exponential_factor_beside_a_wider_one_is_no_expansion():
    base = [Leaf("SE"), Leaf("SE", ("x",)), Leaf("RQ", ("x",))]
    texts = {spell(one) for one in expansions(parse("SE"), base)}
    assert "SE * SE[x]" not in texts
    assert {"RQ[x] * SE", "SE + SE[x]"} <= texts
    texts = {spell(one) for one in expansions(parse("SE[x,z]"), base)}
    assert "SE[x,z] * SE[x]" not in texts
    deeper = {spell(one) for one in expansions(parse("SE * (RQ + LIN)"), base)}
    assert "(LIN + RQ) * SE * SE[x]" not in deeper
