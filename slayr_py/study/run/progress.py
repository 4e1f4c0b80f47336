"""Show the progress of a study: the current phase, the best value, and the diagnostics of the last fit."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from optuna import Study

from slayr_py.progress_bar import IS_WIDGET, Bar
from slayr_py.study.model.session import Phase
from slayr_py.study.results.recommendation import Recommendation
from slayr_py.study.results.tables import best_trial, front_trials
from slayr_py.study.run.stopping import RegretEstimate
from slayr_py.study.storage.attributes import is_history
from slayr_py.study.storage.objectives import has_several
from slayr_py.study.storage.reading import reading_once, trials_of

_SHOWN = (
    ("rhat_max", "rhat", ".2f"),
    ("pareto_k", "k-hat", ".2f"),
    ("ess_bulk_min", "ess", ".0f"),
    ("divergences", "div", "d"),
)


class ProgressBar:
    """A progress bar with one step per trial, for use in a ``with`` block.

    Parameters
    ----------
    study : optuna.Study
        Its finished trials count, also those of other processes, but not past experiments.
    budget : int
        Number of trials at the end.
    enabled : bool
        If False, nothing is drawn.
    """

    def __init__(self, study: Study, budget: int, enabled: bool) -> None:
        self._study = study
        self._diagnostics = ""
        self._recommended: Recommendation | None = None
        self._regret: RegretEstimate | None = None
        bar = "{bar}" if IS_WIDGET else "{bar:20}"  # a widget has its own width
        self._bar = Bar(
            total=budget,
            disable=not enabled,
            unit="trial",
            bar_format="{desc:<11}|" + bar + "| {n_fmt}/{total_fmt} [{elapsed}]{postfix}",
            dynamic_ncols=True,
        )

    def __enter__(self) -> Self:
        """Show the best value so far."""
        self._refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Mark the bar as done or stopped and keep it on the screen."""
        self._bar.set_description_str("done" if error is None else "stopped")
        self._bar.close()

    def announce(self, text: str) -> None:
        """Write a line above the bar."""
        if not self._bar.disable:
            self._bar.write(text, file=sys.stderr)

    def phase(self, phase: Phase) -> None:
        """Show the current phase: "compiling", "evaluating", "searching kernels", "fitting" or "maximising"."""
        if phase.diagnostics is not None:
            self._diagnostics = describe_diagnostics(phase.diagnostics)
        self._bar.set_description_str(phase.name, refresh=False)
        self._refresh(phase.detail)

    def recommend(self, recommended: Recommendation) -> None:
        """Show the recommendation of a noisy study before the best value."""
        self._recommended = recommended
        self._refresh()

    def regret(self, estimate: RegretEstimate) -> None:
        """Show the estimate of the stopping rule."""
        self._regret = estimate
        self._refresh()

    def finished(self) -> None:
        """Count the finished and failed trials."""
        self._refresh()

    def _refresh(self, detail: str = "") -> None:
        if self._bar.disable:
            return
        shown = [f"recommended {self._recommended}"] if self._recommended is not None else []
        with reading_once(self._study):
            ended = [trial for trial in trials_of(self._study) if trial.state.is_finished() and not is_history(trial)]
            self._bar.n = min(len(ended), self._bar.total)
            shown += self._best()
        if self._regret is not None:
            shown.append(str(self._regret))
        if self._diagnostics:
            shown.append(self._diagnostics)
        if detail:
            shown.append(detail)
        self._bar.set_postfix_str(" | ".join(shown), refresh=False)
        self._bar.refresh()

    def _best(self) -> list[str]:
        """Describe the best value, or the front of several objectives."""
        if has_several(self._study):
            front = front_trials(self._study)
            return [f"front {len(front)}"] if front else []
        best = best_trial(self._study)
        return [f"best {best.values[0]:.6g}"] if best is not None else []


def describe_diagnostics(diagnostics: Mapping[str, Any]) -> str:
    """Summarise the diagnostics of a fit: ``rhat 1.31 ess 12 div 0, fit doubtful``.

    Diagnostics that the method does not have are omitted.
    """
    parts = []
    for name, label, form in _SHOWN:
        value = diagnostics.get(name)
        if value is not None:
            parts.append(f"{label} {value:{form}}")
    if not diagnostics.get("ok"):
        return f"{' '.join(parts)}, fit doubtful" if parts else "fit doubtful"
    return " ".join(parts) or "fit ok"
