"""Figures of a study in the Optuna dashboard.

The dashboard draws Optuna's figures itself. The figures saved here add the predictions of the models.
"""

from __future__ import annotations

from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError
from slayr_py.study.results.tables import finite_trials
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.objectives import check_one_objective


def save_to_dashboard(study: Study) -> list[str]:
    """Save figures of a study in its storage, where the Optuna dashboard shows them; replace earlier ones.

    "slayr:convergence" is Optuna's history of the optimisation with the predictions of the suggestions, mean plus and
    minus one standard deviation. "slayr:predictions" has the values of the trials over their predictions.

    Parameters
    ----------
    study : optuna.Study
        With one objective.

    Returns
    -------
    list of str
        Names of the figures.

    Raises
    ------
    DataError
        If optuna-dashboard or plotly is missing, or the study has several objectives.

    Notes
    -----
    The figures are a copy: call the function again after further trials, for example in a callback of
    ``study.optimize``.
    """
    try:
        from optuna_dashboard import save_plotly_graph_object
        from plotly import graph_objects
    except ImportError as error:
        raise DataError(
            f"figures for the Optuna dashboard need the package {error.name}: pip install 'slayr-py[dashboard]'"
        ) from error
    check_one_objective(study, "the dashboard draws their front itself, and optuna.visualization.plot_pareto_front")
    predicted = [trial for trial in finite_trials(study) if "predicted" in suggestion_record(trial)]
    figures = {
        "slayr:convergence": _convergence(study, predicted, graph_objects),
        "slayr:predictions": _predictions(predicted, graph_objects),
    }
    for name, figure in figures.items():
        save_plotly_graph_object(study, figure, graph_object_id=name)
    return list(figures)


def _convergence(study: Study, predicted: list[FrozenTrial], go: Any) -> Any:
    """Add the predictions to Optuna's history."""
    from optuna.visualization import plot_optimization_history

    figure = plot_optimization_history(study)
    mean, sd = _moments(predicted)
    numbers = [trial.number for trial in predicted]
    figure.add_trace(_with_errors(go, x=numbers, y=mean, error_y=sd, name="predicted, 1 sd"))
    return figure.update_layout(title="Values and predictions")


def _predictions(predicted: list[FrozenTrial], go: Any) -> Any:
    """Draw the values over their predictions, and the line on which they are equal."""
    mean, sd = _moments(predicted)
    values = [float(trial.values[0]) for trial in predicted]
    figure = go.Figure(_with_errors(go, x=mean, y=values, error_x=sd, name="trial, 1 sd"))
    figure.data[0].text = [f"trial {trial.number}" for trial in predicted]
    if predicted:
        ends = [min(*mean, *values), max(*mean, *values)]
        figure.add_trace(go.Scatter(x=ends, y=ends, mode="lines", name="value = prediction"))
    return figure.update_layout(title="Values over predictions", xaxis_title="predicted", yaxis_title="objective")


def _moments(predicted: list[FrozenTrial]) -> tuple[list[float], list[float]]:
    records = [suggestion_record(trial)["predicted"] for trial in predicted]
    return [float(record["mean"]) for record in records], [float(record["sd"]) for record in records]


def _with_errors(go: Any, **trace: Any) -> Any:
    """Return points with error bars, which are given as ``error_x`` or ``error_y``."""
    bars = {key: {"type": "data", "array": trace.pop(key)} for key in ("error_x", "error_y") if key in trace}
    return go.Scatter(mode="markers", **trace, **bars)
