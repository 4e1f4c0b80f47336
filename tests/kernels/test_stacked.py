from __future__ import annotations

import json

import pytest
from testing_spaces import mixed_space, plain_space

import slayr_py as sl
from slayr_py.errors import DataError
from slayr_py.kernels import Composite, Matern, Stack
from slayr_py.space import Encoder


def test_kernels_by_name_expression_and_object():
    stack = sl.stack(["matern", "LIN + SE", Matern(p=0)])
    assert [repr(one) for one in stack.kernels] == ["Matern(p=2)", "Composite(expression='LIN + SE')", "Matern(p=0)"]
    assert len(stack) == 3 and "stack of Matérn kernel (p = 2), LIN + SE" in stack.description
    assert json.loads(json.dumps(stack.options()))["kernels"][0] == {"name": "matern", "options": {"p": 2}}


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "at least one kernel"),
        ("matern", "is not a list; use"),
        (Matern(), "is not a list; use"),
        (["matern", Matern()], "in the stack twice"),
        (["SE + LIN", "LIN + SE"], "in the stack twice"),
        (["auto", "auto"], "in the stack twice"),
        (["mattern"], "did you mean 'matern'"),
    ],
)
def test_illegal_stacks(kernels, message):
    with pytest.raises(DataError, match=message):
        sl.stack(kernels)


def test_auto_is_the_kernel_of_the_space():
    stack = sl.stack(["auto", "matern"])
    assert [one.name for one in stack.on(Encoder(mixed_space())).kernels] == ["fm", "matern"]
    with pytest.raises(DataError, match="in the stack twice"):
        stack.on(Encoder(plain_space()))


def test_a_plain_kernel_is_added_once():
    assert [repr(one) for one in sl.stack(["SE"]).with_plain().kernels][1] == "Matern(p=2)"
    for stack in (sl.stack(["SE", "matern"]), sl.stack(["MAT52"])):
        assert stack.with_plain() is stack
    assert isinstance(sl.stack([Matern(p=1)]).with_plain(), Stack)


def test_digests_differ_between_kernels_and_orders_of_terms():
    kernels = [Matern(), Matern(p=1), Composite("SE + LIN"), Composite("LIN + SE")]
    assert len({kernel.digest for kernel in kernels}) == 4 and Matern().digest == Matern(p=2).digest
