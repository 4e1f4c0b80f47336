"""Fit several kernels to the same observations and average their posteriors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError, InferenceError, did_you_mean
from slayr_py.inference.model import Model, Warp
from slayr_py.inference.named_priors import Priors, given_priors
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.seeds import as_stan_seed
from slayr_py.inference.stacking.reasons import failure, unreliability
from slayr_py.kernels import Kernel, Stack
from slayr_py.space import Encoded, Encoder

_MORE = 2  # times as many draws and warm-up iterations in the second fit of a kernel


def build_models(encoder: Encoder, stack: Stack, priors: Priors | None, warp: Warp) -> list[Model]:
    """Return a model for each kernel of a stack, with the priors of its hyperparameters.

    Raises
    ------
    DataError
        For a kernel that does not fit the space, or a prior that no kernel can use.
    """
    plain = [Model(encoder, kernel, warp=warp) for kernel in stack.on(encoder).kernels]
    given = given_priors(priors)
    known = dict.fromkeys(name for model in plain for name in model.priors)
    if unknown := sorted(given.keys() - known.keys()):
        raise DataError(f"no kernel of the stack has a hyperparameter {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    return [
        Model(encoder, model.kernel, {name: prior for name, prior in given.items() if name in model.priors}, warp)
        for model in plain
    ]


def fit_stack(
    fits: Sequence[tuple[Kernel, Callable[..., Posterior]]],
    train: Encoded,
    y: ArrayLike,
    options: FitOptions,
    seed: int,
    progress: Callable[[str], None] | None,
    data: dict[str, Any],
) -> Posterior:
    """Fit every kernel and weight the posteriors; see `GaussianProcess.fit`.

    Parameters
    ----------
    fits : sequence of (Kernel, callable)
        Kernels, and the method `GaussianProcess.fit` for each kernel.
    data : dict
        Further arguments of a fit: ``y_sd`` and ``maximize``.
    seed : int
        The seed of a kernel's fit does not depend on the other kernels.
    """
    options = options.updated(pointwise=True)
    tried: list[_Tried] = []
    for kernel, fit in fits:
        name = kernel.short_name
        report = None if progress is None else _named(name, progress)
        fit_part = partial(fit, train, y, progress=report, **data)
        tried.append(_try(name, fit_part, part_stream(np.random.SeedSequence(seed), kernel), options))
    usable = [attempts for attempts in tried if attempts.posterior is not None]
    # On few observations leave-one-out may be unreliable under every kernel: equally uncertain weights are better than
    # no posterior.
    used = [attempts for attempts in usable if not attempts.is_doubtful] or usable
    messages = [text for attempts in tried if (text := attempts.message(attempts in used))]
    posteriors = [attempts.posterior for attempts in used if attempts.posterior is not None]
    if not posteriors:
        raise InferenceError(
            f"none of the {len(fits)} kernels can be used. {'. '.join(messages)}. Use a single kernel instead of the "
            "stack, or method='nuts' with more warmup and draws"
        )
    return Posterior.stack(posteriors, seed=seed, messages=messages)


@dataclass(frozen=True, eq=False)
class _Tried:
    """Attempts to fit a kernel of a stack.

    Attributes
    ----------
    name : str
    posterior : Posterior or None
        The last fit whose diagnostics pass.
    objections : tuple of str
        Objections to the fits, in order.
    is_doubtful : bool
        Whether its leave-one-out densities, and therefore its weight, are unreliable.
    """

    name: str
    posterior: Posterior | None
    objections: tuple[str, ...]
    is_doubtful: bool = False

    def message(self, is_used: bool) -> str | None:
        """Return a sentence for the messages of the stack; None if the first fit is used."""
        if not self.objections:
            return None
        if is_used and not self.is_doubtful:
            return f"{self.name}: fitted again: {self.objections[0]}"
        action = "uncertain weight" if is_used else "left out"
        return f"{self.name}: {action}: {self.objections[0]}; with {_MORE} times the draws: {self.objections[1]}"


def _try(name: str, fit: Callable[..., Posterior], stream: np.random.SeedSequence, options: FitOptions) -> _Tried:
    """Fit a kernel, and fit it again if there is an objection."""
    why: list[str] = []
    doubtful: Posterior | None = None
    for attempt in (stream, *stream.spawn(1)):
        try:
            posterior = fit(seed=as_stan_seed(attempt), options=options)
            loo = posterior.parts[0].leave_one_out
            objection = failure(posterior.check(), loo)
            if objection is None:
                objection = unreliability(loo)
                doubtful = posterior
        except InferenceError as error:
            objection = str(error)
        if objection is None:
            return _Tried(name, posterior, tuple(why))
        why.append(objection)
        options = options.updated(draws=_MORE * options.draws, warmup=_MORE * options.warmup)
    return _Tried(name, doubtful, tuple(why), is_doubtful=True)


def _named(name: str, progress: Callable[[str], None]) -> Callable[[str], None]:
    return lambda phase: progress(f"{name}: {phase}")


def part_stream(stream: np.random.SeedSequence, kernel: Kernel) -> np.random.SeedSequence:
    """Return the stream of random numbers of a kernel's fit, which does not depend on the other kernels."""
    number = int(kernel.digest, 16)
    key = (*stream.spawn_key, number >> 32, number & 0xFFFFFFFF)
    return np.random.SeedSequence(stream.entropy, spawn_key=key)
