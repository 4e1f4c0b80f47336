"""The result of `minimize`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from ConfigSpace import ConfigurationSpace
from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.display import Summary, cell
from slayr_py.errors import DataError
from slayr_py.inference import importance
from slayr_py.study.results.figures import convergence_figure, importance_figure
from slayr_py.study.results.recommendation import Recommendation, posterior_of_all, recommend
from slayr_py.study.results.report.page import write_report
from slayr_py.study.results.tables import (
    best_trial,
    comparable_trials,
    feasible_trials,
    finite_trials,
    fixed_values_text,
    found_kernels,
    search_table,
    trials_table,
)
from slayr_py.study.sampler import declared_space_of
from slayr_py.study.storage.attributes import FAILURE_KEY
from slayr_py.study.storage.trials import observations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slayr_py.inference import Posterior


@dataclass(frozen=True)
class Result:
    """The result of a finished or stopped optimisation, read from its study.

    Attributes
    ----------
    study : optuna.Study
        All trials, for use with Optuna's plots, dashboards and callbacks.
    space : ConfigurationSpace
        The search space.
    """

    study: Study
    space: ConfigurationSpace
    _recommended: dict[int, Recommendation] = field(default_factory=dict, init=False, repr=False, compare=False)
    _posteriors: dict[int, Posterior] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def recommended(self) -> Recommendation:
        """Return the evaluated configuration with the best posterior mean, and the prediction of its value.

        If the study's sampler has ``fixed`` values, only configurations with these values are compared. For a noisy
        objective it is a better choice than `best_config`, whose value is partly luck. The first use fits the model to
        all finished trials, unless the fit of the last suggestion has seen them all.

        Raises
        ------
        DataError
            If no trial can be fitted, or the study has neither a `StanGPSampler` nor a fit.
        StorageError
            If the record of the last fit is damaged.
        ToolchainError, InferenceError
            If Stan cannot be run, or fails.
        """
        n = self._n_observations()
        if n not in self._recommended:
            self._recommended[n] = recommend(self.study, self._posterior_of_all())
        return self._recommended[n]

    @property
    def best_config(self) -> dict[str, Any]:
        """Return the active parameters of the best trial that violates no constraint, by name.

        If the study's sampler has ``fixed`` values, only trials with these values are compared.

        Raises
        ------
        DataError
            If no such trial has a finite value.
        """
        return dict(self._best().params)

    @property
    def best_value(self) -> float:
        """Return the value of `best_config`, also for a noisy objective.

        Raises
        ------
        DataError
            As for `best_config`.
        """
        value = self._best().value
        assert value is not None
        return value

    @property
    def trials(self) -> pd.DataFrame:
        """Return a table with one row per trial: number, value, state and params_<name> for every parameter.

        If a trial has a known error, y_sd follows the value. Missing values and inactive parameters are NaN.
        """
        return trials_table(self.study, self.space)

    @property
    def searches(self) -> pd.DataFrame:
        """Return a table with one row per kernel search: see `slayr_py.study.search_table`."""
        return search_table(self.study)

    def posterior(self) -> Posterior:
        """Fit the model to all finished trials and return the posterior.

        Raises
        ------
        DataError
            If no trial can be fitted, or the study's sampler is not a `StanGPSampler`.
        InferenceError
            If Stan fails.
        """
        declared = declared_space_of(self.study)
        if declared is None:
            raise DataError(f"the study's sampler is {self.study.sampler}: only a StanGPSampler has a posterior")
        return declared.fit_all(self.study)

    def importance(self, draws: int = 48, points: int = 256, seed: int = 1) -> pd.DataFrame:
        """Return how much each parameter matters: Sobol indices with posterior means and 90% intervals.

        The first use fits the model to all finished trials, unless the fit of the last suggestion has seen them all.

        Parameters
        ----------
        draws, points, seed : int
            See `slayr_py.inference.importance`, which explains the table.

        Returns
        -------
        pandas.DataFrame
            One row per parameter; columns first, first_low, first_high, total, total_low, total_high.

        Raises
        ------
        DataError
            If an argument is illegal or no trial can be fitted.
        StorageError, ToolchainError, InferenceError
            As for `recommended`.
        """
        return importance(self._posterior_of_all(), draws, points, seed)

    def plot_importance(self, draws: int = 48, points: int = 256, seed: int = 1) -> Figure:
        """Draw `importance`: see `slayr_py.study.importance_figure`."""
        return importance_figure(self.importance(draws, points, seed))

    def report(self, path: str | Path, progress: Callable[[str], None] | None = None) -> Path:
        """Write a page about the study: one HTML file, which needs no network.

        It has the convergence, the configurations, the trials, the posterior along parameters and pairs of them, the
        hyperparameters, feasibility, the diagnostics of every fit, and how to repeat it. A part that fails is replaced
        by its error.

        Parameters
        ----------
        path : path
            The file; an existing one is replaced.
        progress : callable, optional
            Receives the names of slow steps. The model is fitted to all finished trials as for `recommended`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        return write_report(self.study, path, progress, self._posterior_of_all)

    def plot_convergence(self) -> Figure:
        """Draw the values and the best so far: see `slayr_py.study.convergence_figure`.

        A notebook shows the figure as the value of a cell.
        """
        return convergence_figure(self.study)

    def __repr__(self) -> str:
        """Return the study's name, number of trials, kernel, recommendation of a noisy study, and best trial.

        After a kernel search, the text also has the kernels behind the last suggestion and their weights.
        """
        # Do not fit here: printing a result must not take seconds.
        known = self._recommended.get(self._n_observations())
        recommended = f"recommended={known}: {known.config}, " if known is not None else ""
        best = "no feasible trial" if finite_trials(self.study) else "no finished trial"
        if feasible_trials(self.study):
            best = f"no feasible trial{fixed_values_text(self.study)}"
        if comparable_trials(self.study):
            best = f"best_value={self.best_value:.6g}, best_config={self.best_config}"
        trials = len(self.study.get_trials(deepcopy=False))
        declared = declared_space_of(self.study)
        kernel = f"kernel={declared.surrogate.kernel!r}, " if declared is not None else ""
        if kernels := found_kernels(self.study):
            kernel += f"found=[{kernels}], "
        return f"Result({self.study.study_name!r}, {trials} trials, {kernel}{recommended}{best})"

    def _repr_html_(self) -> str:
        trials = self.trials
        lines = [f"Study {self.study.study_name!r}: {len(trials)} trials"]
        declared = declared_space_of(self.study)
        if declared is not None:
            lines.append(f"kernel: {declared.surrogate.kernel!r}")
        if kernels := found_kernels(self.study):
            lines.append(f"found: {kernels}")
        if comparable_trials(self.study):
            best = ", ".join(f"{name} = {cell(value)}" for name, value in self.best_config.items())
            lines.append(f"best: {self.best_value:.6g} at {best}")
        return Summary("\n".join(lines), trials, rows=5).html()

    def _n_observations(self) -> int:
        return len(observations(self.study, self.space).numbers)

    def _posterior_of_all(self) -> Posterior:
        """Return the posterior given all observations; fitted once."""
        n = self._n_observations()
        if n not in self._posteriors:
            self._posteriors.clear()
            self._posteriors[n] = posterior_of_all(self.study)
        return self._posteriors[n]

    def _best(self) -> FrozenTrial:
        best = best_trial(self.study)
        if best is not None:
            return best
        if feasible_trials(self.study):
            raise DataError(
                f"study {self.study.study_name!r} has no feasible trial{fixed_values_text(self.study)}; "
                "result.study.best_trial is the best of all trials"
            )
        if finite_trials(self.study):
            raise DataError(
                f"study {self.study.study_name!r} has no feasible trial: each violates a constraint or does not report "
                "all of them"
            )
        reasons = [trial.user_attrs.get(FAILURE_KEY) for trial in self.study.get_trials(deepcopy=False)]
        last = next((reason for reason in reversed(reasons) if reason), "nothing was evaluated")
        raise DataError(f"study {self.study.study_name!r} has no trial with a finite value: {last}")
