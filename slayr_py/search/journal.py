"""Fit what a strategy proposes, within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from slayr_py.search.fit import Fit, Score
from slayr_py.search.task import Candidate, Rounds
from slayr_py.search.workers import Job


class Row(NamedTuple):
    """A proposal of the strategy; ``cached`` if the expression was fitted before."""

    expression: str
    step: int
    parent: str | None
    cached: bool


class Journal:
    """Proposals and fits of a search so far.

    Parameters
    ----------
    budget : int
        Number of fits.
    known : mapping of str to Fit
        Fits by expression that are used instead of fitting again. They count against the budget.
    score : str
        The score that strategies learn.
    run : callable
        Returns the fits of a sequence of jobs, in their order.

    Attributes
    ----------
    rows : list of Row
        In the order of the proposals.
    fits : dict of str to Fit
        By expression, in the order of the fits.
    """

    def __init__(
        self, budget: int, known: Mapping[str, Fit], score: Score, run: Callable[[Sequence[Job]], Iterable[Fit]]
    ) -> None:
        self._budget = budget
        self._known = known
        self._score = score
        self._run = run
        self.rows: list[Row] = []
        self.fits: dict[str, Fit] = {}

    def follow(self, rounds: Rounds, bar: Any) -> bool:
        """Fit what a strategy proposes; return whether it ended before the budget was used up."""
        try:
            batch = next(rounds)
            while True:
                self._fit(batch, bar)
                if len(self.fits) >= self._budget:
                    rounds.close()
                    return False
                batch = rounds.send([self.fits[c.expression].evaluation(c.node, self._score) for c in batch])
        except StopIteration:
            return True

    def _fit(self, batch: Sequence[Candidate], bar: Any) -> None:
        new: dict[str, Candidate] = {}
        for candidate in batch:
            if candidate.expression in self.fits:
                self.rows.append(Row(candidate.expression, candidate.step, candidate.parent, cached=True))
            elif len(self.fits) + len(new) < self._budget:
                new.setdefault(candidate.expression, candidate)
        fresh = iter(self._run(self._jobs(c for name, c in new.items() if name not in self._known)))
        for name, candidate in new.items():
            self.fits[name] = self._known[name] if name in self._known else next(fresh)
            self.rows.append(Row(name, candidate.step, candidate.parent, cached=False))
            bar.set_postfix_str(self._best(), refresh=False)
            bar.update()

    def _jobs(self, candidates: Iterable[Candidate]) -> list[Job]:
        return [(c, None if c.parent is None else self.fits.get(c.parent)) for c in candidates]

    def _best(self) -> str:
        """Return the best expression and its score, as text."""
        best = max(self.fits.values(), key=lambda fit: fit.score(self._score))
        return "" if best.failure else f"{best.expression}: {best.score(self._score):.1f}"
