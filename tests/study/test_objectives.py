"""Studies with several objectives, from the outside."""

from __future__ import annotations

import moocore
import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.study import ask, config_of, create_study, posterior_of, replay, suggestion_table, tell
from slayr_py.study.model import prediction_error
from slayr_py.study.model.incumbent import front_task
from slayr_py.study.results.latest_fits import posterior_of_all
from slayr_py.study.run import stopping
from slayr_py.study.storage.attributes import suggestion_record

pytestmark = pytest.mark.stan

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})
BOTH = ["minimize", "minimize"]


def compromise(config):
    """Return the squared distances from two points: the front is the line between them."""
    x, z = config["x"], config["z"]
    return (x - 0.2) ** 2 + (z - 0.3) ** 2, (x - 0.7) ** 2 + (z - 0.6) ** 2


def named(config):
    a, b = compromise(config)
    return {"gain": -b, "loss": a}


def run(objective=compromise, budget=12, **options):
    options = {"directions": BOTH, "n_initial": 6, "seed": 1, "method": "map", "progress": False} | options
    return sl.minimize(objective, SPACE, budget, **options)


def test_it_finds_the_front():
    result = run(budget=14)
    values = result.trials[["values_0", "values_1"]].to_numpy()
    reference = [0.35, 0.35]
    assert result.hypervolume(reference) == pytest.approx(moocore.hypervolume(values, ref=reference))
    t = np.linspace(0, 1, 401)
    best = moocore.hypervolume(np.column_stack([0.34 * t**2, 0.34 * (1 - t) ** 2]), ref=reference)
    assert result.hypervolume(reference) > 0.93 * best > 1.2 * moocore.hypervolume(values[:6], ref=reference)
    front = result.front
    kept = values[moocore.is_nondominated(values)]
    np.testing.assert_array_equal(front[["values_0", "values_1"]], kept[np.argsort(kept[:, 0])])
    assert list(front) == ["number", "values_0", "values_1", "params_x", "params_z"]
    assert f"front of {len(front)} trials in 0 (min), 1 (min)" in repr(result)


def test_equal_values_are_all_on_the_front():
    study = create_study(SPACE, directions=BOTH, n_initial=6, seed=1)
    for values in ((2.0, 1.0), (1.0, 2.0), (2.0, 1.0), (2.0, 1.5)):
        tell(study, ask(study), values)
    result = sl.study.Result(study, SPACE)
    assert result.front["number"].tolist() == [1, 0, 2]
    assert {trial.number for trial in study.best_trials} == set(result.front["number"])
    assert result.hypervolume([3.0, 3.0]) == 3.0
    assert [line.get_label() for line in result.plot_front().axes[0].lines] == ["trial", "front of 3"]


def test_what_one_objective_has_is_refused_with_the_remedy():
    result = run(budget=7)
    for name in ("best_config", "best_value", "recommended"):
        with pytest.raises(sl.DataError, match="has 2 objectives; use result.front"):
            getattr(result, name)
    for fit in (result.posterior, result.importance, lambda: posterior_of(result.study, 6)):
        with pytest.raises(sl.DataError, match=r"give objective=, one of 0 \('0'\), 1 \('1'\)"):
            fit()
    with pytest.raises(sl.DataError, match="has no objective 'loss'"):
        result.posterior("loss")
    with pytest.raises(sl.DataError, match="one finite number for each of the 2 objectives"):
        result.hypervolume([1.0])
    alone = sl.minimize(lambda config: config["x"], SPACE, 2, progress=False, seed=1, n_initial=2)
    for call in (lambda: alone.front, lambda: alone.hypervolume([1.0]), alone.plot_front):
        with pytest.raises(sl.DataError, match="has one objective and no front; use best_config"):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directions": ["minimize"]}, "use direction= for a single objective"),
        ({"directions": "minimize"}, "give one for each objective"),
        ({"directions": ["minimize", "up"]}, 'must be "minimize" or "maximize", not \'up\''),
        ({"directions": ["minimize"] * 5}, "5 objectives are more than 4.*constraints="),
        ({"directions": {"": "minimize", "b": "minimize"}}, "the name '' of an objective is not text"),
        ({"direction": "maximize"}, "direction and directions are both given; leave direction out"),
        ({"acquisition": "lcb"}, "acquisition 'lcb' is not supported with several objectives.*leave acquisition= out"),
        ({"kernel": "search"}, "a kernel search is not supported with several objectives; give a kernel"),
        ({"reference_point": [1.0]}, "one finite number for each of the 2 objectives"),
        ({"reference_point": {"a": 1.0, "1": 2.0}}, r"has the names \['1', 'a'\]; they must be \['0', '1'\]"),
        ({"directions": None, "reference_point": [1.0]}, "reference_point is for several objectives"),
    ],
)
def test_options_that_several_objectives_lack_are_refused(options, message):
    with pytest.raises(sl.DataError, match=message):
        run(**options)


