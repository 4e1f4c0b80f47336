"""Past experiments as trials of a study."""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from testing_studies import branin, suggestion

from slayr_py.errors import DataError, SpaceError
from slayr_py.inference import GaussianProcess
from slayr_py.kernels import HalfNormal, LogNormal
from slayr_py.space import Encoder
from slayr_py.study import Result, ask, ask_batch, create_study, minimize, tell
from slayr_py.study.model import proposer
from slayr_py.study.run.history import Experiment, read_history
from slayr_py.study.run.past_trials import match
from slayr_py.study.storage.attributes import ASKED_KEY, FIT_KEY
from slayr_py.study.storage.fit_records import with_stored_once

PAST = [({"x": 1.0, "y": 2.0}, 20.0), ({"x": 3.0, "y": 2.5}, 1.5)]
MIXED = {"kernel": "rbf", "rate": 0.1, "size": "s", "flag": True}


def states(study):
    return [trial.state.name for trial in study.trials]


def test_past_experiments_are_trials_outside_the_budget(plane):
    calls = []
    result = minimize(
        lambda c: calls.append(c) or 50.0, plane, budget=3, n_initial=5, seed=1, progress=False, history=PAST
    )
    assert len(calls) == 3 and len(result.trials) == 5
    assert [trial.params for trial in result.study.trials[:2]] == [config for config, _ in PAST]
    assert suggestion(result.study.trials[0])["phase"] == "history"
    assert result.best_value == 1.5 and result.best_config == PAST[1][0]


@pytest.mark.stan
def test_each_past_experiment_replaces_a_point_of_the_design(plane, quick):
    study = create_study(plane, n_initial=3, seed=1, history=PAST, **quick)
    for _ in range(2):
        tell(study, ask(study), 5.0)
    plain = create_study(plane, n_initial=3, seed=1)
    design = [ask(plain).params for _ in range(3)]
    assert study.trials[2].params == design[2] and suggestion(study.trials[2])["phase"] == "initial"
    assert suggestion(study.trials[3])["phase"] == "model" and suggestion(study.trials[3])["observations"] == 3


@pytest.mark.stan
def test_enough_past_experiments_replace_the_design(plane, quick, monkeypatch):
    prepared = []
    fit = GaussianProcess.prepare
    monkeypatch.setattr(GaussianProcess, "prepare", lambda *a: prepared.append(1) or fit(*a))
    options = {"budget": 1, "n_initial": 2, "seed": 1, "progress": False, **quick}
    result = minimize(branin, plane, history=PAST, **options)
    assert suggestion(result.study.trials[2])["phase"] == "model" and prepared


def test_configurations_of_the_user_are_all_evaluated(plane):
    initial = [{"x": x, "y": 1.0} for x in (4.0, 5.0, 6.0)]
    study = create_study(plane, seed=1, initial_configs=initial, history=PAST)
    assert [ask(study).params for _ in range(3)] == initial


@pytest.mark.parametrize("noisy", [False, True])
def test_a_resumed_call_adds_nothing_twice(plane, tmp_path, noisy):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    arguments = {"n_initial": 20, "seed": 1, "storage": url, "study_name": "s", "progress": False, "noisy": noisy}
    past = [*PAST, PAST[0], ({"x": 0.1 + 0.2, "y": math.pi}, None)]
    for budget in (2, 3):
        result = minimize(branin, plane, budget=budget, history=past, **arguments)
    assert states(result.study) == ["COMPLETE"] * 3 + ["FAIL"] + ["COMPLETE"] * 3
    more = minimize(branin, plane, budget=3, history=[*past, PAST[1]], **arguments)
    assert len(more.trials) == 8  # a repeated evaluation is another experiment
    again = minimize(branin, plane, budget=3, history=more.trials, **arguments)
    assert len(again.trials) == 8  # its own trials are already there


