from __future__ import annotations

import asyncio
import signal
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import optuna
import pytest

from slayr_py.errors import NotFiniteError, ObjectiveError
from slayr_py.study.run.objective import Evaluation, Expected, as_value, as_values, evaluate


@pytest.mark.parametrize(
    "answer",
    [1, 1.5, np.float32(1.5), np.int64(2), np.array(1.5), np.float64(-3), Decimal("0.1"), Fraction(1, 3)],
)
def test_numbers_of_any_library_are_values(answer):
    value = as_value(answer)
    assert type(value) is float and value == float(answer)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "return statement"),
        ("0.3", "str '0.3'"),
        (True, "bool"),
        ([1.0], "list"),
        (np.array([1.0]), r"shape \(1,\)"),
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        (1 + 2j, "complex"),
        (np.datetime64("2020-01-01"), "datetime"),
        (np.datetime64("2020-01-01", "ns"), "datetime"),
        (np.timedelta64(5, "ns"), "timedelta"),
    ],
)
def test_anything_else_is_named(answer, words):
    with pytest.raises(ObjectiveError, match=words) as caught:
        as_value(answer)
    assert not isinstance(caught.value, NotFiniteError)


@pytest.mark.parametrize("answer", [float("nan"), np.inf, -np.inf, np.float32("nan"), np.ma.masked, Decimal("inf")])
def test_values_that_are_not_finite_are_a_kind_of_their_own(answer):
    with pytest.raises(NotFiniteError, match="not a finite number"):
        as_value(answer)


@pytest.mark.parametrize(
    "answer",
    [[1.0, np.ma.masked], np.ma.array([1.0, 2.0], mask=[False, True]), {"a": 1.0, "b": np.ma.array(3.0, mask=True)}],
)
def test_a_masked_value_of_several_is_not_finite(answer):
    with pytest.raises(NotFiniteError):
        as_values(answer, Expected(2))


def test_an_error_of_the_objective_is_the_cause():
    def objective(config):
        raise KeyError("lr")

    with pytest.raises(ObjectiveError, match="raised KeyError: 'lr'") as caught:
        evaluate(objective, {})
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_cancelled_task_fails_the_trial():
    def objective(config):
        raise asyncio.CancelledError

    with pytest.raises(ObjectiveError, match="raised CancelledError"):
        evaluate(objective, {})


def test_a_signal_handler_that_exits_ends_no_evaluation_of_another_process():
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit, match="143"):
            evaluate(lambda _: signal.raise_signal(signal.SIGTERM), {})
        with pytest.raises(ObjectiveError, match=r"called sys\.exit\(143\)"):
            evaluate(lambda _: signal.raise_signal(signal.SIGTERM), {}, process=0)
        with pytest.raises(ObjectiveError, match=r"called sys\.exit\(3\)"):
            evaluate(lambda _: sys.exit(3), {})
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_objective_gets_a_copy_and_may_prune():
    config = {"x": 1.0}
    assert evaluate(lambda c: c.pop("x"), config) == Evaluation((1.0,), {}) and config == {"x": 1.0}

    def prune(config):
        raise optuna.TrialPruned

    with pytest.raises(optuna.TrialPruned):
        evaluate(prune, config)
