"""Pruning by the posterior of the final value."""

from __future__ import annotations

import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState

import slayr_py as sl
from slayr_py.space import Encoder
from slayr_py.study import create_study, curve_table, curves_figure
from slayr_py.study.model.curve_model import ConditionedCurves, CurveFit
from slayr_py.study.model.curve_points import NoForecast
from slayr_py.study.model.forecasts import Forecast, Forecasts
from slayr_py.study.results.curves import pruning_text
from slayr_py.study.run.executors import InThisThread
from slayr_py.study.run.pruning import warn_without_reports
from slayr_py.study.storage.attributes import SUGGESTION_KEY, store_treatment_of_failures
from slayr_py.study.storage.curves import PRUNE_KEY, curve_of
from slayr_py.study.storage.trials import observations

LAST = 12
PLANE = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})


def curve(config):
    final = (config["x"] - 0.4) ** 2 + (config["y"] - 0.6) ** 2
    return {step: final + (0.5 + config["x"]) / step for step in range(1, LAST + 1)}


def report(study, trial, points, sign=1.0, value=None):
    """Report (step, value) pairs until the trial is stopped, else tell the last value."""
    for step, y in points:
        trial.report(sign * y, step)
        if trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return
    study.tell(trial, sign * y if value is None else value)


def started(number):
    """Return the parameters of a trial."""
    return dict(zip("xy", np.random.default_rng([7, number]).random(2), strict=True))


