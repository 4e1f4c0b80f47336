"""Fit several kernels to the same observations and average their posteriors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from ConfigSpace import ConfigurationSpace
from numpy.typing import ArrayLike
from typing_extensions import Unpack

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError, InferenceError, did_you_mean
from slayr_py.inference.gaussian_process import GaussianProcess
from slayr_py.inference.model import Warp
from slayr_py.inference.named_priors import Priors
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sampling.options import FitKeywords, FitOptions
from slayr_py.inference.sampling.seeds import as_stan_seed
from slayr_py.inference.stacking.posterior import StackedPosterior
from slayr_py.inference.stacking.scores import failure, score, unreliability
from slayr_py.kernels import Kernel, Stack
from slayr_py.space import Encoded, Encoder

_MORE = 2  # times as many draws and warm-up iterations in the second fit of a kernel


class StackedGaussianProcess:
    """Gaussian processes with different kernels on one search space, whose posteriors are averaged.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace or Encoder
    kernels : Stack, or iterable of Kernel or str
        See :func:`~slayr_py.stack`.
    priors : mapping, optional
        As in :class:`GaussianProcess`, for every kernel that has a hyperparameter of that name.
    warp : {"none", "log", "auto"}
        As in :class:`GaussianProcess`, for all kernels.

    Attributes
    ----------
    encoder : Encoder
    kernel : Stack
        The kernels on this space.
    parts : tuple of GaussianProcess
        One for each kernel, in the same order.

    Raises
    ------
    SpaceError
        If the space cannot be encoded.
    DataError
        For no kernel, a kernel that occurs twice or does not fit the space, an unknown warp, or a prior that no kernel
        can use.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> import slayr_py as sl
    >>> space = ConfigurationSpace({"x": (0.0, 1.0)})
    >>> gp = sl.StackedGaussianProcess(space, ["matern", "SE + LIN"])
    >>> gp.kernel
    stack([Matern(p=2), Composite(expression='SE + LIN')])
    """

    def __init__(
        self,
        space: ConfigurationSpace | Encoder,
        kernels: Stack | Iterable[Kernel | str],
        priors: Priors | None = None,
        warp: Warp = "none",
    ) -> None:
        self.encoder = space if isinstance(space, Encoder) else Encoder(space)
        self.kernel = (kernels if isinstance(kernels, Stack) else Stack(kernels)).on(self.encoder)
        plain = [GaussianProcess(self.encoder, kernel, warp=warp) for kernel in self.kernel.kernels]
        names = [{h.name for h in gp.hyperparameters} for gp in plain]
        chosen = dict(priors or {})
        if unknown := sorted(chosen.keys() - set[str]().union(*names)):
            known = dict.fromkeys(h.name for gp in plain for h in gp.hyperparameters)
            raise DataError(
                f"no kernel of the stack has a hyperparameter {unknown[0]!r}{did_you_mean(unknown[0], known)}"
            )
        self.parts = tuple(
            GaussianProcess(self.encoder, gp.kernel, {k: v for k, v in chosen.items() if k in own}, warp)
            for gp, own in zip(plain, names, strict=True)
        )

    @classmethod
    def of(cls, parts: Sequence[GaussianProcess]) -> StackedGaussianProcess:
        """Return the stack of these models, which are on the same space, with the priors of each."""
        stacked = cls(parts[0].encoder, [gp.kernel for gp in parts], warp=parts[0].warp)
        stacked.parts = tuple(parts)
        return stacked

    def __repr__(self) -> str:
        return f"StackedGaussianProcess: {self.kernel.description}, {len(self.encoder.names)} parameters"

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Find or assemble CmdStan and compile the programs, so that fits do not wait for it.

        Raises
        ------
        ToolchainError, CompileError
        """
        for gp in self.parts:
            gp.prepare(progress)

    def fit(
        self,
        configs: Encoded | Iterable[Mapping[str, Any]] | Any,
        y: ArrayLike,
        *,
        seed: int = 1,
        progress: Callable[[str], None] | None = None,
        y_sd: ArrayLike | None = None,
        options: FitOptions | None = None,
        maximize: bool = False,
        **fit: Unpack[FitKeywords],
    ) -> StackedPosterior:
        """Fit every kernel to observed values and weight the posteriors by leave-one-out.

        A fit whose diagnostics fail, or whose leave-one-out densities are unreliable at more than 5% of the
        observations, is repeated once with another seed and twice the draws. If that does not help, the kernel is left
        out; ``messages`` of the result name it.

        Parameters
        ----------
        configs, y, y_sd, maximize
            As in :meth:`GaussianProcess.fit`.
        seed : int
            Fixes every draw; the seed of a kernel's fit does not depend on the other kernels.
        progress : callable, optional
            Called with the name of each phase.
        options : FitOptions, optional
            Replaces the single fit options.
        **fit
            Options of the fits, as in :meth:`GaussianProcess.fit`. ``pointwise`` is always True. With method "map" the
            weights come from the densities at the mode, in closed form.

        Returns
        -------
        StackedPosterior

        Raises
        ------
        SpaceError, DataError
            As in :meth:`GaussianProcess.fit`.
        InferenceError
            If no fit can be used.
        """
        options = FitOptions.given(options, fit).updated(pointwise=True)
        train = self.encoder.encode(configs)
        seed = check_integer("seed", seed, minimum=0)
        data: dict[str, Any] = {"y_sd": y_sd, "maximize": maximize}
        fitted: list[Posterior] = []
        messages: list[str] = []
        for gp in self.parts:
            name = gp.kernel.short_name
            report = None if progress is None else _named(name, progress)
            fit_part = partial(gp.fit, train, y, progress=report, **data)
            posterior, message = _fitted_twice(fit_part, part_stream(np.random.SeedSequence(seed), gp.kernel), options)
            if posterior is not None:
                fitted.append(posterior)
            if message:
                messages.append(f"{name}: {message}")
        if not fitted:
            raise InferenceError(f"none of the {len(self.parts)} kernels can be used. {'. '.join(messages)}")
        return StackedPosterior(fitted, seed=seed, messages=messages)


