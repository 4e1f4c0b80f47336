"""Posterior of a fit: draws, predictions, diagnostics and the run record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtr

from slayr_py.arguments import check_integer
from slayr_py.display import Summary
from slayr_py.errors import DataError, StorageError
from slayr_py.inference.components import Components, components
from slayr_py.inference.diagnostics.arviz_bridge import leave_one_out
from slayr_py.inference.diagnostics.arviz_tree import arviz_tree, groups_of, prepare, to_arviz
from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.likelihood import Targets
from slayr_py.inference.model import Model
from slayr_py.inference.observed import Observed
from slayr_py.inference.prediction import (
    Chains,
    Latent,
    Prediction,
    Predictor,
    coordinate_table,
    predict_all,
    predict_in_stan,
    sample_all,
    thinned,
)
from slayr_py.inference.records import saved
from slayr_py.inference.records.data_tree import flat_draws, log_prior, pointwise_groups, posterior_groups, prior_groups
from slayr_py.inference.records.record import as_text, make_record
from slayr_py.inference.records.saved import Format
from slayr_py.inference.records.summary import entries
from slayr_py.inference.sampling.methods import METHODS, diagnose_run
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run, columns_of
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate, run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.warp import unwarped
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, Encoder, FloatArray
from slayr_py.toolchain import CompiledProgram


class Posterior:
    """Posterior of a Gaussian process, from :meth:`GaussianProcess.fit` or :meth:`Posterior.load`.

    Attributes
    ----------
    model : Model
        Kernel, priors and encoder of the fit.
    idata : xarray.DataTree
        ArviZ' groups, all on standardised targets; vectors are labelled with the names of the space. Functions of the
        installed ArviZ accept it as it is. Before ArviZ 1, ``idata["posterior"]`` is a dataset that stores variables
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
            with sum 1 the joint density (chain, draw). That of ``sigma_f`` is conditional on the kernel's
            hyperparameters where its prior is one of the function's standard deviation.
        ``log_likelihood``
            ``y`` (chain, draw, observation): the log density of each observation given all others, with the function
            integrated out exactly.
        ``posterior_predictive``
            ``y`` (chain, draw, observation): a draw of each observation given all others, so that it does not depend on
            the value it is compared with. The entries of one draw are not a joint draw.
        ``observed_data``
            ``y`` (observation).
        ``constant_data``
            ``X`` (observation, column), the inputs of the kernel; ``values`` and ``active`` (observation, parameter),
            the output of the encoder; ``y_mean`` and ``y_sd``, in the user's units, ``y_sd`` negative if larger values
            are better.
        ``prior``, ``sample_stats_prior``, ``prior_predictive``
            The same without the likelihood, only after :meth:`with_prior`. ``prior_predictive`` has joint draws.
    record : dict
        Everything needed to repeat the run; JSON-able.
    """

    def __init__(
        self,
        model: Model,
        train: Encoded,
        data: dict[str, Any],
        idata: xr.DataTree,
        record: dict[str, Any],
        diagnostics: Diagnostics,
    ) -> None:
        self.model = model
        self.train = train
        self.data = data
        self._idata = idata
        self.record = record
        self._diagnostics = diagnostics

    @classmethod
    def from_run(
        cls,
        program: CompiledProgram,
        observed: Observed,
        result: Run,
        start: WarmStart | None = None,
        abandoned: Sequence[Mapping[str, Any]] = (),
    ) -> Posterior:
        """Label the arrays of a run, compute its diagnostics and make its record.

        Parameters
        ----------
        program : CompiledProgram
            Program of the run.
        observed : Observed
            Model and observations of the fit.
        result : Run
            Output of the program.
        start : WarmStart, optional
            Start of the chains.
        abandoned : sequence of mappings
            Earlier attempts, for ``record["abandoned"]``.
        """
        model = observed.model
        y = np.asarray(observed.data["y"], dtype=np.float64)
        idata = arviz_tree(posterior_groups(model, observed.train, y, result, observed.y_mean, observed.y_sd))
        sampled = {name: ~fixed for name, fixed in model.fixed.items() if name in result.variables and not fixed.all()}
        hyperparameters = {name: result.variables[name][..., np.atleast_1d(free)] for name, free in sampled.items()}
        diagnostics = diagnose_run(result, hyperparameters, leave_one_out(idata))
        draws = flat_draws(model, idata["posterior"].to_dataset())
        diagnostics = replace(diagnostics, kernel_notes=model.kernel.notes(draws))
        maximize = observed.y_sd < 0
        record = make_record(model, program, observed.data, result, diagnostics, start, abandoned, maximize)
        return cls(model, observed.train, observed.data, idata, record, diagnostics)

    def __repr__(self) -> str:
        return self._summary().text()

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        checks = self.check()
        method = self.record["arguments"]["method"]
        n = self.n_draws
        several = n > 1
        verdict = "ok" if checks.ok else "NOT OK"
        lines = [
            f"Posterior of a Gaussian process: {self.kernel.description}, {len(self.train)} observations",
            f"{method}, {n} draw{'s' * several}: {checks} {verdict}",
            *checks.messages,
        ]
        by_entry = entries(self.model)
        draws = np.column_stack([self.draws[name].reshape(self.n_draws, -1)[:, i] for name, i in by_entry.values()])
        centre = "median" if several else "value"
        table = pd.DataFrame({"hyperparameter": list(by_entry), centre: np.median(draws, axis=0)})
        if several:
            table["5%"], table["95%"] = np.quantile(draws, [0.05, 0.95], axis=0)
        return Summary("\n".join(lines), table)

    @property
    def kernel(self) -> Kernel:
        """Kernel of the model."""
        return self.model.kernel

    @property
    def encoder(self) -> Encoder:
        """Encoder of the space."""
        return self.model.encoder

    @property
    def idata(self) -> xr.DataTree:
        """ArviZ' groups, described above; functions of the installed ArviZ accept them."""
        return prepare(self._idata)

    @property
    def y_mean(self) -> float:
        """Mean that standardisation subtracted from the observed values, in the user's units."""
        return float(self._idata["constant_data"]["y_mean"])

    @property
    def y_sd(self) -> float:
        """Standard deviation by which standardisation divided the observed values; negative if `maximize`."""
        return float(self._idata["constant_data"]["y_sd"])

    @property
    def maximize(self) -> bool:
        """Whether larger values are better; standardised targets are then those of the negated values."""
        return self.y_sd < 0

    @property
    def support(self) -> Encoded:
        """The points in the factors of predictions: the n observed configurations."""
        return self.train

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return len(self.draws["mu"])

    @property
    def n_chains(self) -> int:
        """Number of chains; 1 for a method without chains."""
        return int(self._idata["posterior"].sizes["chain"])

    @cached_property
    def draws(self) -> dict[str, FloatArray]:
        """Hyperparameters by name, (s, ...), with the chains concatenated."""
        return flat_draws(self.model, self._idata["posterior"].to_dataset())

    def predict(
        self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, engine: Literal["numpy", "stan"] = "numpy"
    ) -> Prediction:
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
        if engine == "numpy":
            mean, sd = predict_all(self.predictor_of_rows, self.n_draws, len(self.support), new)
        elif engine == "stan":
            stored = self._idata["unconstrained_posterior"].to_dataset()
            seed = self.record["arguments"]["seed"]
            mean, sd = predict_in_stan(self.model, self.train, self.targets, stored, new, seed)
        else:
            raise DataError(f"unknown engine {engine!r}; known: 'numpy', 'stan'")
        warp = self.draws.get("warp")
        noise = np.sqrt(self.targets.common_noise(self.draws))
        return Prediction.from_latent(Latent(mean, sd, warp, self.y_mean, self.y_sd, noise))

    def components(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any) -> Components:
        """Split the latent function at m configurations into the summands of the kernel.

        Parameters
        ----------
        configs : iterable of configurations, DataFrame, (m, D) array, or Encoded
            Columns of a DataFrame that are not parameters of the space are ignored.

        Returns
        -------
        Components
            Mean and standard deviation of every summand, in the user's units, and a figure. A kernel that is no sum
            has a single summand.

        Raises
        ------
        DataError
            For a fit with a warp: the summands add up to the transformed function only.
        """
        if "warp" in self.draws:
            raise DataError(
                "the function of a fit with a warp is no sum of the kernel's summands; fit with warp='none'"
            )
        new = self.encoder.encode(configs, other_columns=True)
        return components(self.kernel, self.train, self.targets, self.draws, new, self.y_mean, self.y_sd)

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
        rng = np.random.default_rng(seed)
        rows = rng.integers(self.n_draws, size=n)
        return self.sample_of_rows(self.encoder.encode(configs, other_columns=True), rows, rng)

    def sample_of_rows(self, new: Encoded, rows: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """Draw the latent function jointly at m configurations for each of the k ``rows`` of the draws, (k, m)."""
        values = sample_all(self.predictor_of_rows, len(self.support), new, rows, rng)
        if "warp" in self.draws:
            values = unwarped(values, self.draws["warp"][rows, None])
        return np.asarray(self.y_mean + self.y_sd * values)

    def probability(self, configs: Encoded | Iterable[Mapping[str, Any]] | Any) -> FloatArray:
        """Return the probabilities of success at m configurations, averaged over draws.

        Raises
        ------
        DataError
            If the likelihood is not probit.
        """
        if self.model.likelihood != "probit":
            raise DataError("only a GaussianProcess(..., likelihood='probit') has probabilities of success")
        latent = self.predict(configs).latent
        return np.asarray(ndtr(latent.mean / np.sqrt(1 + np.square(latent.sd))).mean(axis=0))

    def predictor(self, n_draws: int | None = None) -> Predictor:
        """Return a predictor from at most ``n_draws`` draws (all by default).

        All chains are thinned evenly to the same number of draws.
        """
        return self.predictor_of_rows(
            thinned(self.n_draws, self.n_chains, self.n_draws if n_draws is None else n_draws)
        )

    def parts_of(self, n_draws: int) -> list[tuple[Posterior, NDArray[np.intp]]]:
        """Return the rows of at most ``n_draws`` draws, with this posterior; several pairs for a stack."""
        return [(self, thinned(self.n_draws, self.n_chains, n_draws))]

    def predictor_of_rows(self, rows: NDArray[np.intp]) -> Predictor:
        """Return a predictor from these rows of the draws."""
        return Predictor(self.kernel, self.train, self.targets, {k: v[rows] for k, v in self.draws.items()})

    def chains(self, n_draws: int) -> list[Chains]:
        """Return the chains of the draws of a predictor that has ``n_draws`` of them."""
        return [Chains(1.0, np.arange(n_draws).reshape(self.n_chains, -1))]

    def check(self) -> Diagnostics:
        """Return the diagnostics of the fit."""
        return self._diagnostics

    def loo(self) -> xr.DataArray:
        """Return the leave-one-out log predictive densities of the n observations, in the user's units.

        The function is integrated out exactly; the hyperparameters by Pareto-smoothed importance sampling (Vehtari,
        Gelman & Gabry 2017).

        Returns
        -------
        (n,) DataArray
            With a coordinate ``pareto_k`` (n,) and the attributes ``elpd``, the sum of the densities, ``se``, its
            standard error, and ``pareto_k_limit``: a density with a larger ``pareto_k`` is unreliable.

        Raises
        ------
        DataError
            With fewer than five draws, for example a point estimate, or if the fit was made without ``pointwise``.
        """
        if "log_likelihood" not in self._idata.children:
            raise DataError("this fit was made with pointwise=False: use posterior.with_pointwise().loo()")
        result = leave_one_out(self._idata)
        if result is None:
            raise DataError(f"leave-one-out needs posterior draws; this fit has {self.n_draws}")
        values = result.elpd - np.log(abs(self.y_sd))
        n = len(values)
        return xr.DataArray(
            values,
            dims="observation",
            coords={"pareto_k": ("observation", result.pareto_k)},
            name="elpd_loo",
            attrs={
                "elpd": float(values.sum()),
                "se": float(np.sqrt(n * np.var(values))),
                "pareto_k_limit": result.pareto_k_limit,
            },
        )

    def warm_start(self) -> WarmStart:
        """Return a warm start for a fit to nearly the same data: ``fit(..., start=posterior.warm_start())``.

        Raises
        ------
        DataError
            If this is neither a NUTS fit nor carried from one.
        """
        stored = self._idata["unconstrained_posterior"].to_dataset()
        draws = {
            name: stored[name].values.reshape(*stored[name].shape[:2], *shape)
            for name, shape in self.model.parameter_shapes.items()
        }
        return METHODS[self.record["arguments"]["method"]].warm_start(draws, self.record, self._idata)

    def with_prior(self, draws: int = 500, chains: int = 4, warmup: int = 500, seed: int = 1) -> Posterior:
        """Return this posterior with three more groups in ``idata``: draws from the prior.

        NUTS runs the same program without its likelihood, at the same configurations: ``prior`` has the
        hyperparameters, ``prior_predictive`` observations drawn given these, and ``sample_stats_prior`` the statistics
        of NUTS. Existing groups of these names are replaced.

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
        result = run(
            compiled(self.model.kernel.program),
            {**self.data, "prior_only": 1, "omit_jacobian": 0, "want_pointwise": 1},
            FitOptions(chains=chains, warmup=warmup, draws=draws),
            seed=seed,
        )
        return self._with_groups(prior_groups(self.model, self.train, result), {"prior": result.arguments})

    def with_pointwise(self) -> Posterior:
        """Return this posterior with the groups that a fit without ``pointwise`` omits from ``idata``.

        They are computed for the same draws of the hyperparameters: ``log_likelihood`` and ``posterior_predictive``.

        Returns
        -------
        Posterior
            A new object; this one is unchanged.

        Raises
        ------
        InferenceError
            If Stan fails.
        """
        stored = self._idata["unconstrained_posterior"].to_dataset()
        program = compiled(self.model.kernel.program)
        data = {**self.data, "want_pointwise": 1}
        table = generate(program, data, coordinate_table(self.model, stored), self.record["arguments"]["seed"])
        shape = (stored.sizes["chain"], stored.sizes["draw"], len(self.train))
        columns = columns_of(list(table.columns))
        variables = {name: table.to_numpy()[:, columns[name]].reshape(shape) for name in ("log_lik", "y_rep")}
        return self._with_groups(pointwise_groups(self.train, variables))

    def to_arviz(self) -> Any:
        """Return a copy of ``idata`` in ArviZ' own format: ``InferenceData`` before version 1, since then a tree.

        Functions of ArviZ accept ``idata`` too. A genuine ``InferenceData`` has further methods, such as ``extend``.
        """
        return to_arviz(self._idata)

    def save(self, folder: str | Path, format: Format = "netcdf") -> Path:
        """Write ``record.json``, ``data.json`` and ``posterior.nc`` or ``posterior.zarr`` into a folder.

        The folder is created if it does not exist; a posterior that is already there is replaced in either format.

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
        saved.save(path, as_text(self.record), self.data, self._idata, format)
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
        try:
            record, data, idata = saved.load(path)
            model = Model.fromdict(record)
            saved.check(model, idata)
            if "log_prior" not in idata.children:  # saved by an earlier version
                idata = arviz_tree(groups_of(idata) | {"log_prior": log_prior(model, idata["posterior"].to_dataset())})
            constant = idata["constant_data"].to_dataset()
            train = Encoded(constant["values"].values, constant["active"].values.astype(np.bool_), model.encoder)
            return cls(model, train, data, idata, record, Diagnostics.fromdict(record["diagnostics"]))
        except StorageError:
            raise
        except Exception as error:  # a damaged file can cause any of them: AttributeError, RecursionError, ...
            raise StorageError(
                f"{path} is not a readable saved posterior: {type(error).__name__}: {error}; "
                "save it again, or restore a copy of the folder"
            ) from error

    def _with_groups(self, added: Mapping[str, xr.Dataset], entries: Mapping[str, Any] | None = None) -> Posterior:
        """Return this posterior with further groups in ``idata`` and entries in its record."""
        idata = arviz_tree({**groups_of(self._idata), **added})
        record = {**self.record, **(entries or {})}
        return Posterior(self.model, self.train, self.data, idata, record, self._diagnostics)

    @cached_property
    def targets(self) -> Targets:
        """The observations as the program saw them."""
        return Targets.of(self.data)
