from __future__ import annotations

from ConfigSpace import (
    AndConjunction,
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    GreaterThanCondition,
    InCondition,
    OrConjunction,
)

from slayr_py.space import active_names, is_active, without_inactive


def test_activity_follows_the_parents():
    space = ConfigurationSpace()
    a = Categorical("a", ["u", "v", "w"])
    b = Float("b", (0.0, 1.0))
    c = Float("c", (0.0, 1.0))
    space.add(a, b, c, Constant("k", 1))
    space.add(InCondition(b, a, ["u", "v"]))
    space.add(AndConjunction(EqualsCondition(c, a, "u"), GreaterThanCondition(c, b, 0.5)))
    assert is_active(space, "b", {"a": "v"}) and not is_active(space, "b", {"a": "w"})
    assert is_active(space, "c", {"a": "u", "b": 0.7}) and not is_active(space, "c", {"a": "u", "b": 0.2})
    assert not is_active(space, "c", {"a": "w"})  # b has no value to ask about
    assert active_names(space, {"a": "w", "b": 0.7, "c": 0.1, "k": 1}) == ("a", "k")
    assert without_inactive(space, {"b": 0.7, "c": 0.1}) == {"b": 0.7, "c": 0.1}  # a may be "u"
    assert without_inactive(space, {"a": "w", "b": 0.7, "c": 0.1}) == {"a": "w"}


def test_either_parent_may_make_a_parameter_active_even_if_the_other_is_inactive():
    space = ConfigurationSpace()
    k = Categorical("k", ["p", "q"])
    b = Categorical("b", ["u", "v"])
    c = Float("c", (0.0, 1.0))
    space.add(k, b, c)
    space.add(EqualsCondition(b, k, "q"), OrConjunction(EqualsCondition(c, b, "u"), EqualsCondition(c, k, "p")))
    assert is_active(space, "c", {"k": "p"})
    space.seed(0)
    for config in space.sample_configuration(20):
        assert {name for name in space if is_active(space, name, dict(config))} == set(config)