def _fitted_twice(
    fit: Callable[..., Posterior], stream: np.random.SeedSequence, options: FitOptions
) -> tuple[Posterior | None, str | None]:
    """Fit, and once again if there is an objection; return the posterior, None if it is left out, and a message."""
    why: list[str] = []
    for attempt in (stream, *stream.spawn(1)):
        try:
            posterior = fit(seed=as_stan_seed(attempt), options=options)
            found = score(posterior)
            objection = failure(posterior, found) or unreliability(found)
        except InferenceError as error:
            objection = str(error)
        if objection is None:
            return posterior, f"fitted again: {why[0]}" if why else None
        why.append(objection)
        options = options.updated(draws=_MORE * options.draws, warmup=_MORE * options.warmup)
    return None, f"left out: {why[0]}; with {_MORE} times the draws: {why[1]}"


def _named(name: str, progress: Callable[[str], None]) -> Callable[[str], None]:
    return lambda phase: progress(f"{name}: {phase}")


def part_stream(stream: np.random.SeedSequence, kernel: Kernel) -> np.random.SeedSequence:
    """Return the stream of random numbers of a kernel's fit, which does not depend on the other kernels."""
    own = int(kernel.digest, 16)
    return np.random.SeedSequence(stream.entropy, spawn_key=(*stream.spawn_key, own >> 32, own & 0xFFFFFFFF))


def stack_posteriors(
    kernels: Stack | Sequence[Kernel | str],
    space: ConfigurationSpace | Encoder,
    configs: Encoded | Iterable[Mapping[str, Any]] | Any,
    y: ArrayLike,
    *,
    plain: bool = True,
    seed: int = 1,
    progress: Callable[[str], None] | None = None,
    priors: Priors | None = None,
    warp: Warp = "none",
    y_sd: ArrayLike | None = None,
    maximize: bool = False,
    **fit: Unpack[FitKeywords],
) -> StackedPosterior:
    """Fit kernels to the same observations and average their posteriors by stacking.

    Parameters
    ----------
    kernels : Stack, or sequence of Kernel or str
    space, configs, y, priors, warp, y_sd, maximize
        As in :class:`GaussianProcess` and :meth:`GaussianProcess.fit`.
    plain : bool
        Add a Matérn kernel of order 2 if it is not among the kernels: the average is then hardly worse than it.
    seed : int
        Fixes every draw.
    progress : callable, optional
        Called with the name of each phase.
    **fit
        Options of the fits, as in :meth:`GaussianProcess.fit`.

    Returns
    -------
    StackedPosterior

    Raises
    ------
    SpaceError, DataError, InferenceError
        As in :meth:`StackedGaussianProcess.fit`.
    """
    encoder = space if isinstance(space, Encoder) else Encoder(space)
    stack = (kernels if isinstance(kernels, Stack) else Stack(kernels)).on(encoder)
    gp = StackedGaussianProcess(encoder, stack.with_plain() if plain else stack, priors, warp)
    return gp.fit(configs, y, seed=seed, progress=progress, y_sd=y_sd, maximize=maximize, **fit)
