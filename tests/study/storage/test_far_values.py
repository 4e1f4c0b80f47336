"""Values that are far worse than all others count as failures or are compressed, and no others."""

import warnings

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.study import ask, create_study, tell
from slayr_py.study.model.feasibility import SUCCESS
from slayr_py.study.results.front import reference_of
from slayr_py.study.results.refits import feasibility_of, recorded_fits, replay
from slayr_py.study.storage.attributes import store_treatment_of_failures, suggestion_record
from slayr_py.study.storage.far_values import GAP, compress_far, has_gap
from slayr_py.study.storage.objectives import goal_of
from slayr_py.study.storage.trials import far_values_text, from_ranges, observations, outcomes


def compressed(*values, searched=(), errors=None, forecast=()):
    y = np.array(values, dtype=np.float64)
    chosen, foreseen = (np.isin(np.arange(len(y)), rows) for rows in (searched, forecast))
    known = None if errors is None else np.array(errors)
    return compress_far(y, y == y.min(initial=np.inf), chosen, known, foreseen)


def test_a_penalty_is_at_most_twice_as_far_as_the_others():
    values, errors, far = compressed(3.0, 1e6, 1.0, 2.0, errors=np.full(4, 0.1))
    np.testing.assert_allclose(values, [3.0, 1 + 2 * (2 - 2 / 999_999), 1.0, 2.0], rtol=1e-15)
    np.testing.assert_allclose(errors, [0.1, 0.1 * (2 / 999_999) ** 2, 0.1, 0.1], rtol=1e-15)
    assert far.tolist() == [False, True, False, False]


def test_far_values_stay_in_their_order_above_the_others():
    values = compressed(0.3, 1e9, 0.1, 0.2, 5e3, 0.25, 1e12).values
    assert np.argsort(values).tolist() == [2, 3, 5, 0, 4, 1, 6]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0],
        [0.0, 1.0, 1e9],  # two distances are no scale
        [5.0] * 6,
        [0.0, 0.0, 0.0, 1e9],
        [1.0, 1.0, 1.0 - 1e-16, 1.2, 1.3],  # rounding is no scale
        10.0 ** np.arange(12),  # of all sizes
        [0.0, 1.0, 2.0, 0.99 * 2 * GAP],
        [0.0, 1.0, 2.0, 1e5, 1.1e5, 1.2e5, 1.3e5],  # most values, and not equal
    ],
)
def test_values_without_a_gap_are_untouched(values):
    found = compressed(*values, errors=np.full(len(values), 0.1))
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(found.errors, 0.1)
    assert not found.far.any()


def test_values_of_a_design_are_not_far_from_those_of_a_search_that_has_found_the_minimum():
    values = [50.0, 70.0, 40.0, 2e-3, 1e-3, 0.0]
    assert compressed(*values).far.sum() == 3
    assert not compressed(*values, searched=(3, 4, 5)).far.any()
    assert compressed(1e6, 70.0, 40.0, 2e-3, 1e-3, 0.0, searched=(3, 4, 5)).far.tolist() == [True] + [False] * 5


def test_a_value_that_may_be_near_by_its_known_error_is_not_far():
    assert compressed(0.0, 1.0, 2.0, 1e3, errors=[0.1, 0.1, 0.1, 200.0]).far.sum() == 1
    assert not compressed(0.0, 1.0, 2.0, 1e3, errors=[0.1, 0.1, 0.1, 300.0]).far.any()
    assert not compressed(0.0, 1.0, 2.0, 1e3, 1e4, errors=[0.1, 0.1, 0.1, 1.0, 3300.0]).far.any()


def test_a_far_forecast_is_as_uncertain_as_its_interval_after_the_compression():
    found = compressed(0.5, 0.501, 0.503, 0.9, errors=[0.0, 0.0, 0.0, 0.5], forecast=[3])
    assert found.far.tolist() == [False, False, False, True]
    # 0.4 - 0.5 is below the best value, and 0.4 + 0.5 is compressed to nearly twice the largest near distance.
    np.testing.assert_allclose(found.errors, [0, 0, 0, 0.003 * (2 - 0.003 / 0.9) / 2], rtol=1e-9)
    sure = compressed(0.0, 1.0, 2.0, 1e4, errors=[0.0, 0.0, 0.0, 10.0], forecast=[3])
    np.testing.assert_allclose(sure.errors[-1], 10 * (2 / 1e4) ** 2, rtol=1e-5)