def test_a_dict_is_taken_by_name_whatever_its_order():
    """The names of a mapping of directions are in another order than the values of the objective."""
    directions = {"loss": "minimize", "gain": "maximize"}
    result = run(named, 8, directions=directions, reference_point={"gain": -0.5, "loss": 0.4})
    plain = run(budget=8, reference_point=[0.4, 0.5])
    np.testing.assert_array_equal(result.trials["values_loss"], plain.trials["values_0"])
    np.testing.assert_array_equal(result.trials["values_gain"], -plain.trials["values_1"])
    assert result.hypervolume({"gain": -0.5, "loss": 0.4}) == pytest.approx(plain.hypervolume([0.4, 0.5]))
    record = suggestion_record(result.study.trials[7])
    assert [part["name"] for part in record["objectives"]] == ["loss", "gain"]
    assert record["acquisition"]["name"] == "ehvi" and record["acquisition"]["reference"] == [0.4, -0.5]
    posterior = result.posterior("gain")
    assert posterior.maximize
    spread = posterior.predict([{"x": 0.7, "z": 0.6}, {"x": 0.0, "z": 0.0}]).mean
    assert spread[0] > spread[1]  # in the user's direction


def test_the_first_dict_names_the_objectives():
    result = run(named, 3, directions=["maximize", "minimize"], n_initial=3)
    assert list(result.trials)[1:3] == ["values_gain", "values_loss"]
    with pytest.raises(sl.DataError, match=r"started with the objectives \['gain', 'loss'\], not \['a', 'b'\]"):
        sl.study.storage.objectives.set_names(result.study, ["a", "b"])


