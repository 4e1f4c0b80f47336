"""Search for kernels as a study grows: the model of a study with ``kernel="search"``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError, InferenceError, StorageError
from slayr_py.inference import GaussianProcess, Model, Priors, as_stan_seed, standardised, warped
from slayr_py.kernels import MEAN, MOST_LEAVES, NOISE, SIGNAL, WARP, Composite, Kernel, Matern
from slayr_py.search import SCALARS, KernelSearch, SearchResult, base_leaves
from slayr_py.space import Encoder, FloatArray, jsonable, space_to_json
from slayr_py.study.model.session import Phase, Session
from slayr_py.study.storage.attributes import space_difference
from slayr_py.study.storage.search_lock import search_lock
from slayr_py.study.storage.search_records import StoredSearch, claim_search, last_search, release_search, store_search
from slayr_py.study.storage.trials import Observations, to_ranges

FEWEST = 30
"""Smallest number of observations for a search; structure learnt from fewer is noise."""

TOP = 3
"""Number of expressions in the stack besides the plain kernel."""

DEFAULTS: dict[str, Any] = {
    "base": ("SE", "LIN", "MAT52", "RQ"),
    "budget": 20,
    "max_leaves": 4,
    "restarts": 3,
    "jobs": 1,
}
"""Settings of ``kernel="search"`` that differ from the defaults of `KernelSearch`. PER is not a base kernel because
tens of observations suggest spurious periods."""

SHARED = (MEAN.name, SIGNAL.name, NOISE.name, WARP.name)
"""Hyperparameters that every kernel has. A user's priors of these also hold for expressions."""


def default_search(space: Encoder, **options: Any) -> KernelSearch:
    """Return the search of ``kernel="search"``.

    Parameters
    ----------
    space : Encoder
    **options
        Arguments of `KernelSearch` that replace `DEFAULTS`. ``single`` is True by default if the search then has
        at most half as many base kernels as fits.

    Raises
    ------
    DataError
        For an illegal option.
    """
    search = KernelSearch(space, **{**DEFAULTS, "single": False, **options})
    if "single" in options or 2 * len(base_leaves(space, search.base, search.given)) > search.budget:
        return search
    return search.updated(single=True)


def on_space(search: KernelSearch, space: Encoder) -> KernelSearch:
    """Return a user's search on the space of a study, whose encoder may have other graphs.

    Raises
    ------
    DataError
        If the search is of another space.
    """
    if difference := space_difference(space_to_json(search.encoder.space), space.space):
        raise DataError(
            f"the kernel search was made for another space: {difference.replace('the study', 'the search')}; "
            "create it with the space of the study"
        )
    return search.on(space)


def due(n: int, n_initial: int) -> int | None:
    """Return the largest of 2, 4, 8, ... times ``n_initial`` that is at most n and at least `FEWEST`, or None.

    Examples
    --------
    >>> due(39, 5), due(40, 5), due(79, 5), due(80, 5)
    (None, 40, 40, 80)
    """
    latest = None
    number = 2 * max(n_initial, 1)
    while number <= n:
        latest = number if number >= FEWEST else None
        number *= 2
    return latest