def evaluate(study, n, sign=1.0):
    """Evaluate n trials at given configurations."""
    for _ in range(n):
        number = len(study.trials)
        study.enqueue_trial(started(number))
        trial = study.ask({"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)})
        report(study, trial, curve(trial.params).items(), sign)
    return study


def add(study, params, curve, state=TrialState.COMPLETE, value=None):
    """Add a finished trial with a curve, of which the last point is its value."""
    complete = state == TrialState.COMPLETE
    value = list(curve.values())[-1] if complete and value is None else value
    distributions = dict.fromkeys("xy", FloatDistribution(0.0, 1.0))
    study.add_trial(
        optuna.trial.create_trial(
            params=params, distributions=distributions, state=state, value=value, intermediate_values=curve
        )
    )


def plain(pruner=None, **options):
    sampler = optuna.samplers.RandomSampler(seed=1)
    return optuna.create_study(pruner=pruner or sl.Prune(), sampler=sampler, study_name="plain", **options)


def decisions(study):
    return [trial.user_attrs.get(PRUNE_KEY) for trial in study.trials]


@pytest.fixture(scope="module")
def twelve():
    return evaluate(plain(), 12)


def test_a_trial_is_stopped_if_its_final_value_is_probably_not_the_best(twelve):
    states = [trial.state for trial in twelve.trials]
    assert states[:3] == [TrialState.COMPLETE] * 3 and states.count(TrialState.PRUNED) >= 3
    finals = [curve(trial.params)[LAST] for trial in twelve.trials]
    assert twelve.best_value == min(finals)  # no stopped trial would have been the best one
    errors = []
    for trial, final in zip(twelve.trials, finals, strict=True):
        record = trial.user_attrs.get(PRUNE_KEY)
        if record is None:
            continue
        last = record["decisions"][-1]
        assert record["pruned"] == (trial.state == TrialState.PRUNED) == (last["probability"] < 0.05)
        assert all(each["probability"] >= 0.05 for each in record["decisions"][:-1])
        errors.append(abs(last["mean"] - final) / last["sd"])
    assert np.median(errors) < 2  # of a normal distribution it is 0.7


def test_the_table_and_the_figure_show_curves_and_decisions(twelve):
    table = curve_table(twelve)
    assert len(table) == 12 and list(table["number"]) == list(range(12))
    pruned = table[table["state"] == "PRUNED"]
    assert (pruned["probability"] < 0.05).all() and (pruned["decided"] == pruned["steps"]).all()
    assert pruned["value"].isna().all() and pruned["best"].notna().all()
    axes = curves_figure(twelve).axes[0]
    assert len([line for line in axes.lines if len(line.get_xdata()) > 1]) >= 5


def test_a_resumed_study_repeats_its_decisions(twelve):
    storage = optuna.storages.InMemoryStorage()
    first = evaluate(plain(storage=storage), 9)
    again = pickle.loads(pickle.dumps(first.pruner))  # without what it has computed
    evaluate(plain(again, storage=storage, load_if_exists=True), 3)
    assert decisions(first) == decisions(twelve)


def test_maximising_is_minimising_the_negative(twelve):
    mirrored = evaluate(plain(direction="maximize"), 12, sign=-1.0)
    for here, there in zip(decisions(twelve), decisions(mirrored), strict=True):
        assert (here is None) == (there is None)
        if here is not None:
            assert here["decisions"][-1]["probability"] == there["decisions"][-1]["probability"]
            assert here["decisions"][-1]["mean"] == -there["decisions"][-1]["mean"]
            assert here["evidence"] == [-there["evidence"][0], there["evidence"][1]]


@pytest.mark.parametrize(
    ("probability", "without", "by_curve", "of_others", "of_suggestions"),
    [
        (0.06, 0.5, 0.01, False, False),
        (0.04, 0.081, 1.0, True, True),
        (0.04, 0.04, 0.01, True, True),
        (0.04, 0.079, 1.0, True, False),  # the model would learn little and suggest the configuration again
        (0.002, 0.003, 1.0, True, True),
    ],
)
def test_a_suggestion_of_the_model_is_stopped_only_if_the_model_learns_from_it(
    monkeypatch, probability, without, by_curve, of_others, of_suggestions
):
    known = Forecast(1, probability, 1.0, 0.1, 0.5, 1.0, without, by_curve, (1.0, 0.1))
    monkeypatch.setattr(Forecasts, "forecast", lambda *_: known)
    for phase, stops in (("initial", of_others), ("model", of_suggestions)):
        study = plain()
        trial = study.ask()
        trial.set_user_attr(SUGGESTION_KEY, {"phase": phase})
        trial.report(1.0, 1)
        assert trial.should_prune() == stops == decisions(study)[0]["pruned"]
        assert decisions(study)[0]["decisions"][0]["without"] == without


def test_errors_of_complete_curves_scale_the_prediction(monkeypatch):
    study = finished()
    asked(study).report(curve(BAD)[1], 1)
    model = study.pruner.forecasts_of(study)
    given = {"exact": [0.0] * 5, "small": [0.5] * 5, "expected": [1.0] * 5, "large": [2.0] * 5, "few": [1.0] * 3}
    found = {}
    for name, errors in given.items():
        monkeypatch.setattr(ConditionedCurves, "errors", lambda *_, errors=errors: np.array(errors))
        found[name] = model.forecast(study, study.trials[-1])
    assert [forecast.inflation for forecast in found.values()] == [0.25, 0.5, 1.0, 2.0, 1.0]
    by_size = [found[name] for name in ("exact", "small", "expected", "large")]
    for narrow, wide in pairwise(by_size):
        assert narrow.probability < wide.probability < 0.5 and narrow.sd < wide.sd
        assert narrow.by_curve < wide.by_curve < 0.5
    assert found["few"].probability > 2 * found["expected"].probability  # Student's distribution with 1 and 3
    known = [forecast.evidence[1] for forecast in by_size]
    assert known[0] == known[1] == known[2] < known[3]  # at least the model's own error


def test_conditional_parameters_of_any_study_are_inactive_where_a_trial_lacks_them():
    study = plain(sl.Prune(1e-300))
    for number in range(6):
        trial = study.ask()
        config = {"x": trial.suggest_float("x", 0.0, 1.0), "y": 0.5}
        if trial.suggest_categorical("kind", ["a", "b"]) == "b" or number < 2:
            trial.suggest_float("depth", 0.1 if number else 0.01, 1.0, log=True)
        report(study, trial, curve(config).items())
    encoded = study.pruner.forecasts_of(study)._trials
    depth = encoded.space.encoder.names.index("depth")
    lacking = [not encoded.configs[trial.number].active[0, depth] for trial in study.trials]
    assert lacking == ["depth" not in trial.params for trial in study.trials] and len(set(lacking)) == 2
    assert encoded.space.encoder.space["depth"].lower == 0.01  # the widest range of the trials
    assert [record is not None for record in decisions(study)] == [False] * 3 + [True] * 3


def test_few_fits_serve_many_decisions(monkeypatch):
    fits = []
    once = CurveFit.to.__func__
    monkeypatch.setattr(CurveFit, "to", classmethod(lambda cls, *given: fits.append(1) or once(cls, *given)))
    study = evaluate(plain(sl.Prune(1e-300)), 11)  # none is stopped
    made = sum(len(record["decisions"]) for record in decisions(study) if record)
    assert made >= 30
    assert len(fits) <= 6  # after 3, 4, 5, 6, 7 and 9 trials


def test_a_decision_among_many_complete_trials_uses_few_points():
    study = plain()
    for number in range(60):
        add(study, started(number), curve(started(number)))
    trial = asked(study)
    trial.report(curve(BAD)[1], 1)
    assert trial.should_prune()
    _, conditioned = study.pruner.forecasts_of(study)._conditioned
    assert len(np.unique(conditioned.points.trials)) == 60
    assert len(conditioned.points.values) <= 224  # its processor time grows with the cube


def finished(pruner=None):
    """Return a study of five complete trials."""
    return evaluate(plain(pruner), 5)


def asked(study):
    study.enqueue_trial({"x": 0.9, "y": 0.1})
    return study.ask({"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)})


BAD = {"x": 0.9, "y": 0.1}


@pytest.mark.parametrize(
    "points",
    [
        pytest.param([(s, curve(BAD)[s]) for s in (3, 1, 2)], id="decreasing steps"),
        pytest.param([(1, curve(BAD)[1]), (2, float("nan")), (3, curve(BAD)[3])], id="NaN in the middle"),
        pytest.param([(1, curve(BAD)[1]), (2, float("inf")), (3, 1e300)], id="diverging"),
    ],
)
def test_odd_curves_of_bad_trials_are_stopped(points):
    study = finished()
    trial = asked(study)
    report(study, trial, points)
    (row,) = curve_table(study).tail(1).to_dict("records")
    assert row["state"] == "PRUNED"
    assert row["ignored"] == sum(not np.isfinite(y) for _, y in points[: row["reported"]])


@pytest.mark.parametrize(("second", "stopped"), [(0.6, 0), (0.6, 4), (0.5, 0)])
def test_a_diverged_trial_among_the_first_three_leaves_the_forecasts_of_others(second, stopped):
    study = plain()
    grown = {step: 10.0 ** (11 * step / LAST) for step in range(1, LAST + 1)}
    for number, end in enumerate((0.5, second, 1e11)):
        falling = {step: end + 2 * np.exp(-step / 2) for step in range(1, LAST)} | {LAST: end}
        add(study, started(number), grown if end > 1 else falling)
    for number in range(stopped):
        add(study, started(10 + number), dict(list(grown.items())[:8]), TrialState.PRUNED)
    trial = asked(study)
    trial.report(2 * np.exp(-5) + 0.47, 10)
    assert not trial.should_prune()
    (decision,) = decisions(study)[-1]["decisions"]
    assert decision["mean"] == pytest.approx(0.48, abs=0.05) and decision["sd"] < 0.2
    value, sd = decisions(study)[-1]["evidence"]
    assert value == pytest.approx(0.48, abs=0.05) and sd < 0.2


def test_the_order_of_reports_does_not_matter_and_a_repeated_step_counts_once():
    records = []
    for steps in ((1, 2, 4), (4, 2, 1)):
        study = finished(sl.Prune(1e-300))
        trial = asked(study)
        for step in steps:
            trial.report(curve(BAD)[step], step)
        with pytest.warns(UserWarning, match="already reported"):
            trial.report(99.0, 4)
        trial.should_prune()
        records.append(decisions(study)[-1])
    assert records[0] == records[1]


def test_trials_without_a_report_are_values_only():
    study = plain()
    for number in range(6):
        add(study, started(number), {}, value=1.0)
    trial = asked(study)
    assert not trial.should_prune()
    trial.report(1e6, 1)
    assert not trial.should_prune() and decisions(study)[-1] is None


def test_steps_of_different_units_are_not_compared():
    study = finished()
    add(study, BAD, {1000 * step: value for step, value in curve(BAD).items()})
    trial = asked(study)
    trial.report(1e6, 1)
    with pytest.warns(UserWarning, match="trial 6 is not pruned: the complete trials end at steps from 12 to 12000"):
        assert not trial.should_prune()
    assert "report steps of one unit" in curve_table(study)["why"].iloc[-1]


def test_the_reason_for_no_decision_is_shown_once_and_ends_with_the_next_decision(monkeypatch):
    def refuse(*_):
        raise NoForecast("no unit", "units")

    study = plain()
    first, second = study.ask(), study.ask()
    monkeypatch.setattr(Forecasts, "forecast", refuse)
    with pytest.warns(UserWarning, match="is not pruned: no unit") as caught:
        for trial in (first, second):
            trial.report(1.0, 1)
            assert not trial.should_prune()
    assert len(caught) == 1 and curve_table(study)["why"].tolist() == ["no unit"] * 2
    monkeypatch.setattr(Forecasts, "forecast", lambda *_: Forecast(1, 0.5, 1.0, 0.1, 0.5, 1.0, 0.5, 1.0, (1.0, 0.1)))
    assert not first.should_prune()
    assert [record.get("why") for record in decisions(study)] == [None, "no unit"]


def test_a_pruner_has_a_model_for_each_of_two_studies_of_one_name():
    pruner = sl.Prune()
    first, second = plain(pruner), plain(pruner)
    first.ask()
    second.ask()
    model = pruner.forecasts_of(first)
    assert pruner.forecasts_of(first) is model is not pruner.forecasts_of(second)


@pytest.mark.filterwarnings("error")
def test_past_experiments_need_not_have_reported_values():
    warn_without_reports(create_study(PLANE, history=[({"x": 0.1, "y": 0.2}, 1.0)], n_initial=2, seed=1))


def test_a_curve_ends_at_the_last_reported_step_whatever_its_value():
    reported = {1: 2.0, 3: np.inf, 7: np.nan}
    known = curve_of(optuna.trial.create_trial(value=1.0, intermediate_values=reported))
    assert (known.last_step, known.dropped, known.final, known.steps.tolist()) == (7, 2, 1.0, [1])


@pytest.mark.parametrize(("state", "observed"), [(TrialState.COMPLETE, (3.0, 0.0)), (TrialState.PRUNED, (1.0, 0.5))])
def test_what_a_curve_says_counts_only_for_a_pruned_trial(state, observed):
    study = create_study(PLANE, n_initial=2, seed=1)
    trial = sl.study.ask(study)
    trial.set_user_attr(PRUNE_KEY, {"evidence": [1.0, 0.5]})
    study.tell(trial, 3.0 if state == TrialState.COMPLETE else None, state)
    found = observations(study, PLANE)
    assert (found.y.item(), found.y_sd.item()) == observed and not found.uncertain


def test_what_an_uncertain_diverged_curve_says_is_far_and_leaves_others_far():
    study = create_study(PLANE, n_initial=7, seed=1)
    for value, sd in ((0.5, 0), (0.6, 0), (0.7, 0), (0.8, 0), (760.0, 0), (22_000.0, 0), (12_000.0, 5_200.0)):
        trial = sl.study.ask(study)
        if sd:
            trial.set_user_attr(PRUNE_KEY, {"evidence": [value, sd]})
        study.tell(trial, None if sd else value, TrialState.PRUNED if sd else None)
    for ignores, n_far in ((False, 1), (True, 3)):  # complete trials count as failures, unless these are ignored
        store_treatment_of_failures(study, ignores)
        found = observations(study, PLANE)
        assert found.penalties == [4, 5][: 3 - n_far]
        assert found.far.tolist() == [False] * 4 + [True] * n_far
        assert found.y.max() < 1.2 and 0 < found.y_sd[-1] < 1e-3


def test_the_steps_that_pruning_has_saved_are_those_of_the_pruned_trials():
    study = plain()
    for steps, state in ((10, TrialState.COMPLETE), (8, TrialState.COMPLETE), (3, TrialState.PRUNED)):
        add(study, BAD, dict.fromkeys(range(1, steps + 1), 1.0), state)
    assert pruning_text(study) == "1 of 3 trials with a curve were pruned, after 3 of 10 steps"


@pytest.mark.parametrize("far", [1e9, -1e9])
def test_a_diverged_curve_does_not_hide_the_others(far):
    study = plain()
    for _ in range(5):
        add(study, BAD, {1: 1.0, 2: 0.5, 3: 0.2})
    add(study, BAD, {1: 1.0, 2: 4.0, 3: far})
    assert curves_figure(study).axes[0].get_ylim() == pytest.approx((0.2 - 0.19, 4.0 + 0.19))


def test_ten_thousand_reports_are_thinned_and_leave_few_decisions():
    study = plain(sl.Prune(1e-300, n_startup_trials=3))
    for number in range(3):
        final = curve(started(number))[LAST]
        add(study, started(number), {step: final + 1 / step for step in (1, 10, 100, 10_000)})
    add(study, BAD, {step: 1 + 1 / step for step in range(1, 10_000)}, TrialState.PRUNED)
    trial = asked(study)
    for step in (*range(1, 40), 9_000, 9_001):
        trial.report(1 + 1 / step, step)
        trial.should_prune()
    model = study.pruner.forecasts_of(study)
    assert max(len(known.steps) for known in model._curves.values()) <= 8
    made = decisions(study)[-1]["decisions"]
    assert made[-1]["step"] == 9_000 and len(made) < 25


def test_a_running_trial_counts_through_its_curve():
    predicted = []
    for falls in (False, True):
        study = finished(sl.Prune(1e-300))
        other = asked(study)
        for step in (1, 3, 6):
            other.report(curve(BAD)[step] - 0.3 * falls, step)
        trial = study.ask({"x": FloatDistribution(0.9, 1.0), "y": FloatDistribution(0.12, 0.12)})
        trial.report(curve(BAD)[1], 1)
        trial.should_prune()
        predicted.append(decisions(study)[-1]["decisions"][0]["mean"])
    assert predicted[1] < predicted[0] - 0.01


def test_a_complete_trial_outside_the_space_that_has_more_steps_changes_forecasts_as_in_a_new_process():
    study = finished()
    asked(study).report(curve(BAD)[1], 1)
    model, running = Forecasts(Encoder(PLANE), 1, 3), study.trials[-1]
    before = model.forecast(study, running)
    longer = optuna.trial.create_trial(
        params={"x": 0.5},
        distributions={"x": FloatDistribution(0.0, 1.0)},
        value=1.0,
        intermediate_values={step: 1.0 for step in range(1, 2 * LAST)},
    )
    study.add_trial(longer)
    after = model.forecast(study, running)
    assert after == Forecasts(Encoder(PLANE), 1, 3).forecast(study, running) != before


def test_a_wider_range_of_a_parameter_changes_forecasts_as_in_a_new_process():
    study = finished()
    asked(study).report(curve(BAD)[1], 1)
    model, running = Forecasts(None, 1, 3), study.trials[-1]
    before = model.forecast(study, running)
    wider = {"x": FloatDistribution(0.0, 2.0), "y": FloatDistribution(0.0, 1.0)}
    study.add_trial(
        optuna.trial.create_trial(params=BAD, distributions=wider, value=1.0, intermediate_values=curve(BAD))
    )
    after = model.forecast(study, running)
    assert after == Forecasts(None, 1, 3).forecast(study, running) != before


def test_the_best_value_so_far_is_that_of_a_feasible_trial():
    study = plain()
    distributions = dict.fromkeys("xy", FloatDistribution(0.0, 1.0))
    for number, excess in enumerate((-1.0, 0.0, -1.0, 1.0)):
        values = {step: 4.0 - number + 1 / step for step in range(1, LAST + 1)}
        trial = optuna.trial.create_trial(
            params=started(number), distributions=distributions, value=4.0 - number, intermediate_values=values
        )
        trial.set_constraint("heat", excess)
        study.add_trial(trial)
    asked(study).report(3.0, 1)
    assert Forecasts(None, 1, 3).forecast(study, study.trials[-1]).best == 2.0


def test_a_parameter_that_a_running_trial_suggests_later_changes_forecasts_as_in_a_new_process():
    study = finished()
    later = study.ask()
    later.suggest_float("x", 0.0, 1.0)
    later.report(0.2, 6)
    asked(study).report(curve(BAD)[1], 1)
    model, running = Forecasts(None, 1, 3), study.trials[-1]
    before = model.forecast(study, running)
    later.suggest_float("y", 0.0, 1.0)
    after = model.forecast(study, running)
    assert after == Forecasts(None, 1, 3).forecast(study, running) != before


def test_a_trial_that_waits_at_a_decision_changes_forecasts_as_in_a_new_process():
    study = finished()
    running = asked(study)
    running.report(curve(BAD)[1], 1)
    study.enqueue_trial({"x": 0.35, "y": 0.65})
    model = Forecasts(None, 1, 3)
    before = model.forecast(study, study.trials[running.number])
    study.tell(study.ask({"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}), 0.01)
    after = model.forecast(study, study.trials[running.number])
    assert after == Forecasts(None, 1, 3).forecast(study, study.trials[running.number]) != before


def test_a_level_that_no_complete_trial_has_is_judged_by_its_own_curve():
    distributions = {name: FloatDistribution(0.0, 1.0) for name in "xz"} | {"c": CategoricalDistribution(("a", "b"))}

    def value(params, step):
        final = 0.6 * (params["x"] - 0.5) ** 2 + 0.3 * (params["z"] - 0.4) ** 2 + 0.04 * (params["c"] == "a")
        return 0.1 + final + 0.8 * np.exp(-step / 3 * (0.6 + 0.4 * params["x"]))

    stopped = dict.fromkeys(("good", "bad"), 0)
    for probe in stopped:
        for seed in range(4):
            rng = np.random.default_rng(seed)
            study = plain()
            for _ in range(16):
                params = {"x": rng.random(), "z": rng.random(), "c": "a"}
                curve = {step: value(params, step) for step in range(1, 11)}
                made = optuna.trial.create_trial(
                    params=params, distributions=distributions, value=curve[10], intermediate_values=curve
                )
                study.add_trial(made)
            x, z = (rng.uniform(0.3, 0.7), rng.uniform(0.2, 0.6)) if probe == "good" else (0.02, 0.98)
            study.enqueue_trial({"x": x, "z": z, "c": "b"})
            trial = study.ask(distributions)
            assert (value(trial.params, 10) < study.best_value) == (probe == "good")
            report(study, trial, ((step, value(trial.params, step)) for step in range(1, 11)))
            stopped[probe] += study.trials[-1].state == TrialState.PRUNED
    assert stopped == {"good": 0, "bad": 4}


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 0.0])
def test_the_first_good_trial_after_nearly_equal_ones_is_not_stopped(gap):
    study = plain(direction="maximize")
    for number in range(5):
        trial = asked(study)
        good = {step: 0.9 * (1 - np.exp(-step / 3)) for step in range(1, LAST + 1)}
        bad = {step: 0.1 + gap * np.sin(9 * number + step) for step in range(1, LAST + 1)}
        report(study, trial, (bad if number < 3 else good).items())
    assert study.trials[3].state == TrialState.COMPLETE
    assert all(np.isfinite(entry["probability"]) for made in decisions(study) if made for entry in made["decisions"])
    curve_table(study)


@pytest.mark.parametrize("as_context", [False, True])
def test_a_trial_is_compared_with_those_that_have_its_fixed_values(tmp_path, as_context):
    """Final values are 5 higher at the level b."""
    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0), "k": ["a", "b"]})
    given = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "study_name": "s", "n_initial": 16, "seed": 1}
    pruner = sl.Prune(0.2)  # the runs share what it has computed
    for level, n in (("a", 5), ("b", 7), ("a", 1)):
        values = {"k": level}
        study = create_study(space, pruner=pruner, fixed=None if as_context else values, **given)
        for _ in range(n):
            trial = sl.study.ask(study, values if as_context else None)
            report(study, trial, [(step, y + 5 * (level == "b")) for step, y in curve(trial.params).items()])
    table = curve_table(study)
    assert list(table["number"][table["decided"].isna()]) == [0, 1, 2, 5]  # 5 is the first one with the level b
    assert "PRUNED" in table["state"][5:12].tolist()
    levels = np.array([trial.params["k"] for trial in study.trials])
    for number, best in table.loc[table["decided"].notna(), ["number", "best"]].itertuples(index=False):
        assert best == table["value"][:number][levels[:number] == levels[number]].min()


@pytest.mark.parametrize("reports", [0, 5])
def test_a_pruner_without_reports_is_a_warning(reports):
    def silent(config, trial):
        for step in range(reports):
            trial.report(float("nan"), step)
            assert not trial.should_prune()
        return config["x"]

    words = "pruner= had no effect: none of 3 complete trials has reported a finite"
    with pytest.warns(UserWarning, match=words) as warned:
        sl.maximize(silent, PLANE, 3, pruner=sl.Prune(), n_initial=3, seed=1, progress=False)
    assert warned[0].filename == __file__


def objective(config, trial):
    points = curve(config)
    for step, value in points.items():
        trial.report(value, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def test_evaluations_side_by_side_are_pruned():
    with ThreadPoolExecutor(2) as threads:
        options = {"executor": threads, "n_parallel": 2, "seed": 1, "progress": False}
        result = sl.minimize(objective, PLANE, 14, pruner=sl.Prune(), n_initial=14, **options)
    table = curve_table(result.study)
    assert set(table["state"]) <= {"COMPLETE", "PRUNED"} and table["decided"].notna().sum() >= 3
    assert ((table["probability"] < 0.05) == (table["state"] == "PRUNED")).all()


@pytest.mark.stan
def test_the_model_of_the_objective_learns_from_pruned_trials(tmp_path):
    result = sl.minimize(objective, PLANE, 12, pruner=sl.Prune(), seed=1, progress=False, method="map")
    table = curve_table(result.study)
    pruned = table[table["state"] == "PRUNED"]
    assert len(pruned) >= 2
    informative = pruned[pruned["evidence"].notna()]
    assert len(informative) >= 1
    observed = observations(result.study, PLANE)
    assert set(informative["number"]) <= set(observed.numbers)
    for number, value, sd in informative[["number", "evidence", "evidence_sd"]].itertuples(index=False):
        row = observed.numbers.index(number)
        assert (observed.y[row], observed.y_sd[row], observed.feasible[row]) == (value, sd, False)
        final = curve(result.study.trials[number].params)[LAST]
        assert abs(value - final) < 4 * sd
    assert result.best_value == table["value"].min()
    assert list(result.trials["last_step"]) == list(table["steps"])
    page = result.report(tmp_path / "report.html").read_text()
    assert "Learning curves" in page and f"{len(pruned)} of 12 trials with a curve were pruned" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pruner": 0.05}, r"pruner is 0.05; give a pruner such as sl.Prune\(0.05\)"),
        ({"pruner": sl.Prune(), "max_seconds": 1.0}, "takes the trial is not supported with max_seconds="),
        ({"executor": InThisThread()}, "executor=.*; leave executor= out .* in each process with the same storage="),
        ({"pruner": sl.Prune(), "objective": lambda config: 1.0}, r"define it as objective\(config, trial\)"),
        ({"pruner": sl.Prune(), "directions": ["minimize"] * 2}, "a pruner is not supported with several objectives"),
        ({"pruner": sl.Prune(), "warp": "log"}, "use warp='none', or warp='auto'"),
    ],
)
def test_what_a_pruner_does_not_support_is_refused(change, words):
    given = {"objective": objective, "space": PLANE, "budget": 2, "progress": False} | change
    with pytest.raises(sl.DataError, match=words):
        sl.minimize(**given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"probability": 1.0}, r"probability must be a single number in \(0, 1\), got 1.0"),
        ({"probability": 0}, "probability"),
        ({"n_startup_trials": 2}, "n_startup_trials"),
        ({"seed": -1}, "seed"),
    ],
)
def test_illegal_arguments_are_named(arguments, words):
    with pytest.raises(sl.DataError, match=words):
        sl.Prune(**arguments)