def named_meanwhile(url, names, objective):
    """An objective during whose first evaluation another process finishes its first trial, and names the objectives."""

    def evaluate(config):
        study = optuna.load_study(study_name="s", storage=url)
        if study.metric_names is None:
            study.set_metric_names(names)
        return objective(config)

    return evaluate


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_names_of_another_process_decide_the_order(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    objective = named_meanwhile(url, ["loss", "gain"], named)
    result = run(objective, 2, directions=["minimize", "maximize"], n_initial=2, storage=url, study_name="s")
    expected = [named(trial.params) for trial in result.study.trials]
    assert result.trials["values_loss"].tolist() == [each["loss"] for each in expected]
    assert result.trials["values_gain"].tolist() == [each["gain"] for each in expected]
    options = {"directions": ["minimize", "maximize"], "storage": url, "study_name": "s"}
    failing = run(lambda config: {"a": 1.0, "b": 2.0}, 3, **options)
    assert failing.trials["state"].tolist() == ["COMPLETE", "COMPLETE", "FAIL"]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_names_of_another_process_may_be_any_permutation(tmp_path):
    """Of three names the inverse of a permutation is another permutation."""
    url = f"sqlite:///{tmp_path / 's.db'}"
    objective = named_meanwhile(url, ["c", "a", "b"], lambda config: {"a": 1.0, "b": 2.0, "c": 3.0})
    result = run(objective, 1, directions=["minimize"] * 3, n_initial=1, storage=url, study_name="s")
    assert result.trials[["values_c", "values_a", "values_b"]].to_numpy().tolist() == [[3.0, 1.0, 2.0]]


@pytest.mark.parametrize("answer", [1.0, (1.0,), (1.0, 2.0, 3.0), {"a": 1.0}, "ab", None, (1.0, "b")])
def test_another_number_of_values_fails_the_trial(answer):
    with pytest.raises(sl.ObjectiveError, match="must return (2 numbers|one number) but returned"):
        run(lambda config: answer, 3)


def test_constraints_follow_the_values():
    def objective(config):
        return compromise(config), {"heat": config["x"]}

    result = run(objective, 8, constraints=["heat <= 0.5"])
    assert (result.front["params_x"] <= 0.5).all()
    record = suggestion_record(result.study.trials[7])
    assert 0 < record["feasible"] <= 1 and list(record["conditions"]) == ["constraint heat"]


def test_without_a_feasible_trial_only_the_probability_is_maximised():
    result = run(lambda config: (compromise(config), {"heat": 1.2 - config["x"]}), 7)
    record = suggestion_record(result.study.trials[6])
    assert record["acquisition"]["front"] is None and record["acquisition"]["value"] == 0.0
    assert record["config"]["x"] > result.trials["params_x"][:6].max()
    assert result.front.empty and result.hypervolume([1.0, 1.0]) == 0.0


def test_the_search_checks_its_arguments():
    posterior = run(budget=6).posterior(0)
    rng = np.random.default_rng(0)
    for front, reference, words in (
        (None, [1.0, 1.0], "front is None, and no feasibility is modelled"),
        (np.zeros((3, 1)), [1.0, 1.0], r"front has the shape \(3, 1\)"),
        (np.zeros((3, 2)), [1.0], r"reference \(1,\)"),
        (np.full((3, 2), np.nan), [1.0, 1.0], "must be finite"),
    ):
        with pytest.raises(sl.DataError, match=words):
            sl.acquisition.suggest_tradeoff([posterior] * 2, front=front, reference=np.array(reference), rng=rng)
    known = {"front": np.zeros((3, 2)), "reference": np.ones(2), "noisy": True, "rng": rng}
    for wrong, words in (
        ({"configs": [{"x": 0.5, "z": 0.5}]}, "configs has 1 configurations for the 3 values of front"),
        ({"errors": [0.1]}, "errors has 1 numbers for the 2 objectives"),
    ):
        with pytest.raises(sl.DataError, match=words):
            sl.acquisition.suggest_tradeoff([posterior] * 2, **known, **wrong)


def test_a_resumed_study_makes_the_same_trials(tmp_path):
    options = {"storage": f"sqlite:///{tmp_path / 's.db'}", "study_name": "s", "n_initial": 5}
    run(budget=6, **options)
    resumed = run(budget=7, **options).trials
    pd.testing.assert_frame_equal(resumed, run(budget=7, n_initial=5).trials)


def test_the_fit_of_each_objective_is_stored_and_replayed():
    study = run(budget=8, method="laplace").study
    replays = replay(study, 7)
    assert [each.identical for each in replays] == [True, True]
    first, second = (posterior_of(study, 7, objective=j) for j in range(2))
    assert first.record["data_sha256"] != second.record["data_sha256"]
    table = suggestion_table(study).iloc[7]
    predicted = [part["predicted"]["mean"] for part in suggestion_record(study.trials[7])["objectives"]]
    assert [table["predicted_mean_0"], table["predicted_mean_1"]] == predicted
    params = study.trials[7].params
    np.testing.assert_allclose(first.predict([params]).centre_and_spread()[0], predicted[0], rtol=1e-6)


def test_the_last_fit_of_each_objective_is_repeated_if_it_has_seen_all_trials(monkeypatch):
    study = create_study(SPACE, directions=BOTH, n_initial=4, seed=1, method="map")
    for values in ((1.0, 20.0), (2.0, 60.0), (3.0, 40.0), (6.0, 80.0)):
        tell(study, ask(study), values)
    tell(study, ask(study), state=optuna.trial.TrialState.FAIL)
    monkeypatch.setattr(sl.GaussianProcess, "fit", None)  # no further fit is needed
    first, second = (posterior_of_all(study, objective=j) for j in range(2))
    assert (first.y_mean, second.y_mean) == (3.0, 50.0)


def test_the_probability_of_the_front_knows_luck():
    """Without noise it is that of the values; with noise that exceeds their range nearly all may be on it."""
    exact = run(budget=6)
    table = exact.front_probability(n=64).set_index("number")["probability"]
    on_front = table.index.isin(exact.front["number"])
    assert (table[on_front] == 1).all() and (table[~on_front] == 0).all()
    options = {"noisy": True, "priors": {"sigma_n": sl.LogNormal(0.0, 0.01)}}
    noisy = run(budget=6, **options).front_probability(n=64)["probability"]
    assert 0.1 < noisy.min() and noisy.max() < 0.9
    with pytest.raises(sl.DataError, match="has no feasible trial"):
        sl.study.Result(create_study(SPACE, directions=BOTH), SPACE).front_probability()


def test_it_stops_when_little_hypervolume_is_left():
    """The estimates are those of the resumed study; the true missing volume is below epsilon where it stops."""
    reference = [0.35, 0.35]
    options = {"storage": optuna.storages.InMemoryStorage(), "study_name": "s", "reference_point": reference}
    result = run(budget=30, stop=sl.Regret(0.012, 0.9), n_initial=8, **options)
    table = sl.study.regret_table(result.study)
    n = len(result.trials)
    assert 8 < n < 30 and table["stop"].tolist() == [False] * (len(table) - 1) + [True]
    assert table["incumbent"].isna().all() and table["observations"].iloc[-1] == n
    t = np.linspace(0, 1, 2001)
    largest = sl.acquisition.hypervolume(np.column_stack([0.34 * t**2, 0.34 * (1 - t) ** 2]), np.array(reference))
    missing = largest - result.hypervolume(reference)
    last = table.iloc[-1]
    assert 0.5 * missing < last["mean"] < 1.5 * missing and max(missing, last["upper"]) <= 0.012
    assert len(run(budget=30, stop=sl.Regret(0.012, 0.9), n_initial=8, **options).trials) == n
    band = result.front_band(0.8, n=5)
    on_line = 0.34 * (1 - np.sqrt(np.clip(band["0"] / 0.34, 0, 1))) ** 2
    assert (band["low"] <= band["median"]).all() and (band["median"] <= band["high"]).all()
    np.testing.assert_allclose(band["median"][1:-1], on_line[1:-1], atol=0.02)


def test_the_functions_of_an_objective_whose_model_was_too_certain_vary_more_also_for_the_band(monkeypatch):
    scales = []
    draw = stopping.draw_fronts
    for module in ("run.stopping", "results.front"):
        name = f"slayr_py.study.{module}.draw_fronts"
        monkeypatch.setattr(name, lambda task, rng: scales.append(task.scales) or draw(task, rng))
    monkeypatch.setattr(prediction_error, "prediction_error", lambda *given: [0.5, 3.0][given[3]])
    result = run(budget=6)
    assert sl.Regret(1e-3).estimate(result.study).inflation == 3.0
    result.front_band(n=3)
    assert scales == [[1.0, 3.0]] * 2


def test_ask_and_tell_take_a_sequence_or_a_mapping():
    study = create_study(SPACE, directions={"loss": "minimize", "gain": "maximize"}, n_initial=2, seed=1, method="map")
    tell(study, ask(study), (1.0, "2.0"), sd=[0.1, 0.2])
    tell(study, ask(study), {"gain": 3.0, "loss": 2.0})
    with pytest.warns(UserWarning, match=r"trial 2 fails: its value is \[nan, 1.0\]"):
        tell(study, ask(study), [float("nan"), 1.0])
    assert [trial.values for trial in study.trials[:2]] == [[1.0, 2.0], [2.0, 3.0]]
    assert study.trials[0].user_attrs["y_sd"] == [0.1, 0.2] and study.trials[2].state.name == "FAIL"
    trial = ask(study)
    for wrong in (1.0, (1.0,), {"loss": 1.0}, {"loss": 1.0, "b": 2.0}):
        with pytest.raises(sl.DataError, match="give one number for each of the 2 objectives, of loss, gain"):
            tell(study, trial, wrong)
    for wrong in (0.1, [0.1], {"loss": 0.1}, {"loss": 0.1, "b": 0.2}):
        with pytest.raises(sl.DataError, match="give one standard deviation for each of the 2 objectives"):
            tell(study, trial, (1.0, 2.0), sd=wrong)


@pytest.mark.parametrize("sd", [np.array([0.1, 0.2]), {"gain": 0.2, "loss": 0.1}])
def test_known_errors_are_told_as_values_are(sd):
    study = create_study(SPACE, directions={"loss": "minimize", "gain": "maximize"}, n_initial=2, seed=1)
    assert tell(study, ask(study), np.array([1.0, 2.0]), sd=sd).user_attrs["y_sd"] == [0.1, 0.2]
    unnamed = create_study(SPACE, directions=["minimize", "maximize"], n_initial=2, seed=1)
    assert tell(unnamed, ask(unnamed), {"loss": 1.0, "gain": 2.0}, sd=sd).user_attrs["y_sd"] == [0.1, 0.2]


def test_a_labelled_series_is_matched_by_name():
    study = create_study(SPACE, directions={"loss": "minimize", "gain": "maximize"}, n_initial=2, seed=1)
    value, sd = pd.Series({"gain": 2.0, "loss": 1.0}), pd.Series({"gain": 0.2, "loss": 0.1})
    told = tell(study, ask(study), value, sd=sd)
    assert told.values == [1.0, 2.0] and told.user_attrs["y_sd"] == [0.1, 0.2]
    assert tell(study, ask(study), value.set_axis([0, 1])).values == [2.0, 1.0]
    trial = ask(study)
    for labels in (["gain", "los"], ["gain", "gain"], ["loss", 1], [5, 7], [1, 0], [("loss", 0), ("gain", 0)]):
        wrong = value.set_axis(labels)
        with pytest.raises(sl.DataError, match=f"{labels[1]!r}.* 2 objectives, of loss, gain"):
            tell(study, trial, wrong)
        with pytest.raises(sl.DataError, match=f"{labels[1]!r}.* 2 objectives, of loss, gain"):
            tell(study, trial, value, sd=wrong)
    found = run(lambda _: value, 1, directions={"loss": "minimize", "gain": "maximize"})
    assert found.study.trials[0].values == [1.0, 2.0]
    with pytest.raises(sl.ObjectiveError, match="2 numbers, of loss, gain but returned {'los'"):
        run(
            lambda _: pd.Series({"los": 1.0, "gain": 2.0}),
            1,
            directions={"loss": "minimize", "gain": "maximize"},
            max_consecutive_failures=1,
        )
    unnamed = create_study(SPACE, directions=BOTH, n_initial=2, seed=1)
    assert tell(unnamed, ask(unnamed), value, sd=sd).user_attrs["y_sd"] == [0.2, 0.1]
    assert unnamed.metric_names == ["gain", "loss"]


def test_a_value_that_cannot_be_told_does_not_name_the_objectives():
    study = create_study(SPACE, directions=["minimize", "maximize"], n_initial=2, seed=1)
    trial = ask(study)
    for wrong in ({"eror": "0,5", "gain": 1.0}, {1: 2.0, 3: 4.0}):
        with pytest.raises(sl.DataError, match="the value is"):
            tell(study, trial, wrong)
    with pytest.raises(sl.DataError, match="has no trial 77"):
        tell(study, 77, {"eror": 1.0, "gain": 1.0})
    assert study.metric_names is None
    tell(study, trial, {"error": 1.0, "gain": 2.0})
    assert study.metric_names == ["error", "gain"]


@pytest.mark.parametrize("form", ["table", "pairs", "optuna"])
def test_past_experiments_have_a_value_of_each_objective(form):
    past = create_study(SPACE, directions={"loss": "minimize", "gain": "maximize"}, n_initial=4, seed=3)
    for _ in range(3):
        trial = ask(past)
        tell(past, trial, named(config_of(trial)))
    tell(past, ask(past), state=optuna.trial.TrialState.FAIL)
    rows = {
        "table": sl.study.Result(past, SPACE).trials.rename(columns={"values_gain": "gain"}),
        "optuna": past.trials_dataframe(),
        "pairs": [(trial.params, named(trial.params) if trial.values else None) for trial in past.trials],
    }
    study = create_study(
        SPACE, directions={"loss": "minimize", "gain": "maximize"}, history=rows[form], n_initial=2, seed=1
    )
    assert [trial.values for trial in study.trials] == [trial.values for trial in past.trials]
    create_study(SPACE, directions=BOTH, history=[({"x": 0.1, "z": 0.2}, (1.0, 2.0))], seed=1)
    with pytest.raises(sl.DataError, match="history has no column 'values_0'"):
        create_study(SPACE, directions=BOTH, history=pd.DataFrame([{"x": 0.1, "z": 0.2, "values_1": 1.0}]))
    with pytest.raises(sl.DataError, match="history row 0: expected the values of 2 objectives"):
        create_study(SPACE, directions=BOTH, history=[({"x": 0.1, "z": 0.2}, 1.0)])


@pytest.mark.parametrize("space", [SPACE, None], ids=["declared", "inferred"])
def test_optuna_runs_it_and_draws_it(space):
    def objective(trial):
        return compromise({name: trial.suggest_float(name, 0, 1) for name in ("x", "z")})

    sampler = sl.study.StanGPSampler(space, n_initial=4, seed=1, method="map")
    study = optuna.create_study(directions=BOTH, sampler=sampler)
    study.optimize(objective, n_trials=7)
    assert [suggestion_record(trial).get("phase") for trial in study.trials[4:]] == ["model"] * 3
    plots = optuna.visualization.matplotlib
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        assert plots.plot_pareto_front(study) is not None
        assert plots.plot_hypervolume_history(study, [0.5, 0.5]) is not None
    five = optuna.create_study(directions=["minimize"] * 5, sampler=sampler)
    with pytest.raises(sl.DataError, match="5 objectives, more than the 4"):
        five.ask().suggest_float("x", 0, 1)


def test_the_band_of_values_with_known_errors_is_that_of_the_stopping_rule(monkeypatch):
    study = create_study(SPACE, directions=["minimize", "minimize"], n_initial=4, seed=1, method="map")
    for _ in range(5):
        trial = ask(study)
        tell(study, trial, [trial.params["x"], 1 - trial.params["x"]], sd=[0.1, 0.0])
    noisy = []

    def record(*arguments):
        noisy.append(arguments[5])
        return front_task(*arguments)

    monkeypatch.setattr("slayr_py.study.results.front.front_task", record)
    sl.study.Result(study, SPACE).front_band(n=3)
    assert noisy == [True]


def test_the_report_and_the_figures_show_the_front(tmp_path):
    rule = sl.Regret(1e-9)
    result = run(named, 7, directions={"loss": "minimize", "gain": "maximize"}, stop=rule)
    page = result.report(tmp_path / "report.html").read_text()
    assert 'class="notice error"' not in page and "This section is incomplete" not in page
    assert page.count("<svg") == 4 and f"The front has {len(result.front)} trials" in page
    assert "minimize loss, maximize gain" in page and "Convergence" not in page
    assert "the hypervolume still to be gained" in page and "lies with probability 0.9" in page
    assert "The probability is that of being on the front" not in page  # without noise it is 1
    noisy = run(named, 7, directions={"loss": "minimize", "gain": "maximize"}, noisy=True)
    assert "The probability is that of being on the front" in noisy.report(tmp_path / "noisy.html").read_text()
    band = result.front_band(n=9, reference={"gain": -0.4, "loss": 0.3})
    assert list(band) == ["loss", "low", "median", "high"] and band["loss"].iloc[-1] == pytest.approx(0.3)
    assert (np.diff(band["median"]) >= 0).all() and band["median"].iloc[-1] > -0.1  # larger is better
    assert len(result.plot_front(band=0.5).axes[0].collections) == 1
    (axes,) = result.plot_front().axes
    front = axes.get_lines()[-1].get_xydata()
    np.testing.assert_allclose(np.sort(front, axis=0)[:, 0], result.front["values_loss"])
    assert axes.get_ylabel() == "gain (larger is better)"
    curve = result.plot_convergence().axes[0].get_lines()[0].get_ydata()
    assert np.all(np.diff(curve) >= 0) and curve[-1] > 0
    three = create_study(SPACE, directions=["minimize"] * 3)
    assert len(sl.study.front_figure(three).axes) == 3
    with pytest.raises(sl.DataError, match="has 2 objectives; the dashboard draws their front itself"):
        sl.study.save_to_dashboard(result.study)


def test_the_hypervolume_of_a_run_with_fixed_values_is_that_of_its_trials():
    result = run(budget=2, n_initial=2, initial_configs=[{"x": 0.1, "z": 0.3}, {"x": 0.5, "z": 0.4}])
    result.study.sampler = sl.study.StanGPSampler(SPACE, seed=1, n_initial=2, fixed={"x": 0.5})
    (line,) = result.plot_convergence().axes[0].get_lines()
    assert line.get_xdata().tolist() == [1]


def test_a_batch_spreads_over_the_front():
    """Without the believed values every suggestion of a batch would be beside the first."""
    study = create_study(SPACE, directions=BOTH, n_initial=6, seed=1, method="laplace")
    for _ in range(6):
        trial = ask(study)
        tell(study, trial, compromise(config_of(trial)))
    batch = study.sampler.ask_batch(study, 4)
    points = np.array([[trial.params["x"], trial.params["z"]] for trial in batch])
    apart = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(4, 1)]
    assert apart.min() > 0.02
    values = [suggestion_record(study.trials[trial.number])["acquisition"]["value"] for trial in batch]
    assert values[3] < 0.8 * values[0]
