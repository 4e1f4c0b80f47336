"""Conditions and forbidden clauses, compared with ConfigSpace one configuration at a time."""

from __future__ import annotations

import numpy as np
import pytest
from ConfigSpace import (
    AndConjunction,
    Categorical,
    Configuration,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    ForbiddenLessThanEqualsClause,
    GreaterThanCondition,
    InCondition,
    Integer,
    LessThanCondition,
    NotEqualsCondition,
    OrConjunction,
)
from ConfigSpace.exceptions import ForbiddenValueError
from testing_spaces import RULED_SPACES, SPACES

from slayr_py import SpaceError
from slayr_py.space import Encoded, Encoder

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=[*SPACES, *RULED_SPACES])
def ruled_space(request) -> ConfigurationSpace:
    return (SPACES | RULED_SPACES)[request.param]()


def is_valid(config: Configuration) -> bool:
    try:
        config.check_valid_configuration()
    except ValueError:
        return False
    return True


def sampled(space: ConfigurationSpace, n: int) -> list[Configuration]:
    """Sample configurations with ConfigSpace and keep the valid ones: it may sample invalid ones."""
    space.seed(1)
    return [config for config in space.sample_configuration(n) if is_valid(config)]


def test_decode_inverts_encode(ruled_space):
    encoder = Encoder(ruled_space)
    configs = sampled(ruled_space, 1500)
    encoded = encoder.encode(configs)
    assert list(map(dict, encoder.decode(encoded))) == list(map(dict, configs))
    assert len(configs) > 1000
    again = encoder.encode([dict(config) for config in encoder.decode(encoded)])
    assert np.array_equal(again.unit_values, encoded.unit_values) and np.array_equal(again.active, encoded.active)


def test_activity_agrees_with_configspace(ruled_space):
    encoder = Encoder(ruled_space)
    configs = sampled(ruled_space, 300) + encoder.sobol(300, 0)
    active = encoder.encode(configs).active
    for config, row in zip(configs, active, strict=True):
        named = {name for name, on in zip(encoder.names, row, strict=True) if on}
        assert named == ruled_space.get_active_hyperparameters(config) & set(encoder.names)


def test_resolve_allows_what_configspace_accepts(ruled_space):
    encoder = Encoder(ruled_space)
    genotype = encoder.from_uniform(np.random.default_rng(0).random((600, len(encoder.names))))
    encoded, allowed = encoder.resolve(genotype)
    accepted = []
    for config in encoder.decode(encoded):
        try:
            again = Configuration(ruled_space, values=dict(config))
        except ForbiddenValueError:
            accepted.append(False)
        else:
            accepted.append(True)
            assert dict(again) == dict(config) and np.array_equal(again.get_array(), config.get_array(), equal_nan=True)
    assert allowed.tolist() == accepted


def test_resolve_treats_rows_independently(ruled_space):
    encoder = Encoder(ruled_space)
    genotype = encoder.from_uniform(np.random.default_rng(1).random((200, len(encoder.names))))
    before = genotype.copy()
    encoded, allowed = encoder.resolve(genotype)
    assert np.array_equal(genotype, before)
    for i in range(0, 200, 20):
        alone, alone_allowed = encoder.resolve(genotype[[i]])
        assert np.array_equal(alone.unit_values, encoded.unit_values[[i]]) and np.array_equal(
            alone.active, encoded.active[[i]]
        )
        assert alone_allowed[0] == allowed[i]


def test_nothing_is_printed(capsys):
    encoder = Encoder(RULED_SPACES["forbidding"]())
    capsys.readouterr()  # ConfigSpace prints vectors when it compares with >=
    encoder.decode(encoder.encode(encoder.sobol(5, 0)))
    assert capsys.readouterr().out == ""


def test_a_space_in_a_space():
    inner = RULED_SPACES["nested"]()
    space = ConfigurationSpace([Categorical("model", ["none", "inner"], default="inner")])
    space.add_configuration_space("in", inner, parent_hyperparameter={"parent": space["model"], "value": "inner"})
    encoder = Encoder(space)
    assert encoder.ancestors["in:rate"] == ("model", "in:z_root", "in:drop")
    configs = sampled(space, 200)
    assert list(map(dict, encoder.decode(encoder.encode(configs)))) == list(map(dict, configs))


def conditioned(*conditions) -> ConfigurationSpace:
    """Make a space from conditions and the parameters that occur in them."""
    literals = [literal for condition in conditions for literal in getattr(condition, "dlcs", (condition,))]
    parameters = {p.name: p for literal in literals for p in (literal.child, literal.parent)}
    space = ConfigurationSpace(list(parameters.values()))
    space.add(*conditions)
    return space


CAT = Categorical("cat", ["a", "b"])
INT = Integer("int", (1, 4))
FLOAT = Float("float", (0.0, 1.0))
RANK = Categorical("rank", ["low", "high"], ordered=True)
CHILD = Float("child", (0.0, 1.0))
OTHER = Integer("other", (1, 3))
LONG = [Categorical(f"p{i}", list(range(8))) for i in range(9)]  # more combinations than can be tried


