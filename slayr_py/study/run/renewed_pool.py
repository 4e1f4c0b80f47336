"""A pool of processes that survives the death of one of them, for example when the memory is used up."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from slayr_py.errors import DataError, ObjectiveError

MOST_BARREN = 2
"""Number of pools in a row in which no task has begun; their tasks then fail."""

MOST_RUNS = 5
"""Number of times a task is run if it is not known which task has ended a process of its pool."""


def worker_died(exit_code: int | None = None) -> ObjectiveError:
    """Return the error of an evaluation that has ended its process."""
    how = "" if exit_code is None else f" with exit code {exit_code}"
    if exit_code is not None and exit_code < 0:
        how = f" by signal {-exit_code}"
    return ObjectiveError(
        f"the worker process died{how} during the evaluation, as it does when the memory is used up or a library "
        "crashes; let it need less memory, or run fewer evaluations at a time"
    )


@dataclass
class _Task:
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    announced: Path
    """File with the number of the process that runs it."""
    future: Future[Any] = field(default_factory=Future)
    runs: int = 0


class RenewedPool(Executor):
    """A process pool that is replaced by a new one when it breaks.

    A pool cannot be used any more after one of its processes has died, and all of its tasks fail. Here only the task of
    the dead process fails; the others run again. The processes that the pool itself ends then have the exit code of
    SIGTERM. If all have, for example because another program has ended one that way, all tasks run again. If no task
    began in two pools one after the other, their processes cannot start: a `DataError` is the result of all tasks.

    Parameters
    ----------
    pool : ProcessPoolExecutor
        The first pool. The user shuts it down.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._lock = threading.RLock()
        self._folder = tempfile.TemporaryDirectory(prefix="slayr-pool-")
        self._count = 0
        self._use(pool)
        self._renewed: list[ProcessPoolExecutor] = []
        self._interrupted: list[_Task] = []
        self._repair: threading.Thread | None = None
        self._inner: set[Future[Any]] = set()
        self._barren = 0
        self._is_closed = False

    def _use(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._processes: Mapping[int, BaseProcess] = pool._processes  # the pool forgets it when it is shut down

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Run a function in the pool."""
        with self._lock:
            self._count += 1
            task = _Task(function, arguments, options, Path(self._folder.name) / str(self._count))
            task.future.set_running_or_notify_cancel()
            self._run(task)
        return task.future

    def _run(self, task: _Task) -> None:
        """Run a task, or keep it while the pool is replaced; call this with the lock."""
        if self._repair is not None:
            self._interrupted.append(task)
            return
        task.announced.unlink(missing_ok=True)
        task.runs += 1
        try:
            inner = self._pool.submit(_announce, task.announced, task.function, *task.arguments, **task.options)
        except (BrokenProcessPool, OSError):  # the latter from the pipes of a pool that ends at this moment
            self._interrupt(task)
            return
        self._inner.add(inner)
        inner.add_done_callback(lambda done: self._finish(task, done))

    def _finish(self, task: _Task, inner: Future[Any]) -> None:
        with self._lock:
            self._inner.discard(inner)
            if not inner.cancelled() and isinstance(inner.exception(), BrokenProcessPool):
                self._interrupt(task)
                return
        if inner.cancelled():
            task.future.set_exception(_cancelled())
        elif (error := inner.exception()) is not None:
            task.future.set_exception(error)
        else:
            task.future.set_result(inner.result())

    def _interrupt(self, task: _Task) -> None:
        """Keep a task until the pool is replaced; call this with the lock."""
        if self._is_closed:
            task.future.set_exception(_cancelled())
            return
        self._interrupted.append(task)
        if self._repair is None:
            self._repair = threading.Thread(target=self._renew)
            self._repair.start()

    def _renew(self) -> None:
        """Replace the broken pool, fail the tasks whose processes have died, and run the others again."""
        self._pool.shutdown()  # waits until all its processes have ended
        old: Any = self._pool
        new = ProcessPoolExecutor(
            old._max_workers,
            old._mp_context,
            old._initializer,
            old._initargs,
            max_tasks_per_child=old._max_tasks_per_child,
        )
        with self._lock:
            processes = self._processes
            self._renewed.append(new)
            self._use(new)
            self._repair = None
            interrupted, self._interrupted = self._interrupted, []
            self._barren = 0 if any(task.announced.exists() for task in interrupted) else self._barren + 1
            for task in interrupted:
                code = _exit_code(task, processes)
                if self._is_closed:
                    task.future.set_exception(_cancelled())
                elif self._barren >= MOST_BARREN:
                    task.future.set_exception(_not_started())
                elif code is None and task.runs < MOST_RUNS:
                    self._run(task)
                else:
                    task.future.set_exception(worker_died(code))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel waiting tasks and shut the new pools down."""
        with self._lock:
            self._is_closed = True
            waiting = tuple(self._inner)
            repair = self._repair
        for inner in waiting:
            inner.cancel()
        if repair is not None:
            repair.join()
        for pool in self._renewed:
            pool.shutdown(wait, cancel_futures=True)
        self._folder.cleanup()


def _cancelled() -> ObjectiveError:
    return ObjectiveError("the evaluation was cancelled")


def _not_started() -> DataError:
    return DataError(
        "the processes of the executor end before an evaluation begins: let its initializer raise no error, and call "
        'minimize under if __name__ == "__main__"'
    )


def _exit_code(task: _Task, processes: Mapping[int, BaseProcess]) -> int | None:
    """Return the exit code of the process that a task has ended; None if it has not ended one."""
    try:
        process = processes[int(task.announced.read_text())]
    except (OSError, ValueError, KeyError):  # not started, or by an earlier pool
        return None
    return None if process.exitcode in (None, -signal.SIGTERM) else process.exitcode


def _announce(announced: Path, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Write the number of this process to a file and call a function."""
    announced.write_text(str(os.getpid()))
    return function(*arguments, **options)
