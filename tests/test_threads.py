"""Contexts that change the state of the process, in threads that overlap."""

from __future__ import annotations

import inspect
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cmdstanpy.utils import get_logger
from threadpoolctl import threadpool_info, threadpool_limits

from slayr_py.inference import Posterior
from slayr_py.inference.sampling import run
from slayr_py.study import Result, StanGPSampler
from slayr_py.threads import ignored_warnings, ignoring_underflow, one_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def state():
    return blas_threads(), get_logger().level, list(warnings.filters)


@pytest.mark.parametrize("context", [one_thread, ignored_warnings, lambda: run._QUIET_CMDSTANPY])
def test_contexts_that_overlap_leave_the_state_as_it_was(context):
    with ThreadPoolExecutor(1) as thread, threadpool_limits(limits=2, user_api="blas"):
        before = state()
        first, second = context(), context()
        first.__enter__()
        changed = state()
        thread.submit(second.__enter__).result()
        first.__exit__(None, None, None)
        assert state() == changed
        thread.submit(second.__exit__, None, None, None).result()
        assert state() == before


def test_warnings_are_ignored_in_the_block_only():
    with ignored_warnings(RuntimeWarning):
        warnings.warn("ignored", RuntimeWarning, stacklevel=1)
        with pytest.raises(UserWarning):
            warnings.warn("another category", UserWarning, stacklevel=1)
    with pytest.raises(RuntimeWarning):
        warnings.warn("seen", RuntimeWarning, stacklevel=1)


def test_an_error_leaves_the_state_as_it_was():
    with threadpool_limits(limits=2, user_api="blas"):
        before = state()
        with pytest.raises(ValueError, match="failed"), run._QUIET_CMDSTANPY, one_thread():
            raise ValueError("failed")
        assert state() == before


def test_an_underflow_is_ignored_in_the_function_only():
    def small() -> float:
        return float(np.exp(np.float64(-1e4)))

    with np.errstate(all="raise"):
        assert ignoring_underflow(small)() == 0.0
        with pytest.raises(FloatingPointError):
            small()


def test_an_underflow_is_ignored_in_the_public_methods_and_properties_of_a_class():
    @ignoring_underflow
    class Small:
        def method(self, exponent: float = -1e4) -> float:
            """Return it."""
            return self._private(exponent)

        @property
        def attribute(self) -> float:
            """It."""
            return self._private()

        def _private(self, exponent: float = -1e4) -> float:
            return float(np.exp(np.float64(exponent)))

    with np.errstate(all="raise"):
        assert Small().method() == Small().attribute == 0.0
        with pytest.raises(FloatingPointError):
            Small()._private()
    assert (Small.method.__doc__, Small.attribute.__doc__) == ("Return it.", "It.")
    assert str(inspect.signature(Small.method)) == "(self, exponent: 'float' = -10000.0) -> 'float'"


@pytest.mark.parametrize("kind", [Posterior, Result, StanGPSampler])
def test_all_public_methods_of_these_classes_ignore_underflows(kind):
    members = [member for name, member in vars(kind).items() if not name.startswith("_")]
    functions = [member.fget if isinstance(member, property) else member for member in members]
    assert all(hasattr(each, "__wrapped__") for each in functions if inspect.isfunction(each))
