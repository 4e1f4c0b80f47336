"""Fitting the model to observed values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from slayr_py.errors import DataError, InferenceError
from slayr_py.inference.model import Model
from slayr_py.inference.posterior import Posterior, build_posterior
from slayr_py.inference.programs import compiled
from slayr_py.inference.run import Method, check_options, run
from slayr_py.inference.start import WarmStart
from slayr_py.space import Encoded
from slayr_py.space.dimension import FloatArray


class GaussianProcess(Model):
    """Fully Bayesian Gaussian process with constant mean and Gaussian noise on a search space.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace or Encoder
    kernel : Kernel or str
        A kernel, its name, or "auto".
    priors : mapping of str to Prior, optional
        Replaces the default prior of the named hyperparameters; on standardised targets and unit-cube inputs. Priors
        are data of the program: changing them compiles nothing.

    Raises
    ------
    SpaceError
        If the space cannot be encoded.
    DataError
        For an unknown kernel, or a prior whose name, family or length does not fit.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> import slayr_py as sl
    >>> gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}), priors={"sigma_n": sl.LogNormal(-6, 1)})
    >>> gp.kernel
    Matern(p=2)
    """

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Find or assemble CmdStan and compile the program, so that a fit starts at once.

        Raises
        ------
        ToolchainError, CompileError
        """
        compiled(self.kernel.program, progress)

    def fit(
        self,
        configs: Encoded | Iterable[Mapping[str, Any]] | Any,
        y: ArrayLike,
        method: Method = "nuts",
        chains: int = 4,
        warmup: int = 500,
        draws: int = 500,
        seed: int = 1,
        target_acceptance: float = 0.8,
        max_treedepth: int = 10,
        ess: int | None = None,
        start: WarmStart | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Posterior:
        """Fit to observed values.

        Parameters
        ----------
        configs : iterable of n configurations
            ``Configuration`` objects, mappings, a DataFrame, an (n, D) array, or ``Encoded``.
        y : (n,) array_like
            Observed values in the user's units; standardised before the fit.
        method : {"nuts", "pathfinder", "laplace", "map"}
            Hamiltonian Monte Carlo; two approximations whose draws are importance-resampled, and given up for NUTS
            where the Pareto k of their importance ratios is above 0.7; or the mode (of the hyperparameters on the
            logarithmic scale) as a single draw.
        chains, warmup, draws : int
            Chains, and iterations of each; approximations return ``chains * draws`` draws.
        seed : int
            Fixes every draw.
        target_acceptance : float
            Acceptance statistic that the step size aims at, in (0, 1).
        max_treedepth : int
            A trajectory has at most 2**max_treedepth steps.
        ess : int, optional
            Go on drawing, up to 16 times ``draws``, until the smallest bulk effective sample size of a
            hyperparameter is this large and R-hat is within its limit.
        start : WarmStart, optional
            `Posterior.warm_start` of a fit to nearly the same data: the chains begin there with a short warm-up. If the
            diagnostics object to what comes out, a full warm-up follows.
        progress : callable, optional
            Called with the name of each phase.

        Returns
        -------
        Posterior
            ``record["abandoned"]`` says what was given up before it, and why.

        Raises
        ------
        SpaceError
            If a configuration does not belong to the space.
        DataError
            If y has another length, is empty or not finite, or an option makes no sense.
        InferenceError
            If Stan fails.
        """
        train = self.encoder.encode(configs)
        targets = check_targets(y, len(train))
        centre, scale = standardisation(targets)
        data = self.stan_data(train, (targets - centre) / scale, train[:0], of_scores=method == "map")
        options: dict[str, Any] = {
            "chains": chains,
            "warmup": warmup,
            "draws": draws,
            "target_acceptance": target_acceptance,
            "max_treedepth": max_treedepth,
            "ess": ess,
        }
        check_options(method, **options)
        if start is not None:
            self.check_start(start, chains)
        program = compiled(self.kernel.program, progress)

        def attempt(how: Method, begin: WarmStart | None) -> Posterior:
            result = run(program, data, how, seed=seed, start=begin, progress=progress, **options)
            return build_posterior(self, program, train, data, result, centre, scale, begin, abandoned)

        abandoned: list[dict[str, Any]] = []
        *first, last = _attempts(method, start)
        for how, begin in first:
            given_up = {"method": how, "start": "warm" if begin else "cold"}
            try:
                posterior = attempt(how, begin)
            except InferenceError as error:
                abandoned.append(given_up | {"why": [str(error)]})
                continue
            if posterior.check().ok:
                return posterior
            why = list(posterior.check().messages)
            abandoned.append(given_up | {"why": why, "seconds": posterior.record["seconds"]})
        return attempt(*last)

    def check_start(self, start: WarmStart, chains: int) -> None:
        """Check that so many chains of this model can begin there.

        Raises
        ------
        DataError
            If the start is of another kernel or space, or of another number of chains.
        """
        shapes = {name: values.shape for name, values in start.points.items()}
        wanted = {name: (chains, *shape) for name, shape in self.parameter_shapes.items()}
        n = sum(int(np.prod(shape)) for shape in self.parameter_shapes.values())
        if shapes != wanted or start.step_size.shape != (chains,) or start.inverse_metric.shape not in ((n,), (n, n)):
            raise DataError(
                f"the warm start has states of shapes {shapes} for {len(start.step_size)} chains; this model with "
                f"{chains} chains has {wanted}: take it from a fit of the same kernel with as many chains"
            )


def _attempts(method: Method, start: WarmStart | None) -> list[tuple[Method, WarmStart | None]]:
    """What is tried in turn until the diagnostics are content."""
    if method == "map":
        return [(method, None)]
    sampled: list[tuple[Method, WarmStart | None]] = [("nuts", start), ("nuts", None)] if start else [("nuts", None)]
    return sampled if method == "nuts" else [(method, None), *sampled]


def check_targets(y: ArrayLike, n: int) -> FloatArray:
    """Observed values as (n,) float64.

    Raises
    ------
    DataError
        For another shape or length, no values, or values that are not finite numbers.
    """
    try:
        given = np.asarray(y)
        if given.dtype.kind not in "biufO":  # dates, durations and texts would become numbers that nobody meant
            raise TypeError(f"y is of type {given.dtype}")
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"y must be numbers, got {y!r:.200}") from error
    if isinstance(y, np.ma.MaskedArray):
        values[np.ma.getmaskarray(y)] = np.nan
    if values.ndim != 1 or len(values) != n:
        raise DataError(f"y has shape {values.shape} for {n} configurations; one number each is needed")
    if n == 0:
        raise DataError("there is nothing to fit: y is empty; at least one observation is needed")
    if not np.all(np.isfinite(values)):
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(f"y[{bad}] is {values[bad]}; drop failed evaluations before fitting")
    return values


def standardisation(y: FloatArray) -> tuple[float, float]:
    """Mean and sample standard deviation (n - 1); scale 1 for a single or constant y."""
    largest = float(np.max(np.abs(y)))
    if largest == 0:
        return 0.0, 1.0
    # The square of 1e200 is infinite, that of 1e-200 zero. With a power of two as the unit no other digit changes.
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    centre = unit * float(np.mean(y / unit))
    scale = min(unit * float(np.std(y / unit, ddof=1)), float(np.finfo(float).max)) if len(y) > 1 else 0.0
    # Rounding alone leaves a constant of size c a spread of about c times machine epsilon.
    return centre, scale if scale > 4 * np.finfo(float).eps * largest else 1.0
