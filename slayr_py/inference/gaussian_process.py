"""Fit Gaussian processes to observed values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Literal

import pandas as pd
from numpy.typing import ArrayLike
from typing_extensions import Unpack

from slayr_py.arguments import check_flag, check_integer, check_progress
from slayr_py.display import Summary
from slayr_py.errors import DataError, level_outside
from slayr_py.inference.model import AutoWarp, Likelihood, Model, Warp
from slayr_py.inference.named_priors import Priors
from slayr_py.inference.observed import check_errors, observe
from slayr_py.inference.part import Part
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.sampling.carried import carries_to
from slayr_py.inference.sampling.ladder import Attempt, fit_until_ok
from slayr_py.inference.sampling.methods import METHODS
from slayr_py.inference.sampling.options import FitKeywords, FitOptions
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.sparse_fit import fit_sparse, sparse_kernel
from slayr_py.inference.stack_fit import build_models, fit_stack
from slayr_py.kernels import Hyperparameter, Kernel, Prior, Stack
from slayr_py.space import Encoded, Encoder, FloatArray, Space, as_encoder
from slayr_py.threads import ignoring_underflow

LARGEST_USUAL = 1500
"""Number of observations above which a dense fit warns of its cost."""


class GaussianProcess:
    """Fully Bayesian Gaussian process with constant mean and Gaussian noise on a search space.

    Parameters
    ----------
    space : ConfigSpace.ConfigurationSpace, Encoder or mapping
    kernel : Kernel, str or Stack
        A kernel, its name, "auto", or an expression such as "LIN * PER + SE": see
        :class:`~slayr_py.kernels.Composite`. A `slayr_py.stack` fits several kernels and averages their posteriors.
    priors : mapping of str to Prior, number, or a mapping of str to these, optional
        Replaces the default priors of the named hyperparameters; on standardised targets and unit-cube inputs. A number
        fixes a hyperparameter, but not one with a Beta or Dirichlet prior, such as ``rho``, ``split`` or ``share``;
        give these a narrow prior. For a vector, ``{"lengthscale": {"lr": LogNormal(0, 1)}}`` replaces the prior of the
        entry of a parameter, or of all columns of a categorical parameter; if the kernel is an expression, in every
        leaf. The other entries keep their default, which must be of the same family. Labels of entries are names too:
        ``{"period": {"2:PER": LogNormal(-2, 0.1)}}``. Priors are data of the program, so that other priors need no
        compilation. A stack uses a prior for every kernel that has a hyperparameter of that name. The default of
        ``sigma_n``, HalfNormal(1), is for data that may be noisy; ``sl.LogNormal(-4, 0.5)`` is for exact values.
    warp : {"none", "log", "best", "auto"}
        "log" transforms the targets so that large values are compressed and small values are stretched; its parameter
        ``warp`` is sampled with the other hyperparameters. "best" compresses values by their distance to the best one,
        for targets that differ by orders of magnitude, and is linear below it. "auto" is "log", and "none" for a fit
        with known errors (``y_sd``), with which a warp cannot be combined; ``check().notes`` say so.
    likelihood : {"gaussian", "probit"}
        "probit" is for binary observations: y is True with probability Phi(f), where f is the latent Gaussian process.
        Laplace's approximation integrates f out where chains and modes are computed; importance ratios then replace it
        by expectation propagation for every method but "map". Predictions use expectation propagation too. See
        :meth:`Posterior.probability`.
    inducing : int, optional
        Number of inducing points of a sparse fit, for thousands of observations. Possible kernels are "auto" on real
        parameters, Matérn kernels with p at most 2, and expressions. No program is compiled. ``method="map"`` gives
        the mode; all other methods give at most 100 draws by importance sampling around the mode.

    Attributes
    ----------
    encoder : Encoder
    kernel : Kernel or Stack
    models : tuple of Model
        One for each kernel.

    Raises
    ------
    SpaceError
        If the space cannot be encoded.
    DataError
        For an unknown kernel or warp, a prior with an unknown name or of the wrong family or length, or options that
        do not go together: the guide has a table.

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
        space: Space,
        kernel: Kernel | Stack | str = "auto",
        priors: Priors | None = None,
        warp: Warp = "none",
        likelihood: Likelihood = "gaussian",
        *,
        inducing: int | None = None,
    ) -> None:
        encoder = as_encoder(space)
        self.inducing = None if inducing is None else check_integer("inducing", inducing)
        if isinstance(kernel, Stack):
            if likelihood == "probit":
                raise DataError("a stack is not supported with likelihood='probit'; use a single kernel")
            if inducing is not None:
                raise DataError("a stack is not supported with inducing=; use a single kernel, or leave inducing= out")
            self.kernel: Kernel | Stack = kernel.on(encoder)
            self.models = tuple(build_models(encoder, kernel, priors, warp))
            return
        if self.inducing is not None:
            kernel = sparse_kernel(kernel, encoder, warp, likelihood)
        model = Model(encoder, kernel, priors, warp, likelihood)
        self.kernel = model.kernel
        self.models = (model,)

    @classmethod
    def of(cls, models: Sequence[Model], kernel: Kernel | Stack | None = None) -> GaussianProcess:
        """Return the stack of these models, or the Gaussian process of a single model with this kernel."""
        gp = cls.__new__(cls)
        gp.inducing = None
        gp.models = tuple(models)
        gp.kernel = kernel or Stack(model.kernel for model in models)
        return gp

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        if not self.is_stack:
            return self.model.summary("GaussianProcess")
        table = pd.DataFrame({"kernel": [model.kernel.description for model in self.models]})
        return Summary(f"GaussianProcess: {self.kernel.description}, {len(self.encoder.names)} parameters", table)

    @property
    def is_stack(self) -> bool:
        """Whether the posteriors of several kernels are averaged."""
        return isinstance(self.kernel, Stack)

    @property
    def parts(self) -> tuple[GaussianProcess, ...]:
        """The Gaussian process of each kernel of a stack; otherwise this one."""
        return tuple(self.of([model], model.kernel) for model in self.models) if self.is_stack else (self,)

    @property
    def model(self) -> Model:
        """Kernel and priors.

        Raises
        ------
        DataError
            For a stack.
        """
        if self.is_stack:
            raise DataError(
                f"a {self.kernel.description} has no single model; use one of its {len(self.models)} gp.models"
            )
        return self.models[0]

    @property
    def encoder(self) -> Encoder:
        """Encoder of the space."""
        return self.models[0].encoder

    @property
    def warp(self) -> Literal["none", "log", "best"]:
        """Transformation of the targets."""
        return self.models[0].warp

    @property
    def hyperparameters(self) -> tuple[Hyperparameter, ...]:
        """Mean, signal, noise and the kernel's hyperparameters, with the priors of the model."""
        return self.model.hyperparameters

    @property
    def priors(self) -> dict[str, Prior]:
        """Priors by name."""
        return self.model.priors

    def with_defaults(self, defaults: Callable[[Model], Priors]) -> GaussianProcess:
        """Return the Gaussian process with other default priors, which ``defaults`` returns for each model."""
        return self._with_models(model.with_defaults(defaults(model)) for model in self.models)

    def with_errors(self, errors: FloatArray | None) -> GaussianProcess:
        """Return the Gaussian process for observations with known errors (n,), without a warp that is "auto"."""
        return self._with_models(model.with_errors(errors) for model in self.models)

    def with_warp(self, warp: AutoWarp, note: str = "") -> GaussianProcess:
        """Return the Gaussian process with this warp for "auto", and the reason, if there is one, as a note on fits."""
        return self._with_models(model.with_warp(warp, note) for model in self.models)

    def on(self, encoder: Encoder) -> GaussianProcess:
        """Return the Gaussian process of the same space with other scales, see `Encoder.rescaled`."""
        return self._with_models(model.on(encoder) for model in self.models)

    def _with_models(self, models: Iterable[Model]) -> GaussianProcess:
        """Return the Gaussian process with other models of the same kernels; itself if they are the same."""
        gp = copy(self)
        gp.models = tuple(models)
        return self if gp.models == self.models else gp

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Find or assemble CmdStan and compile the programs before the first fit.

        Raises
        ------
        ToolchainError, CompileError
        """
        check_progress(progress)
        if self.inducing is None:
            for model in self.models:
                compiled(model.kernel.program, progress)

    @ignoring_underflow
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

        A stack fits every kernel and weights the posteriors by leave-one-out. It repeats the fit of a kernel once, with
        another seed and twice the draws, if the diagnostics fail or the leave-one-out densities are unreliable at more
        than one observation and more than 5% of them. If the second fit fails too, the kernel is left out;
        ``messages`` of the result name it. If leave-one-out is unreliable under all kernels whose diagnostics pass,
        they are all used, with uncertain weights. With method "map" the weights come from the densities at the mode, in
        closed form.

        Parameters
        ----------
        configs : iterable of n configurations
            ``Configuration`` objects, mappings, a DataFrame, an (n, D) array, or ``Encoded``. The columns of an array
            follow ``encoder.names``, which ConfigSpace sorts: give a DataFrame if in doubt.
        y : (n,) array_like
            Observed values in the user's units, which are standardised before the fit; True or False for the probit
            likelihood.
        seed : int
            Fixes every draw.
        start : WarmStart, optional
            `Posterior.warm_start` of a fit to nearly the same data. The chains start there with a short warm-up. If
            the diagnostics fail, a fit with a full warm-up follows. Method "map" climbs from there, and tries
            random starts too once the number of observations has changed by a tenth. A stack and a sparse fit do not
            accept a start.
        y_sd : float or (n,) array_like, optional
            Known standard deviations of the errors of y, in the user's units. The noise of an observation is the sum of
            the known error and an error with the standard deviation ``sigma_n``. The model then has no warp.
        maximize : bool
            Whether larger values are better. The model is then fitted to the negated values, which affects a warp and
            the acquisition. Predictions keep the user's units and direction.
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
            If y has another length, is empty or not finite, an option is illegal, or errors are known and the warp is
            "log" or "best".
        TypeError
            For an unknown option.
        InferenceError
            If Stan fails, or no kernel of a stack can be used.
        """
        options = FitOptions.given(options, fit)
        seed = check_integer("seed", seed, minimum=0)  # before anything is compiled
        maximize = check_flag("maximize", maximize)
        check_progress(progress)
        if self.is_stack:
            if start is not None:
                raise DataError(
                    "a stack has no single warm start; leave start= out, or fit each of gp.parts with its own start"
                )
            data: dict[str, Any] = {"y_sd": y_sd, "maximize": maximize}
            fits = [(gp.model.kernel, gp.fit) for gp in self.parts]
            return fit_stack(fits, self.encoder.encode(configs), y, options, seed, progress, data)
        if start is not None and not isinstance(start, WarmStart):
            raise DataError(f"start is {start!r:.200}; give the warm_start() of a posterior")
        if start is not None and self.inducing is not None:
            raise DataError("start is not supported with inducing=; leave start= out")
        if options.ess is not None and self.inducing is not None:
            raise DataError(f"ess is {options.ess}, but inducing= has a fixed number of draws; leave ess out")
        observed = observe(
            self.model, configs, y, METHODS[options.method].point_estimate, options.pointwise, maximize, y_sd
        )
        if self.inducing is not None:
            return Posterior.of(fit_sparse(observed, self.inducing, options, seed))
        _warn_of_cost(len(observed.train))
        if start is not None:
            observed.model.check_start(start, METHODS[options.method].chains_of_start(options))
        program = compiled(self.model.kernel.program, progress)

        def fit_once(attempt: Attempt) -> Posterior:
            result = run(
                program, observed.data, attempt.options, seed=attempt.seed, start=attempt.start, progress=progress
            )
            return Posterior.of(Part.from_run(program, observed, result, attempt.start))

        posterior, abandoned = fit_until_ok(fit_once, options, start, seed, carries_to(program.name, observed.data))
        return Posterior.of(posterior.only("record").after(abandoned))

    @ignoring_underflow
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
            For an unknown name in ``scoring``, a level outside (0, 1), more folds than observations, a target that is
            not finite, known errors with the warp "log" or "best", or the probit likelihood.
        SpaceError
            If a configuration does not belong to the space.
        """
        from slayr_py.inference.validation.cross_validation import cross_validate  # imports scikit-learn, which is slow

        if self.models[0].likelihood == "probit":
            raise DataError(
                "cross_validate is not supported with likelihood='probit'; compare outcomes that were left out of a "
                "fit with posterior.probability"
            )

        points = self.encoder.encode(configs)
        given = fit_options.get("y_sd")
        errors = None if given is None else check_errors(given, len(points))
        fit = self.with_errors(errors).fit
        return cross_validate(fit, points, y, errors, cv, scoring, seed, progress, level, fit_options)


def _warn_of_cost(n: int) -> None:
    """Warn of a dense fit to many observations. A gradient of 1500 observations takes about 0.1 s of one core."""
    if n > LARGEST_USUAL:
        seconds = 0.1 * (n / 1500) ** 3
        warnings.warn(
            f"the fit has {n} observations: one gradient takes about {seconds:.2g} s, a fit by NUTS needs tens of "
            f"thousands of them, and each draw of a prediction needs {8e-9 * n**2:.2g} GB; use GaussianProcess(..., "
            "inducing=200) for a sparse fit in seconds to minutes",
            UserWarning,
            stacklevel=level_outside(),
        )