def test_known_errors_and_costs_added_later_are_not_ignored_silently(plane):
    storage = optuna.storages.InMemoryStorage()
    table = pd.DataFrame({"x": [1.0, 2.0, 2.0], "y": 1.0, "value": [5.0, 6.0, 6.0], "y_sd": [np.nan, 0.1, 0.2]})
    options = {"storage": storage, "study_name": "s", "seed": 1, "cost": "euros"}
    create_study(plane, history=table, **options)
    create_study(plane, history=table[::-1], **options)  # replicates in another order
    create_study(plane, history=table.drop(columns="y_sd"), **options)
    with pytest.warns(UserWarning) as warned:
        study = create_study(plane, history=table.assign(y_sd=[0.3, 0.1, 0.4], euros=[2.0, np.nan, np.nan]), **options)
    rest = "differs from that of the history: to use the new one, give the history to a study with another name"
    assert [str(each.message) for each in warned] == [
        f"trials 0, 2 of study 's' keep the stored y_sd, which {rest}",
        f"trial 0 of study 's' keeps the stored euros, which {rest}",
    ]
    assert [trial.user_attrs.get("y_sd") for trial in study.trials] == [None, 0.1, 0.2]
    assert not any("euros" in trial.user_attrs for trial in study.trials)


def test_what_the_study_keeps_of_a_corrected_table_is_reported(plane):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s", "seed": 1, "n_initial": 9}
    past = [({"x": float(x), "y": 1.0}, value) for x, value in enumerate([3.0, 4.0, None, 6.0])]
    table = pd.DataFrame({"x": [4.0, 5.0], "y": 2.0, "value": np.nan, "state": "PENDING"})
    study = create_study(plane, history=past, **options)
    with pytest.warns(UserWarning, match="trials 0, 1, 2, 3 of study 's', which the history lacks, are past exp"):
        create_study(plane, history=table, **options)
    trial = ask(study)
    tell(study, trial, 7.0)
    corrected = [(past[0][0], 3.5), (past[2][0], 5.0), past[3], (trial.params, 8.0)]
    with pytest.warns(UserWarning) as warned:
        create_study(plane, history=corrected, **options)
    another = "give the history to a study with another name"
    assert [str(each.message) for each in warned] == [
        "study 's' keeps the stored result of trial 0 (3, in the history 3.5), trial 2 (failed, in the history 5), "
        f"trial 6 (7, in the history 8), and the new one is another trial: to replace results, {another}",
        "trial 1 of study 's', which the history lacks, is a past experiment that the model learns from: to start "
        f"without, {another}",
        "trials 4, 5 of study 's', which the history lacks, are planned experiments and still running: tell a "
        "result, or state=TrialState.PRUNED",
    ]
    tell(study, 4, state=optuna.trial.TrialState.PRUNED)
    assert len(study.trials) == 10


def test_a_table_tells_the_trials_that_were_asked(plane, tmp_path):
    options = {"storage": f"sqlite:///{tmp_path / 'lab.db'}", "study_name": "s", "seed": 1, "n_initial": 9}
    study = create_study(plane, history=PAST, **options)
    asked = [*ask_batch(study, 2), ask(study)]
    rows = pd.DataFrame([*(config for config, _ in PAST), *(trial.params for trial in asked)])
    table = rows.assign(value=[20.0, 1.5, 3.0, None, None], status=["", "", "", "failed", "planned"])
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(UserWarning) as warned:
        study = create_study(plane, history=tmp_path / "t.csv", **options)
    notes = ["row 5 of t.csv: no result yet, counted as running", "row 4 of t.csv: failed"]
    assert [str(each.message) for each in warned] == notes
    assert states(study) == ["COMPLETE"] * 3 + ["FAIL", "RUNNING"]
    assert study.trials[2].value == 3.0 and suggestion(study.trials[2])["phase"] == "initial"


