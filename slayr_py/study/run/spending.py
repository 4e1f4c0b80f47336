"""Budgets of trials and of costs, and the clock of an evaluation."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

from optuna import Study

from slayr_py.study.run.objective import SHORTEST
from slayr_py.study.storage.costs import spent
from slayr_py.study.storage.workers import started_trials


class Stopwatch:
    """Duration of an evaluation that does not measure it itself, because it is pruned or its process ends."""

    def __init__(self) -> None:
        self.seconds = SHORTEST
        self._start = 0.0

    def start(self) -> None:
        """Start at the submission of the evaluation."""
        self._start = time.perf_counter()

    def stop(self, _: Future[Any]) -> None:
        """Stop at the end of the evaluation."""
        self.seconds = max(time.perf_counter() - self._start, SHORTEST)


def may_spend(study: Study, budget: int, cost: str | None, max_cost: float | None) -> bool:
    """Return whether another trial may start within the budgets of trials and of costs.

    The cost of running trials is unknown, so that the evaluations that run when the sum reaches ``max_cost`` exceed it.
    """
    if started_trials(study) >= budget:
        return False
    return cost is None or max_cost is None or spent(study, cost).total < max_cost
