"""Fit candidates side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from joblib import Parallel, delayed  # type: ignore[import-untyped]

from slayr_py.search.fit import Fit, SearchSettings, fit
from slayr_py.search.task import Candidate

Job = tuple[Candidate, Fit | None]
"""A candidate, and the fit of its parent."""

_SMALL = 50 * 200**2  # fits times squared observations below which processes do not save time: they start in seconds


def n_processes(jobs: int | None, n: int, budget: int) -> int:
    """Return the number of processes for a budget of fits to n observations; None chooses."""
    if jobs is not None:
        return jobs
    if budget * n**2 < _SMALL:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fits_of(settings: SearchSettings, processes: int, jobs: Sequence[Job]) -> Iterator[Fit]:
    """Yield the fits in the order of the jobs, each as soon as it and all earlier ones are finished.

    One process is this one. A fit depends on its candidate only, so results do not depend on the number of processes.
    """
    if processes == 1 or len(jobs) == 1:
        yield from (fit(settings, *job) for job in jobs)
        return
    # Loky's processes do not import the user's main module, so scripts need no guard around it.
    workers = Parallel(n_jobs=processes, return_as="generator", batch_size=1)
    yield from workers(delayed(fit)(settings, *job) for job in jobs)