def test_a_table_does_not_tell_a_trial_of_a_loop(plane):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s", "seed": 1, "n_initial": 9}

    def objective(config):
        study = create_study(plane, history=[(config, 5.0)], **options)
        assert states(study) == ["RUNNING", "COMPLETE"]
        return 6.0

    minimize(objective, plane, budget=1, progress=False, **options)
    study = create_study(plane, **options)
    trial = study.ask(study.sampler.strategy.distributions)  # Optuna's, as in its own loop
    with pytest.warns(UserWarning, match="left out: .* since trial 2 of study 's' is running at this .*: tell it"):
        create_study(plane, history=[(study.trials[0].params, 5.0), (trial.params, 1.0)], **options)
    assert len(study.trials) == 3


def test_an_infinite_trial_is_not_added_again_to_its_own_study(plane):
    storage = optuna.storages.InMemoryStorage()
    study = create_study(plane, storage=storage, study_name="s")
    study.tell(ask(study), math.inf)  # Optuna completes it
    table = study.trials_dataframe()
    with pytest.warns(UserWarning, match="history row 0: the value inf is not finite"):
        assert len(create_study(plane, storage=storage, study_name="s", history=table).trials) == 1


def test_a_result_is_a_legal_history(mixed):
    def objective(config):
        if config["size"] == "m":
            raise ValueError("no answer")
        return config["rate"]

    first = minimize(objective, mixed, budget=12, n_initial=12, seed=1, progress=False)
    assert set(first.trials["state"]) == {"COMPLETE", "FAIL"}
    tables = {
        "own": first.trials,
        "optuna": first.study.trials_dataframe(),
        "bare": first.trials.rename(columns=lambda name: name.removeprefix("params_")),
    }
    for table in tables.values():
        study = create_study(mixed, history=table)
        assert [trial.params for trial in study.trials] == [trial.params for trial in first.study.trials]
        assert [trial.value for trial in study.trials] == [trial.value for trial in first.study.trials]
        assert states(study) == states(first.study)


def test_unfinished_trials_and_failures_without_parameters_are_omitted(small_study, plane):
    table = small_study.trials_dataframe()
    assert states(create_study(plane, history=table)) == ["COMPLETE", "COMPLETE", "FAIL"]
    nothing = pd.DataFrame(
        {"x": [np.nan, 1.0], "y": [np.nan, 2.0], "value": [np.nan, 1.0], "state": ["FAIL", "COMPLETE"]}
    )
    assert len(create_study(plane, history=nothing).trials) == 1


def test_pruned_trials_are_omitted_with_a_warning(plane, tmp_path):
    """Optuna's table has the last reported value of a pruned trial as its value."""
    first = create_study(plane, seed=1, n_initial=4)
    for state in (None, optuna.trial.TrialState.PRUNED, optuna.trial.TrialState.FAIL):
        trial = ask(first)
        trial.report(7.0, 1)
        first.tell(trial, None if state else 5.0, state)
    ask(first)
    table = Result(first, plane).trials
    table.to_csv(tmp_path / "trials.csv", index=False)
    words = (
        "left out: 1 pruned trial of the history, row 1; the last value that a pruned trial reported is not a result"
    )
    for history in (table, first.trials_dataframe()):
        with pytest.warns(UserWarning, match=words):
            study = create_study(plane, history=history)
        assert [(trial.state.name, trial.value) for trial in study.trials] == [("COMPLETE", 5.0), ("FAIL", None)]
    with pytest.warns(UserWarning) as warned:
        study = create_study(plane, history=tmp_path / "trials.csv")
    assert [(trial.state.name, trial.value) for trial in study.trials] == [("COMPLETE", 5.0), ("FAIL", None)]
    texts = [str(each.message) for each in warned]
    assert texts[0].startswith("left out: row 2 of trials.csv, pruned: the last value that it reported")
    assert texts[1] == "left out: row 4 of trials.csv, not finished" and "row 3 of trials.csv: failed" in texts


def test_a_file_of_several_objectives_is_read_like_its_table(plane, tmp_path):
    options = {"directions": {"loss": "minimize", "speed": "maximize"}}
    first = minimize(lambda c: (c["x"], c["y"]), plane, 2, n_initial=2, seed=1, progress=False, **options)
    first.trials.to_csv(tmp_path / "trials.csv", index=False)
    study = create_study(plane, history=tmp_path / "trials.csv", **options)
    assert [trial.values for trial in study.trials] == [trial.values for trial in first.study.trials]