def test_the_second_parameter_of_an_objective_is_the_trial_if_it_has_no_default():
    from slayr_py.study.run.objective import takes_trial

    assert (
        takes_trial(objective) and takes_trial(lambda config, report: 0) and takes_trial(lambda config, trial=None: 0)
    )
    assert not takes_trial(lambda config: 0) and not takes_trial(lambda config, folds=5: 0)
    assert not takes_trial(lambda config, *rest, **options: 0) and not takes_trial(abs)


def test_copies_of_a_pruner_are_equal_and_have_their_own_memory():
    pruner = sl.Prune(0.1)
    assert copy.deepcopy(pruner) == pruner and re.fullmatch(r"Prune\(probability=0.1, .*\)", repr(pruner))


def test_a_damaged_record_is_named():
    study = create_study(PLANE, n_initial=2, seed=1)
    trial = sl.study.ask(study)
    trial.set_user_attr(PRUNE_KEY, {"evidence": ["much", 0]})
    sl.study.tell(study, trial, state=TrialState.PRUNED)
    with pytest.raises(sl.DataError, match="trial 0 has the user attribute .* it must be a value and its standard dev"):
        observations(study, PLANE)


def test_decisions_of_studies_without_names_are_repeatable():
    def sampler():
        return optuna.samplers.RandomSampler(seed=1)

    def unnamed():
        return evaluate(optuna.create_study(pruner=sl.Prune(), sampler=sampler()), 8)

    first, second = decisions(unnamed()), decisions(unnamed())
    assert any(first) and first == second
