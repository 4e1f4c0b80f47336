"""`KernelSearch`: search for the expression of a composite kernel that explains the observations best."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.arguments import check_flag, check_integer
from slayr_py.errors import DataError, InferenceError, did_you_mean
from slayr_py.inference import Model, check_targets, given_priors, standardised
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
)
from slayr_py.kernels.expressions import canonical, parse, spell
from slayr_py.progress_bar import Bar
from slayr_py.search.expressions import base_leaves
from slayr_py.search.fit import SCORES, Fit, Score, SearchSettings
from slayr_py.search.journal import Journal
from slayr_py.search.result import MOST_EXACT, SearchResult
from slayr_py.search.strategies import STRATEGIES
from slayr_py.search.task import Task
from slayr_py.search.workers import fits_of, n_processes
from slayr_py.space import Encoded, FloatArray, Space, as_encoder

FEWEST = 10
"""Observations that a search needs."""

DEFAULT_INDUCING = 100  # inducing points m: a sparse fit costs O(n m^2); chosen by hand

SCALARS = (MEAN.name, SIGNAL.name, NOISE.name)
"""Hyperparameters of every expression, whose priors can be chosen."""

_HELD_OUT = 0.2  # share of the observations that the score "rmse" holds out


class KernelSearch:
    """Search for the expression of a :class:`~slayr_py.kernels.Composite` kernel that explains observations best.

    Every candidate is fitted by its posterior mode, without a compiler. Scores are compared on the same data, with the
    same number of starts for every candidate.

    Parameters
    ----------
    space : ConfigurationSpace, Encoder or mapping
    base : sequence of str
        Base kernels, any of ``SE RQ PER LIN MAT12 MAT32 MAT52 C``. Each is used on all parameters and, with ``single``,
        on every single one. ``PER`` and ``LIN`` leave categorical parameters out.
    strategy : {"greedy", "random", "model", "generative"}
        "greedy" expands the best expressions (Duvenaud et al. 2013), "random" draws from a grammar, "model" chooses by
        a Gaussian process over expressions (Malkomes, Schaff & Garnett 2016), "generative" by Bayesian optimisation of
        a recurrent generator (Hoang & Kingsford 2020, with corrected formulas).
    score : {"laplace", "bic", "loo", "rmse", "elbo"}
        "laplace" is Laplace's approximation of the evidence; "bic" Schwarz's criterion; "loo" the leave-one-out log
        density; "rmse" the error on a fifth of the observations, which are held out; "elbo" the variational bound of a
        sparse fit.
    budget : int
        Number of fits. An expression that was fitted before is not counted.
    max_leaves : int
        Largest number of leaves of an expression.
    beam : int
        Number of expressions that a round expands.
    jobs : int, optional
        Number of processes; by default one for each core, or one if the search takes seconds. Results do not depend
        on it.
    restarts : int
        Starts of every fit.
    inducing : int, optional
        Number of inducing points of sparse fits; by default 100 above 1000 observations, and exact fits below.
    seed : int
        Fixes every fit and every choice.
    single : bool
        Use base kernels on every single parameter as well.
    given : mapping of str to Kernel, optional
        Further base kernels by name, as in :class:`~slayr_py.kernels.Composite`.
    priors : mapping of str to Prior, optional
        Priors of ``mu``, ``sigma_f`` and ``sigma_n``, as in `GaussianProcess`. Kernels have their default priors.
    **options
        Options of the strategy: ``draws`` and ``most_truncations`` of "generative", see
        ``slayr_py.search.strategies.generative``.

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
        space: Space,
        base: Sequence[str] = ("SE", "RQ", "PER", "LIN"),
        strategy: str = "greedy",
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
        self.encoder = as_encoder(space)
        if isinstance(base, str) or not len(base):
            raise DataError(f"base must be a list of base kernels such as ['SE', 'LIN'], got {base!r}")
        _check_known("strategy", strategy, STRATEGIES)
        _check_known("score", score, SCORES)
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
        takes = list(signature(STRATEGIES[strategy]).parameters)[1:]
        for name in options:
            if name not in takes:
                raise DataError(f"the strategy {strategy!r} takes no option {name!r}{did_you_mean(name, takes)}")
        self.strategy_options = options
        self.given: Mapping[str, Kernel] = dict(given or {})
        given_scalars = given_priors(priors)
        for name in given_scalars:
            if name not in SCALARS:
                raise DataError(
                    f"a search has priors of {', '.join(SCALARS)}, not of {name!r}{did_you_mean(name, SCALARS)}"
                )
        model = Model(self.encoder, "SE", given_scalars)  # raises for a prior of the wrong family; a number fixes one
        self.priors = {name: model.priors[name] for name in given_scalars}
        self.leaves = base_leaves(self.encoder, self.base, tuple(self.given), self.single)
        for name in self.given:  # raises for a kernel of another space
            from_name(Composite(name, self.given), self.encoder)
        if len(self.leaves) > self.budget:
            raise DataError(
                f"budget={self.budget} is smaller than the number of base kernels, {len(self.leaves)} "
                f"({len(self.base)} on all and on each of {len(self.encoder.names)} parameters); use a larger budget, "
                "fewer base kernels, or none on single parameters (option single)"
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
        return KernelSearch(self.encoder, **(self._arguments() | changes))

    def on(self, space: Space) -> KernelSearch:
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
        """Search for the best expression.

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
            Also if the search is interrupted from the keyboard; `SearchResult.resume` completes it.

        Raises
        ------
        DataError
            With fewer than 10 observations, a target that is not finite, or an expression in ``first`` that is illegal
            or has an unknown column.
        SpaceError
            If a configuration does not belong to the space.
        InferenceError
            If every candidate fails.
        """
        progress = check_flag("progress", progress)
        train = self.encoder.encode(configs)
        targets = check_targets(y, len(train))
        if isinstance(first, str):
            raise DataError(f"first is {first!r}, which is not a list of expressions; use [{first!r}]")
        if start is not None and not isinstance(start, SearchResult):
            raise DataError(f"start is {start!r:.200}; give the result of an earlier search")
        for text in first:  # raises for an unknown column
            from_name(Composite(text, self.given, MOST_LEAVES), self.encoder)
        earlier = () if start is None else start.top(self.beam)
        known = dict.fromkeys([*earlier, *(spell(canonical(parse(text, self.given))) for text in first)])
        return self.resume(train, targets, {}, tuple(known), progress)

    def resume(
        self, train: Encoded, y: FloatArray, known: Mapping[str, Fit], first: tuple[str, ...], progress: bool
    ) -> SearchResult:
        """Repeat a search from the start with the known fits; `run` and `SearchResult.resume` call it.

        Raises
        ------
        DataError
            With fewer than 10 observations, or with the score "loo" if there are so many that fits are sparse.
        InferenceError
            If every candidate fails.
        """
        if len(train) < FEWEST:
            raise DataError(
                f"{len(train)} observations are fewer than the {FEWEST} that a search needs; "
                "choose a kernel such as Matern(p=2) instead"
            )
        if np.ptp(y) == 0:
            message = f"all {len(train)} values are {y[0]:.6g}: every kernel explains them equally well"
            return SearchResult(self, train, y, (), {}, (message,), first)
        settings = self._settings(train, standardised(y)[0])
        messages = [
            f"{name} is left out: it needs real or ordinal parameters, and all of the space are categorical"
            for name in dict.fromkeys(self.base)
            if not any(leaf.name == name for leaf in self.leaves)
        ]
        if settings.inducing is not None and self.inducing is None:
            messages.append(
                f"fits of the {len(train)} observations are sparse, with {settings.inducing} inducing points"
            )
        task = Task(
            self.leaves,
            self.max_leaves,
            settings.train,
            settings.y,
            self.beam,
            seed=self.seed,
            given=self.given,
            first=tuple(parse(text, self.given) for text in first),
        )
        rounds = STRATEGIES[self.strategy](task, **self.strategy_options)
        run = partial(fits_of, settings, n_processes(self.jobs, len(settings.train), self.budget))
        journal = Journal(self.budget, known, self.score, run)
        interrupted = False
        with Bar(total=self.budget, unit="fit", disable=not progress) as bar:
            try:
                exhausted = journal.follow(rounds, bar)
            except KeyboardInterrupt:
                if not journal.fits:
                    raise
                interrupted = True
                messages.append(
                    f"interrupted after {len(journal.fits)} of {self.budget} fits: result.resume() continues"
                )
            else:
                if exhausted:
                    messages.append(f"nothing new was left to fit after {len(journal.fits)} of {self.budget} fits")
        messages += _failures(journal.fits.values())
        return SearchResult(self, train, y, tuple(journal.rows), journal.fits, tuple(messages), first, interrupted)

    def inducing_points(self, n: int) -> int | None:
        """Return the number of inducing points of fits to n observations; None for exact fits."""
        if self.inducing is None and (n > MOST_EXACT or self.score == "elbo"):
            return DEFAULT_INDUCING
        return self.inducing

    def _settings(self, train: Encoded, y: FloatArray) -> SearchSettings:
        inducing = self.inducing_points(len(train))
        if inducing is not None and self.score == "loo":
            raise DataError("a sparse fit has no leave-one-out score; use score='laplace', or fewer observations")
        validation: dict[str, Any] = {}
        if self.score == "rmse":
            order = np.random.default_rng(self.seed).permutation(len(train))
            out, rest = np.split(order, [max(1, round(_HELD_OUT * len(train)))])
            validation = {"validation": train[out], "validation_y": y[out]}
            train = train[rest]
            y = y[rest]
        return SearchSettings(
            self.encoder,
            train,
            y,
            self.restarts,
            inducing,
            self.seed,
            peaks={c: highest_peaks(x, y) for c, x in enumerate(train.columns.T)},
            given=self.given,
            priors=self.priors,
            **validation,
        )


def _check_known(what: str, name: object, known: Collection[str]) -> None:
    if name not in known:
        raise DataError(f"unknown {what} {name!r}{did_you_mean(name, known)}")


def _failures(fits: Collection[Fit]) -> list[str]:
    """Return a message about the fits that failed; raise `InferenceError` if all did."""
    failures = [fit for fit in fits if fit.failure]
    if len(failures) == len(fits):
        reasons = "; ".join(f"{fit.expression}: {fit.failure}" for fit in failures[:3])
        raise InferenceError(f"all {len(failures)} candidates failed: {reasons}")
    return [f"{len(failures)} of {len(fits)} fits failed; the column 'failure' has the reasons"] if failures else []
