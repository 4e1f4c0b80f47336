"""Posterior of a single fit or of a stack of fits: predictions and checks for users."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from slayr_py.arguments import check_integer
from slayr_py.errors import DataError, level_outside, listed
from slayr_py.inference.diagnostics.arviz_tree import prepare, to_arviz
from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.mixture import Alone, Mixture, Weighted, names_of
from slayr_py.inference.model import Model
from slayr_py.inference.part import Engine, Part
from slayr_py.inference.prediction.components import Components
from slayr_py.inference.prediction.distribution import Latent, Prediction
from slayr_py.inference.prediction.draws import Chains
from slayr_py.inference.prediction.predictor import Predictor
from slayr_py.inference.records.saved import STACK_FILE, Format
from slayr_py.inference.sampling.programs import program_text
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, FloatArray, function_names
from slayr_py.threads import ignoring_underflow

_LARGEST_SAMPLE = 2**30  # numbers of `Posterior.sample`: 8 GB


@ignoring_underflow
class Posterior:
    """Posterior of a Gaussian process, from :meth:`GaussianProcess.fit` or :meth:`Posterior.load`.

    A posterior is a mixture of one or more parts. A part is a fit of one kernel. A fit of a `slayr_py.stack` has one
    part for each kernel that is used, with stacking weights. Attributes of a single fit, such as ``idata``, raise
    `DataError` for a stack; use the attribute of one of ``posteriors``.

    Attributes
    ----------
    model : Model
        Kernel, priors and encoder of the fit.
    idata : xarray.DataTree
        ArviZ' groups, all on standardised targets; vectors are labelled with the names of the space. Functions of the
        installed ArviZ accept the tree. Before ArviZ 1, ``idata["posterior"]`` is a dataset that stores variables
        assigned to it in the tree, and ``idata.children["posterior"]`` is the node.

        ``posterior``
            Hyperparameters: scalars (chain, draw), vectors (chain, draw, ...). With a warp, ``mu``, ``sigma_f`` and
            ``sigma_n`` have the scale of the transformed targets; ``y`` of all groups is not transformed.
        ``unconstrained_posterior``
            The coordinates that the program samples, named ``z_`` and the hyperparameter.
        ``sample_stats``
            For NUTS ``lp``, ``acceptance_rate``, ``step_size``, ``tree_depth``, ``n_steps``, ``diverging`` and
            ``energy``; for other methods ``lp`` at most.
        ``log_prior``
            The log density of the prior at each draw, named and shaped like the hyperparameter; for a vector of weights
            with sum 1 the joint density (chain, draw). The density of ``sigma_f`` is conditional on the kernel's
            hyperparameters, if the prior describes the function's standard deviation.
        ``log_likelihood``
            ``y`` (chain, draw, observation): the log density of each observation given all others, with the function
            integrated out, exactly unless the likelihood is probit: see :meth:`loo`. It is a density of standardised y,
            as are the results of ArviZ: ``az.loo(idata)`` is larger than :meth:`loo` by log(abs(y_sd)) for each
            observation.
        ``posterior_predictive``
            ``y`` (chain, draw, observation): a draw of each observation given all others. It does not depend on the
            observed value of the same observation. The entries of one draw are not a joint draw.
        ``observed_data``
            ``y`` (observation).
        ``constant_data``
            ``X`` (observation, encoded_column), the inputs of the kernel; ``values`` and ``active`` (observation,
            parameter), the output of the encoder; ``y_mean`` and ``y_sd``, in the user's units, ``y_sd`` negative if
            larger values are better.
        ``prior``, ``sample_stats_prior``, ``prior_predictive``
            The same groups without the likelihood, after :meth:`with_prior`. ``prior_predictive`` has joint draws.
    record : dict
        All that is needed to repeat the run; JSON-able.
    weights : pandas.Series
        Weights of the parts by the names of their kernels; 1 for a single fit.
    posteriors : tuple of Posterior
        The posterior of each part; this one if it is a single fit.
    parts : tuple of Part
        The fits themselves.
    messages : tuple of str
        Kernels of a stack that were left out or fitted again, or have uncertain weights, with reasons.
    seed : int
        Seed of a single fit, or of the resampling of a stack.
    n_draws : int
        Number of draws over all chains. A stack has as many as the weights allow without repetition, and at least 100.
    n_chains : int
        Number of chains; 1 for a method without chains, and for a stack (see :meth:`chains`).
    train : Encoded
        The n observed configurations.
    encoder : Encoder
        Encoder of the space.
    targets : Targets
        The observations as the program saw them.
    y_mean, y_sd : float
        Mean and standard deviation of the observed values, by which they were standardised; ``y_sd`` is negative if
        larger values are better.
    limits : tuple of float
        Smallest and largest value at which a constraint holds, if y are its values; (-inf, 0) by default.
    """

    def __init__(self, mixture: Mixture, posteriors: Sequence[Posterior] = ()) -> None:
        self._mixture = mixture
        self._posteriors = tuple(posteriors)
        self.parts = mixture.parts
        self.weights = pd.Series(mixture.weights, index=names_of(mixture.parts), name="weight")
        self.messages = mixture.messages
        self.seed = mixture.seed
        self.n_draws = mixture.n_draws
        self.n_chains = mixture.n_chains
        first = mixture.parts[0]
        self.train = first.train
        self.encoder = first.model.encoder
        self.targets = first.targets
        self.y_mean = first.y_mean
        self.y_sd = first.y_sd
        self.limits = (-np.inf, 0.0)

    @classmethod
    def of(cls, part: Part) -> Posterior:
        """Return the posterior of a single fit."""
        return cls(Alone(part))

    @classmethod
    def stack(
        cls,
        posteriors: Sequence[Posterior],
        weights: ArrayLike | None = None,
        seed: int = 1,
        messages: Sequence[str] = (),
    ) -> Posterior:
        """Average posteriors of the same observations under different kernels.

        The number of draws of a part is proportional to its weight. All draws of the mixture therefore have equal
        weights, and predictions and acquisitions treat them like draws of a single fit.

        Parameters
        ----------
        posteriors : sequence of Posterior
            Posteriors of single fits to the same observations in the same order, with Gaussian likelihood. Suggestions
            obey the constraints on inputs of the first one.
        weights : (k,) array_like, optional
            Not negative, with sum 1. Stacking weights from the leave-one-out densities by default (Yao et al. 2018).
        seed : int
            Fixes the systematic resampling of the draws.
        messages : sequence of str
            Kernels that were left out or fitted again, with reasons.

        Raises
        ------
        DataError
            If the list is empty, if the posteriors differ in observations, standardisation or direction, for a probit
            likelihood, or for illegal weights. Without weights, also if a posterior has no leave-one-out densities.
        """
        parts = [posterior.only("place in another stack") for posterior in posteriors]
        return cls(Weighted(parts, weights, seed, messages), posteriors)

    def __repr__(self) -> str:
        return self._mixture.summary().text()

    def _repr_html_(self) -> str:
        return self._mixture.summary().html()

    def only(self, what: str) -> Part:
        """Return the only fit of a posterior that is not a stack.

        Raises
        ------
        DataError
            For a stack; the message says that it has no ``what``.
        """
        if self.is_stack:
            raise DataError(
                f"a stack of {len(self.parts)} fits has no {what}; use one of its posteriors, posterior.posteriors[0]"
            )
        return self.parts[0]

    @property
    def is_stack(self) -> bool:
        """Whether this is a weighted mixture, even if it has a single part."""
        return bool(self._posteriors)

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """The posterior of each part."""
        return self._posteriors or (self,)

    @property
    def used(self) -> list[Posterior]:
        """The posteriors of the parts with a positive weight."""
        return [part for part, weight in zip(self.posteriors, self.weights, strict=True) if weight > 0]

    @property
    def model(self) -> Model:
        """Kernel, priors and encoder of a single fit."""
        return self.only("single model").model

    @property
    def kernel(self) -> Kernel:
        """Kernel of a single fit."""
        return self.only("single kernel").model.kernel

    @property
    def support(self) -> Encoded:
        """The points in the factors of a single fit: the observed configurations, or the inducing points."""
        return self.only("single support").factorisation.support

    @property
    def data(self) -> Mapping[str, Any]:
        """Data of the program of a single fit."""
        return self.only("data of a program").data

    @property
    def stan_code(self) -> str:
        """Text of the Stan program of a single fit, with its includes: any interface of Stan runs it with `data`.

        It has the readable likelihood; the accelerated one has the same values up to rounding.
        """
        part = self.only("program")
        part.require_program("program")
        return program_text(part.model.kernel.program)

    @property
    def record(self) -> dict[str, Any]:
        """Record of a single fit."""
        return self.only("record").record

    @property
    def idata(self) -> xr.DataTree:
        """ArviZ' groups, described above; functions of the installed ArviZ accept them."""
        return prepare(self.only("idata").tree)

    @property
    def draws(self) -> dict[str, FloatArray]:
        """Hyperparameters of a single fit by name, (s, ...), with the chains concatenated."""
        return self.only("common hyperparameters").draws

    @property
    def maximize(self) -> bool:
        """Whether larger values are better; the standardised targets then belong to the negated values."""
        return self.y_sd < 0

    @property
    def sign(self) -> float:
        """1, or -1 if larger values are better: the factor that makes smaller values better."""
        return -1.0 if self.maximize else 1.0

    def predict(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, engine: Engine = "numpy") -> Prediction:
        """Predict the latent function at m configurations.

        Parameters
        ----------
        configs : iterable of configurations, DataFrame, (m, D) array, or Encoded
            Columns of a DataFrame that are not parameters of the space are ignored.
        engine : {"numpy", "stan"}
            Compute the prediction in NumPy or as the program's generated quantities; equal up to rounding.

        Returns
        -------
        Prediction
            In the user's units.
        """
        new = self.encoder.encode(configs, other_columns=True)
        used = self.rows_of(self.n_draws)
        latents = [part.latent(new, engine) for part, _ in used]
        return Prediction.from_latent(Latent.concatenated(latents, [rows for _, rows in used]))

    def components(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any) -> Components:
        """Split the latent function at m configurations into the summands of the kernel.

        Parameters
        ----------
        configs : iterable of configurations, DataFrame, (m, D) array, or Encoded
            Columns of a DataFrame that are not parameters of the space are ignored.

        Returns
        -------
        Components
            Mean and standard deviation of every summand, in the user's units, and a figure. An expression is multiplied
            out first, so that "(LIN + SE) * PER" has two summands. The kernels "additive" and "pretrained" have one for
            each part, and all other kernels a single one.

        Raises
        ------
        DataError
            For a fit with a warp: the summands add up to the transformed function only.
        """
        part = self.only("components")
        return part.components(self.encoder.encode(configs, other_columns=True))

    def sample(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, n: int = 100, seed: int = 1) -> FloatArray:
        """Draw the latent function jointly at m configurations.

        Every draw takes the hyperparameters of a random posterior draw. It is a function given the observations,
        evaluated at all m configurations.

        Parameters
        ----------
        configs : iterable of configurations, DataFrame, (m, D) array, or Encoded
            Columns of a DataFrame that are not parameters of the space are ignored.
        n : int
            Number of draws.
        seed : int
            Fixes the draws.

        Returns
        -------
        (n, m) float64
            In the user's units.

        Raises
        ------
        DataError
            If n or the seed is illegal.
        InferenceError
            If a joint covariance is not positive definite up to rounding errors.
        """
        n = check_integer("n", n)
        seed = check_integer("seed", seed, minimum=0)
        new = self.encoder.encode(configs, other_columns=True)
        if n * len(new) > _LARGEST_SAMPLE:
            raise DataError(
                f"n is {n}, and {n} draws at {len(new)} configurations need {8e-9 * n * len(new):.3g} GB; give n of at "
                f"most {_LARGEST_SAMPLE // len(new)}, and call sample again with other seeds for more"
            )
        rng = np.random.default_rng(seed)
        drawn = rng.integers(self.n_draws, size=n)
        values = np.empty((n, len(new)))
        first = 0
        for part, rows in self.rows_of(self.n_draws):
            chosen = (drawn >= first) & (drawn < first + len(rows))
            if chosen.any():
                values[chosen] = part.sample(new, rows[drawn[chosen] - first], rng)
            first += len(rows)
        return values

    def probability(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any) -> FloatArray:
        """Return the probabilities of success at m configurations, averaged over draws.

        Under each draw it is the probability of a skewed distribution of the latent function, of which
        :meth:`predict` returns the mean and the standard deviation. Expectation propagation underestimates this
        standard deviation where one outcome was observed several times at the same or at close configurations: by a
        quarter for six successes with ``sigma_f`` = 10. The probability there is right within 0.002, but up to 0.04 too
        far from 1/2 at some distance.

        Raises
        ------
        DataError
            If the likelihood is not probit.
        """
        if any(part.model.likelihood != "probit" for part in self.parts):
            raise DataError(
                "a posterior with a Gaussian likelihood has no probabilities of success; fit with likelihood='probit'"
            )
        new = self.encoder.encode(configs, other_columns=True)
        terms = [part.log_success(new)[rows] for part, rows in self.rows_of(self.n_draws)]
        return np.asarray(np.exp(np.concatenate(terms)).mean(axis=0))

    def predictor(self, n_draws: int | None = None) -> Predictor:
        """Return a predictor from at most ``n_draws`` draws (all by default).

        All chains of a single fit are thinned evenly to the same number of draws; the parts of a stack are used in
        proportion to their weights.
        """
        return self._mixture.predictor(self.n_draws if n_draws is None else n_draws)

    def rows_of(self, n_draws: int) -> list[tuple[Part, NDArray[np.intp]]]:
        """Return the used parts, and the rows of their draws among at most ``n_draws`` of all."""
        rows = self._mixture.rows(n_draws)
        return [(part, chosen) for part, chosen in zip(self.parts, rows, strict=True) if len(chosen)]

    def chains(self, n_draws: int) -> list[Chains]:
        """Return the chains of each part among the draws of a predictor that has ``n_draws`` of them."""
        return self._mixture.chains(n_draws)

    def with_limits(self, low: float, high: float) -> Posterior:
        """Return the same posterior of a constraint that holds from ``low`` to ``high``; :meth:`save` has no limits."""
        posterior = copy(self)
        posterior.limits = (low, high)
        return posterior

    def check(self) -> Diagnostics:
        """Return the diagnostics of the fit, or the worst diagnostics of the parts of a stack with a positive weight.

        A stack is ``ok`` if all these parts pass; each message names its kernel.
        """
        return self._mixture.check()

    def loo(self) -> xr.DataArray:
        """Return the leave-one-out log predictive densities of the n observations, in the user's units.

        The function is integrated out exactly; with the probit likelihood by expectation propagation, whose sites of
        the other observations are those of the fit with all of them, so that the density of a surprising observation
        is too large (for one, exp(-1.3) instead of exp(-1.8)). The hyperparameters are integrated out by
        Pareto-smoothed importance sampling (Vehtari, Gelman & Gabry 2017). The density under a stack is the weighted
        mean of the densities of its parts. The weights depend on all observations, so the sum is too large by about
        half a unit for each weight beyond the first.

        Returns
        -------
        (n,) DataArray
            With a coordinate ``pareto_k`` (n,) and the attributes ``elpd``, the sum of the densities, ``se``, its
            standard error, ``elpd_standardised``, the sum for standardised targets, which ``az.loo(posterior.idata)``
            gives, and ``pareto_k_limit``; a density with a larger ``pareto_k`` is unreliable. For a stack,
            ``pareto_k`` and its limit are the worst values over the parts with a positive weight; NaN for point
            estimates.

        Raises
        ------
        DataError
            With fewer than five draws, for example a point estimate, or if the fit was made without ``pointwise``.
        """
        loo = self._mixture.leave_one_out()
        values = loo.elpd
        return xr.DataArray(
            values,
            dims="observation",
            coords={"pareto_k": ("observation", loo.pareto_k)},
            name="elpd_loo",
            attrs={
                "elpd": float(values.sum()),
                "se": float(np.sqrt(len(values) * np.var(values))),
                "elpd_standardised": float(values.sum() + len(values) * np.log(abs(self.y_sd))),
                "pareto_k_limit": loo.pareto_k_limit,
            },
        )

    def warm_start(self) -> WarmStart:
        """Return a warm start for a fit to nearly the same data: ``fit(..., start=posterior.warm_start())``.

        Raises
        ------
        DataError
            If the method is 'laplace' or 'pathfinder', or the fit is sparse.
        """
        return self.only("warm start").warm_start()

    def with_prior(self, draws: int = 500, chains: int = 4, warmup: int = 500, seed: int = 1) -> Posterior:
        """Return this posterior with three more groups in ``idata``: draws from the prior.

        NUTS runs the same program without its likelihood at the same configurations. ``prior`` has the
        hyperparameters, ``prior_predictive`` has observations drawn given the hyperparameters, and
        ``sample_stats_prior`` has the statistics of NUTS. Existing groups of these names are replaced.

        Parameters
        ----------
        draws, chains, warmup : int
            Number of chains, and iterations of each.
        seed : int
            Fixes every draw.

        Returns
        -------
        Posterior
            A new object; this one is unchanged. ``record["prior"]`` has the arguments of the run.

        Raises
        ------
        DataError
            If a number is illegal.
        InferenceError
            If Stan fails.
        """
        return Posterior.of(self.only("draws from the prior").with_prior(draws, chains, warmup, seed))

    def with_pointwise(self) -> Posterior:
        """Return this posterior with the groups that a fit without ``pointwise`` omits from ``idata``.

        The groups ``log_likelihood`` and ``posterior_predictive`` are computed for the same draws of the
        hyperparameters.

        Returns
        -------
        Posterior
            A new object; this one is unchanged.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        return Posterior.of(self.only("pointwise densities").with_pointwise())

    def to_arviz(self) -> Any:
        """Return a copy of ``idata`` in ArviZ' own format: an ``InferenceData`` before version 1, a tree from then on.

        Functions of ArviZ accept ``idata`` too. A genuine ``InferenceData`` has further methods, such as ``extend``.
        """
        return to_arviz(self.only("idata").tree)

    def save(self, folder: str | Path, format: Format = "netcdf") -> Path:
        """Write ``record.json``, ``data.json`` and ``posterior.nc`` or ``posterior.zarr`` into a folder.

        The folder is created if it does not exist. A posterior in the folder is replaced, whatever its format. The
        folder of a stack has a subfolder for each part, and ``stack.json`` with the weights and messages. If saving
        fails, an older posterior stays. If the process is killed while it replaces the files, `load` raises an error.
        Of functions among the constraints on inputs only the names are saved, with a warning.

        Parameters
        ----------
        format : {"netcdf", "zarr"}
            Format of ``idata``. Zarr needs the package zarr: ``pip install 'slayr-py[zarr]'``.

        Raises
        ------
        DataError
            For an unknown format.
        StorageError
            If the folder cannot be written, or zarr is missing.
        """
        path = Path(folder)
        self._mixture.save(path, format)
        if functions := function_names(self.encoder.within):
            warnings.warn(
                f"functions among the constraints on inputs ({listed(functions)}) are saved by name only: a search "
                "with the loaded posterior ignores them",
                UserWarning,
                stacklevel=level_outside(),
            )
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Posterior:
        """Load a posterior that :meth:`save` wrote in either format.

        Raises
        ------
        StorageError
            If the folder is not a saved posterior or cannot be read.
        """
        path = Path(folder)
        if not (path / STACK_FILE).exists():
            return cls.of(Part.load(path))
        mixture = Weighted.load(path)
        return cls(mixture, [cls.of(part) for part in mixture.parts])
