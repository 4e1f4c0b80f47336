"""The result of a kernel search: its fits, the best expression, stacks, components and files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import softmax

from slayr_py.arguments import check_flag, check_integer
from slayr_py.display import Summary
from slayr_py.errors import DataError, did_you_mean
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
    standardised,
)
from slayr_py.kernels import MOST_LEAVES, Composite, Kernel, Prior, Stack, names
from slayr_py.kernels.expressions import Leaf, leaves, parse, spell
from slayr_py.search.expressions import log_prior
from slayr_py.search.fit import SCORES, Fit, Score
from slayr_py.search.journal import Row
from slayr_py.space import Encoded, Encoder, FloatArray, encoder_to_json, jsonable
from slayr_py.text_files import write_text

MOST_EXACT = 1000
"""Observations above which fits of a search are sparse."""

_FIT_OPTIONS = tuple(option.name for option in fields(FitOptions))

FORMAT = 1
"""Format of saved results; it increases with every change of their meaning."""


class Search(Protocol):
    """Settings of the search behind a result; see `KernelSearch`."""

    encoder: Encoder
    base: tuple[str, ...]
    strategy: str
    score: Score
    budget: int
    seed: int
    given: Mapping[str, Kernel]
    priors: dict[str, Prior]
    leaves: tuple[Leaf, ...]

    def asdict(self) -> dict[str, Any]:
        """Return the settings; JSON-able."""

    def updated(self, **changes: Any) -> Search:
        """Return this search with other settings."""

    def resume(
        self, train: Encoded, y: FloatArray, known: Mapping[str, Fit], first: tuple[str, ...], progress: bool
    ) -> SearchResult:
        """Repeat the search from the start with the known fits."""


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """Fits of a kernel search, and the best expression.

    Attributes
    ----------
    search : KernelSearch
        Settings of the search.
    train : Encoded
        The n observed configurations.
    y : (n,) float64
        Observed values.
    rows : tuple of Row
        Proposals of the strategy, in order.
    fits : mapping of str to Fit
        Fits by expression.
    messages : tuple of str
        What was approximated, dropped or interrupted.
    first : tuple of str
        Expressions that were fitted first, besides the base kernels.
    interrupted : bool
        Whether it was interrupted from the keyboard.
    """

    search: Search
    train: Encoded
    y: FloatArray
    rows: tuple[Row, ...]
    fits: Mapping[str, Fit]
    messages: tuple[str, ...]
    first: tuple[str, ...] = ()
    interrupted: bool = False

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        heading = f"Kernel search: best {self.best.expression} of {len(self.fits)} fits, {self.search.strategy}"
        columns = ["expression", self.search.score, "parameters", "seconds"]
        return Summary("\n".join([heading, *self.messages]), self.unique[columns].head(5))

    @property
    def best(self) -> Composite:
        """The kernel with the best score; if nothing was fitted, the leaf with the fewest hyperparameters."""
        order = self.top(1) or sorted(map(spell, self.search.leaves), key=self._n_parameters)
        return self.kernel(order[0])

    def kernel(self, expression: str) -> Composite:
        """Return the kernel of an expression, with the given leaves of the search."""
        return Composite(expression, self.search.given, MOST_LEAVES)

    def top(self, count: int) -> list[str]:
        """Return the expressions with the best scores, the best first; among equal scores the simplest first."""
        good = [fit for fit in self.fits.values() if not fit.failure and np.isfinite(self._score(fit))]
        good.sort(key=lambda fit: (-self._score(fit), self._size(fit.expression), fit.expression))
        return [fit.expression for fit in good[:count]]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row for each proposal of the strategy.

        The columns are ``fit``, ``step``, ``expression``, ``parent``, ``leaves``, ``parameters``, all scores, ``best``
        so far, ``seconds``, ``evaluations`` of the density, ``cached`` and ``failure``. Expressions are in canonical
        form.

        ``fit`` is the number of fits so far; a cached row costs none. ``bic`` and ``rmse`` are negated, so that larger
        is better in every column of scores. All scores are of standardised values: ``rmse`` is in their standard
        deviations.
        """
        best = -np.inf
        count = 0
        records = []
        for row in self.rows:
            fit = self.fits[row.expression]
            count += not row.cached
            best = max(best, self._score(fit))
            records.append(
                {
                    "fit": count,
                    "step": row.step,
                    "expression": row.expression,
                    "parent": row.parent,
                    "leaves": self._size(row.expression),
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
        fits = self._fresh.sort_values(self.search.score, ascending=False, kind="stable").reset_index(drop=True)
        n_leaves = len(self.search.leaves)
        prior = [log_prior(parse(text, self.search.given), n_leaves) for text in fits["expression"]]
        logs = fits["laplace"].to_numpy(dtype=np.float64) + np.array(prior)
        return fits.assign(probability=softmax(np.where(np.isfinite(logs), logs, -np.inf)) if len(fits) else [])

    @property
    def _fresh(self) -> pd.DataFrame:
        """The rows of `table` that are fits."""
        return self.table[~self.table["cached"].astype(bool)]

    def resume(self, budget: int | None = None, progress: bool = True) -> SearchResult:
        """Continue until the total number of fits is ``budget``, by default the budget of the search.

        The result equals the result of a search with this budget from the start.
        """
        search = self.search.updated(budget=self.search.budget if budget is None else budget)
        return search.resume(self.train, self.y, self.fits, self.first, check_flag("progress", progress))

    def stack(
        self,
        top: int = 5,
        fit: FitKeywords | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Posterior:
        """Fit the best expressions by NUTS, with the priors of the search, and average their posteriors by stacking.

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
            With more than 1000 observations, unless the method is "map": each fit would take hours. For an unknown
            option; the seed is that of the search.
        InferenceError
            If no fit can be used.
        """
        top = check_integer("top", top)
        for name in fit or ():
            if name not in _FIT_OPTIONS:
                seed = "; the seed is that of the search: KernelSearch(..., seed=4)" if name == "seed" else ""
                raise DataError(f"fit has {name!r}, which is not an option{seed or did_you_mean(name, _FIT_OPTIONS)}")
        options = FitOptions.given(None, fit or {})
        if len(self.y) > MOST_EXACT and not METHODS[options.method].point_estimate:
            raise DataError(
                f"{len(self.y)} observations are more than the {MOST_EXACT} for which a stack is sampled; use "
                "fit={'method': 'map'}, or GaussianProcess(space, result.best, inducing=100)"
            )
        kernels = [self.kernel(text) for text in self.top(top)] or [self.best]
        gp = GaussianProcess(self.search.encoder, Stack(kernels).with_plain(), priors=self.search.priors)
        return gp.fit(self.train, self.y, seed=self.search.seed, progress=progress, options=options)

    def components(self, configs: Any = None) -> Components:
        """Return the summands of the best expression at its mode, by default at the observed configurations.

        Raises
        ------
        DataError
            If nothing was fitted, or with more than 1000 observations.
        """
        if not self.fits or len(self.y) > MOST_EXACT:
            why = f"{len(self.y)} observations are more than {MOST_EXACT}" if self.fits else "nothing was fitted"
            raise DataError(f"{why}: the search has no components")
        new = self.train if configs is None else self.search.encoder.encode(configs, other_columns=True)
        y, mean, sd = standardised(self.y)
        targets = Targets(y, np.zeros(len(self.y)), NOISE_FLOOR)
        return split_into_components(self.best, self.train, targets, self.mode(self.best.expression), new, mean, sd)

    def mode(self, expression: str) -> dict[str, FloatArray]:
        """Return the hyperparameters of a fitted expression at its mode by name, as one draw, (1, ...)."""
        if (fit := self.fits.get(expression)) is None:
            raise DataError(f"{expression!r} was not fitted{did_you_mean(expression, self.fits)}")
        shapes = {h.name: h.shape for h in self.kernel(expression).hyperparameters(self.search.encoder)}
        theta = fit.theta
        return {name: np.reshape(values, (1, *shapes.get(name, ()))) for name, values in theta.items()}

    def plot(self) -> Any:
        """Draw the score of every fit and the best one so far against the number of fits.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from matplotlib.figure import Figure  # slow to import

        fits = self._fresh
        figure = Figure(figsize=(8, 4), layout="constrained")
        axes = figure.subplots()
        scores = fits[self.search.score].replace([np.inf, -np.inf], np.nan)
        axes.plot(fits["fit"], scores, ".", alpha=0.5, label="fit")
        axes.step(fits["fit"], fits["best"], where="post", label="best so far")
        if len(scores.dropna()) > 1:
            low, high = np.quantile(scores.dropna(), [0.25, 1.0])
            axes.set_ylim(low - 0.1 * (high - low) - 1e-9, high + 0.1 * (high - low) + 1e-9)
        axes.set_xlabel("fits")
        axes.set_ylabel(f"{self.search.score} (larger is better)")
        axes.set_title(self.best.expression, loc="left", fontsize="medium", parse_math=False)
        axes.legend(loc="lower right")
        return figure

    def save(self, path: str | Path) -> None:
        """Write settings, data and fits as JSON, which :func:`~slayr_py.search.load` reads.

        Raises
        ------
        DataError
            If a given kernel is of a user's class, which the file cannot name.
        StorageError
            If the file cannot be written; an older one keeps its content.
        """
        unknown = [name for name, kernel in self.search.given.items() if kernel.name not in names()]
        if unknown:
            raise DataError(f"the given kernels {unknown} are not kernels of slayr_py, so the search cannot be saved")
        given = self.kernel(next(iter(self.search.given))).options()["given"] if self.search.given else {}
        values = {
            "format": FORMAT,
            "search": self.search.asdict(),
            "given": jsonable(given),
            "space": encoder_to_json(self.search.encoder),
            "values": self.train.unit_values.tolist(),
            "active": self.train.active.tolist(),
            "y": self.y.tolist(),
            "first": list(self.first),
            "rows": [list(row) for row in self.rows],
            "fits": [fit.asdict() for fit in self.fits.values()],
            "messages": list(self.messages),
            "interrupted": self.interrupted,
        }
        write_text(Path(path), json.dumps(values))

    def _score(self, fit: Fit) -> float:
        return fit.score(self.search.score)

    def _n_parameters(self, expression: str) -> int:
        return sum(math.prod(h.shape) for h in self.kernel(expression).hyperparameters(self.search.encoder))

    def _size(self, expression: str) -> int:
        """Return the number of leaves of an expression."""
        return len(leaves(parse(expression, self.search.given)))


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
