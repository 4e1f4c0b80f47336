"""What a fit gives: draws, predictions, diagnostics, and a record of how it came about."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from slayr_py.errors import DataError, StorageError
from slayr_py.inference.diagnostics import Diagnostics, diagnose
from slayr_py.inference.model import Model
from slayr_py.inference.output import Run
from slayr_py.inference.prediction import Prediction, Predictor, predict_all
from slayr_py.inference.programs import compiled
from slayr_py.inference.record import make_record
from slayr_py.inference.run import generate
from slayr_py.inference.start import WarmStart
from slayr_py.inference.tree import leave_one_out, to_arviz
from slayr_py.kernels import Kernel
from slayr_py.space import Encoded, Encoder
from slayr_py.space.dimension import FloatArray
from slayr_py.toolchain import CompiledProgram


class Posterior:
    """Posterior of a Gaussian process; made by :meth:`GaussianProcess.fit` or :meth:`Posterior.load`.

    Attributes
    ----------
    model : Model
        What was fitted: kernel, priors, encoder.
    idata : xarray.DataTree
        ``posterior``, ``unconstrained_posterior``, ``sample_stats``, ``log_likelihood``, ``posterior_predictive``,
        ``observed_data`` and ``constant_data``, on standardised targets; ``constant_data`` has ``y_mean``, ``y_sd``.
    record : dict
        How to run this again; JSON-able.
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
        self.model, self.train, self.data = model, train, data
        self.idata, self.record, self._diagnostics = idata, record, diagnostics

    @property
    def kernel(self) -> Kernel:
        """The kernel that was fitted."""
        return self.model.kernel

    @property
    def encoder(self) -> Encoder:
        """The encoder of the space."""
        return self.model.encoder

    @property
    def y_mean(self) -> float:
        """Mean of the observed values, in the user's units."""
        return float(self.idata["constant_data"]["y_mean"])

    @property
    def y_sd(self) -> float:
        """Standard deviation by which the observed values were divided."""
        return float(self.idata["constant_data"]["y_sd"])

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return len(self.draws["mu"])

    @property
    def n_chains(self) -> int:
        """Number of chains; 1 for a method without."""
        return int(self.idata["posterior"].sizes["chain"])

    @cached_property
    def draws(self) -> dict[str, FloatArray]:
        """Hyperparameters by name, (s, ...): chains one after another."""
        posterior = self.idata["posterior"].to_dataset()
        arrays = {str(name): np.asarray(posterior[name].values) for name in posterior.data_vars}
        draws = {k: np.ascontiguousarray(v.reshape(-1, *v.shape[2:])) for k, v in arrays.items()}
        # Stan writes nothing of a vector without entries, such as length-scales where no parameter is real.
        empty = {name: np.zeros((len(draws["mu"]), 0)) for name in self.kernel.labels(self.encoder)}
        return empty | draws

    def predict(
        self, configs: Encoded | Iterable[Mapping[str, Any]] | Any, engine: Literal["numpy", "stan"] = "numpy"
    ) -> Prediction:
        """The latent function at m configurations.

        Parameters
        ----------
        configs : iterable of configurations, DataFrame, (m, D) array, or Encoded
        engine : {"numpy", "stan"}
            Compute from the draws here, or by the program's generated quantities; equal up to rounding.

        Returns
        -------
        Prediction
            In the user's units.
        """
        new = self.encoder.encode(configs)
        if engine == "numpy":
            mean, sd = predict_all(self.kernel, self.train, self._targets, self.draws, new)
        elif engine == "stan":
            mean, sd = self._predict_in_stan(new)
        else:
            raise DataError(f"unknown engine {engine!r}; known: 'numpy', 'stan'")
        return Prediction.from_draws(mean, sd).in_units(self.y_mean, self.y_sd)

    def predictor(self, n_draws: int | None = None) -> Predictor:
        """Factors of at most ``n_draws`` draws (all by default), on the standardised scale.

        Every chain is thinned evenly to as many as every other.
        """
        rows = np.arange(self.n_draws).reshape(self.n_chains, -1)
        if n_draws is not None and n_draws < self.n_draws:
            kept = np.linspace(0, rows.shape[1] - 1, max(1, n_draws // self.n_chains)).round().astype(np.intp)
            rows = rows[:, kept]
        return Predictor(self.kernel, self.train, self._targets, {k: v[rows.ravel()] for k, v in self.draws.items()})

    def check(self) -> Diagnostics:
        """Diagnostics of the fit."""
        return self._diagnostics

    def loo(self) -> xr.DataArray:
        """Leave-one-out log predictive densities of the n observations, in the user's units.

        Exact in the function, which is integrated out, and Pareto-smoothed importance sampling in the hyperparameters
        (Vehtari, Gelman & Gabry 2017).

        Returns
        -------
        (n,) DataArray
            Coordinate ``pareto_k`` (n,): above 0.7 the value is unreliable. Attributes ``elpd``, the sum, and ``se``.

        Raises
        ------
        DataError
            With fewer than five draws, such as a point estimate.
        """
        if self.n_draws < 5:
            raise DataError(f"leave-one-out needs posterior draws; this fit has {self.n_draws}")
        result = leave_one_out(self.idata)
        values = np.asarray(result.loo_i if hasattr(result, "loo_i") else result.elpd_i) - np.log(self.y_sd)
        pareto_k = np.asarray(result.pareto_k)
        n = len(values)
        return xr.DataArray(
            values,
            dims="observation",
            coords={"pareto_k": ("observation", pareto_k)},
            name="elpd_loo",
            attrs={"elpd": float(values.sum()), "se": float(np.sqrt(n * np.var(values)))},
        )

    def warm_start(self) -> WarmStart:
        """What a fit to nearly the same data can begin with: ``fit(..., start=posterior.warm_start())``.

        Raises
        ------
        DataError
            If this is not a NUTS fit.
        """
        if self.record["arguments"]["method"] != "nuts":
            raise DataError(
                f"a {self.record['arguments']['method']} fit has no chains to go on with; use method='nuts'"
            )
        stored = self.idata["unconstrained_posterior"].to_dataset()
        draws = {
            name: stored[name].values.reshape(*stored[name].shape[:2], *shape)
            for name, shape in self.model.parameter_shapes.items()
        }
        return WarmStart.after(
            draws,
            np.array([chain["step_size"] for chain in self.record["adaptation"]]),
            float(self.idata["sample_stats"]["acceptance_rate"].mean()),
            self.record["arguments"]["target_acceptance"],
        )

    def to_arviz(self) -> Any:
        """``idata`` as the installed ArviZ takes it: ``InferenceData`` before version 1, the tree itself after."""
        return to_arviz(self.idata)

    def save(self, folder: str | Path) -> Path:
        """Write ``record.json``, ``data.json`` and ``posterior.nc`` into a folder, which is made if need be.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        path = Path(folder)
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in self.data.items()}
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Written beside and moved when all of it is on the disk: a full one leaves an older posterior as it was.
            with tempfile.TemporaryDirectory(prefix=".slayr-save-", dir=path) as beside:
                (Path(beside) / "data.json").write_text(json.dumps(plain) + "\n", encoding="utf-8")
                self.idata.to_netcdf(Path(beside) / "posterior.nc")
                record = json.dumps(self.record, indent=2) + "\n"
                (Path(beside) / "record.json").write_text(record, encoding="utf-8")
                for name in ("data.json", "posterior.nc", "record.json"):
                    os.replace(Path(beside) / name, path / name)
        except (OSError, RuntimeError) as error:  # the NetCDF library tells of a full disk by a RuntimeError
            raise StorageError(
                f"cannot save the posterior to {path}: {error}; make room there, or choose another folder"
            ) from error
        return path

    @classmethod
    def load(cls, folder: str | Path) -> Posterior:
        """Read what :meth:`save` wrote.

        Raises
        ------
        StorageError
            If the folder is not a saved posterior or cannot be read.
        """
        path = Path(folder)
        try:
            record = json.loads((path / "record.json").read_text(encoding="utf-8"))
            data = json.loads((path / "data.json").read_text(encoding="utf-8"))
            with xr.open_datatree(path / "posterior.nc") as stored:
                idata = stored.load()
            model = Model.fromdict(record)
            constant = idata["constant_data"].to_dataset()
            active = constant["active"].values.astype(np.bool_)
            train = Encoded(constant["values"].values, active, model.encoder)
            posterior = cls(model, train, data, idata, record, Diagnostics.fromdict(record["diagnostics"]))
            posterior._check_shapes()
            return posterior
        except Exception as error:  # what a damaged file can lead to has no end: AttributeError, RecursionError, ...
            raise StorageError(
                f"{path} is not a readable saved posterior: {type(error).__name__}: {error}; "
                "save it again, or restore a copy of the folder"
            ) from error

    def _check_shapes(self) -> None:
        """Raise `ValueError` unless draws, targets and configurations fit the model and each other."""
        stored = self.idata["posterior"].to_dataset()
        labels = self.kernel.labels(self.encoder)
        for name in self.model.priors:
            label = labels.get(name)
            wanted = () if label is None else (len(label),)
            if wanted != (0,) and (name not in stored or stored[name].shape[2:] != wanted):
                raise ValueError(f"its draws of {name!r} are missing, or not of shape (chain, draw, *{wanted})")
        n, dimensions = len(self._targets), len(self.encoder.dimensions)
        if self.train.values.shape != (n, dimensions) or self.train.active.shape != (n, dimensions):
            raise ValueError(f"it has {n} targets and configurations of shape {self.train.values.shape}")
        if not (np.isfinite(self.y_mean) and self.y_sd > 0):
            raise ValueError(f"its targets have the mean {self.y_mean} and the standard deviation {self.y_sd}")

    @property
    def _targets(self) -> FloatArray:
        return np.asarray(self.idata["observed_data"]["y"].values, dtype=np.float64)

    def _predict_in_stan(self, new: Encoded) -> tuple[FloatArray, FloatArray]:
        raw = self.idata["unconstrained_posterior"].to_dataset()
        table: dict[str, FloatArray] = {}
        for name, shape in self.model.parameter_shapes.items():
            values = raw[name].values.reshape(self.n_draws, -1)
            table |= {f"{name}.{i + 1}" if shape else name: values[:, i] for i in range(values.shape[1])}
        data = self.model.stan_data(self.train, self._targets, new)
        program = compiled(self.kernel.program)
        output = generate(program, data, pd.DataFrame(table), self.record["arguments"]["seed"])
        mean = output[[f"f_mean.{i + 1}" for i in range(len(new))]].to_numpy()
        sd = output[[f"f_sd.{i + 1}" for i in range(len(new))]].to_numpy()
        return mean, sd


def build_posterior(
    model: Model,
    program: CompiledProgram,
    train: Encoded,
    data: dict[str, Any],
    run: Run,
    y_mean: float,
    y_sd: float,
    start: WarmStart | None = None,
    abandoned: Sequence[Mapping[str, Any]] = (),
) -> Posterior:
    """Label a run's arrays with the space's names and put the record beside them."""
    labels = {name: model.kernel.labels(model.encoder).get(name) for name in model.priors}
    dims = model.kernel.dims
    posterior: dict[str, Any] = {}
    scores: dict[str, Any] = {}
    coords: dict[str, list[str]] = {}
    for name, label in labels.items():
        for key, store in ((name, posterior), (f"z_{name}", scores)):
            if key not in run.variables:
                continue
            array = run.variables[key]
            if label is None:
                store[key] = (("chain", "draw"), array[..., 0])
            else:
                store[key] = (("chain", "draw", dims[name]), array)
                coords[dims[name]] = list(label)
    observed = {"observation": np.arange(len(train))}
    pointwise = ("chain", "draw", "observation")
    constant = {
        "y_mean": y_mean,
        "y_sd": y_sd,
        "X": (("observation", "column"), train.columns),
        "values": (("observation", "parameter"), train.values),
        "active": (("observation", "parameter"), train.active),
    }
    names = {"column": list(model.encoder.column_names), "parameter": list(model.encoder.names)}
    statistics = {name: (("chain", "draw"), values) for name, values in _typed(run).items()}
    groups = {
        "posterior": xr.Dataset(posterior, coords),
        "unconstrained_posterior": xr.Dataset(scores, coords),
        "sample_stats": xr.Dataset(statistics),
        "log_likelihood": xr.Dataset({"y": (pointwise, run.variables["log_lik"])}, observed),
        "posterior_predictive": xr.Dataset({"y": (pointwise, run.variables["y_rep"])}, observed),
        "observed_data": xr.Dataset({"y": ("observation", np.asarray(data["y"]))}, observed),
        "constant_data": xr.Dataset(constant, observed | names),
    }
    idata = xr.DataTree.from_dict(groups)
    diagnostics = diagnose(run, {name: run.variables[name] for name in labels if name in run.variables})
    record = make_record(model, program, data, run, diagnostics, start, abandoned)
    return Posterior(model, train, data, idata, record, diagnostics)


def _typed(run: Run) -> dict[str, Any]:
    """Sampler statistics with the types that ArviZ expects; the log density of methods without a sampler."""
    if not run.sampler:
        return {"lp": run.variables["lp__"]} if "lp__" in run.variables else {}
    typed: dict[str, Any] = dict(run.sampler)
    typed["diverging"] = run.sampler["diverging"] > 0
    typed |= {name: run.sampler[name].astype(np.int64) for name in ("tree_depth", "n_steps")}
    return typed
