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
from typing_extensions import Unpack

from slayr_py.arguments import check_flag, check_integer
from slayr_py.display import Summary, cell
from slayr_py.errors import DataError
from slayr_py.inference import importance
from slayr_py.space import space_given
from slayr_py.study.results.figures import convergence_figure, front_figure, importance_figure
from slayr_py.study.results.front import Reference, front_band, front_probabilities, front_table, hypervolume_of
from slayr_py.study.results.latest_fits import feasibility_of_all, has_warp, posterior_of_all, without_warp
from slayr_py.study.results.noise import is_exact
from slayr_py.study.results.optimum import Optimum, good, optimum
from slayr_py.study.results.recommendation import Recommendation, recommend
from slayr_py.study.results.report.page import write_report
from slayr_py.study.results.tables import (
    best_trial,
    comparable_trials,
    feasible_trials,
    finite_trials,
    fixed_values_text,
    found_kernels,
    front_trials,
    search_table,
    stopping_text,
    trials_table,
)
from slayr_py.study.sampler import declared_space_of, warn_of_forgotten_functions
from slayr_py.study.storage.attributes import FAILURE_KEY
from slayr_py.study.storage.objectives import check_one_objective, goal_of, goals_of, has_several
from slayr_py.study.storage.trials import observations
from slayr_py.threads import ignoring_underflow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from slayr_py.inference import FitKeywords, Posterior


_FRONT = "use result.front, the table of the best compromises"