def test_most_values_are_far_if_they_are_one_penalty():
    assert compressed(0.0, 1.0, 2.0, 1e5, 1e5, 1e5, 1e5).far.sum() == 4


def test_the_largest_numbers_are_compressed_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values, _, far = compressed(-1.7e308, 1.7e308, -1.7e308 + 1e300, -1.7e308 + 2e300)
        assert not compressed(0.0, 2e307, 1e307, 1e308).far.any()
    assert np.all(np.isfinite(values)) and far.sum() == 1


def test_a_penalty_of_any_size_needs_no_tolerance_of_numpy():
    with np.errstate(all="raise"):
        assert compressed(0.0, 1.0, 2.0, 1e200, 1e300, errors=[1e-3, 0.0, 0.0, 1.0, 1e308]).far.sum() == 0
        assert compressed(0.0, 1.0, 2.0, 1e200, errors=[0.0, 0.0, 0.0, 1.0]).errors[-1] == 0.0
        study = told_study([(2.0, 0.1), (1e162, 0.1), (1.0, 0.1), (3.0, 0.1)])
        assert far_in(study, LINE) == [False, True, False, False]


LINE = ConfigurationSpace({"x": (0.0, 1.0)})


def told_study(values, **options):
    study = create_study(LINE, n_initial=len(values), seed=0, **options)
    for value in values:
        given = value if isinstance(value, tuple) else (value,)
        tell(study, ask(study), given[0], sd=given[1] if len(given) > 1 else None)
    return study


def test_values_without_a_gap_have_no_far_ones():
    rng = np.random.default_rng(0)
    n_far = n_without = 0
    for _ in range(1000):
        y = rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 9, rng.integers(0, 12))
        errors = np.where(rng.random(len(y)) < 0.2, 10 ** rng.uniform(-3, 3, len(y)), 0.0)
        far = compress_far(
            y, y == y.min(initial=np.inf), rng.random(len(y)) < 0.5, errors, rng.random(len(y)) < 0.2
        ).far
        assert has_gap(y) or not far.any()
        n_far += far.any()
        n_without += not has_gap(y)
    assert n_far > 50 and n_without > 50


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_a_penalty_counts_as_a_failure_and_the_study_keeps_its_value(direction, sign):
    given = [sign * value for value in (2.0, 1e6, 1.0, 3.0)]
    study = told_study(given, direction=direction)
    seen = observations(study, LINE)
    assert (seen.numbers, (sign * seen.y).tolist(), seen.penalties) == ([0, 2, 3], [2.0, 1.0, 3.0], [1])
    assert outcomes(study, LINE, seen.penalties).values.tolist() == [1.0, 0.0, 1.0, 1.0]
    assert "trial 1: the value is over 100" in far_values_text(goal_of(study, None), seen)
    assert [trial.value for trial in study.trials] == given


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_a_model_that_ignores_failures_sees_compressed_values(direction, sign):
    study = told_study([sign * value for value in (2.0, 1e6, 1.0, 3.0)], direction=direction)
    store_treatment_of_failures(study, ignores=True)
    seen = observations(study, LINE)
    np.testing.assert_allclose(sign * seen.y, [2.0, 1 + 2 * (2 - 2 / 999_999), 1.0, 3.0])
    assert seen.far.tolist() == [False, True, False, False] and seen.penalties == []
    assert f"The model sees {seen.y[1]:.4g} instead" in far_values_text(goal_of(study, None), seen)
    store_treatment_of_failures(study, ignores=False)
    assert observations(study, LINE).penalties == [1]


