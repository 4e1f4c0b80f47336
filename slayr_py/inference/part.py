"""A fit of one kernel, of which a posterior has one or more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp

from slayr_py.display import Summary
from slayr_py.errors import DataError, StorageError
from slayr_py.inference.diagnostics.arviz_bridge import LeaveOneOut, leave_one_out
from slayr_py.inference.diagnostics.arviz_tree import arviz_tree, groups_of
from slayr_py.inference.diagnostics.checks import Diagnostics
from slayr_py.inference.model import Model
from slayr_py.inference.modes.likelihood import Targets
from slayr_py.inference.observed import Observed
from slayr_py.inference.prediction.blocks import log_success_all, predict_all, sample_all
from slayr_py.inference.prediction.components import Components, split_into_components
from slayr_py.inference.prediction.distribution import Latent
from slayr_py.inference.prediction.factorisation import ExactFactorisation, Factorisation, SparseFactorisation
from slayr_py.inference.prediction.kernel_predictor import KernelPredictor
from slayr_py.inference.prediction.stan_engine import coordinate_table, predict_in_stan
from slayr_py.inference.records import saved
from slayr_py.inference.records.contents import Contents
from slayr_py.inference.records.data_tree import pointwise_groups, prior_groups
from slayr_py.inference.records.record import as_text, check_format, make_record
from slayr_py.inference.records.saved import Format
from slayr_py.inference.records.summary import entries
from slayr_py.inference.sampling.ladder import AbandonedAttempt
from slayr_py.inference.sampling.methods import METHODS, diagnose_run
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run, columns_of
from slayr_py.inference.sampling.programs import compiled
from slayr_py.inference.sampling.run import generate, run
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.inference.warp import unwarped
from slayr_py.space import Encoded, FloatArray
from slayr_py.toolchain import CompiledProgram

Engine = Literal["numpy", "stan"]

FEWEST_DRAWS = 5
"""With fewer draws, such as the mode, the densities given the draws are used without importance sampling."""


@dataclass(frozen=True, eq=False)
class Part:
    """A fit of one kernel; `Posterior` documents its methods.

    Attributes
    ----------
    model : Model
    train : Encoded
        The n observed configurations.
    data : mapping
        Data of the program.
    contents : Contents
        Draws, and ArviZ' groups of them.
    record : dict
    diagnostics : Diagnostics
    sparse : SparseFactorisation, optional
        Factors of a sparse fit, from which it predicts.
    """

    model: Model
    train: Encoded
    data: Mapping[str, Any]
    contents: Contents
    record: dict[str, Any]
    diagnostics: Diagnostics
    sparse: SparseFactorisation | None = None

    @classmethod
    def from_run(
        cls,
        program: CompiledProgram,
        observed: Observed,
        result: Run,
        start: WarmStart | None = None,
    ) -> Part:
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
        """
        model = observed.model
        contents = Contents.of_run(observed, result)
        sampled = {name: ~fixed for name, fixed in model.fixed.items() if name in result.variables and not fixed.all()}
        hyperparameters = {name: result.variables[name][..., np.atleast_1d(free)] for name, free in sampled.items()}
        has_loo = contents.log_likelihood is not None and len(contents.log_likelihood) >= FEWEST_DRAWS
        loo = leave_one_out(contents.tree) if has_loo else None
        diagnostics = diagnose_run(result, hyperparameters, loo)
        diagnostics = replace(diagnostics, kernel_notes=model.notes(contents.draws, observed.train))
        maximize = observed.y_sd < 0
        record = make_record(model, program, observed.data, result, diagnostics, start, maximize)
        return cls(model, observed.train, observed.data, contents, record, diagnostics)

    def after(self, abandoned: Sequence[AbandonedAttempt]) -> Part:
        """Return the fit with the attempts before it in ``record["abandoned"]``.

        A note of the diagnostics says if another method has replaced the one asked for; "carried", a ladder of methods,
        needs none.
        """
        if not abandoned:
            return self
        diagnostics = self.diagnostics
        method = self.record["arguments"]["method"]
        first = abandoned[0]["method"]
        if method != first and not METHODS[first].carries:
            note = f"method={first!r} was given up, see record['abandoned']; the draws are those of method={method!r}"
            diagnostics = replace(diagnostics, kernel_notes=(note, *diagnostics.kernel_notes))
        record = self.record | {"abandoned": list(abandoned), "diagnostics": diagnostics.asdict()}
        return replace(self, record=record, diagnostics=diagnostics)

    @classmethod
    def load(cls, path: Path) -> Part:
        """Load a fit that :meth:`save` wrote; see `Posterior.load`."""
        try:
            record, data, tree = saved.load(path)
            check_format(record)
            model = Model.fromdict(record)
            saved.check(model, tree)
            constant = tree["constant_data"].to_dataset()
            train = Encoded(constant["values"].values, constant["active"].values.astype(np.bool_), model.encoder)
            contents = Contents.of_tree(model, tree)
            return cls(model, train, data, contents, record, Diagnostics.fromdict(record["diagnostics"]))
        except StorageError:
            raise
        except Exception as error:  # a damaged file can cause any of them: AttributeError, RecursionError, ...
            raise StorageError(
                f"{path} is not a readable saved posterior: {type(error).__name__}: {error}; "
                "save it again, or restore a copy of the folder"
            ) from error

    @cached_property
    def factorisation(self) -> Factorisation:
        """Points and factors for predictions: all observations, or the inducing points of a sparse fit."""
        return self.sparse or ExactFactorisation(self.model.kernel, self.train, Targets.of(self.data))

    @property
    def y_mean(self) -> float:
        """Mean that standardisation subtracted from the observed values."""
        return self.contents.y_mean

    @property
    def y_sd(self) -> float:
        """Standard deviation by which standardisation divided the values; negative if larger values are better."""
        return self.contents.y_sd

    @property
    def targets(self) -> Targets:
        """The observations as the program saw them."""
        return self.factorisation.targets

    @property
    def tree(self) -> xr.DataTree:
        """ArviZ' groups."""
        return self.contents.tree

    @property
    def draws(self) -> dict[str, FloatArray]:
        """Hyperparameters by name, (s, ...), with the chains concatenated."""
        return self.contents.draws

    @property
    def n_draws(self) -> int:
        """Number of draws over all chains."""
        return len(self.draws["mu"])

    @property
    def n_chains(self) -> int:
        """Number of chains; 1 for a method without chains."""
        return self.contents.n_chains

    def psis(self) -> LeaveOneOut:
        """Return the leave-one-out densities of the n observations by importance sampling, in the user's units."""
        self.require_program("leave-one-out densities")
        if "log_likelihood" not in self.tree.children:
            raise DataError(
                "the fit has no log likelihoods, because pointwise=False; use posterior.with_pointwise().loo()"
            )
        loo = leave_one_out(self.tree)
        if loo is None:
            raise DataError(
                f"leave-one-out needs at least {FEWEST_DRAWS} draws, this fit has {self.n_draws}; use method='nuts'"
            )
        return loo._replace(elpd=loo.elpd - np.log(abs(self.y_sd)))

    @cached_property
    def leave_one_out(self) -> LeaveOneOut:
        """Leave-one-out densities of the n observations, in the user's units.

        For a point estimate, the density of each observation given the others is computed in closed form at the same
        hyperparameters, which were fitted to that observation too. ``pareto_k`` is then NaN.
        """
        if self.n_draws >= FEWEST_DRAWS:
            return self.psis()
        given = self.contents.log_likelihood
        if given is None:
            given = self.with_pointwise().contents.log_likelihood
            assert given is not None
        elpd = logsumexp(given, axis=0) - np.log(len(given)) - np.log(abs(self.y_sd))
        return LeaveOneOut(np.asarray(elpd), np.full(len(elpd), np.nan), float("nan"))

    def summary(self) -> Summary:
        """Return a short description with a table of the hyperparameters."""
        checks = self.diagnostics
        has_draws = self.n_draws > 1
        verdict = "ok" if checks.ok else "NOT OK"
        lines = [
            f"Posterior of a Gaussian process: {self.model.kernel.description}, {len(self.train)} observations",
            f"{self.record['arguments']['method']}, {self.n_draws} draw{'s' * has_draws}: {checks} {verdict}",
            *checks.messages,
        ]
        by_entry = entries(self.model)
        draws = np.column_stack([self.draws[name].reshape(self.n_draws, -1)[:, i] for name, i in by_entry.values()])
        centre = "median" if has_draws else "value"
        table = pd.DataFrame({"hyperparameter": list(by_entry), centre: np.median(draws, axis=0)})
        if has_draws:
            table["5%"], table["95%"] = np.quantile(draws, [0.05, 0.95], axis=0)
        return Summary("\n".join(lines), table)

    def predictor(self, rows: NDArray[np.intp]) -> KernelPredictor:
        """Return a predictor from these rows of the draws."""
        return self.factorisation.predictor(self.draws, rows)

    def latent(self, new: Encoded, engine: Engine) -> Latent:
        """Return the transformed function at m configurations under every draw."""
        if engine == "numpy":
            mean, sd, jitter = predict_all(self.predictor, self.n_draws, len(self.factorisation.support), new)
        elif engine == "stan":
            self.require_program("prediction by engine='stan'")
            coordinates = self.contents.coordinates
            seed = self.record["arguments"]["seed"]
            mean, sd = predict_in_stan(self.model, self.train, self.targets, coordinates, new, seed)
            jitter = np.zeros(len(mean))
        else:
            raise DataError(f"unknown engine {engine!r}; known: 'numpy', 'stan'")
        noise = np.sqrt(self.targets.common_noise(self.draws))
        warp = self.draws.get("warp")
        return Latent(mean, sd, warp, self.y_mean, self.y_sd, noise, jitter, self.targets.pivot)

    def log_success(self, new: Encoded) -> FloatArray:
        """Return the log probability of success of a binary model under every draw, (s, m)."""
        return log_success_all(self.predictor, self.n_draws, len(self.factorisation.support), new)

    def sample(self, new: Encoded, rows: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """Draw the latent function jointly at m configurations for each of the k ``rows`` of the draws, (k, m)."""
        values = sample_all(self.predictor, len(self.factorisation.support), new, rows, rng)
        if "warp" in self.draws:
            values = unwarped(values, self.draws["warp"][rows, None], self.targets.pivot)
        return np.asarray(self.y_mean + self.y_sd * values)

    def components(self, new: Encoded) -> Components:
        """Split the latent function at m configurations into the summands of the kernel."""
        self.require_program("components")
        if "warp" in self.draws:
            raise DataError(
                "a fit with a warp cannot be split into components, since they do not add up; use warp='none'"
            )
        return split_into_components(
            self.model.kernel, self.train, self.targets, self.draws, new, self.y_mean, self.y_sd
        )

    def warm_start(self) -> WarmStart:
        """Return a warm start for a fit to nearly the same data."""
        self.require_program("warm start")
        method = METHODS[self.record["arguments"]["method"]]
        return method.warm_start(self.contents.coordinates, self.record, self.contents.acceptance_rate)

    def with_prior(self, draws: int, chains: int, warmup: int, seed: int) -> Part:
        """Return this fit with draws from the prior."""
        self.require_program("draws from the prior")
        result = run(
            compiled(self.model.kernel.program),
            {**self.data, "prior_only": 1, "omit_jacobian": 0, "want_pointwise": 1},
            FitOptions(chains=chains, warmup=warmup, draws=draws),
            seed=seed,
        )
        part = self._with_groups(prior_groups(self.model, self.train, result))
        return replace(part, record={**self.record, "prior": result.arguments})

    def with_pointwise(self) -> Part:
        """Return this fit with the groups that a fit without ``pointwise`` omits."""
        self.require_program("pointwise densities")
        coordinates = self.contents.coordinates
        program = compiled(self.model.kernel.program)
        data = {**self.data, "want_pointwise": 1}
        table = generate(program, data, coordinate_table(coordinates), self.record["arguments"]["seed"])
        shape = (self.n_chains, self.n_draws // self.n_chains, len(self.train))
        columns = columns_of(list(table.columns))
        variables = {name: table.to_numpy()[:, columns[name]].reshape(shape) for name in ("log_lik", "y_rep")}
        return self._with_groups(pointwise_groups(self.train, variables))

    def save(self, path: Path, form: Format) -> None:
        """Write the fit into a folder."""
        self.require_program("saved form")
        saved.save(path, as_text(self.record), self.data, self.tree, form)

    def _with_groups(self, groups: Mapping[str, xr.Dataset]) -> Part:
        tree = arviz_tree({**groups_of(self.tree), **groups})
        return replace(self, contents=Contents.of_tree(self.model, tree))

    def require_program(self, what: str) -> None:
        """Raise `DataError` for a sparse fit, which does not use a Stan program."""
        if self.sparse is not None:
            raise DataError(f"a sparse fit has no {what}; fit at most a few thousand observations without inducing=")
