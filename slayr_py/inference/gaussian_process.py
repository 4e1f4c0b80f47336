"""Fit Gaussian processes to observed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from numpy.typing import ArrayLike
from typing_extensions import Unpack

from slayr_py.arguments import check_flag, check_integer
from slayr_py.errors import DataError
from slayr_py.inference.marginal import planned
from slayr_py.inference.model import Likelihood, Model, Warp
from slayr_py.inference.named_priors import Priors
from slayr_py.inference.observed import observe
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sampling.ladder import Attempt, fit_until_ok
from slayr_py.inference.sampling.methods import METHODS
from slayr_py.inference.sampling.options import FitKeywords, FitOptions
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.sparse_posterior import fit_sparse
from slayr_py.kernels import Kernel, as_composite, from_name
from slayr_py.space import Encoded, Encoder


class GaussianProcess(Model):
    """Fully Bayesian Gaussian process with constant mean and Gaussian noise on a search space.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace or Encoder
    kernel : Kernel or str
        A kernel, its name, "auto", or an expression such as "LIN * PER + SE": see
        :class:`~slayr_py.kernels.Composite`.
    priors : mapping of str to Prior, number, or a mapping of str to these, optional
        Replaces the default priors of the named hyperparameters; on standardised targets and unit-cube inputs. A number
        fixes a hyperparameter. For a vector, ``{"lengthscale": {"lr": LogNormal(0, 1)}}`` replaces the prior of the
        entry of one parameter, or of all columns of a categorical one, in every leaf if the kernel is an expression;
        the other entries keep their default, which must be of the same family. The labels of the entries are names too:
        ``{"period": {"2:PER": LogNormal(-2, 0.1)}}``. Priors are data of the program: changing them needs no
        compilation.
    warp : {"none", "log", "auto"}
        "log" lets the targets be a Gaussian process after a transformation that compresses large values and stretches
        small ones; its parameter ``warp`` is sampled with the other hyperparameters. "auto" is "log".
    likelihood : {"gaussian", "probit"}
        "probit" is for binary observations: y is True with probability Phi(f), and the latent function f is the
        Gaussian process. Laplace's approximation integrates it out of the density of the hyperparameters; predictions
        use expectation propagation. See :meth:`Posterior.probability`.
    inducing : int, optional
        Fit sparsely, for thousands of observations: so many of them are inducing points that represent all. Kernels are
        then "auto" on real parameters, Matérn kernels with p at most 2, and expressions. Nothing is compiled.
        ``method="map"`` gives the mode; all others at most 100 draws by importance sampling around it.

    Raises
    ------
    SpaceError
        If the space cannot be encoded.
    DataError
        For an unknown kernel or warp, or a prior with an unknown name or of the wrong family or length.

    Examples
    --------
    >>> from ConfigSpace import ConfigurationSpace
    >>> import slayr_py as sl
    >>> gp = sl.GaussianProcess(ConfigurationSpace({"x": (0.0, 1.0)}), priors={"sigma_n": sl.LogNormal(-6, 1)})
    >>> gp.kernel
    Matern(p=2)
    """

    def __init__(
        self,
        space: ConfigurationSpace | Encoder,
        kernel: Kernel | str = "auto",
        priors: Priors | None = None,
        warp: Warp = "none",
        likelihood: Likelihood = "gaussian",
        *,
        inducing: int | None = None,
    ) -> None:
        self.inducing = None if inducing is None else check_integer("inducing", inducing)
        if self.inducing is not None:
            encoder = space if isinstance(space, Encoder) else Encoder(space)
            space = encoder
            kernel = as_composite(from_name(kernel, encoder))
        super().__init__(space, kernel, priors, warp, likelihood)
        if self.inducing is not None:
            planned(self)  # raises for a warp or binary observations

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Find or assemble CmdStan and compile the program, so that fits do not wait for it.

        Raises
        ------
        ToolchainError, CompileError
        """
        if self.inducing is None:
            compiled(self.kernel.program, progress)

    def fit(
        self,
        configs: Encoded | Iterable[Mapping[str, Any]] | Any,
        y: ArrayLike,
        *,
        seed: int = 1,
        start: WarmStart | None = None,
        y_sd: ArrayLike | None = None,
        maximize: bool = False,
        progress: Callable[[str], None] | None = None,
        options: FitOptions | None = None,
        **fit: Unpack[FitKeywords],
    ) -> Posterior:
        """Fit to observed values.

        Parameters
        ----------
        configs : iterable of n configurations
            ``Configuration`` objects, mappings, a DataFrame, an (n, D) array, or ``Encoded``.
        y : (n,) array_like
            Observed values in the user's units; standardised before the fit. For the probit likelihood True or False.
        seed : int
            Fixes every draw.
        start : WarmStart, optional
            `Posterior.warm_start` of a fit to nearly the same data: the chains start there with a short warm-up. If
            the diagnostics fail, a fit with a full warm-up follows.
        y_sd : float or (n,) array_like, optional
            Known standard deviations of the errors of y, in the user's units. The noise of an observation is the sum of
            this error and of one with the standard deviation ``sigma_n``, which all observations have. Under a warp the
            known error is multiplied by the slope of the transformation.
        maximize : bool
            Larger values are better: the model is fitted to the negated values, which matters to a warp and to the
            acquisition. Predictions keep the user's units and direction.
        progress : callable, optional
            Called with the name of each phase.
        options : FitOptions, optional
            Replaces all single options.
        **fit
            Single options of the fit, by the names of the attributes of :class:`~slayr_py.inference.FitOptions`:
            ``method``, ``chains``, ``warmup``, ``draws``, ``target_acceptance``, ``max_treedepth``, ``ess``,
            ``retries``, ``pointwise``.

        Returns
        -------
        Posterior
            Result of the last attempt, even if its diagnostics fail; see `Posterior.check`. ``record["abandoned"]``
            lists the attempts before it, why each was abandoned, and what followed.

        Raises
        ------
        SpaceError
            If a configuration does not belong to the space.
        DataError
            If y has another length, is empty or not finite, or an option is illegal.
        TypeError
            For an unknown option.
        InferenceError
            If Stan fails.
        """
        options = FitOptions.given(options, fit)
        seed = check_integer("seed", seed, minimum=0)  # before anything is compiled
        maximize = check_flag("maximize", maximize)
        observed = observe(self, configs, y, METHODS[options.method].point_estimate, options.pointwise, maximize, y_sd)
        if self.inducing is not None:
            return fit_sparse(observed, self.inducing, options, seed)
        if start is not None:
            self.check_start(start, options.chains)
        program = compiled(self.kernel.program, progress)

        def fit_once(attempt: Attempt) -> Posterior:
            result = run(
                program, observed.data, attempt.options, seed=attempt.seed, start=attempt.start, progress=progress
            )
            return Posterior.from_run(program, observed, result, attempt.start)

        posterior, abandoned = fit_until_ok(fit_once, options, start, seed)
        posterior.record["abandoned"] = abandoned
        return posterior

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
            Arguments of :meth:`fit`, such as ``chains=2`` and ``maximize=True``.

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
        """Check that a warm start fits this model and number of chains.

        Raises
        ------
        DataError
            If the start comes from a fit with another kernel, space or number of chains.
        """
        shapes = {name: values.shape for name, values in start.points.items()}
        wanted = {name: (chains, *shape) for name, shape in self.parameter_shapes.items()}
        n = sum(int(np.prod(shape)) for shape in self.parameter_shapes.values())
        sizes = start.inverse_metric.shape in ((n,), (n, n)) and start.draws.shape[1] in (0, n)
        if shapes != wanted or start.step_size.shape != (chains,) or not sizes:
            raise DataError(
                f"the warm start has states of shapes {shapes} for {len(start.step_size)} chains; this model with "
                f"{chains} chains needs {wanted}: use a start from a fit with the same kernel and number of chains"
            )