@pytest.mark.parametrize("value", [None, math.nan, np.float32("nan"), pd.NA])
def test_a_missing_or_infinite_value_is_a_failure(plane, value):
    assert states(create_study(plane, history=[({"x": 1.0, "y": 2.0}, value)])) == ["FAIL"]


def test_parameters_called_like_other_columns():
    space = ConfigurationSpace({"value": (0.0, 1.0), "number": (0.0, 1.0), "state": ["on", "off"]})
    first = minimize(lambda c: c["value"], space, budget=3, n_initial=3, seed=1, progress=False)
    study = create_study(space, history=first.trials)
    assert [trial.params for trial in study.trials] == [trial.params for trial in first.study.trials]
    bare = first.trials[["value", "params_value"]].assign(
        number=first.trials["params_number"], state=first.trials["params_state"]
    )
    assert [trial.params for trial in create_study(space, history=bare).trials] == [t.params for t in study.trials]


def test_none_may_be_a_level_of_a_conditional_parameter():
    space = ConfigurationSpace()
    cut = Categorical("cut", [True, False])
    limit = Categorical("limit", [None, 1, 2])
    space.add(cut, limit, Float("x", (0.0, 1.0)))
    space.add(EqualsCondition(limit, cut, True))
    table = pd.DataFrame({"cut": [True, True, False], "limit": [None, 2, None], "x": 0.5, "value": [1, 2, 3]})
    found = [experiment.params for experiment in read_history(table, Encoder(space))]
    assert [params.get("limit", "inactive") for params in found] == [None, 2, "inactive"]


@pytest.mark.parametrize(
    ("history", "error", "words"),
    [
        (
            [PAST[0], ({"x": 99.0, "y": 2.0}, 1.0)],
            SpaceError,
            "history row 1: parameter 'x' is 99.0; give a number fr",
        ),
        ([({"x": 1.0}, 1.0)], SpaceError, "history row 0: parameter 'y' has no value"),
        ([({"x": 1.0, "z": 2.0}, 1.0)], SpaceError, "history row 0: there is no parameter 'z'"),
        ([({"x": 1.0, "y": 2.0}, "bad")], DataError, "history row 0: the value must be a number, or NaN .* got 'bad'"),
        ([({"x": 1.0, "y": 2.0}, True)], DataError, "history row 0: the value must be a number"),
        ([{"x": 1.0, "y": 2.0}], DataError, "history row 0: expected a pair"),
        ({"x": 1.0}, DataError, "history must be a DataFrame or a sequence of .config, value., got {'x': 1.0}"),
        ("runs.csv", DataError, "there is no table runs.csv"),
        (pd.DataFrame({"x": [1.0], "y": [1.0]}), DataError, "history has no column 'value'; its columns: x, y"),
        (pd.DataFrame({"x": [1.0], "y": [1.0], "valu": [1.0]}), DataError, "no column 'value'; its .* x, y, valu"),
        (pd.DataFrame({"x": [1.0], "y": 1.0, "value": None, "Status": "planned"}), DataError, "'Status', which is"),
        (pd.DataFrame({"x": [1.0], "params_x": [1.0], "value": [1.0]}), DataError, "two columns for 'x'"),
        (pd.DataFrame({"x": [99.0], "y": [1.0], "value": 1.0}, index=["run7"]), SpaceError, "history row run7: param"),
        (pd.DataFrame({"x": [1.0], "y": [1.0], "value": 1.0, "y_sd": -1.0}, index=["a"]), DataError, "a: y_sd must"),
    ],
)
def test_illegal_histories_are_refused_before_the_study_is_created(plane, tmp_path, history, error, words):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with pytest.raises(error, match=words):
        create_study(plane, history=history, storage=url)
    assert not (tmp_path / "study.db").exists()