def test_fits_that_were_recorded_with_a_penalty_have_its_compressed_value():
    study = told_study([2.0, 1e6, 1.0, 3.0])
    seen = observations(study, LINE, range(4))
    np.testing.assert_allclose(seen.y, [2.0, 1 + 2 * (2 - 2 / 999_999), 1.0, 3.0])
    assert outcomes(study, LINE, ()).values.tolist() == [1.0] * 4


def test_the_known_error_of_a_far_value_shrinks_with_its_distance():
    study = told_study([(2.0, 0.1), (1e6, 1e4), (1.0, 0.1), (3.0, 0.1)])
    store_treatment_of_failures(study, ignores=True)
    seen = observations(study, LINE)
    np.testing.assert_allclose(seen.y_sd, [0.1, 1e4 * (2 / 999_999) ** 2, 0.1, 0.1])


PLANE = ConfigurationSpace({"x": (0.0, 1.0), "task": ["a", "b"]})


def far_in(study, space=PLANE, objective=0):
    seen = observations(study, space, objective=objective)
    far = {number for number, far in zip(seen.numbers, seen.far, strict=True) if far}
    return [trial.number in far.union(seen.penalties) for trial in study.trials]


def test_values_of_another_context_are_not_far():
    study = create_study(PLANE, n_initial=8, seed=0)
    for value in (1.0, 2.0, 3.0, 4.0):
        tell(study, ask(study, context={"task": "a"}), value)
    for value in (1e5, 1e5 + 2, 1e5 + 1, 1e9):
        tell(study, ask(study, context={"task": "b"}), value)
    assert far_in(study) == [False] * 7 + [True]


def penalised(study, n):
    """Evaluate trials of which every fourth has a penalty."""
    for number in range(len(study.trials), len(study.trials) + n):
        tell(study, ask(study), 1e6 + number if number % 4 == 0 else 0.1 * number)


@pytest.mark.parametrize("value", [0.05, 1e6])
def test_values_stay_far_after_an_enqueued_trial(value):
    study = create_study(PLANE, n_initial=12, seed=0)
    study.enqueue_trial({"x": 0.25})
    tell(study, ask(study), value)
    penalised(study, 9)
    assert far_in(study) == [trial.value >= 1e6 for trial in study.trials]


def test_values_stay_far_after_a_trial_with_a_context():
    study = create_study(PLANE, n_initial=12, seed=0)
    tell(study, ask(study, context={"x": 0.25}), 0.05)
    penalised(study, 9)
    assert far_in(study) == [trial.value >= 1e6 for trial in study.trials]


def test_values_without_a_context_count_where_they_match_one():
    study = create_study(PLANE, n_initial=12, seed=0)
    penalised(study, 9)
    tell(study, ask(study, context={"task": "a"}), 2e6)
    assert far_in(study) == [trial.value >= 1e6 for trial in study.trials]


def test_values_of_a_history_with_other_fixed_values_do_not_make_those_of_the_run_far():
    past = [({"x": x, "task": "a"}, x) for x in (0.1, 0.2, 0.3, 0.4)]
    study = create_study(PLANE, n_initial=6, seed=0, history=past, fixed={"task": "b"})
    tell(study, ask(study), 1e5)
    assert far_in(study) == [False] * 5


def test_the_best_feasible_value_is_never_far():
    study = create_study(PLANE, n_initial=6, seed=0)
    for value, excess in ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (1e5, -1.0), (2e9, -1.0)):
        trial = ask(study)
        trial.set_constraint("heat", excess)
        tell(study, trial, value)
    assert far_in(study) == [False] * 4 + [True]


def test_a_constraint_that_is_reported_later_does_not_change_earlier_values():
    study = create_study(PLANE, n_initial=8, seed=0)
    for value, excess in ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (1e5, -1.0)):
        trial = ask(study)
        trial.set_constraint("heat", excess)
        tell(study, trial, value)
    before = observations(study, PLANE).y
    trial = ask(study)
    trial.set_constraint("noise", -1.0)
    tell(study, trial, 1.5)
    np.testing.assert_array_equal(observations(study, PLANE, range(4)).y, before)
    assert not observations(study, PLANE).feasible.any()


