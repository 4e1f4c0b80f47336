"""Values that stay fixed in a run, and the context of one trial."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace, Float, ForbiddenAndConjunction, ForbiddenEqualsClause
from testing_studies import bowl, suggestion

from slayr_py.acquisition import suggest
from slayr_py.errors import DataError, EnqueuedError, SpaceError
from slayr_py.space import Encoder
from slayr_py.study import Regret, Result, StanGPSampler, ask, ask_batch, config_of, create_study, minimize, tell
from slayr_py.study.sampler import declared_space_of, fixed_for_results

PAST = [({"x": x, "y": y}, bowl({"x": x, "y": y})) for x, y in ((-4.0, 3.0), (0.0, 9.0), (2.0, 8.0), (8.0, 1.0))]


@pytest.mark.stan
@pytest.mark.parametrize("noisy", [False, True])
def test_a_run_searches_the_rest_of_the_space(plane, quick, noisy):
    options = {"seed": 1, "progress": False, "noisy": noisy, **quick}
    result = minimize(bowl, plane, budget=5, n_initial=6, history=PAST, fixed={"y": 2.5}, **options)
    own = result.study.trials[4:]
    assert [suggestion(trial)["phase"] for trial in own] == ["initial"] * 2 + ["model"] * 3
    assert all(trial.params["y"] == 2.5 and suggestion(trial)["fixed"] == {"y": 2.5} for trial in own)
    assert len({trial.params["x"] for trial in own}) == 5
    assert [suggestion(trial)["observations"] for trial in own[2:]] == [6, 7, 8]
    best = min(trial.value for trial in own)
    assert abs(min(own, key=lambda trial: trial.value).params["x"] - 2) < 1  # the best x for every y
    # Improvement is measured from the best trial with this y; others have y near the optimum.
    if not noisy:
        assert suggestion(own[-1])["acquisition"]["best"] == min(trial.value for trial in own[:-1]) >= best
    free = minimize(bowl, plane, budget=1, n_initial=3, history=PAST, **options)
    assert free.study.trials[-1].params["y"] != 2.5 and "fixed" not in suggestion(free.study.trials[-1])


@pytest.mark.stan
def test_results_compare_configurations_with_the_fixed_values(plane, quick):
    """A past experiment with another y is better than both with y = 2.5."""
    past = [*PAST, ({"x": 7.0, "y": 2.5}, 45.25), ({"x": 3.0, "y": 2.5}, 21.25)]
    study = create_study(plane, n_initial=1, seed=1, history=past, fixed={"y": 2.5}, **quick)
    result = Result(study, plane)
    assert result.best_config == {"x": 3.0, "y": 2.5} and result.best_value == 21.25
    assert result.recommended.config == {"x": 3.0, "y": 2.5}
    assert Regret(1.0).estimate(study).incumbent == 5
    assert "best_value=21.25" in repr(result) and "best with the fixed values y=2.5: 21.25" in result._repr_html_()
    axes = result.plot_convergence().axes[0]
    assert "best so far: 21.25" in str(axes.get_legend().texts)
    assert "best so far with the fixed values y=2.5" in axes.get_xlabel()
    other = Result(create_study(plane, n_initial=1, seed=1, history=past, fixed={"x": 9.0}, **quick), plane)
    assert "no feasible trial with the fixed values x=9.0" in repr(other) and "best" not in other._repr_html_()
    with pytest.raises(DataError, match="no feasible trial with the fixed values x=9.0; result.study.best_trial"):
        _ = other.best_config
    free = Result(create_study(plane, n_initial=1, seed=1, history=past, **quick), plane)
    assert free.best_config == {"x": 2.0, "y": 8.0} and free.recommended.config["y"] != 2.5


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_results_compare_the_trials_with_the_values_of_a_partial_fixed_sampler(plane):
    past = [*PAST, ({"x": 7.0, "y": 2.5}, 45.25), ({"x": 3.0, "y": 2.5}, 21.25)]
    study = create_study(plane, n_initial=1, seed=1, history=past, fixed={"y": 8.0})
    assert Result(study, plane).best_config == {"x": 2.0, "y": 8.0}
    study.sampler = optuna.samplers.PartialFixedSampler({"y": 2.5}, study.sampler)
    result = Result(study, plane)
    assert result.best_config == {"x": 3.0, "y": 2.5} and result.best_value == 21.25
    axes = result.plot_convergence().axes[0]
    assert "best so far: 21.25" in str(axes.get_legend().texts)
    assert "best so far with the fixed values y=2.5" in axes.get_xlabel()
    assert fixed_for_results(study, Encoder(plane)).values == {"y": 2.5}
    for inner in (StanGPSampler(seed=1), optuna.samplers.RandomSampler(1)):  # without a declared space
        study.sampler = optuna.samplers.PartialFixedSampler({"y": 2.5}, inner)
        assert result.best_value == 21.25 and fixed_for_results(study, Encoder(plane)).values == {"y": 2.5}
        study.sampler = optuna.samplers.PartialFixedSampler({"y": 1e9}, inner)
        assert "no feasible trial with the fixed values y=1000000000.0" in repr(result)
        assert fixed_for_results(study, Encoder(plane)) is None


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_optimum_and_the_regret_are_those_with_the_values_of_a_partial_fixed_sampler(plane):
    past = [*PAST, ({"x": 7.0, "y": 2.5}, 45.25), ({"x": 3.0, "y": 2.5}, 21.25)]
    study = create_study(plane, n_initial=1, seed=1, history=past, method="map")
    free = Regret(1e9).estimate(study)
    study.sampler = optuna.samplers.PartialFixedSampler({"y": 2.5}, study.sampler)
    result = Result(study, plane)
    assert result.recommended.config == {"x": 3.0, "y": 2.5} and set(result.optimum().draws["y"]) == {2.5}
    fixed = Regret(1e9).decide(study)
    assert (free.incumbent, fixed.incumbent) == (2, 5)


@pytest.mark.stan
def test_another_run_of_the_study_may_fix_other_values(plane, quick, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    options = {"n_initial": 2, "seed": 1, "progress": False, "storage": url, "study_name": "s", **quick}
    for budget, fixed in ((3, {"x": 1.0}), (4, {"x": 4.0}), (5, None)):
        result = minimize(bowl, plane, budget=budget, fixed=fixed, **options)
    assert [trial.params["x"] for trial in result.study.trials[:4]] == [1.0, 1.0, 1.0, 4.0]
    assert result.study.trials[4].params["x"] not in (1.0, 4.0)
    assert suggestion(result.study.trials[4])["observations"] == 4


@pytest.mark.stan
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_context_without_observations_improves_on_the_best_prediction_there(plane, quick, monkeypatch, direction):
    sign, seen = (1.0, {}) if direction == "minimize" else (-1.0, {})

    def spy(posterior, acquisition, **options):
        seen.update(options, posterior=posterior)
        return suggest(posterior, acquisition, **options)

    monkeypatch.setattr("slayr_py.study.model.proposal.suggest", spy)
    past = [(config, sign * value) for config, value in PAST]
    study = create_study(plane, n_initial=4, seed=1, direction=direction, history=past, **quick)
    trial = ask(study, context={"y": 0.1 + 0.2})
    assert config_of(trial)["y"] == 0.3 or config_of(trial)["y"] == 0.1 + 0.2
    assert suggestion(study.trials[-1])["config"]["y"] == pytest.approx(0.3)
    predicted = seen["posterior"].predict([{"x": config["x"], "y": 0.3} for config, _ in PAST]).centre_and_spread()[0]
    best = predicted.min() if direction == "minimize" else predicted.max()
    assert sign * seen["best"] <= sign * best + 1e-9
    tell(study, trial, 1.0)
    assert study.trials[-1].value == 1.0


def test_a_context_applies_to_the_design_and_to_one_trial(mixed):
    study = create_study(mixed, n_initial=6, seed=1)
    plain = create_study(mixed, n_initial=6, seed=1)
    trials = [ask(study, context={"kernel": "poly", "degree": 3}), ask(study), ask(study, {"rate": 0.2, "flag": True})]
    design = [ask(plain).params for _ in range(3)]
    assert trials[0].params["kernel"] == "poly" and trials[0].params["degree"] == 3
    assert trials[1].params == design[1]
    assert trials[2].params == design[2] | {"rate": 0.2, "flag": True}
    assert suggestion(study.trials[2])["fixed"] == {"rate": 0.2, "flag": True}


def test_a_context_replaces_the_fixed_value_of_a_run_and_leaves_the_queue(plane):
    study = create_study(plane, n_initial=6, seed=1, fixed={"x": 1.0, "y": 2.0})
    study.enqueue_trial({"x": 5.0, "y": 5.0})
    assert ask(study, context={"x": 3.0}).params == {"x": 3.0, "y": 2.0}
    assert ask(study).params == {"x": 5.0, "y": 5.0}


@pytest.mark.stan
def test_the_rest_of_an_enqueued_trial_is_searched_given_its_values(plane):
    study = create_study(plane, n_initial=1, seed=1, history=PAST, method="map")
    study.enqueue_trial({"y": 2.5})
    enqueued = ask(study)
    assert enqueued.params["y"] == 2.5 and suggestion(study.trials[-1])["fixed"] == {"y": 2.5}
    context = create_study(plane, n_initial=1, seed=1, history=PAST, method="map")
    assert enqueued.params == ask(context, {"y": 2.5}).params


def forbidden() -> ConfigurationSpace:
    space = ConfigurationSpace({"x": (0.0, 1.0), "a": ["p", "q"], "b": ["u", "v"]})
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(space["a"], "q"), ForbiddenEqualsClause(space["b"], "u")))
    return space


@pytest.mark.parametrize("fixed", [None, {"b": "u"}])
def test_an_enqueued_value_is_never_completed_to_a_forbidden_configuration(fixed):
    study = create_study(forbidden(), n_initial=8, seed=1, fixed=fixed)
    for _ in range(6):
        study.enqueue_trial({"a": "q"})
    warning = r"fixed values {'b': 'u'} are ignored where {'a': 'q'} are given: no configuration has all of them"
    with nullcontext() if fixed is None else pytest.warns(UserWarning, match=warning):
        assert [ask(study).params["b"] for _ in range(6)] == ["v"] * 6
    study.enqueue_trial({"x": 0.5, "a": "q", "b": "u"})
    with pytest.raises(EnqueuedError, match="no configuration of the space has the values.*'q'.*'u'.*leave one out"):
        ask(study)


def test_enqueued_values_activate_their_parents_and_replace_fixed_ones_that_they_switch_off(mixed):
    study = create_study(mixed, n_initial=9, seed=1, fixed={"degree": 3})
    for values in ({"degree": 5}, {"kernel": "rbf"}, {"kernel": "rbf", "degree": 4}, {}):
        study.enqueue_trial(values)
    asked = [ask(study).params for _ in range(4)]
    assert [params["kernel"] for params in asked] == ["poly", "rbf", "rbf", "poly"]
    assert [params.get("degree") for params in asked] == [5, None, None, 3]


def test_a_size_of_the_initial_design_beside_other_configurations_is_warned_of(plane):
    with pytest.warns(UserWarning, match="n_initial=5 has no effect: initial_configs= has 1 configurations"):
        create_study(plane, seed=1, n_initial=5, initial_configs=[{"x": 1.0, "y": 2.0}])


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_values_of_a_partial_fixed_sampler_are_fixed(plane):
    study = create_study(plane, n_initial=4, seed=1, fixed={"x": 1.0, "y": 1.0})
    study.sampler = optuna.samplers.PartialFixedSampler({"y": 2.0}, study.sampler)
    study.enqueue_trial({"x": 3.0})
    for x in (3.0, 1.0):
        assert ask(study).params == {"x": x, "y": 2.0} == suggestion(study.trials[-1])["config"]
    declared = declared_space_of(study)
    assert declared.fixed_for_comparison(study, study.trials[0]).values == {"x": 1.0, "y": 2.0}
    study.sampler._fixed_params = {"y": 1e9}  # an illegal value does not replace those of the sampler
    assert declared.fixed_for_suggestion(study, study.trials[1]).values == {"x": 1.0, "y": 1.0}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_batches_and_costs_are_those_of_the_sampler_in_a_partial_fixed_sampler(plane):
    study = create_study(plane, n_initial=4, seed=1, cost="euros")
    study.sampler = optuna.samplers.PartialFixedSampler({"y": 2.0}, study.sampler)
    batch = ask_batch(study, 2)
    assert [trial.params["y"] for trial in batch] == [2.0, 2.0]
    assert tell(study, batch[0], 1.0, cost=3.0).user_attrs["euros"] == 3.0


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_values_of_a_partial_fixed_sampler_belong_to_a_context(plane):
    study = create_study(plane, n_initial=4, seed=1)
    study.sampler = optuna.samplers.PartialFixedSampler({"y": 2.0}, study.sampler)
    trial = ask(study, context={"x": 3.0})
    assert trial.params == {"x": 3.0, "y": 2.0}
    assert declared_space_of(study).fixed_for_suggestion(study, study.trials[-1]).values == {"x": 3.0, "y": 2.0}


def test_initial_configurations_get_the_fixed_values(plane):
    given = [{"x": 1.0}, {"x": 2.0, "y": 3.0}, {"x": 3.0, "y": 4.0}]
    words = r"^fixed values \(y=4.0\) replace those of the initial configurations 1 \(y=3.0\)$"
    with pytest.warns(UserWarning, match=words):
        study = create_study(plane, seed=1, initial_configs=given, fixed={"y": 4.0})
    assert [ask(study).params for _ in range(3)] == [{"x": x, "y": 4.0} for x in (1.0, 2.0, 3.0)]


def test_initial_configurations_that_only_differ_in_fixed_values_are_evaluated_once(plane):
    """Configurations that were given twice are evaluated twice."""
    given = [{"x": x, "y": y} for x, y in ((1.0, 4.0), (1.0, 3.0), (2.0, 3.0), (2.0, 3.0), (1.0, 4.0), (2.0, 5.0))]
    words = r"5 \(y=5.0\); left out since they equal earlier ones: 1, 5$"
    with pytest.warns(UserWarning, match=words):
        study = create_study(plane, seed=1, initial_configs=given, fixed={"y": 4.0})
    assert study.sampler.strategy.design.size == 4
    assert [ask(study).params["x"] for _ in range(4)] == [1.0, 2.0, 2.0, 1.0]


@pytest.mark.filterwarnings("error::UserWarning")
def test_values_that_are_evaluated_as_the_fixed_ones_are_not_replaced():
    space = {"x": (0.0, 1.0), "lr": Float("lr", (1e-5, 0.1), log=True), "n": (0, 5), "c": ["u", "v"]}
    fixed = {"x": 1 / 3, "lr": 1e-3 / 3, "n": 2.0}
    given = [{**fixed, "c": "u"}, {"x": np.float64(1 / 3), "lr": 1e-3 / 3, "n": np.int64(2), "c": "v"}]
    study = create_study(space, seed=1, initial_configs=given, fixed=fixed)
    assert [ask(study).params["c"] for _ in range(2)] == ["u", "v"]


@pytest.mark.parametrize("illegal", [99.0, "high", None])
def test_an_illegal_value_is_replaced_too(plane, illegal):
    with pytest.warns(UserWarning, match=rf"replace those of the initial configurations 0 \(y={illegal!r}\)$"):
        study = create_study(plane, seed=1, initial_configs=[{"x": 1.0, "y": illegal}], fixed={"y": 4.0})
    assert ask(study).params == {"x": 1.0, "y": 4.0}


@pytest.mark.stan
def test_fixed_levels_of_a_mixed_space(mixed, quick):
    study = create_study(mixed, n_initial=4, seed=1, fixed={"degree": 5, "size": "s"}, **quick)
    for i in range(6):
        trial = ask(study)
        assert trial.params["kernel"] == "poly" and trial.params["degree"] == 5 and trial.params["size"] == "s"
        tell(study, trial, float(i))


@pytest.mark.stan
def test_everything_fixed_is_repeated(quick):
    space = ConfigurationSpace({"x": (0.0, 1.0), "k": ["a", "b"]})
    study = create_study(space, n_initial=1, seed=1, fixed={"x": 0.5, "k": "b"}, **quick)
    for _ in range(3):
        trial = ask(study)
        assert trial.params == {"x": 0.5, "k": "b"}
        tell(study, trial, 1.0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kernle": "poly"}, "there is no parameter 'kernle' .*; did you mean 'kernel'"),
        ({"rate": 5.0}, "parameter 'rate' is 5.0; give a number from 0.0001 to 1.0"),
        ({"kernel": "rbf", "degree": 2}, "parameter 'degree' has a value although it is inactive"),
        ({"size": "l", "flag": False}, "no configuration of the space has the values"),
    ],
)
def test_illegal_values_are_refused_before_anything_is_stored(mixed, values, words):
    with pytest.raises(SpaceError, match=f"fixed: {words}"):
        create_study(mixed, fixed=values)
    study = create_study(mixed, seed=1)
    with pytest.raises(SpaceError, match=f"context: {words}"):
        ask(study, context=values)
    assert study.trials == []


@pytest.mark.stan
def test_a_batch_has_a_context_and_is_spread_over_the_other_parameters(plane):
    study = create_study(plane, n_initial=1, seed=1, history=PAST)
    study.enqueue_trial({"x": 1.0, "y": 2.0})
    trials = ask_batch(study, 3, context={"y": 2.5})
    assert [trial.params["y"] for trial in trials] == [2.5] * 3
    assert min(np.diff(sorted(trial.params["x"] for trial in trials))) > 0.01
    assert ask(study).params == {"x": 1.0, "y": 2.0}
    with pytest.raises(DataError, match="q must be an integer >= 1, got 0"):
        ask_batch(study, 0, context={"y": 2.5})


def test_a_context_that_contradicts_the_run_is_refused(mixed):
    study = create_study(mixed, seed=1, fixed={"kernel": "rbf"})
    with pytest.raises(SpaceError, match="context: parameter 'degree' has a value although it is inactive"):
        ask(study, context={"degree": 2})


def test_a_context_needs_the_sampler(plane):
    study = create_study(plane, seed=1)
    study.sampler = optuna.samplers.RandomSampler()
    with pytest.raises(DataError, match="only a StanGPSampler suggests in a context"):
        ask(study, context={"x": np.float64(1.0)})


def test_fixed_values_that_are_ignored_are_named_once_without_those_that_are_replaced(recwarn):
    study = create_study(forbidden(), n_initial=8, seed=1, fixed={"x": 0.5, "b": "u"})
    for x in (0.1, 0.2, 0.3):
        study.enqueue_trial({"a": "q", "x": x})
        assert ask(study).params["x"] == x
    texts = [str(each.message) for each in recwarn if "are ignored" in str(each.message)]
    assert len(texts) == 1 and texts[0].startswith("the fixed values {'b': 'u'} are ignored where {")
