"""Lists of rows among the constraints on inputs: draws, designs, the nearest rows, and messages."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from slayr_py import SpaceError
from slayr_py.acquisition import enumeration
from slayr_py.acquisition.neighbourhood import Neighbourhood
from slayr_py.space import Encoder, encoder_from_json, encoder_to_json
from slayr_py.space.within import rows

STOCK = pd.DataFrame(
    {
        "mass": [120.5, 123456.789012, 300.25, 300.25, 99.9, 120.5],
        "ring": ["a", "b", "b", "c", "a", "a"],
        "n": [1, 40, 7, 7, 12, 1],
    }
)  # the last row repeats the first


def space(*more: object) -> ConfigurationSpace:
    found = ConfigurationSpace({"mass": (50.0, 2e5), "ring": ["a", "b", "c"], "n": (1, 50), "t": (0.0, 1.0)})
    found.add(*more)
    return found


def rows_of(configs) -> set[tuple[object, ...]]:
    return {(config["mass"], config["ring"], config["n"]) for config in configs}


POSSIBLE = set(STOCK.itertuples(index=False, name=None))


def test_draws_and_designs_have_all_rows_and_no_other():
    encoder = Encoder(space(), within=STOCK)
    encoded, allowed = encoder.resolve(encoder.uniform(200, np.random.default_rng(1)))
    assert allowed.all()
    assert rows_of(encoder.decode(encoded)) == POSSIBLE
    assert encoder.inside(encoded).all()
    design = encoder.sobol(5, 1)
    assert rows_of(design) <= POSSIBLE
    assert len(rows_of(design)) >= 3
    assert np.ptp([config["t"] for config in design]) > 0.3


@pytest.mark.parametrize("logarithmic", [(), ("mass",)])
def test_a_configuration_gets_the_nearest_row_with_its_exact_numbers(logarithmic):
    encoder = Encoder(space(), within=[STOCK]).rescaled(logarithmic)
    rng = np.random.default_rng(2)
    genotypes = encoder.unconstrained.uniform(100, rng)
    found = encoder.decode(encoder.resolve(genotypes)[0])
    assert rows_of(found) <= POSSIBLE
    table = encoder.encode(STOCK.assign(t=0.0))
    for genotype, config in zip(genotypes, found, strict=True):
        away = np.abs(table.unit_values - genotype)
        away[:, 2] = away[:, 2] > 0.5  # another level
        squares = np.sum(away[:, [0, 1, 2]] ** 2, axis=1)
        chosen = (STOCK == pd.Series({name: config[name] for name in STOCK})).all(axis=1)
        assert squares[chosen].min() == pytest.approx(squares.min())


def test_fixed_values_leave_the_rows_that_have_them():
    encoder = Encoder(space(), within=STOCK)
    fixed = encoder.fix({"n": 7, "t": 0.25})
    encoded, allowed = encoder.resolve(encoder.uniform(50, np.random.default_rng(1), fixed), fixed)
    assert allowed.all()
    assert rows_of(encoder.decode(encoded)) == {(300.25, "b", 7), (300.25, "c", 7)}
    anywhere, allowed = encoder.resolve(encoder.unconstrained.uniform(50, np.random.default_rng(1)), fixed)
    assert allowed.all()
    assert rows_of(encoder.decode(anywhere)) == {(300.25, "b", 7), (300.25, "c", 7)}
    with pytest.raises(SpaceError, match="no row of a table in within= has the values {'n': 7, 'ring': 'a'}; leave"):
        encoder.fix({"n": 7, "ring": "a"})


def test_comparisons_hold_beside_a_list_and_move_only_other_parameters():
    encoder = Encoder(space(), within=[STOCK, "mass <= 400", "0.01*n + t <= 0.3"])
    encoded, allowed = encoder.resolve(encoder.uniform(100, np.random.default_rng(1)))
    configs = encoder.decode(encoded[allowed])
    assert rows_of(configs) == {row for row in POSSIBLE if row[0] <= 400}
    assert all(0.01 * config["n"] + config["t"] <= 0.3 + 1e-9 for config in configs)
    assert len({config["t"] for config in configs}) == len(configs)
    with pytest.raises(SpaceError, match="'mass <= 60' with mass from 99.9 to 123456.789012 in the table; loosen"):
        Encoder(space(), within=[STOCK, "mass <= 60"])


def test_rows_of_two_lists_are_combined_and_enumerated():
    small = ConfigurationSpace({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0), "n": (1, 3)})
    pairs = pd.DataFrame({"a": [0.1, 0.2], "c": [0.9, 0.3]})
    encoder = Encoder(small, within=[pairs, pd.DataFrame({"b": [0.5, 0.6, 0.7]})])
    everything = encoder.decode(encoder.resolve(enumeration(encoder))[0])
    expected = {(a, b, c, n) for a, c in [(0.1, 0.9), (0.2, 0.3)] for b in (0.5, 0.6, 0.7) for n in (1, 2, 3)}
    assert {tuple(config[name] for name in "abcn") for config in everything} == expected
    assert len(everything) == len(expected)
    some = encoder.decode(encoder.resolve(enumeration(encoder, fixed := encoder.fix({"a": 0.2, "n": 2})), fixed)[0])
    assert {tuple(config[name] for name in "abcn") for config in some} == {(0.2, b, 0.3, 2) for b in (0.5, 0.6, 0.7)}


def test_a_step_goes_to_other_rows_as_a_whole():
    encoder = Encoder(space(), within=STOCK)
    start = encoder.encode([{"mass": 300.25, "ring": "b", "n": 7, "t": 0.4}])
    owners, neighbours = Neighbourhood(encoder).of(start.unit_values, np.array([[True, True, True, False]]))
    configs = encoder.decode(encoder.resolve(neighbours)[0])
    assert owners.tolist() == [0] * 4
    assert rows_of(configs) == POSSIBLE - {(300.25, "b", 7)}
    assert {config["t"] for config in configs} == {0.4}


def test_configurations_from_elsewhere_have_a_row_up_to_rounding():
    encoder = Encoder(space(), within=STOCK)
    configs = [
        {"mass": 120.5, "ring": "a", "n": 1, "t": 0.5},
        {"mass": 121.0, "ring": "a", "n": 1, "t": 0.5},
        {"mass": 120.5, "ring": "b", "n": 1, "t": 0.5},
        {"mass": 40000.0, "ring": "a", "n": 1, "t": 0.5},
    ]
    encoded = encoder.encode(configs)
    assert encoder.inside(encoded).tolist() == [True, False, False, False]
    assert encoder.inside(encoded, recorded=True).tolist() == [True, True, False, False]
    assert encoder.broken(encoded)[2] == "'one of 6 rows of mass, ring, n' is violated"


def test_an_encoder_with_a_list_is_stored_as_json():
    encoder = Encoder(space(), within=["t <= 0.5", STOCK])
    again = encoder_from_json(json.loads(json.dumps(encoder_to_json(encoder))))
    assert again.within == encoder.within
    design = again.sobol(4, 3)
    assert design == encoder.sobol(4, 3)
    assert rows_of(design) <= POSSIBLE


def test_a_list_of_rows_that_are_too_many_to_enumerate_is_searched(monkeypatch):
    grid = pd.DataFrame({"a": np.linspace(0, 1, 12_000).round(6), "b": np.linspace(1, 0, 12_000).round(6)})
    encoder = Encoder({"a": (0.0, 1.0), "b": (0.0, 1.0)}, within=grid)
    assert enumeration(encoder) is None
    encoded, allowed = encoder.resolve(encoder.uniform(100, np.random.default_rng(1)))
    assert allowed.all()
    assert np.allclose(encoded.unit_values.sum(axis=1), 1, atol=1e-5)
    monkeypatch.setattr(rows, "MOST_ROWS", 11_999)
    with pytest.raises(SpaceError, match="12000 rows and 2 columns; give at least one, and at most 11999 rows"):
        Encoder({"a": (0.0, 1.0), "b": (0.0, 1.0)}, within=grid)


def branching() -> ConfigurationSpace:
    kind, depth = Categorical("kind", ["u", "v"]), Float("depth", (0.0, 1.0))
    found = space(kind, depth)
    found.add(EqualsCondition(depth, kind, "u"))
    return found


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (STOCK[:0], "a table in within= has 0 rows and 3 columns; give at least one"),
        (
            STOCK.assign(masss=1.0),
            "has the column 'masss', which is not a parameter; leave it out; did you mean 'mass'",
        ),
        (STOCK.assign(depth=0.5), "has the column 'depth', which is constant or conditional; leave it out"),
        (STOCK.assign(mass=1.0), "row 0 of a table in within=: parameter 'mass' is 1.0; give a number from 50.0"),
        (
            STOCK.set_index(STOCK.index + 2).assign(ring="d"),
            "row 2 of a table in within=: parameter 'ring' has no level",
        ),
        (STOCK.assign(n=[1, 2, None, 4, 5, 6]), "has no value of 'n' in row 2; leave the row out, or the column"),
        ([STOCK, STOCK[["n"]]], "two tables in within= have the column 'n'; join them"),
    ],
)
def test_a_table_that_cannot_be_a_list_is_an_error(table, message):
    with pytest.raises(SpaceError, match=message):
        Encoder(branching(), within=table)


def test_a_level_of_a_list_may_have_conditional_parameters():
    table = pd.DataFrame({"mass": [100.0, 200.0], "kind": ["u", "v"]})
    encoder = Encoder(branching(), within=table)
    configs = encoder.decode(encoder.resolve(encoder.uniform(40, np.random.default_rng(1)))[0])
    assert {(config["mass"], config["kind"], "depth" in config) for config in configs} == {
        (100.0, "u", True),
        (200.0, "v", False),
    }


def test_integers_of_a_list_are_not_exchanged_alone():
    whole = ConfigurationSpace()
    whole.add(Integer("a", (0, 4)), Integer("b", (0, 4)), Integer("c", (0, 4)))
    encoder = Encoder(whole, within=["a + b == 4", pd.DataFrame({"a": [0, 2, 3], "c": [1, 2, 4]})])
    encoded, allowed = encoder.resolve(encoder.uniform(60, np.random.default_rng(3)))
    assert allowed.any()
    found = {(config["a"], config["b"], config["c"]) for config in encoder.decode(encoded[allowed])}
    assert found == {(0, 4, 1), (2, 2, 2), (3, 1, 4)}
