from __future__ import annotations

import numpy as np
import optuna
import pytest
from ConfigSpace import Categorical, ConfigurationSpace
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState, create_trial
from testing_studies import branin

from slayr_py.errors import DataError
from slayr_py.inference import importance
from slayr_py.space import Encoder
from slayr_py.study import StanGPSampler, ask, create_study, importance_figure, minimize, tell
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.results.report.slices import slices_of
from slayr_py.study.results.result import Result
from slayr_py.study.storage.attributes import STUDY_KEY
from slayr_py.study.storage.distributions import space_to_distributions, to_params
from slayr_py.study.storage.suggesting import suggest_all


def test_result_reads_the_study(mixed):
    result = minimize(lambda c: c["rate"], mixed, budget=6, n_initial=6, seed=1, progress=False)
    table = result.trials
    assert list(table.columns) == ["number", "value", "state", *(f"params_{name}" for name in mixed)]
    assert table["number"].tolist() == list(range(6)) and set(table["state"]) == {"COMPLETE"}
    assert table["value"].dtype == np.float64
    assert result.best_value == table["value"].min() == result.best_config["rate"]
    assert isinstance(result.study, optuna.Study)
    assert (table["params_degree"].notna() == (table["params_kernel"] == "poly")).all()
    assert f"best_value={result.best_value:.6g}" in repr(result)
    html = result._repr_html_()
    assert f"<div>best: {result.best_value:.6g} at " in html and "... 1 more row" in html
    assert "<div>kernel: " in html and "<th>params_degree</th>" in html


@pytest.mark.stan
@pytest.mark.parametrize("form", [dict, Encoder])
def test_a_result_takes_every_form_of_a_space(form):
    space = form({"a": (0.0, 1.0), "b": ["x", "y"]})
    study = create_study(space, n_initial=4, seed=1)
    for value in range(2):
        tell(study, ask(study), value)
    result = Result(study, space)
    assert list(result.trials.filter(like="params_")) == ["params_a", "params_b"]
    assert len(result.good(epsilon=10.0, probability=0.1)) > 0


def test_the_posterior_of_a_maximised_study_predicts_its_values(plane, quick):
    options = {"seed": 1, "direction": "maximize", "progress": False, **quick}
    result = minimize(lambda c: 1000 - branin(c), plane, budget=5, n_initial=5, **options)
    assert result.posterior().predict([result.best_config]).mean[0] == pytest.approx(result.best_value, abs=10)


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:only some trials have")
def test_a_study_of_inferred_parameters_has_results_in_the_given_space(mixed):
    study = optuna.create_study(sampler=StanGPSampler(method="map", n_initial=6, seed=1))
    drawn = Encoder(mixed).sobol(16, 1)
    for number, params in enumerate(map(to_params, drawn)):
        there = {name: each for name, each in space_to_distributions(mixed).items() if name in params}
        value, state = (None, TrialState.FAIL) if number % 5 == 4 else (params["rate"], TrialState.COMPLETE)
        study.add_trial(create_trial(params=params, distributions=there, value=value, state=state))
    study.optimize(lambda trial: suggest_all(trial, mixed)["rate"], n_trials=1)
    before = [trial.user_attrs.keys() for trial in study.trials]
    result = Result(study, mixed)
    assert result.posterior().encoder.space == mixed and not result.good(1e3).empty
    assert set(result.optimum().table["parameter"]) == set(result.posterior().encoder.names)
    assert result.recommended.config == study.trials[result.recommended.number].params
    assert len(result.importance(8, 512)) == len(result.posterior().encoder.names)
    assert [trial.user_attrs.keys() for trial in study.trials] == before and STUDY_KEY not in study.user_attrs
    loaded = optuna.create_study()
    loaded.add_trials(study.trials)
    with pytest.raises(DataError, match="no fit in a declared space .* load the study with sampler=StanGPSampler"):
        Result(loaded, mixed).posterior()


def test_the_description_for_notebooks_escapes_names_and_levels():
    space = ConfigurationSpace([Categorical("<b>", ["<script>", "a&b"])])
    result = Result(create_study(space, study_name="<i>net</i>"), space)
    assert "<i>" not in result._repr_html_() and "best" not in result._repr_html_()
    trial = optuna.trial.create_trial(
        params={"<b>": "<script>"}, distributions={"<b>": CategoricalDistribution(["<script>", "a&b"])}, value=1.0
    )
    result.study.add_trial(trial)
    html = result._repr_html_()
    assert "<script>" not in html and "<b>" not in html and "&lt;b&gt; = &lt;script&gt;" in html