@ignoring_underflow
@dataclass(frozen=True)
class Result:
    """The result of a finished or stopped optimisation, read from its study.

    Attributes
    ----------
    study : optuna.Study
        All trials, for use with Optuna's plots, dashboards and callbacks.
    space : ConfigurationSpace
        The search space; a dictionary or an `Encoder` that is given for it is replaced by its space. If the study's
        sampler has inferred the parameters, its model is fitted in this space.
    """

    study: Study
    space: ConfigurationSpace
    _recommended: dict[tuple[int, ...], Recommendation] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _posteriors: dict[tuple[tuple[int, ...], int, bool], Posterior] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", space_given(self.space))

    @property
    def recommended(self) -> Recommendation:
        """Return the best evaluated configuration: of a noisy objective by the posterior mean, with its prediction.

        For a noisy objective, or one whose values have known errors, it is a better choice than `best_config`, whose
        value is partly luck. The first use fits the model to all finished trials, unless the fit of the last suggestion
        has seen them all. For an exact objective it is `best_config` with the observed value, and nothing is fitted. If
        the study's sampler has ``fixed`` values, only configurations with these values are compared.

        Raises
        ------
        DataError
            If there is no feasible trial, no trial can be fitted, or the study has neither a `StanGPSampler` nor a fit.
        StorageError
            If the record of the last fit is damaged.
        ToolchainError, InferenceError
            If Stan cannot be run, or fails.
        """
        check_one_objective(self.study, _FRONT)
        if is_exact(self.study):
            return Recommendation.observed(self._best())
        numbers = tuple(trial.number for trial in self.study.get_trials(deepcopy=False) if trial.state.is_finished())
        if numbers not in self._recommended:
            self._recommended[numbers] = recommend(self.study, self._posterior_of_all())
        return self._recommended[numbers]

    @property
    def best_config(self) -> dict[str, Any]:
        """Return the active parameters of the best trial that violates no constraint, by name.

        If the study's sampler has ``fixed`` values, only trials with these values are compared.

        Raises
        ------
        DataError
            If no such trial has a finite value, or the study has several objectives: use `front`.
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
        return float(self._best().values[0])

    @property
    def front(self) -> pd.DataFrame:
        """Return the trials of several objectives that no other one dominates: see `slayr_py.study.front_table`."""
        return front_table(self.study, self.space)

    def front_probability(self, n: int = 256, seed: int = 1) -> pd.DataFrame:
        """Return the probability that each evaluated configuration is on the front of the latent functions.

        For objectives without noise it is 1 or 0; for noisy ones it tells which trials of `front` are there by luck.
        The functions have the posterior standard deviations, without the inflation of `front_band`. The first use of
        noisy objectives fits the models to all finished trials, unless the fit of the last suggestion has seen them.

        Parameters
        ----------
        n : int
            Number of functions drawn for each objective.
        seed : int

        Returns
        -------
        pandas.DataFrame
            number, probability and params_<name> of each feasible trial with the fixed values, the most probable first.

        Raises
        ------
        DataError
            If the study has one objective, or no feasible trial.
        StorageError, ToolchainError, InferenceError
            As for `recommended`.
        """
        if self.front.empty:
            raise DataError(f"study {self.study.study_name!r} has no feasible trial with finite values")
        seed = check_integer("seed", seed, minimum=0)
        n = check_integer("n", n)
        if is_exact(self.study):
            return front_probabilities(self.study, [], {}, n, seed)
        return front_probabilities(self.study, *self._models(), n, seed)

    def front_band(
        self, probability: float = 0.9, n: int = 50, seed: int = 1, reference: Reference | None = None
    ) -> pd.DataFrame:
        """Return a credible band of the front of two objectives: what is attainable, not only what was found.

        Functions are drawn as for `slayr_py.Regret`, with its inflation of the standard deviations. The first use
        fits the models to all finished trials, unless the fit of the last suggestion has seen them all.

        Parameters
        ----------
        probability : float
            Probability of the band at each value of the first objective, in (0, 1).
        n : int
            Number of values of the first objective.
        seed : int
        reference : sequence or mapping of str to float, optional
            Reference point that ends the band; by default that of the present front.

        Returns
        -------
        pandas.DataFrame
            The first objective under its name, and low, median and high of the best attainable second one.

        Raises
        ------
        DataError
            If the study has not two objectives, or no feasible trial, or an argument is illegal.
        StorageError, ToolchainError, InferenceError
            As for `recommended`.
        """
        if self.front.empty:
            raise DataError(f"study {self.study.study_name!r} has no feasible trial with finite values")
        return front_band(self.study, *self._models(), probability, n, seed, reference)

    def hypervolume(self, reference: Reference) -> float:
        """Return the volume that the trials dominate within a reference point.

        Parameters
        ----------
        reference : sequence or mapping of str to float
            The worst values that are of interest, in the order of the objectives or by name, in the user's units.

        Returns
        -------
        float
            In the product of the units; 0 if no feasible trial is better than the reference point in all objectives.

        Raises
        ------
        DataError
            If the study has one objective, or the reference point has not one finite number for each.
        """
        return hypervolume_of(self.study, reference)

    @property
    def trials(self) -> pd.DataFrame:
        """Return a table with one row per trial: number, value, state and params_<name> for every parameter.

        If a trial has a known error, y_sd follows the value. Several objectives have columns values_<name> and
        y_sd_<name> each, with their numbers if they have no names. Constraints have columns constraints_<name>, with
        the excess over the bound. Missing values and inactive parameters are NaN.
        """
        return trials_table(self.study, self.space)

    @property
    def searches(self) -> pd.DataFrame:
        """Return a table with one row per kernel search: see `slayr_py.study.search_table`."""
        return search_table(self.study)

    def posterior(
        self, objective: int | str | None = None, *, warped: bool = True, **fit: Unpack[FitKeywords]
    ) -> Posterior:
        """Fit the model to all finished trials and return the posterior.

        Parameters
        ----------
        objective : int or str, optional
            Number or name of one of several objectives.
        warped : bool
            Whether the model has the warp that it may have in the study. A warp fits the values near the best one. Far
            from all trials its predictions may be wrong by orders of magnitude and their means infinite; without it
            they describe the whole space, as the report's slices and maps do.
        **fit
            Options of `slayr_py.GaussianProcess.fit` instead of the loop's, which are chosen for speed: with
            ``method="nuts", ess=400`` the draws suffice for tables and figures of the hyperparameters.

        Raises
        ------
        DataError
            If no trial can be fitted, an option is illegal, the study has neither a `StanGPSampler` nor a
            fit, or several objectives and none is given.
        InferenceError
            If Stan fails.
        """
        if not check_flag("warped", warped) and has_warp(with_warp := self._posterior_of_all(objective)):
            return without_warp(with_warp, **fit)
        declared = declared_space_of(self.study)
        if declared is None:  # loaded without its sampler
            return posterior_of_all(self.study, objective=objective, space=self.space, **fit)
        return declared.fit_all(self.study, None, goal_of(self.study, objective), **fit)

    def importance(
        self, draws: int = 48, points: int = 256, seed: int = 1, objective: int | str | None = None
    ) -> pd.DataFrame:
        """Return how much each parameter matters: Sobol indices with posterior means and 90% intervals.

        The model of the study is fitted to all finished trials without its warp, under which functions far from the
        observations may be orders of magnitude larger than these: the variance over the space would be theirs.

        Parameters
        ----------
        draws, points, seed : int
            See `slayr_py.inference.importance`, which explains the table.
        objective : int or str, optional
            Number or name of one of several objectives.

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
        return importance(self._posterior_of_all(objective, warped=False), draws, points, seed)

    def plot_importance(
        self, draws: int = 48, points: int = 256, seed: int = 1, objective: int | str | None = None
    ) -> Figure:
        """Draw `importance`: see `slayr_py.study.importance_figure`."""
        return importance_figure(self.importance(draws, points, seed, objective))

    def optimum(self, seed: int = 1) -> Optimum:
        """Return where the optimum is: an interval for each number, a probability for each level and branch.

        Functions are drawn from the posterior, and the optimum of each of them is found. As for `slayr_py.Regret`,
        they vary more if the suggestions' predictions were too certain. All of them have the observed values of an
        exact objective, so that the optimal value is never worse than `best_value`, and the best trial is certainly the
        best of those evaluated. A note says if the model does not explain that value. Models of failures and
        constraints are drawn too. Constraints on inputs hold, and so do ``fixed`` values unless the study was loaded;
        then a note names functions among the constraints, which are unknown. The posterior is that of the model: a
        feature of the function that no evaluation has shown is not in it. The first use fits the model to all finished
        trials, unless the fit of the last suggestion has seen them all.

        Parameters
        ----------
        seed : int
            Of the functions.

        Returns
        -------
        Optimum
            Its `table` has the locations, `evaluated` the probability of each evaluated configuration of being the best
            of them, `value` the interval of the optimal value, `notes` the limits; `plot()` draws the locations.

        Raises
        ------
        DataError
            If the study has several objectives or no feasible trial, or the seed is illegal.
        StorageError, ToolchainError, InferenceError
            As for `recommended`.
        """
        check_one_objective(self.study, _FRONT)
        seed = check_integer("seed", seed, minimum=0)
        return optimum(self.study, self._posterior_of_all(), seed)

    def good(self, epsilon: float, probability: float = 0.9, seed: int = 1) -> pd.DataFrame:
        """Return the ranges of configurations that are nearly optimal.

        They are configurations whose regret, the difference of the latent function from its optimum, is below
        ``epsilon`` with the given probability. Parameters vary together: a range is that of one parameter over all
        these configurations, and not every combination of values in the ranges is among them.

        A search extends the ranges outward from the configurations that the search for the optima has met, until they
        no longer grow.

        Parameters
        ----------
        epsilon : float
            Negligible regret, in the objective's units.
        probability : float
        seed : int

        Returns
        -------
        DataFrame
            parameter, low and high of each number, and a row for each level that occurs.

        Raises
        ------
        DataError
            If no configuration is near enough with this probability; the message has an epsilon that would do.
            Otherwise as for `optimum`.
        """
        check_one_objective(self.study, _FRONT)
        seed = check_integer("seed", seed, minimum=0)
        warn_of_forgotten_functions(self.study)
        return good(self.study, self._posterior_of_all(), epsilon, probability, seed)

    def report(
        self, path: str | Path, progress: Callable[[str], None] | None = None, epsilon: float | None = None
    ) -> Path:
        """Write a page about the study: one HTML file, which needs no network.

        It has the convergence, the configurations, the trials, the posterior along parameters and pairs of them, the
        hyperparameters, feasibility, the diagnostics of every fit, and how to repeat it. The page of several objectives
        has the front, with what the posteriors say about it, the hypervolume and the stopping rule instead of the
        configurations and the posterior. A part that fails is replaced by its error.

        Parameters
        ----------
        path : path
            The file; an existing one is replaced.
        progress : callable, optional
            Receives the names of slow steps. The model is fitted to all finished trials as for `recommended`.
        epsilon : float, optional
            The page then has the ranges of `good`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        DataError
            If epsilon is not a positive number, or is given for a study with several objectives.
        StorageError
            If the file cannot be written.
        """
        return write_report(self.study, path, progress, self._posterior_of_all, epsilon)

    def plot_front(self, band: float | None = None) -> Figure:
        """Draw the front of several objectives: see `slayr_py.study.front_figure`.

        Parameters
        ----------
        band : float, optional
            Probability of the credible band of two objectives; it needs the fits of `front_band`.
        """
        return front_figure(self.study, None if band is None else self.front_band(band))

    def plot_convergence(self) -> Figure:
        """Draw the values and the best so far, or the hypervolume: see `slayr_py.study.convergence_figure`.

        A notebook shows the figure as the value of a cell.
        """
        return convergence_figure(self.study)

    def __repr__(self) -> str:
        """Return the study's name, number of trials, kernel, recommendation of a noisy study, and best trial.

        After a kernel search, the text also has the kernels behind the last suggestion and their weights. After a stop
        it has the probability by which the stopping rule held.
        """
        # Do not fit here: printing a result must not take seconds.
        known = self._recommended.get(self._observed_numbers())
        recommended = f"recommended={known}: {known.config}, " if known is not None else ""
        best = "no feasible trial" if finite_trials(self.study) else "no finished trial"
        if feasible_trials(self.study):
            best = f"no feasible trial{fixed_values_text(self.study)}"
        if comparable_trials(self.study):
            best = self._summary()
        trials = len(self.study.get_trials(deepcopy=False))
        declared = declared_space_of(self.study)
        kernel = f"kernel={declared.surrogate.kernel!r}, " if declared is not None else ""
        if kernels := found_kernels(self.study):
            kernel += f"found=[{kernels}], "
        stopped = f", stopping rule: {text}" if (text := stopping_text(self.study)) else ""
        return f"Result({self.study.study_name!r}, {trials} trials, {kernel}{recommended}{best}{stopped})"

    def _repr_html_(self) -> str:
        trials = self.trials
        lines = [f"Study {self.study.study_name!r}: {len(trials)} trials"]
        declared = declared_space_of(self.study)
        if declared is not None:
            lines.append(f"kernel: {declared.surrogate.kernel!r}")
        if kernels := found_kernels(self.study):
            lines.append(f"found: {kernels}")
        if has_several(self.study):
            lines.append(self._summary())
        elif comparable_trials(self.study):
            best = ", ".join(f"{name} = {cell(value)}" for name, value in self.best_config.items())
            lines.append(f"best{fixed_values_text(self.study)}: {self.best_value:.6g} at {best}")
        if stopped := stopping_text(self.study):
            lines.append(f"stopping rule: {stopped}")
        return Summary("\n".join(lines), trials, rows=5).html()

    def _summary(self) -> str:
        """Describe the best trial, or the front of several objectives."""
        if not has_several(self.study):
            best = f"best_value={self.best_value:.6g}, best_config={self.best_config}"
            return f"{best}{fixed_values_text(self.study)}"
        goals = ", ".join(f"{goal.name} ({'max' if goal.maximize else 'min'})" for goal in goals_of(self.study))
        return f"front of {len(front_trials(self.study))} trials{fixed_values_text(self.study)} in {goals}"

    def _observed_numbers(self) -> tuple[int, ...]:
        """Return the numbers of the trials that a model is fitted to: first of the objective, then of success only."""
        observed = observations(self.study, self.space)
        return *observed.numbers, *observed.penalties

    def _models(self) -> tuple[list[Posterior], dict[str, Posterior]]:
        """Return the posterior of each objective, and the models of failures and constraints by name."""
        posteriors = [self._posterior_of_all(goal.number) for goal in goals_of(self.study)]
        return posteriors, feasibility_of_all(self.study, posteriors[0].encoder)

    def _posterior_of_all(self, objective: int | str | None = None, warped: bool = True) -> Posterior:
        """Return the posterior of an objective given all observations; fitted once with its warp, and once without."""
        key = self._observed_numbers(), goal_of(self.study, objective).number, warped
        if key not in self._posteriors:
            for old in [other for other in self._posteriors if other[0] != key[0]]:
                del self._posteriors[old]
            self._posteriors[key] = (
                posterior_of_all(self.study, objective=objective, space=self.space)
                if warped
                else without_warp(self._posterior_of_all(objective))
            )
        return self._posteriors[key]

    def _best(self) -> FrozenTrial:
        check_one_objective(self.study, _FRONT)
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
