"""`KernelSearch`: search for the expression of a composite kernel that explains the observations best."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import ArrayLike

from slayr_py.arguments import check_flag, check_integer
from slayr_py.errors import DataError, InferenceError, StorageError, did_you_mean
from slayr_py.inference import Model, check_targets, standardisation
from slayr_py.kernels import (
    MEAN,
    MOST_LEAVES,
    NOISE,
    SIGNAL,
    Composite,
    Kernel,
    Prior,
    from_name,
    highest_peaks,
    prior_from_dict,
)
from slayr_py.kernels.expressions import LEAVES, canonical, parse, spell
from slayr_py.progress_bar import tqdm
from slayr_py.search.expressions import base_leaves
from slayr_py.search.fit import SCORES, Fit, Score, Settings
from slayr_py.search.generative import generative
from slayr_py.search.greedy import greedy
from slayr_py.search.model import model
from slayr_py.search.random_search import random_search
from slayr_py.search.result import FORMAT, MOST_EXACT, Row, SearchResult
from slayr_py.search.task import Candidate, Rounds, Task
from slayr_py.search.workers import Workers, n_processes
from slayr_py.space import Encoded, Encoder, FloatArray, encoder_from_json

Strategy = Literal["greedy", "random", "model", "generative"]

STRATEGIES: dict[str, Callable[..., Rounds]] = {
    "greedy": greedy,
    "random": random_search,
    "model": model,
    "generative": generative,
}

FEWEST = 10
"""Observations that a search needs."""

DEFAULT_INDUCING = 100

SCALARS = (MEAN.name, SIGNAL.name, NOISE.name)
"""Hyperparameters whose priors can be chosen: every expression has them."""

_HELD_OUT = 0.2  # share of the observations that the score "rmse" holds out


class KernelSearch:
    """Search for the expression of a :class:`~slayr_py.kernels.Composite` kernel that explains observations best.

    Every candidate is fitted by its posterior mode; nothing is compiled. The score is compared on the same data, with
    the same number of starts for every candidate.

    Parameters
    ----------
    space : ConfigurationSpace or Encoder
    base : sequence of str
        Base kernels, any of ``SE RQ PER LIN MAT12 MAT32 MAT52 C``. Each is used on all parameters and, with ``single``,
        on every single one. ``PER`` and ``LIN`` leave categorical parameters out.
    strategy : {"greedy", "random", "model", "generative"}
        "greedy" expands the best expressions (Duvenaud et al. 2013), "random" draws from a grammar, "model" chooses by
        a Gaussian process over expressions (Malkomes, Schaff & Garnett 2016), "generative" by Bayesian optimisation of
        a recurrent generator (Hoang & Kingsford 2020, with its formulas mended).
    score : {"laplace", "bic", "loo", "rmse", "elbo"}
        "laplace" is Laplace's approximation of the evidence; "bic" Schwarz's criterion; "loo" the leave-one-out log
        density; "rmse" the error on a fifth of the observations, which are held out; "elbo" the variational bound of a
        sparse fit.
    budget : int
        Number of fits. An expression that is already known costs nothing.
    max_leaves : int
        Largest number of leaves of an expression.
    beam : int
        Number of expressions that a round expands.
    jobs : int, optional
        Number of processes; by default one for each core, and one for searches of seconds. Results do not depend on
        it.
    restarts : int
        Starts of every fit.
    inducing : int, optional
        Fit sparsely, with so many inducing points; by default 100 above 1000 observations.
    seed : int
        Fixes every fit and every choice.
    single : bool
        Use base kernels on every single parameter as well.
    given : mapping of str to Kernel, optional
        Further base kernels by name, as in :class:`~slayr_py.kernels.Composite`.
    priors : mapping of str to Prior, optional
        Priors of ``mu``, ``sigma_f`` and ``sigma_n``, as in `GaussianProcess`; those of kernels keep their defaults.
    **options
        Options of the strategy: ``argmax`` and ``printed_policy`` of "generative" are the source as printed.

    Raises
    ------
    DataError
        For an unknown name, an illegal number, or a budget smaller than the number of base kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from ConfigSpace import ConfigurationSpace
    >>> x = np.linspace(0, 1, 20)
    >>> search = KernelSearch(ConfigurationSpace({"x": (0.0, 1.0)}), base=["SE", "LIN"], budget=6)
    >>> search.run([{"x": v} for v in x], 3 * x, progress=False).best.expression
    'LIN'
    """

    def __init__(
        self,
        space: ConfigurationSpace | Encoder,
        base: Sequence[str] = ("SE", "RQ", "PER", "LIN"),
        strategy: Strategy = "greedy",
        score: Score = "laplace",
        budget: int = 100,
        max_leaves: int = 10,
        beam: int = 3,
        jobs: int | None = None,
        restarts: int = 3,
        inducing: int | None = None,
        seed: int = 1,
        single: bool = True,
        given: Mapping[str, Kernel] | None = None,
        priors: Mapping[str, Prior] | None = None,
        **options: Any,
    ) -> None:
        self.encoder = space if isinstance(space, Encoder) else Encoder(space)
        if isinstance(base, str) or not len(base):
            raise DataError(f"base must be a list of base kernels such as ['SE', 'LIN'], got {base!r}")
        for name in base:
            if name not in LEAVES:
                raise DataError(f"unknown base kernel {name!r}{did_you_mean(name, LEAVES)}")
        if strategy not in get_args(Strategy):
            raise DataError(f"unknown strategy {strategy!r}{did_you_mean(strategy, get_args(Strategy))}")
        if score not in SCORES:
            raise DataError(f"unknown score {score!r}{did_you_mean(score, SCORES)}")
        self.base = tuple(dict.fromkeys(base))
        self.strategy = strategy
        self.score = score
        self.budget = check_integer("budget", budget)
        self.beam = check_integer("beam", beam)
        self.max_leaves = check_integer("max_leaves", max_leaves, 1, MOST_LEAVES)
        self.jobs = None if jobs is None else check_integer("jobs", jobs)
        self.restarts = check_integer("restarts", restarts)
        self.inducing = None if inducing is None else check_integer("inducing", inducing)
        self.seed = check_integer("seed", seed, minimum=0)
        self.single = check_flag("single", single)
        taken = list(signature(STRATEGIES[strategy]).parameters)[1:]
        for name in options:
            if name not in taken:
                raise DataError(f"the strategy {strategy!r} takes no option {name!r}{did_you_mean(name, taken)}")
        self.strategy_options = options
        self.given = dict(given or {})
        self.priors = dict(priors or {})
        for name in self.priors:
            if name not in SCALARS:
                raise DataError(
                    f"a search has priors of {', '.join(SCALARS)}, not of {name!r}{did_you_mean(name, SCALARS)}"
                )
        Model(self.encoder, "SE", self.priors)  # raises for a prior of the wrong family
        self._leaves = base_leaves(self.encoder, self.base, tuple(self.given), self.single)
        for name in self.given:  # raises for a kernel of another space
            from_name(Composite(name, self.given), self.encoder)
        if len(self._leaves) > self.budget:
            raise DataError(
                f"budget={self.budget} is smaller than the number of base kernels, {len(self._leaves)} "
                f"({len(self.base)} on all and on each of {len(self.encoder.names)} parameters); use a larger budget, "
                "fewer base kernels, or single=False"
            )

    def asdict(self) -> dict[str, Any]:
        """Return the settings without the space; JSON-able."""
        names = ("strategy", "score", "budget", "max_leaves", "beam", "restarts", "inducing", "seed", "single")
        priors = {"priors": {name: prior.asdict() for name, prior in self.priors.items()}} if self.priors else {}
        return {
            "base": list(self.base),
            **{name: getattr(self, name) for name in names},
            **priors,
            **self.strategy_options,
        }

    def updated(self, **changes: Any) -> KernelSearch:
        """Return this search with other settings."""
        return KernelSearch(self.encoder, **{**self._arguments(), **changes})

    def on(self, space: ConfigurationSpace | Encoder) -> KernelSearch:
        """Return this search on another space."""
        return KernelSearch(space, **self._arguments())

    def _arguments(self) -> dict[str, Any]:
        return {**self.asdict(), "jobs": self.jobs, "given": self.given, "priors": self.priors}

    def __repr__(self) -> str:
        return f"KernelSearch({', '.join(f'{name}={value!r}' for name, value in self.asdict().items())})"

    def run(
        self,
        configs: Encoded | Iterable[Mapping[str, Any]] | Any,
        y: ArrayLike,
        progress: bool = True,
        start: SearchResult | None = None,
        first: Sequence[str] = (),
    ) -> SearchResult:
        """Search.

        Parameters
        ----------
        configs : iterable of n configurations, DataFrame, (n, D) array, or Encoded
        y : (n,) array_like
            Observed values.
        progress : bool
            Draw a progress bar with the best expression on standard error.
        start : SearchResult, optional
            An earlier search, on other data of the same space: its best expressions are fitted first.
        first : sequence of str, optional
            Further expressions to fit first.

        Returns
        -------
        SearchResult
            Also if the search is interrupted from the keyboard: `SearchResult.resume` goes on.

        Raises
        ------
        DataError
            With fewer than 10 observations, a target that is not finite, or an illegal expression.
        SpaceError
            If a configuration does not belong to the space.
        InferenceError
            If every candidate fails.
        """
        train = self.encoder.encode(configs)
        targets = check_targets(y, len(train))
        earlier = () if start is None else start.top(self.beam)
        known = dict.fromkeys([*earlier, *(spell(canonical(parse(text, self.given))) for text in first)])
        return self.go_on(train, targets, {}, tuple(known), progress)

    def go_on(
        self, train: Encoded, targets: FloatArray, known: Mapping[str, Fit], first: Sequence[str], progress: bool
    ) -> SearchResult:
        """Search, with the fits that are known already by expression; `run` and `SearchResult.resume` call it."""
        if len(train) < FEWEST:
            raise DataError(
                f"{len(train)} observations are fewer than the {FEWEST} that a search needs: structure needs data; "
                "choose a kernel such as Matern(p=2) instead"
            )
        mean, sd = standardisation(targets)
        if np.ptp(targets) == 0:
            message = f"all {len(train)} values are {targets[0]:.6g}: every kernel explains them equally well"
            return SearchResult(self, train, targets, (), {}, (message,), tuple(first))
        messages: list[str] = []
        interrupted = False
        settings = self._settings(train, (targets - mean) / sd, messages)
        task = Task(
            self._leaves,
            self.max_leaves,
            settings.train,
            settings.y,
            self.beam,
            seed=self.seed,
            given=self.given,
            first=tuple(parse(text, self.given) for text in first),
        )
        rounds = partial(STRATEGIES[self.strategy], **self.strategy_options)(task)
        journal = _Journal(self.budget, dict(known), self.score, self.given)
        workers = Workers(settings, n_processes(self.jobs, len(settings.train), self.budget))
        with tqdm(total=self.budget, unit="fit", disable=not progress) as bar:
            try:
                finished = journal.follow(rounds, workers, bar)
            except KeyboardInterrupt:
                if not journal.fits:
                    raise
                interrupted = True
                messages.append(
                    f"interrupted after {len(journal.fits)} of {self.budget} fits: result.resume() continues"
                )
            else:
                if finished:
                    messages.append(f"nothing new was left to fit after {len(journal.fits)} of {self.budget} fits")
        failures = [fit for fit in journal.fits.values() if fit.failure]
        if len(failures) == len(journal.fits):
            reasons = "; ".join(f"{fit.expression}: {fit.failure}" for fit in failures[:3])
            raise InferenceError(f"all {len(failures)} candidates failed: {reasons}")
        if failures:
            messages.append(f"{len(failures)} of {len(journal.fits)} fits failed; the column 'failure' says why")
        rows = tuple(journal.rows)
        seen = tuple(messages)
        return SearchResult(self, train, targets, rows, journal.fits, seen, tuple(first), interrupted)

    def _settings(self, train: Encoded, y: FloatArray, messages: list[str]) -> Settings:
        inducing = self.inducing
        if inducing is None and (len(train) > MOST_EXACT or self.score == "elbo"):
            inducing = DEFAULT_INDUCING
            messages.append(f"fits of the {len(train)} observations are sparse, with {inducing} inducing points")
        if inducing is not None and self.score == "loo":
            raise DataError("a sparse fit has no leave-one-out score; use score='laplace', or fewer observations")
        validation: dict[str, Any] = {}
        if self.score == "rmse":
            order = np.random.default_rng(self.seed).permutation(len(train))
            out, rest = np.split(order, [max(1, round(_HELD_OUT * len(train)))])
            validation = {"validation": train[out], "validation_y": y[out]}
            train = train[rest]
            y = y[rest]
        tops = {c: highest_peaks(x, y) for c, x in enumerate(train.columns.T)}
        return Settings(
            self.encoder,
            train,
            y,
            self.score,
            self.restarts,
            inducing,
            self.seed,
            peaks=tops,
            given=self.given,
            priors=self.priors,
            **validation,
        )


def load(path: str | Path) -> SearchResult:
    """Read a result that `SearchResult.save` wrote.

    Raises
    ------
    StorageError
        If the file is not such a result.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
        if values["format"] != FORMAT:
            raise StorageError(f"{path} has format {values['format']}, this version reads {FORMAT}")
        encoder = encoder_from_json(values["space"])
        priors = {name: prior_from_dict(prior) for name, prior in values["search"].pop("priors", {}).items()}
        search = KernelSearch(encoder, **values["search"], priors=priors)
        train = Encoded(np.array(values["values"], np.float64), np.array(values["active"], np.bool_), encoder)
        fits = {one["expression"]: Fit(**one) for one in values["fits"]}
        rows = tuple(Row(*row) for row in values["rows"])
        y = np.array(values["y"], dtype=np.float64)
        return SearchResult(search, train, y, rows, fits, tuple(values["messages"]), tuple(values["first"]))
    except StorageError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"{path} is not a saved kernel search: {error}") from error