def test_other_columns_of_tables_and_files_are_left_out_with_a_warning(plane, tmp_path):
    table = pd.DataFrame({"x": [1.0], "date": "2026-11-01", "y": 2.0, "value": 3.0, "y_ds": 0.1, "comment": "new oven"})
    table.to_csv(tmp_path / "runs.csv", index=False)
    words = "'date', 'y_ds'{}, 'comment' of {}, not among the parameters"
    of_table, of_file = (r" \(did you mean 'y_sd'\?\)", "the history"), ("", "runs.csv")
    for history, (hint, name) in ((table, of_table), (tmp_path / "runs.csv", of_file)):
        with pytest.warns(UserWarning, match=f"^left out: {words.format(hint, name)}"):
            study = create_study(plane, history=history)
        assert [(trial.params, trial.values) for trial in study.trials] == [({"x": 1.0, "y": 2.0}, [3.0])]


@pytest.mark.parametrize(
    ("column", "name", "options"),
    [
        ("State", "state", {}),
        ("Value", "value", {}),
        ("Y_sd", "y_sd", {}),
        ("Cost", "cost", {"cost": "cost"}),
        ("Loss", "loss", {"directions": {"loss": "minimize", "speed": "maximize"}}),
        ("Y_sd_loss", "y_sd_loss", {"directions": {"loss": "minimize", "speed": "maximize"}}),
    ],
)
def test_a_known_column_in_other_capitals_is_refused(plane, tmp_path, column, name, options):
    results = options.get("directions", ["value"])
    table = pd.DataFrame({"x": [1.0, 2.0], "y": 2.0, **dict.fromkeys(results, 3.0), column: ["COMPLETE", "FAIL"]})
    table.to_csv(tmp_path / "runs.csv", index=False)
    for history in (table, tmp_path / "runs.csv"):
        with pytest.raises(DataError, match=f"has the column '{column}', which is '{name}' but for its capitals"):
            create_study(plane, history=history, **options)


def test_other_words_than_states_are_refused_unless_none_is_a_state(plane, tmp_path):
    path = tmp_path / "runs.csv"

    def read(*cells):
        table = pd.DataFrame({"x": [1.0, 2.0], "y": 2.0, "value": [3.0, 99.0], "state": cells})
        table.to_csv(path, index=False)
        return table, path

    for wrong in (("COMPLETE", "failed"), ("fail", "complete"), ("COMPLETE", "solid")):
        unknown = next(word for word in wrong if word != "COMPLETE")
        for history in read(*wrong):
            with pytest.raises(
                DataError, match=f"has the state '{unknown}'; the states of trials are PENDING, COMPLETE"
            ):
                create_study(plane, history=history)
    for history in read("solid", "liquid"):
        with pytest.warns(UserWarning, match="^left out: .*'state'"):
            assert states(create_study(plane, history=history)) == ["COMPLETE"] * 2
    for history in read("COMPLETE", "FAIL"):
        with nullcontext() if history is not path else pytest.warns(UserWarning, match="row 2 of runs.csv: failed"):
            assert states(create_study(plane, history=history)) == ["COMPLETE", "FAIL"]
    planned, _ = read("COMPLETE", "PENDING")
    planned.assign(value=[3.0, None]).to_csv(path, index=False)
    with pytest.warns(UserWarning, match="row 2 of runs.csv: no result yet, counted as running"):
        assert states(create_study(plane, history=path)) == ["COMPLETE", "RUNNING"]


def test_a_parameter_in_other_capitals_is_refused_unless_it_has_a_column(tmp_path):
    space = ConfigurationSpace()
    kind = Categorical("kind", ["a", "b"])
    space.add(kind, Float("t", (0.0, 1.0)))
    space.add(EqualsCondition(space["t"], kind, "a"))
    table = pd.DataFrame({"kind": ["b", "b"], "T": [300.0, 310.0], "value": [1.0, 2.0]})
    for number, rows in enumerate((table, table.assign(t=None))):
        path = tmp_path / f"{number}.csv"
        rows.to_csv(path, index=False)
        for history in (rows, path):
            if number:
                with pytest.warns(UserWarning, match="^left out: 'T'"):
                    assert states(create_study(space, history=history)) == ["COMPLETE"] * 2
            else:
                with pytest.raises(DataError, match="the column 'T', which is 't' but for its capitals"):
                    create_study(space, history=history)


