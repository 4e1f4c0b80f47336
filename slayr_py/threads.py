"""Linear algebra on one thread."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401 - the controller finds only libraries that are loaded
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS runs on one thread.

    The matrices are small: one thread is as fast, and the last bits do not depend on the machine's number of cores.
    """
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the loaded libraries. It reads the process's memory map, which takes milliseconds."""
    return ThreadpoolController()
