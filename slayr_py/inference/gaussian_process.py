"""Fitting the model to observed values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from slayr_py.errors import DataError, InferenceError
from slayr_py.inference.diagnostics.checks import reason
from slayr_py.inference.model import Model
from slayr_py.inference.observed import observe
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sampling.attempts import again, check_retries, planned
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import Method, check_options, run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import Encoded


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
        retries: int = 0,
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
        retries : int
            How often a NUTS fit whose diagnostics object is made again, from another seed and with what they ask for:
            twice the warm-up, a target acceptance halfway to 1, or trees of one more level.
        progress : callable, optional
            Called with the name of each phase.

        Returns
        -------
        Posterior
            Of the last attempt, within its limits or not: `Posterior.check` says. ``record["abandoned"]`` has what was
            given up before it, why, and what followed.

        Raises
        ------
        SpaceError
            If a configuration does not belong to the space.
        DataError
            If y has another length, is empty or not finite, or an option makes no sense.
        InferenceError
            If Stan fails.
        """
        observed = observe(self, configs, y, omit_jacobian=method == "map")
        options: dict[str, Any] = {
            "chains": chains,
            "warmup": warmup,
            "draws": draws,
            "target_acceptance": target_acceptance,
            "max_treedepth": max_treedepth,
            "ess": ess,
        }
        options = check_options(method, **options)
        retries = check_retries(retries)
        if start is not None:
            self.check_start(start, chains)
        program = compiled(self.kernel.program, progress)

        abandoned: list[dict[str, Any]] = []
        attempts, retried = planned(method, start, seed, options), 0
        failed: Posterior | None = None
        while True:
            attempt, begun = attempts.pop(0), time.perf_counter()
            try:
                result = run(
                    program,
                    observed.data,
                    attempt.method,
                    seed=attempt.seed,
                    start=attempt.start,
                    progress=progress,
                    **attempt.options,
                )
                posterior = Posterior.from_run(self, program, observed, result, attempt.start, abandoned)
            except InferenceError as error:
                if not attempts and failed is None:
                    raise
                why = [str(error)]
            else:
                check = posterior.check()
                if check.ok or (not attempts and retried == retries):
                    return posterior
                why = [reason(message) for message in check.messages]
                if not attempts:
                    retried, failed = retried + 1, posterior
                    attempts.append(again(attempt, check.outside, seed, retried))
            abandoned.append(
                {
                    "method": attempt.method,
                    "start": attempt.kind,
                    "why": why,
                    "then": attempts[0].after(attempt) if attempts else "back to the fit before",
                    "seconds": round(time.perf_counter() - begun, 3),
                }
            )
            if not attempts and failed is not None:  # a retry in which Stan fails is worse than what it was to mend
                failed.record["abandoned"] = abandoned
                return failed

    def cross_validate(
        self,
        configs: Encoded | Iterable[Mapping[str, Any]] | Any,
        y: ArrayLike,
        cv: Any = 5,
        scoring: str | Iterable[str] | None = None,
        seed: int = 1,
        progress: bool = True,
        level: float = 0.9,
        **fit_options: Any,
    ) -> pd.DataFrame:
        """Fit to all folds but one and score the remaining fold, for every fold.

        Parameters
        ----------
        configs, y
            n configurations and values, as for :meth:`fit`.
        cv : int, splitter, or iterable of pairs of index arrays
            An integer gives that many shuffled folds.
        scoring : str or iterable of str, optional
            Any of "log_predictive_density", "rmse", "coverage"; by default all.
        seed : int
            Fixes the folds and the draws of every fit.
        progress : bool
            Whether to show a progress bar.
        level : float
            Nominal probability of the central predictive interval of "coverage", the observed share in that interval.
        **fit_options
            Arguments of :meth:`fit`, such as ``chains=2``.

        Returns
        -------
        DataFrame
            One row per fold: ``n_test``; the scores of observations in the user's units, with the log predictive
            density summed over the fold; ``fit_time`` in seconds; ``seed``, which repeats the fit; ``ok``, whether the
            diagnostics pass.

        Raises
        ------
        DataError
            For an unknown score, a level outside (0, 1), or a target that is not finite.
        SpaceError
            If a configuration does not belong to the space.
        """
        from slayr_py.inference.validation.cross_validation import cross_validate  # imports scikit-learn, which is slow

        return cross_validate(self, configs, y, cv, scoring, seed, progress, level, fit_options)

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