def test_a_cost_that_is_none_of_its_study_is_another_column(plane):
    table = pd.DataFrame({"params_x": [1.0], "params_y": [1.0], "value": 1.0, "state": "COMPLETE", "euros": 2.0})
    with pytest.warns(UserWarning, match="^left out: 'euros' of the history"):
        create_study(plane, history=table)


def test_a_value_of_an_inactive_parameter_is_refused(mixed):
    with pytest.raises(SpaceError, match="history row 0: parameter 'degree' has a value although it is inactive"):
        create_study(mixed, history=[({**MIXED, "degree": 3}, 1.0)])
    assert states(create_study(mixed, history=[({**MIXED, "degree": None}, 1.0)])) == ["COMPLETE"]


@pytest.mark.stan
@pytest.mark.parametrize("options", [{}, {"priors": {"sigma_n": LogNormal(-4, 1)}}])
def test_noise_of_past_experiments_is_found_and_reported(plane, options):
    """They may be noisy although the objective was not declared noisy."""
    rng = np.random.default_rng(1)
    design = Encoder(plane).sobol(30, 1)
    history = [(dict(x), x["x"] + rng.normal(0, 5.0)) for x in design]  # the noise is as large as the function
    study = create_study(plane, n_initial=3, seed=1, history=history, method="pathfinder", retries=0, **options)
    words = "explains a part .* declare noisy=True.* For exact past experiments rule noise out"
    warned = nullcontext() if options else pytest.warns(UserWarning, match=words)
    with warned:
        ask(study)
    prior = with_stored_once(study, study.trials[-1].user_attrs[FIT_KEY])["priors"]["sigma_n"]
    assert prior == options.get("priors", {"sigma_n": HalfNormal(1)})["sigma_n"].asdict()


@pytest.mark.stan
def test_noise_without_past_experiments_has_no_remedy_for_them(plane, monkeypatch):
    """Their remedy is the prior that such a study has anyway."""
    monkeypatch.setattr(proposer, "LARGEST_NOISE", 0.0)
    study = create_study(plane, n_initial=6, seed=1, method="pathfinder", retries=0)
    for _ in range(6):
        trial = ask(study)
        tell(study, trial, trial.params["x"])
    with pytest.warns(UserWarning, match="declare noisy=True. Otherwise .* that the kernel does not describe$"):
        ask(study)


@pytest.mark.stan
@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_to_gain_right_beside_the_best_past_experiment(seed):
    """Four experiments do not show whether they are noisy, and the others are hardly feasible."""
    space = ConfigurationSpace({"acid": (0.0, 1.0), "heat": (20.0, 80.0)})
    past = pd.DataFrame({"acid": [0.286, 0.582, 0.838, 0.044], "heat": [29.8, 76.3, 39.4, 52.6]})
    ph = 9 - 4 * past["acid"] + past["heat"] / 100
    past = past.assign(value=10 + past["heat"] / 10 - 5 * (past["acid"] - 0.4) ** 2, excess=(ph - 7).abs() - 0.5)
    past = past.rename(columns={"excess": "constraints_ph"})
    study = create_study(space, history=past, direction="maximize", n_initial=3, seed=seed)
    trial = ask(study)
    assert suggestion(study.trials[-1])["phase"] == "model"
    distance = np.abs(np.array([trial.params["acid"] - 0.582, (trial.params["heat"] - 76.3) / 60]))
    assert distance.max() > 0.02