def test_an_end_of_the_front_is_never_far():
    rows = [(0.0, 1e6), (1.0, 0.0), (0.5, 0.2), (0.4, 0.5), (2.0, 1e9)]
    study = create_study(PLANE, n_initial=6, seed=0, directions=["minimize", "minimize"])
    for row in rows:
        tell(study, ask(study), row)
    assert far_in(study, objective=1) == [False] * 4 + [True]
    assert far_in(study, objective=0) == [False] * 5


@pytest.mark.stan
def test_a_study_with_penalties_warns_once_and_finds_the_minimum_beside_them():
    def objective(config):
        return 1e6 if config["x"] + config["y"] < 0.6 else (config["x"] - 0.2) ** 2 + (config["y"] - 0.5) ** 2

    space = ConfigurationSpace({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    with pytest.warns(UserWarning, match="over 100 times as far from the best one") as caught:
        result = sl.minimize(objective, space, budget=16, seed=0, progress=False)
    assert len([each for each in caught if "Each counts as a failure" in str(each.message)]) == 1
    values = result.trials["value"].to_numpy()
    assert 1e6 in values
    assert result.best_value < 1e-5
    # The model behind the last suggestion has learnt the outcomes of the trials before it.
    known = np.arange(15)
    penalties = known[values[:15] == 1e6].tolist()
    record = suggestion_record(result.study.trials[15])
    assert from_ranges(record["conditions"][SUCCESS]["penalties"]) == penalties
    assert recorded_fits(result.study, 15).numbers == sorted(set(known.tolist()).difference(penalties))
    success = feasibility_of(result.study, 15)[SUCCESS]
    np.testing.assert_array_equal(success.idata["observed_data"]["y"], np.where(values[:15] == 1e6, -1.0, 1.0))
    assert all(each.identical for each in replay(result.study, 15))


def test_reference_points_do_not_depend_on_penalties():
    rows = [(0.1 * i, 1 - 0.1 * i) for i in range(5)] + [(0.5, 0.9), (1e6, 1e6), (1e6, 1e6)]
    space = ConfigurationSpace({"x": (0.0, 1.0)})
    study = create_study(space, n_initial=len(rows), seed=0, directions=["minimize", "minimize"])
    for row in rows:
        tell(study, ask(study), row)
    assert np.all(reference_of(study) < 5)


def test_penalties_of_two_sizes_all_count_as_failures():
    study = told_study([0.0, 1.0, 2.0, *5 * [1e3], 1e7])
    seen = observations(study, LINE)
    assert (seen.penalties, seen.y.tolist()) == ([3, 4, 5, 6, 7, 8], [0.0, 1.0, 2.0])


def test_a_study_that_ignores_failures_says_so_before_its_first_suggestion():
    study = create_study(LINE, n_initial=4, seed=0, failures="ignore")
    study.add_trials(told_study([2.0, 1e6, 1.0, 3.0]).trials)
    assert observations(study, LINE).numbers == [0, 1, 2, 3]


@pytest.mark.stan
def test_the_optimum_and_the_report_know_penalties_that_no_suggestion_has_seen(tmp_path):
    def objective(config):
        return 1e6 if config["x"] < 0.7 else (config["x"] - 0.4) ** 2

    study = create_study(LINE, n_initial=4, seed=0, method="map")
    for x in (0.72, 0.8, 0.9, 1.0):
        study.enqueue_trial({"x": x})
    for _ in range(5):
        trial = ask(study)
        tell(study, trial, objective(trial.params))
    assert "conditions" not in suggestion_record(study.trials[-1])
    for x in (0.1, 0.3, 0.5, 0.65):
        study.enqueue_trial({"x": x})
        trial = ask(study)
        tell(study, trial, objective(trial.params))
    result = sl.study.Result(study, LINE)
    assert [table.value for table in study.trials[-4:]] == [1e6] * 4
    assert result.optimum().draws["x"].quantile(0.1) > 0.6
    page = result.report(tmp_path / "report.html").read_text()
    assert "0 of 9 trials failed, and the values of trials" in page and "Probability along the parameters" in page