class _Journal:
    """What a search has fitted so far.

    Attributes
    ----------
    rows : list of Row
        In the order of the proposals.
    fits : dict of str to Fit
        By expression, those that count against the budget.
    """

    def __init__(self, budget: int, known: dict[str, Fit], score: Score, given: Collection[str]) -> None:
        self._budget = budget
        self._known = known
        self._score = score
        self._given = given
        self.rows: list[Row] = []
        self.fits: dict[str, Fit] = {}
        self._best: Fit | None = None

    def follow(self, rounds: Rounds, workers: Workers, bar: Any) -> bool:
        """Fit what a strategy proposes; return whether it ended before the budget did."""
        try:
            batch = next(rounds)
            while True:
                self._fit(batch, workers, bar)
                if len(self.fits) >= self._budget:
                    rounds.close()
                    return False
                answers = [
                    self.fits[one.expression].evaluation(one.node, self._score)
                    for one in batch
                    if one.expression in self.fits
                ]
                batch = rounds.send(answers)
        except StopIteration:
            return True

    def _fit(self, batch: Sequence[Candidate], workers: Workers, bar: Any) -> None:
        new: dict[str, Candidate] = {}
        for candidate in batch:
            if candidate.expression in self.fits:
                self._note(candidate, self.fits[candidate.expression], cached=True)
            elif len(self.fits) + len(new) < self._budget:
                new.setdefault(candidate.expression, candidate)
        unknown = [candidate for name, candidate in new.items() if name not in self._known]
        fresh = self._fresh(unknown, workers)
        for name, candidate in new.items():
            fit = self._known[name] if name in self._known else next(fresh)
            self.fits[name] = self._known[name] = fit
            self._note(candidate, fit, cached=False)
            bar.update()
            if not fit.failure and (self._best is None or fit.scores[self._score] > self._best.scores[self._score]):
                self._best = fit
                bar.set_postfix_str(f"{fit.expression}: {fit.scores[self._score]:.1f}")

    def _fresh(self, candidates: Sequence[Candidate], workers: Workers) -> Iterator[Fit]:
        jobs = []
        for candidate in candidates:
            parent = self.fits.get(candidate.parent) if candidate.parent is not None else None
            jobs.append((candidate, None if parent is None else (parse(parent.expression, self._given), parent)))
        return workers.fits(jobs)

    def _note(self, candidate: Candidate, fit: Fit, cached: bool) -> None:
        self.rows.append(Row(fit.expression, candidate.step, candidate.parent, cached))