@pytest.mark.stan
def test_past_experiments_without_noise_need_no_warning(plane):
    history = [(dict(x), branin(x)) for x in Encoder(plane).sobol(30, 1)]
    study = create_study(plane, n_initial=3, seed=1, history=history, method="pathfinder", retries=0)
    ask(study)  # a warning would be an error
    assert suggestion(study.trials[-1])["phase"] == "model"


def warnings_of(plane, **options):
    """The texts of the warnings of a study with a history, and the study."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # garbage of other tests
        study = create_study(plane, seed=1, n_initial=300, **options)
    return [str(each.message) for each in warned], study


def test_the_sign_of_zero_makes_no_new_experiment(tmp_path):
    options = {"storage": f"sqlite:///{tmp_path / 's.db'}", "study_name": "s"}
    past = [({"x": 0.5}, -0.0), ({"x": -0.0}, 1.0)]
    for _ in range(2):
        said, study = warnings_of({"x": (-1.0, 1.0)}, history=past, **options)
        assert (said, len(study.trials)) == ([], 2)


def test_a_row_that_is_still_planned_is_the_trial_that_was_told(plane):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s"}
    _, study = warnings_of(plane, **options)
    asked = ask(study)
    rows = pd.DataFrame([PAST[0][0], asked.params, {"x": 3.0, "y": 4.0}, {"x": 3.0, "y": 4.0}])
    table = rows.assign(value=[20.0, None, None, None], state=["COMPLETE", *["PENDING"] * 3])
    said, study = warnings_of(plane, history=table, **options)
    assert (said, states(study)) == ([], ["RUNNING", "COMPLETE", "RUNNING", "RUNNING"])
    tell(study, asked, 3.0)
    tell(study, 3, 4.0)
    said, study = warnings_of(plane, history=table, **options)
    assert (said, states(study)) == ([], ["COMPLETE", "COMPLETE", "RUNNING", "COMPLETE"])


@pytest.mark.parametrize("value", [5.0, None])
@pytest.mark.parametrize("planned", [False, True])
def test_a_row_without_its_result_again_is_a_new_trial_and_the_old_one_is_named(plane, value, planned):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s"}
    pending = pd.DataFrame([PAST[0][0]]).assign(value=[None], state=["PENDING"])
    if planned:
        warnings_of(plane, history=pending, **options)
    warnings_of(plane, history=[(PAST[0][0], value)], **options)
    for _ in range(2):
        said, study = warnings_of(plane, history=pending, **options)
        assert states(study) == ["FAIL" if value is None else "COMPLETE", "RUNNING"]
        assert len(said) == 1 and "trial 0 of study 's', which the history lacks," in said[0]


@pytest.mark.parametrize("noisy", [False, True])
def test_a_repeated_evaluation_of_a_noisy_study_is_no_correction(plane, noisy):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s", "noisy": noisy}
    _, study = warnings_of(plane, history=PAST[:1], **options)
    trial = ask(study)
    tell(study, trial, 1.1)
    said, _ = warnings_of(plane, history=[PAST[0], (trial.params, 1.2)], **options)
    assert ["keeps the stored result of trial 1 (1.1," in text for text in said] == [True] * (not noisy)
    said, _ = warnings_of(plane, history=[(PAST[0][0], 21.0), (trial.params, 1.2)], **options)
    assert "keeps the stored result of trial 0 (20," in said[0]


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("told", ["by the history", "by the user"])
def test_a_failure_whose_result_is_filled_in_later_is_named(plane, noisy, told):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s", "noisy": noisy}
    _, study = warnings_of(plane, **options)
    trial = ask(study)
    if told == "by the user":
        tell(study, trial, state=optuna.trial.TrialState.FAIL)
    else:
        _, study = warnings_of(plane, history=[(trial.params, None)], **options)
    said, study = warnings_of(plane, history=[(trial.params, 1.2)], **options)
    assert states(study) == ["FAIL", "COMPLETE"]
    assert "keeps the stored result of trial 0 (failed, in the history 1.2)" in said[0]
    assert warnings_of(plane, history=[(trial.params, None), (trial.params, 1.2)], **options)[0] == []


@pytest.mark.parametrize(("noisy", "sd"), [(False, None), (True, None), (False, 0.1)])
def test_a_withdrawn_result_of_an_own_trial_is_reported_also_with_noise(plane, noisy, sd):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s", "noisy": noisy}
    _, study = warnings_of(plane, **options)
    trial = ask(study)
    tell(study, trial, 1.1, sd=sd)
    said, study = warnings_of(plane, history=[(trial.params, 1.1), (trial.params, None)], **options)
    assert (said, states(study)) == ([], ["COMPLETE", "FAIL"])  # a repetition has failed
    said, study = warnings_of(plane, history=[(trial.params, None), (trial.params, None)], **options)
    assert states(study) == ["COMPLETE", "FAIL", "FAIL"]
    assert "keeps the stored result of trial 0 (1.1, in the history failed)" in said[0]


def test_a_history_without_rows_lacks_all_of_them(plane):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s"}
    warnings_of(plane, history=PAST, **options)
    for empty in ([], pd.DataFrame({"x": [], "y": [], "value": []})):
        said, study = warnings_of(plane, history=empty, **options)
        assert len(said) == 1 and "trials 0, 1 of study 's', which the history lacks," in said[0]
    assert warnings_of(plane, **options)[0] == [] and len(study.trials) == 2


def test_a_warning_names_a_few_of_many_trials(plane):
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s"}
    past = [({"x": x / 100, "y": 1.0}, 3.0) for x in range(100)]
    _, study = warnings_of(plane, history=past, **options)
    others = [(config, 4.0) for config, _ in past]
    corrected, _ = warnings_of(plane, history=others, **options)
    assert len(corrected) == 1 and "trial 4 (3, in the history 4) and 95 others, and" in corrected[0]
    lacking, _ = warnings_of(plane, history=[], **options)
    assert "trials 0, 1, 2, 3, 4 and 195 others of study 's', which the history lacks" in lacking[0]
    started = [study.ask(study.sampler.strategy.distributions) for _ in range(6)]
    results = [(trial.params, 1.0) for trial in started]
    untold, _ = warnings_of(plane, history=[*past, *others, *results], **options)
    assert len(untold) == 1 and untold[0].startswith("left out: 6 experiments of the history, since trials 200, 201,")


def test_a_warning_points_to_the_call_of_the_user(plane):
    with pytest.warns(UserWarning, match="not finite") as warned:
        study = create_study(plane, history=[(PAST[0][0], math.inf)])
    study.enqueue_trial({"z": 1.0})
    with pytest.warns(UserWarning, match="enqueued with 'z', which is not declared") as enqueued:
        ask(study)  # Optuna's functions are between
    assert warned[0].filename == enqueued[0].filename == __file__


def test_experiments_are_matched_without_a_storage():
    params = {"x": 1.0}
    ranges = {"x": optuna.distributions.FloatDistribution(0, 2)}
    running, done = (
        optuna.trial.create_trial(state=state, values=values, params=params, distributions=ranges)
        for state, values in ((optuna.trial.TrialState.RUNNING, None), (optuna.trial.TrialState.COMPLETE, [3.0]))
    )
    running.set_user_attr(ASKED_KEY, True)
    old, new = Experiment(params, (3.0,), (0.1,)), Experiment(params, (4.0,))
    planned = Experiment({"x": 2.0}, None, pending=True)
    found = match([planned, new, old, new], [running, done])
    assert (found.added, found.told, found.absent) == ([planned, new], [(running, new)], [])
    assert found.changed == {"y_sd": [done.number]} and found.untold == []
    assert match([], [running, done]).absent == [done, running]


@pytest.mark.parametrize("given", ["study", "trials"])
def test_an_optuna_study_is_answered_with_the_table_of_its_trials(plane, given):
    study = optuna.create_study()
    study.add_trial(optuna.trial.create_trial(value=1.0))
    with pytest.raises(DataError, match=r"give study\.trials_dataframe\(\)"):
        read_history(study if given == "study" else study.trials, Encoder(plane))
