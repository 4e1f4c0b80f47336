"""Changes to the state of the process, which all threads share: threads of linear algebra, filters of warnings.

One setting of NumPy belongs to the thread: what an underflow does.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import scipy.linalg  # noqa: F401 - the controller finds only libraries that are loaded
from threadpoolctl import OpenBLASController, ThreadpoolController

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Target = TypeVar("Target", bound=Callable[..., Any])


class SharedChange:
    """A change to the state of the process, as a context that several threads may enter at the same time.

    Each thread that enters makes the change. The last one that leaves restores the state before the first one, so that
    contexts which overlap leave nothing behind.

    Parameters
    ----------
    change : callable
        Makes the change, and returns a function that restores the state before it.
    """

    def __init__(self, change: Callable[[], Callable[[], object]]) -> None:
        self._change = change
        self._lock = Lock()
        self._entered = 0
        self._restore: Callable[[], object] | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._unlock)

    def _unlock(self) -> None:
        """Make a new lock in a child process: another thread may have held it."""
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            restore = self._change()
            self._restore = self._restore or restore
            self._entered += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered and self._restore is not None:
                restore, self._restore = self._restore, None
                restore()


def one_thread() -> SharedChange:
    """Return a context in which BLAS runs on one thread.

    The matrices are small: one thread is as fast, and the last bits do not depend on the machine's number of cores.
    """
    return _ONE_THREAD


def ignoring_underflow(target: Target) -> Target:
    """Let numbers become 0 by underflow in a function, also if the caller has ``np.seterr(all="raise")``.

    In a class these are its own public methods and properties; class methods are left alone.
    """
    if not isinstance(target, type):
        return cast(Target, _ignoring_underflow(target))
    for name, member in list(vars(target).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(target, name, _ignoring_underflow(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(target, name, member.getter(_ignoring_underflow(member.fget)))
    return target


def _ignoring_underflow(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    @wraps(function)
    def wrapped(*arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        with np.errstate(under="ignore"):
            return function(*arguments, **options)

    return wrapped


@contextmanager
def ignored_warnings(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings in a short block.

    The filters are those of the process: other threads do not warn either meanwhile.
    """
    with _FILTERS:
        warnings.simplefilter("ignore", category)
        yield


def _limit_blas() -> Callable[[], object]:
    _take_control()
    limit = _controller().limit(limits=1, user_api="blas")

    def restore() -> None:
        _take_control()
        limit.restore_original_limits()
        _take_control()  # and leave it to the next thread

    return restore


def _take_control() -> None:
    """Let this thread set the limit: from version 3.8 on, threadpoolctl ignores all but the first that has set it."""
    if clear := getattr(OpenBLASController, "clear_controlling_thread", None):
        clear(force=True)


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the loaded libraries. It reads the process's memory map, which takes milliseconds."""
    return ThreadpoolController()


def _keep_filters() -> Callable[[], object]:
    kept = warnings.catch_warnings()
    kept.__enter__()
    return lambda: kept.__exit__(None, None, None)


_ONE_THREAD = SharedChange(_limit_blas)
_FILTERS = SharedChange(_keep_filters)