@dataclass(frozen=True)
class LoopSearch:
    """The model of a study that searches for kernels.

    It is the plain kernel until the first search, then a stack of the plain kernel and the best expressions of the last
    search. A search is due at 2, 4, 8, ... times the size of the initial design, not below `FEWEST` observations, and
    starts from the expressions of the one before.

    A search fits standardised targets; smaller values are better. If the models have a warp, the search transforms the
    targets by the warp at the median of its prior, because the modes that it fits have no warp. It uses the priors of
    the study for mean, signal and noise unless it has its own, which then hold for the expressions of the stack as
    well. It ignores known standard deviations of errors (``y_sd``), except that they leave out the warp.

    Attributes
    ----------
    search : KernelSearch
    plain : GaussianProcess
        With all priors of the user.
    priors : mapping
        Priors of the user and the loop by name; those in `SHARED` hold for expressions.
    n_initial : int
    session : Session
    """

    search: KernelSearch
    plain: GaussianProcess
    priors: Priors
    n_initial: int
    session: Session
    chooses_scales: ClassVar[bool] = False

    @property
    def kernel(self) -> KernelSearch:
        """Return the search."""
        return self.search

    @property
    def first_kernel(self) -> Kernel:
        """Return the plain kernel, which models failures and constraints."""
        return self.plain.model.kernel

    def on(self, encoder: Encoder) -> LoopSearch:
        """Return the surrogate whose plain kernel has other scales of the same space."""
        return replace(self, plain=self.plain.on(encoder))

    def record(self) -> dict[str, Any]:
        """Return the entry "kernel" of the study's record."""
        plain = self.plain.model.kernel
        options = {**self.search.asdict(), "plain": {"name": plain.name, "options": plain.options()}}
        given = {name: kernel.digest for name, kernel in self.search.given.items()}
        return {
            "name": "search",
            "options": jsonable(options),
            "given": given,
            "description": f"kernel search, {self.search.budget} fits each; {plain.description} until the first",
            "chosen": "user",
            "reason": None,
        }

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Compile the programs of the plain kernel and of expressions; see `GaussianProcess.prepare`."""
        for kernel in (self.plain.kernel, Composite("C")):
            GaussianProcess(self.plain.encoder, kernel).prepare(progress)

    def model(self, study: Study, trial: FrozenTrial, observed: Observations, seed: int) -> GaussianProcess:
        """Return the model for a suggestion; search before if a search is due, and store it in the trial.

        If another process runs the search that is due, the model does not change until that is stored.

        The random numbers of a search follow from the ``seed`` of the study and from the number of observations at
        which it was due. If the search fails, the model does not change and a warning is issued.
        """
        number = due(len(observed.y), self.n_initial)
        if number is None:
            return self.plain
        last = last_search(study, number, trial.number)
        if last is None or last.due < number:
            # One process searches, without the lock; the others go on with the expressions they have.
            with search_lock(study):
                claimed = claim_search(study, trial, number)
            if claimed:
                try:
                    self._run(study, trial, observed, seed, number, last)
                except BaseException:
                    release_search(study, trial)  # the process may live on, as in a notebook
                    raise
        return self._stack(study, last_search(study, number, trial.number))

    def latest(self, study: Study, observed: Observations) -> GaussianProcess:
        """Return the model for all observations, from the last search that a trial has stored."""
        number = due(len(observed.y), self.n_initial)
        return self._stack(study, None if number is None else last_search(study, number))

    def _run(
        self,
        study: Study,
        trial: FrozenTrial,
        observed: Observations,
        seed: int,
        number: int,
        before: StoredSearch | None,
    ) -> None:
        self.session.report(Phase("searching kernels", trial.number))
        if observed.errors is not None:
            text = "the kernel search ignores the known errors of the values (y_sd); the fits of its kernels use them"
            self.session.warn(text, "known errors in a kernel search")
        clock = time.perf_counter()
        search_seed = as_stan_seed(np.random.SeedSequence([seed, number, self.search.seed]))
        scalars = {name: self.plain.priors[name] for name in SCALARS if name in self.priors}
        search = self.search.updated(seed=search_seed, priors=scalars | self.search.priors)
        earlier = [] if before is None else before.expressions
        about: dict[str, Any] = {"expressions": earlier, "scores": [], "fits": 0, "messages": [], "error": None}
        try:
            result = search.run(observed.configs, self.targets(observed), progress=False, first=earlier)
        except (DataError, InferenceError) as error:
            about["error"] = str(error)
            text = f"the kernel search at {len(observed.y)} observations failed, so the model does not change: {error}"
            self.session.warn(text, "kernel search")
        else:
            if result.interrupted:
                raise KeyboardInterrupt  # a resumed study repeats the search with the same result
            about |= {"fits": len(result.unique), "messages": list(result.messages)}
            about |= self._best(result) if result.top(1) else {}
        about |= {"due": number, "score": search.score, "seed": search_seed, "trials": to_ranges(observed.numbers)}
        store_search(study, trial, about | {"seconds": round(time.perf_counter() - clock, 3)})

    def targets(self, observed: Observations) -> FloatArray:
        """Return the targets (n,) that a search fits."""
        y, _, _ = standardised(observed.y, observed.maximize)
        if self.plain.with_errors(observed.errors).warp == "none":
            return y
        median = self.plain.priors[WARP.name].at_score(np.zeros(()))
        pivot = float(y.min()) if self.plain.warp == "best" else None
        return warped(y, np.asarray(median), pivot)

    def _best(self, result: SearchResult) -> dict[str, Any]:
        """Return the best expressions and their scores; omit the plain kernel."""
        plain = self.plain.model.kernel
        known = "MAT52" if isinstance(plain, Matern) and plain.p == 2 else None
        expressions = [text for text in result.top(TOP + 1) if text != known][:TOP]
        scores = result.unique.set_index("expression")[self.search.score]
        return {"expressions": expressions, "scores": [float(scores[text]) for text in expressions]}

    def _stack(self, study: Study, stored: StoredSearch | None) -> GaussianProcess:
        """Return the stack of the plain kernel and the expressions of a search."""
        if stored is None or not stored.expressions:
            return self.plain
        shared = {name: prior for name, prior in self.priors.items() if name in SHARED} | self.search.priors
        encoder = self.plain.encoder
        warp = self.plain.model.given_warp
        try:
            kernels = [Composite(text, self.search.given, MOST_LEAVES) for text in stored.expressions]
            models = [Model(encoder, kernel, shared, warp) for kernel in kernels]
            return GaussianProcess.of([self.plain.model, *models])
        except DataError as error:
            raise StorageError(
                f"study {study.study_name!r}: the expressions of the kernel search in trial {stored.trial} cannot be "
                f"used: {error}. Restore a copy of the study, or resume it with the kernel that it was started with"
            ) from error
