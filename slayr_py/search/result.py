"""What a kernel search has found."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from scipy.special import softmax

from slayr_py.arguments import check_integer
from slayr_py.display import Summary
from slayr_py.errors import DataError
from slayr_py.inference import (
    METHODS,
    NOISE_FLOOR,
    Components,
    FitKeywords,
    FitOptions,
    GaussianProcess,
    Posterior,
    Targets,
    split_into_components,
    standardisation,
)
from slayr_py.kernels import MOST_LEAVES, Composite, Kernel, Stack
from slayr_py.kernels.expressions import leaves, parse
from slayr_py.search.expressions import log_prior
from slayr_py.search.fit import SCORES, Fit, Score
from slayr_py.space import Encoded, Encoder, FloatArray, encoder_to_json

MOST_EXACT = 1000
"""Observations above which fits of a search are sparse."""

FORMAT = 1
"""Format of saved results; it increases with every change of their meaning."""


class Row(NamedTuple):
    """A proposal of the strategy."""

    expression: str
    step: int
    parent: str | None
    cached: bool


class Search(Protocol):
    """What a result needs of the search that made it; see `KernelSearch`."""

    encoder: Encoder
    score: Score

    @property
    def seed(self) -> int:
        """Seed of the search."""

    @property
    def base(self) -> tuple[str, ...]:
        """Names of base kernels."""

    @property
    def strategy(self) -> str:
        """Name of the strategy."""

    @property
    def budget(self) -> int:
        """Number of fits."""

    @property
    def given(self) -> Mapping[str, Kernel]:
        """Given leaves by name."""

    def asdict(self) -> dict[str, Any]:
        """Return the settings; JSON-able."""

    def updated(self, **changes: Any) -> Search:
        """Return this search with other settings."""

    def go_on(
        self, train: Encoded, targets: FloatArray, known: Mapping[str, Fit], first: Sequence[str], progress: bool
    ) -> SearchResult:
        """Search, with the fits that are known already by expression."""


class SearchResult:
    """Fits of a kernel search, and the best expression.

    Attributes
    ----------
    search : KernelSearch
        Settings of the search.
    messages : tuple of str
        What was approximated, dropped or interrupted.
    interrupted : bool
        Whether it was interrupted from the keyboard.
    """

    def __init__(
        self,
        search: Search,
        train: Encoded,
        y: FloatArray,
        rows: tuple[Row, ...],
        fits: Mapping[str, Fit],
        messages: tuple[str, ...],
        first: tuple[str, ...] = (),
        interrupted: bool = False,
    ) -> None:
        self.search = search
        self.messages = messages
        self.interrupted = interrupted
        self._train = train
        self._y = y
        self._rows = rows
        self._fits = dict(fits)
        self._first = first

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        heading = f"Kernel search: best {self.best.expression} of {len(self._fits)} fits, {self.search.strategy}"
        columns = ["expression", self.search.score, "parameters", "seconds"]
        return Summary("\n".join([heading, *self.messages]), self.unique[columns].head(5))

    @property
    def best(self) -> Composite:
        """The kernel with the best score; the simplest base kernel if nothing was fitted."""
        order = self.top(1)
        return Composite(order[0] if order else self.search.base[0], self.search.given, MOST_LEAVES)

    def top(self, count: int) -> list[str]:
        """Return the expressions with the best scores, the best first."""
        good = [fit for fit in self._fits.values() if not fit.failure and np.isfinite(self._score(fit))]
        # Of equally good ones the simplest.
        good.sort(
            key=lambda fit: (-self._score(fit), len(leaves(parse(fit.expression, self.search.given))), fit.expression)
        )
        return [fit.expression for fit in good[:count]]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each proposal of the strategy.

        The columns are ``fit``, ``step``, ``expression``, ``parent``, ``leaves``, ``parameters``, all scores, ``best``
        so far, ``seconds``, ``evaluations`` of the density, ``cached`` and ``failure``.

        ``fit`` is the number of fits so far; a cached row costs none. ``bic`` and ``rmse`` are negated, so that larger
        is better in every column of scores.
        """
        fits = self._fits
        best = -np.inf
        made = 0
        records = []
        for row in self._rows:
            fit = fits[row.expression]
            made += not row.cached
            best = max(best, self._score(fit))
            records.append(
                {
                    "fit": made,
                    "step": row.step,
                    "expression": row.expression,
                    "parent": row.parent,
                    "leaves": len(leaves(parse(row.expression, self.search.given))),
                    "parameters": sum(map(len, fit.theta.values())),
                    **{str(name): fit.scores[name] for name in SCORES},
                    "best": best,
                    "seconds": 0.0 if row.cached else fit.seconds,
                    "evaluations": 0 if row.cached else fit.evaluations,
                    "cached": row.cached,
                    "failure": fit.failure,
                }
            )
        return pd.DataFrame(records, columns=_COLUMNS)

    @property
    def unique(self) -> pd.DataFrame:
        """The rows of `table` that are fits, the best first, with a column ``probability``.

        The probability of an expression among those that were fitted is proportional to its evidence in Laplace's
        approximation and to the prior of the grammar.
        """
        made = self.table[~self.table["cached"].astype(bool)]
        made = made.sort_values(self.search.score, ascending=False, kind="stable").reset_index(drop=True)
        n_base = len(self.search.base)
        prior = [log_prior(parse(text, self.search.given), n_base) for text in made["expression"]]
        logs = made["laplace"].to_numpy(dtype=np.float64) + np.array(prior)
        return made.assign(probability=softmax(np.where(np.isfinite(logs), logs, -np.inf)) if len(made) else [])

    def resume(self, budget: int | None = None, progress: bool = True) -> SearchResult:
        """Go on until the total number of fits is ``budget``, by default that of the search.

        The result is that of a search with this budget from the beginning.
        """
        search = self.search.updated(budget=self.search.budget if budget is None else budget)
        return search.go_on(self._train, self._y, self._fits, self._first, progress)

    def stack(
        self,
        top: int = 5,
        fit: FitKeywords | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Posterior:
        """Fit the best expressions by NUTS and average their posteriors by stacking.

        Parameters
        ----------
        top : int
            Number of expressions. A Matérn kernel of order 2 is always added.
        fit : dict, optional
            Options of the fits, as in `GaussianProcess.fit`: ``{"chains": 4}``.
        progress : callable, optional
            Called with the name of each phase.

        Returns
        -------
        Posterior
            Weighted by leave-one-out densities; see :class:`~slayr_py.GaussianProcess`.

        Raises
        ------
        DataError
            With more than 1000 observations, unless the method is "map": each fit would take hours.
        InferenceError
            If no fit can be used.
        """
        top = check_integer("top", top)
        options: FitKeywords = {} if fit is None else fit
        if len(self._y) > MOST_EXACT and not METHODS[FitOptions.given(None, options).method].point_estimate:
            raise DataError(
                f"{len(self._y)} observations are more than the {MOST_EXACT} for which a stack is sampled; use "
                "fit={'method': 'map'}, or GaussianProcess(space, result.best, inducing=100)"
            )
        kernels = [Composite(text, self.search.given, MOST_LEAVES) for text in self.top(top) or [self.best.expression]]
        gp = GaussianProcess(self.search.encoder, Stack(kernels).with_plain())
        return gp.fit(self._train, self._y, seed=self.search.seed, progress=progress, **options)

    def components(self, configs: Any = None) -> Components:
        """Return the summands of the best expression at its mode, by default at the observed configurations.

        Raises
        ------
        DataError
            If nothing was fitted, or with more than 1000 observations.
        """
        if not self._fits or len(self._y) > MOST_EXACT:
            why = f"{len(self._y)} observations are more than {MOST_EXACT}" if self._fits else "nothing was fitted"
            raise DataError(f"{why}: the search has no components")
        new = self._train if configs is None else self.search.encoder.encode(configs, other_columns=True)
        mean, sd = standardisation(self._y)
        fit = self._fits[self.best.expression]
        kernel = self.best
        shapes = {h.name: h.shape for h in kernel.hyperparameters(self.search.encoder)}
        draws = {name: np.reshape(values, (1, *shapes.get(name, ()))) for name, values in fit.theta.items()}
        targets = Targets((self._y - mean) / sd, np.zeros(len(self._y)), NOISE_FLOOR)
        return split_into_components(kernel, self._train, targets, draws, new, mean, sd)

    def plot(self) -> Any:
        """Draw the score of every fit and the best one so far against the number of fits.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from matplotlib.figure import Figure  # slow to import

        made = self.table[~self.table["cached"].astype(bool)]
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.subplots()
        scores = made[self.search.score].replace([np.inf, -np.inf], np.nan)
        axes.plot(made["fit"], scores, ".", alpha=0.5, label="fit")
        axes.step(made["fit"], made["best"], where="post", label="best so far")
        if len(scores.dropna()) > 1:
            low, high = np.quantile(scores.dropna(), [0.25, 1.0])
            axes.set_ylim(low - 0.1 * (high - low) - 1e-9, high + 0.1 * (high - low) + 1e-9)
        axes.set_xlabel("fits")
        axes.set_ylabel(f"{self.search.score} (larger is better)")
        axes.set_title(self.best.expression, loc="left", fontsize="medium")
        axes.legend(loc="lower right")
        return figure

    def save(self, path: str | Path) -> None:
        """Write settings, data and fits as JSON, which :func:`~slayr_py.search.load` reads.

        Raises
        ------
        DataError
            If the search has given kernels, which the file cannot hold.
        """
        if self.search.given:
            raise DataError(f"a search with given kernels {sorted(self.search.given)} cannot be saved; keep its table")
        values = {
            "format": FORMAT,
            "search": self.search.asdict(),
            "space": encoder_to_json(self.search.encoder),
            "values": self._train.unit_values.tolist(),
            "active": self._train.active.tolist(),
            "y": self._y.tolist(),
            "first": list(self._first),
            "rows": [list(row) for row in self._rows],
            "fits": [fit.asdict() for fit in self._fits.values()],
            "messages": list(self.messages),
        }
        Path(path).write_text(json.dumps(values), encoding="utf-8")

    def _score(self, fit: Fit) -> float:
        value = fit.scores[self.search.score]
        return value if np.isfinite(value) else -np.inf


_COLUMNS = [
    "fit",
    "step",
    "expression",
    "parent",
    "leaves",
    "parameters",
    *SCORES,
    "best",
    "seconds",
    "evaluations",
    "cached",
    "failure",
]
