"""Executors of evaluations: this thread, threads, the user's pool, and processes of our own with a time limit."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from typing import Any

import psutil

from slayr_py.errors import DataError, ObjectiveError
from slayr_py.study.run.objective import Evaluation, Objective
from slayr_py.study.run.renewed_pool import RenewedPool, worker_died


class InThisThread(Executor):
    """An executor that evaluates at once, so that the objective runs in the thread of its caller."""

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Call a function and return its result as a future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as error:
            future.set_exception(error)
        return future


def check_executor(executor: object, max_seconds: float | None) -> None:
    """Check the executor that a user has given.

    Raises
    ------
    DataError
        If it is not an executor, or the evaluations have a time limit.
    """
    if executor is None:
        return
    if not isinstance(executor, Executor):
        way_out = "a concurrent.futures.Executor such as ProcessPoolExecutor(4)"
        if hasattr(executor, "get_executor"):  # a client of Dask
            way_out = "executor=client.get_executor(pure=False) of this client"
        raise DataError(f"executor is a {type(executor).__name__}, which is not an executor; pass {way_out}")
    if max_seconds is not None:
        raise DataError(
            "max_seconds needs processes that slayr_py starts itself, because those of another executor cannot be "
            "ended: omit executor=, and give the number of processes as n_parallel="
        )


def executor_for(
    objective: Objective, n_parallel: int, given: Executor | None, max_seconds: float | None
) -> AbstractContextManager[Executor]:
    """Return the executor of a run for a ``with`` statement.

    Raises
    ------
    DataError
        If the evaluations have a time limit and the objective cannot be sent to another process.
    """
    if max_seconds is not None:
        return TimedProcesses(objective, n_parallel, max_seconds)
    if given is None:
        return ThreadPoolExecutor(n_parallel) if n_parallel > 1 else InThisThread()
    return RenewedPool(given) if type(given) is ProcessPoolExecutor else nullcontext(given)


def result_of(future: Future[Evaluation]) -> Evaluation:
    """Return the result of an evaluation.

    Raises
    ------
    ObjectiveError
        If the evaluation failed, or ended the worker of Dask that made it.
    """
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ == "KilledWorker" and type(error).__module__.startswith("distributed"):
            raise ObjectiveError(f"the worker process died: {error}") from error
        raise


class TimedProcesses(Executor):
    """Processes of which each evaluates one configuration at a time, and is killed when that takes too long.

    Parameters
    ----------
    objective : callable
        Loaded by each process before its time starts.
    n : int
        Number of processes.
    max_seconds : float

    Raises
    ------
    DataError
        If the objective cannot be sent to another process.
    """

    def __init__(self, objective: Objective, n: int, max_seconds: float) -> None:
        self._free: queue.SimpleQueue[_TimedProcess] = queue.SimpleQueue()
        self._all = [_TimedProcess(objective, max_seconds) for _ in range(n)]
        self._all[0].start()
        for process in self._all:
            self._free.put(process)
        self._threads = ThreadPoolExecutor(n)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Evaluate in the next free process."""
        return self._threads.submit(self._evaluate, function, *arguments, **options)

    def _evaluate(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        process = self._free.get()
        try:
            return process.call(function, *arguments, **options)
        finally:
            self._free.put(process)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Kill the processes, also those that evaluate: their trials are left to the next run."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._all:
            process.close()
        self._threads.shutdown()


class _TimedProcess:
    """One process, which is replaced after it was killed or has died."""

    def __init__(self, objective: Objective, max_seconds: float) -> None:
        self._objective = objective
        self._max_seconds = max_seconds
        self._pool: ProcessPoolExecutor | None = None
        self._pid = 0
        self._closed = False
        self._lock = threading.Lock()

    def start(self) -> ProcessPoolExecutor:
        """Start the process and load the objective there, unless it has.

        Raises
        ------
        DataError
            If the process cannot load the objective.
        """
        if self._pool is not None:
            return self._pool
        try:
            ForkingPickler.dumps(self._objective)
        except Exception as error:
            raise _not_loaded(self._objective, str(error)) from error
        context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
        pool = ProcessPoolExecutor(1, context, _end_with_parent)
        try:
            self._pid = pool.submit(_load, self._objective).result()
        except BrokenProcessPool as error:
            pool.shutdown()
            raise _not_loaded(self._objective, "the process that loads it ends") from error
        with self._lock:
            self._pool = pool
        if self._closed:
            self.kill()
        return pool

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function in the process.

        Raises
        ------
        ObjectiveError
            If it takes too long, or ends the process.
        """
        future = self.start().submit(function, *arguments, **options)
        try:
            return future.result(self._max_seconds)
        except TimeoutError:  # one of the objective itself is an ObjectiveError here
            self.kill()
            raise ObjectiveError(
                f"the evaluation took longer than max_seconds = {self._max_seconds:g} and was killed"
            ) from None
        except BrokenProcessPool as error:
            self.kill()
            raise worker_died() from error

    def kill(self) -> None:
        """Kill the process and the processes that it has started."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is None:
            return
        with suppress(psutil.Error):
            process = psutil.Process(self._pid)
            for each in (*process.children(recursive=True), process):
                with suppress(psutil.Error):
                    each.kill()
        pool.shutdown()

    def close(self) -> None:
        """Kill the process for good."""
        self._closed = True
        self.kill()


def _not_loaded(objective: Objective, why: str) -> DataError:
    name = getattr(objective, "__qualname__", type(objective).__name__)
    return DataError(
        f"max_seconds evaluates in another process, which cannot load the objective {name!r} ({why}): define it with "
        'def at the top level of a module, not in a notebook, and call minimize under if __name__ == "__main__"'
    )


def _load(objective: Objective) -> int:
    """Return the number of this process, which has loaded the objective to get here."""
    return os.getpid()


def _end_with_parent() -> None:
    """End this process when its parent has ended, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