@pytest.mark.parametrize(
    "conditions",
    [
        [AndConjunction(EqualsCondition(CHILD, CAT, "a"), EqualsCondition(CHILD, CAT, "b"))],
        [AndConjunction(EqualsCondition(CHILD, CAT, "a"), NotEqualsCondition(CHILD, CAT, "a"))],
        [GreaterThanCondition(CHILD, INT, 4)],
        [LessThanCondition(CHILD, FLOAT, 0.0)],
        [LessThanCondition(CHILD, RANK, "low")],
        [AndConjunction(GreaterThanCondition(CHILD, INT, 2), LessThanCondition(CHILD, INT, 3))],
        [AndConjunction(GreaterThanCondition(CHILD, FLOAT, 0.5), LessThanCondition(CHILD, FLOAT, 0.5))],
        [NotEqualsCondition(CHILD, Constant("const", 1), 1)],
        [
            EqualsCondition(OTHER, CAT, "a"),
            AndConjunction(EqualsCondition(CHILD, OTHER, 2), EqualsCondition(CHILD, CAT, "b")),
        ],
        [
            *(InCondition(LONG[i], LONG[i - 1], [1, 2]) for i in range(1, 9)),
            AndConjunction(EqualsCondition(CHILD, LONG[8], 1), EqualsCondition(CHILD, LONG[8], 2)),
        ],
    ],
)
def test_a_parameter_that_can_never_be_active_is_refused(conditions):
    with pytest.raises(SpaceError, match="'child' is never active: .*child | .*cannot hold"):
        Encoder(conditioned(*conditions))


@pytest.mark.parametrize(
    "conditions",
    [
        [GreaterThanCondition(CHILD, FLOAT, 1 - 1e-12)],
        [AndConjunction(GreaterThanCondition(CHILD, FLOAT, 0.5), LessThanCondition(CHILD, FLOAT, 0.5 + 1e-12))],
        [EqualsCondition(CHILD, FLOAT, 0.123)],
        [EqualsCondition(CHILD, Integer("wide", (1, 10**9)), 123_456)],
        [AndConjunction(GreaterThanCondition(CHILD, INT, 2), LessThanCondition(CHILD, INT, 4))],
        [EqualsCondition(OTHER, CAT, "a"), NotEqualsCondition(CHILD, OTHER, 2)],
        [EqualsCondition(a, b, 3) for a, b in zip([*LONG[1:], CHILD], LONG, strict=True)],
    ],
)
def test_a_condition_that_rarely_holds_is_accepted(conditions):
    assert "child" in Encoder(conditioned(*conditions)).conditional


def test_conditions_that_configspace_confuses_are_refused():
    space = conditioned(
        AndConjunction(EqualsCondition(CHILD, CAT, "a"), EqualsCondition(CHILD, RANK, "low")),
        OrConjunction(EqualsCondition(OTHER, CAT, "a"), EqualsCondition(OTHER, RANK, "low")),
    )
    with pytest.raises(SpaceError, match="child.*other.*as equal"):
        Encoder(space)


def test_invalid_configurations_sampled_by_configspace_are_refused():
    # ConfigSpace does not always apply conditions parents first, and compares arrays with >= instead of <=.
    late = conditioned(
        EqualsCondition(RANK, CAT, "a"),
        EqualsCondition(OTHER, RANK, "low"),
        AndConjunction(EqualsCondition(CHILD, CAT, "a"), EqualsCondition(CHILD, OTHER, 1)),
    )
    late.seed(0)
    invalid = [config for config in late.sample_configuration(200) if not is_valid(config)]
    with pytest.raises(SpaceError, match="configuration 0: parameter 'child' has a value although it is inactive"):
        Encoder(late).encode(invalid)

    low = ConfigurationSpace([Integer("int", (1, 9))])
    low.add(ForbiddenLessThanEqualsClause(low["int"], 3))
    with pytest.raises(SpaceError, match="forbidden by the space: int <= 3"):
        Encoder(low).encode(low.sample_configuration(5))
    assert {config["int"] for config in Encoder(low).sobol(64, 0)} == {4, 5, 6, 7, 8, 9}


def test_a_space_that_forbids_every_configuration():
    space = ConfigurationSpace([Categorical("cat", ["a", "b"])])
    with pytest.raises(ForbiddenValueError):  # raised since the default configuration is forbidden
        space.add(ForbiddenInClause(space["cat"], ["a", "b"]))
    with pytest.raises(SpaceError, match="only 0 of 65536.*cat in {'a', 'b'}"):
        Encoder(space).sobol(1, 0)


def test_decode_does_not_check_forbidden_clauses():
    space = ConfigurationSpace([Categorical("cat", ["a", "b"])])
    space.add(ForbiddenEqualsClause(space["cat"], "b"))
    encoder = Encoder(space)
    encoded, allowed = encoder.resolve(np.array([[0.0], [1.0]]))
    assert allowed.tolist() == [True, False]
    assert [config["cat"] for config in encoder.decode(Encoded(encoded.unit_values, encoded.active, encoder))] == [
        "a",
        "b",
    ]