@pytest.mark.stan
def test_what_is_said_of_the_whole_space_is_true_where_most_values_are_near_the_best_one(quick):
    # 12 values over the space, and 20 near the minimum, which a warp fits: far away its functions are much larger.
    space = {"x1": (-5.0, 10.0), "x2": (0.0, 15.0)}
    encoder = Encoder(space)
    best = {"x1": 3.0, "x2": 6.0}
    far = [dict(config) for config in encoder.sobol(12, 1)]
    near = [{name: 0.97 * best[name] + 0.03 * config[name] for name in best} for config in encoder.sobol(20, 2)]

    def objective(config):
        return (config["x1"] / 10 - 0.3) ** 2 + 0.05 * (config["x2"] / 15 - 0.4) ** 2

    given = {"initial_configs": far + near, "budget": 33, "seed": 1, "progress": False, **quick}
    result = minimize(objective, space, **given)
    table = result.importance(points=128)
    np.testing.assert_allclose(table.loc[["x1", "x2"], "total"], [0.999, 0.001], atol=0.01)
    assert not any("warp" in note for note in table.attrs["notes"])
    with pytest.warns(UserWarning, match="few values dominate the variance of some functions"):
        warped = importance(result.posterior(), points=128)
    assert warped.loc["x2", "total"] > 0.1 and any("use a fit with warp='none'" in n for n in warped.attrs["notes"])
    # Predictions over the whole space, and the figures of the report, are those without the warp too.
    everywhere = encoder.sobol(64, 3)
    exact = np.array([objective(config) for config in everywhere])
    plain = result.posterior(warped=False, method="nuts", draws=100)
    assert plain.n_draws == 400 and "without the warp of the study's model" in " ".join(plain.check().notes)
    errors = [np.abs(post.predict(everywhere).quantile(0.5) - exact).max() for post in (plain, result.posterior())]
    assert errors[0] < 0.05 and errors[1] > 0.3, errors  # the values span 0.6
    for part in slices_of(Reading(result.study)):
        configs = encoder.decode(part.line.encoded)
        np.testing.assert_allclose(part.quantiles[2], [objective(config) for config in configs], atol=0.05)
    with pytest.raises(DataError, match="warped must be True or False"):
        result.posterior(warped="none")


@pytest.mark.stan
def test_the_fit_without_a_warp_keeps_the_direction():
    given = {"space": {"x": (0.0, 1.0)}, "budget": 6, "n_initial": 5, "seed": 1, "progress": False, "method": "map"}
    results = [
        minimize(lambda c: (c["x"] - 0.3) ** 2, **given),
        minimize(lambda c: -((c["x"] - 0.3) ** 2), direction="maximize", **given),
    ]
    low, high = (result.posterior(warped=False) for result in results)
    assert [post.maximize for post in (low, high)] == [False, True]
    np.testing.assert_array_equal(high.predict([{"x": 0.5}]).mean, -low.predict([{"x": 0.5}]).mean)
    assert results[0].importance(points=64).equals(results[1].importance(points=64))


@pytest.mark.stan
def test_importance_of_a_study_is_that_of_its_posterior(quick):
    space = ConfigurationSpace({"<$x$>": (0.0, 1.0), "idle": (0.0, 1.0), "act": ["a", "b"]})
    result = minimize(lambda c: c["<$x$>"] ** 2, space, budget=8, n_initial=8, seed=1, progress=False, **quick)
    table = result.importance(draws=10, points=64)
    assert table.index[0] == "<$x$>" and table.loc["<$x$>", "total"] > 0.5
    assert list(table.columns) == ["first", "first_low", "first_high", "total", "total_low", "total_high"]
    assert result.importance(draws=10, points=64).equals(table)
    labels = importance_figure(table).axes[0].get_yticklabels()
    assert labels[0].get_text() == "<$x$>" and not labels[0].get_parse_math()


def test_what_holds_for_fixed_values_says_so(tmp_path):
    def objective(config):
        return config["x"] + config["k"]

    space = {"x": (0.0, 1.0), "k": [0, 1]}
    given = {"n_initial": 9, "seed": 1, "progress": False}
    given |= {"storage": f"sqlite:///{tmp_path / 's.db'}", "study_name": "s"}
    minimize(objective, space, budget=6, **given)
    result = minimize(objective, space, budget=8, fixed={"k": 1}, within=None, **given)
    best = min(trial.value for trial in result.study.trials)
    assert result.best_value > 1 > best
    assert "best_config={'k': 1" in repr(result) and " with the fixed values k=1" in repr(result)
    assert "best with the fixed values k=1: " in result._repr_html_()
    page = result.report(tmp_path / "page.html").read_text()
    number = result.study.best_trial.number
    assert "Only trials with the fixed values k=1 are compared. The best of all, with other values, is " in page
    assert f" is {best:.6g} at trial {number}." in page
    assert f"; the best with the fixed values k=1 is {result.best_value:.6g} at trial" in page
