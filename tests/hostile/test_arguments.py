"""Arguments that are illegal, too large, or of a type that users try first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.trial import TrialState

import slayr_py as sl
from slayr_py.study import ask, create_study, tell

SPACE = ConfigurationSpace({"x": (0.0, 1.0), "z": (-1.0, 1.0)})
THREE = [{"x": 0.1, "z": 0.0}, {"x": 0.6, "z": 0.5}, {"x": 0.9, "z": -0.5}]


def minimize(**options):
    defaults = {"budget": 3, "n_initial": 3, "seed": 1, "progress": False}
    return sl.minimize(lambda config: config["x"], SPACE, **(defaults | options))


STUDIES = [
    ({"n_initial": 10**9}, sl.DataError, "n_initial must be an integer from 1 to 10000, got 1000000000"),
    ({"draws": 10**12}, sl.DataError, "draws is 1000000000000; .* memory .* reduce it"),
    ({"chains": 10**7}, sl.DataError, "chains is 10000000; all chains together have at most 1,000,000 iterations"),
    ({"chains": 2000, "draws": 2000}, sl.DataError, r"chains \* draws is 4000000; .*reduce it"),
    ({"warmup": 10**9}, sl.DataError, "warmup is 1000000000; .*reduce it"),
    ({"chains": 10**6}, sl.DataError, r"chains \* warmup is 300000000; .*reduce it"),
    ({"storage": 3}, sl.StorageError, "the storage is 3; a storage URL looks like sqlite:///study.db"),
    ({"initial_configs": THREE[0]}, sl.SpaceError, "are a single mapping; put it into a list"),
    ({"initial_configs": [3]}, sl.SpaceError, "3; give a mapping"),
    ({"callbacks": print}, sl.DataError, "callbacks is .*print.*; give a list of functions"),
    ({"callbacks": iter([3])}, sl.DataError, r"callbacks is \[3\]; give a list of functions"),
    ({"timeout": "60"}, sl.DataError, "timeout is '60'; give a positive number of seconds"),
    ({"timeout": True}, sl.DataError, "timeout is True; give a positive number of seconds"),
    ({"timeout": np.nan}, sl.DataError, "timeout is nan; give a positive number of seconds"),
    ({"max_seconds": True}, sl.DataError, "max_seconds must be positive and finite, got True"),
    ({"constraints": 5}, sl.DataError, "constraints are a list of texts such as .*, not 5"),
    ({"priors": 5}, sl.DataError, "priors is 5; give a mapping of hyperparameters, as in priors="),
    ({"on_progress": 5}, sl.DataError, "on_progress is 5; give a function of one Phase"),
]


@pytest.mark.parametrize(("options", "error", "words"), STUDIES, ids=[str(row[0])[1:40] for row in STUDIES])
def test_options_of_a_study_are_refused_by_name_before_the_first_evaluation(options, error, words):
    with pytest.raises(error, match=words):
        minimize(**options)


def test_a_design_that_uses_up_the_budget_is_announced(capsys):
    minimize(n_initial=10, progress=True)
    assert "the initial design has 10 configurations, so that all 3 trials come from it" in capsys.readouterr().err


@pytest.mark.parametrize("timeout", [np.int64(60), np.float32(60), np.inf])
def test_a_timeout_may_be_any_number(timeout):
    assert len(minimize(timeout=timeout).trials) == 3


def test_callbacks_may_be_an_iterator():
    seen = []
    minimize(callbacks=(call for call in [lambda study, trial: seen.append(trial.number)]))
    assert seen == [0, 1, 2]


def test_a_path_is_the_file_of_an_sqlite_storage(tmp_path):
    file = tmp_path / "a study%20 #1?.db"
    minimize(storage=file, study_name="s")
    assert file.is_file()
    resumed = minimize(storage=file, study_name="s", budget=4, n_initial=4)
    assert len(resumed.trials) == 4


def test_initial_configurations_may_be_a_table():
    table = pd.DataFrame(THREE)
    assert minimize(initial_configs=table).trials.params_x.tolist() == table.x.tolist()


def test_a_told_value_may_be_a_number_in_text_and_is_correctable():
    study = create_study(SPACE, n_initial=3, seed=1)
    first = ask(study)
    for wrong in (None, "abc", [1.0], True):
        with pytest.raises(sl.DataError, match="the value is .*; give a number, or state="):
            tell(study, first, wrong)
    assert tell(study, first, "74.3").value == 74.3
    assert tell(study, ask(study), state=TrialState.FAIL).state == TrialState.FAIL


@pytest.mark.parametrize("errors", [[0.1], [0.1, 0.2], [[0.1], [0.2], [0.3]], "a", [0.1, 0.2, -1.0]], ids=str)
def test_known_errors_have_one_number_for_each_observation(errors):
    with pytest.raises(sl.DataError, match="y_sd.*; give"):
        sl.GaussianProcess(SPACE).fit(THREE, [1.0, 2.0, 3.0], y_sd=errors)


@pytest.mark.parametrize(("mu", "sigma"), [(1e308, 1.0), (-400.0, 1.0), (0.0, 1e308)])
def test_a_log_normal_prior_beyond_floating_point_numbers_is_refused(mu, sigma):
    with pytest.raises(sl.DataError, match=r"LogNormal\(.*: the logarithm .* beyond .*; give mu and sigma"):
        sl.LogNormal(mu, sigma)


@pytest.mark.stan
def test_a_sample_beyond_memory_is_refused():
    posterior = sl.GaussianProcess(SPACE).fit(THREE, [1.0, 2.0, 3.0], method="map")
    with pytest.raises(sl.DataError, match="n is 1000000000000, .* GB; give n of at most 357913941"):
        posterior.sample(THREE, n=10**12)


@pytest.mark.stan
@pytest.mark.parametrize("method", ["map", "nuts"])
def test_a_failed_run_of_stan_gives_the_reason_and_no_settings(method):
    gp = sl.GaussianProcess(SPACE, priors={"mu": sl.Normal(1e300, 1.0)})
    with pytest.raises(sl.InferenceError) as caught:
        gp.fit(THREE, [1.0, 2.0, 3.0], method=method, chains=1, warmup=5, draws=5)
    message = str(caught.value)
    assert "Log probability evaluates to log(0)" in message and "Initialization failed" in message
    assert "(Default)" not in message and "random seed=" not in message


@pytest.mark.stan
def test_a_dense_fit_to_many_observations_warns_of_its_cost(monkeypatch):
    monkeypatch.setattr("slayr_py.inference.gaussian_process.LARGEST_USUAL", 2)
    words = r"the fit has 3 observations: one gradient takes .* s, .*inducing=200"
    with pytest.warns(UserWarning, match=words) as caught:
        sl.GaussianProcess(SPACE).fit(THREE, [1.0, 2.0, 3.0], method="map")
    assert caught[0].filename == __file__


@pytest.mark.stan
def test_cross_validation_gives_each_fold_its_known_errors():
    gp = sl.GaussianProcess(SPACE, priors={"sigma_n": 1e-3})
    configs = [{"x": i / 6, "z": (-1) ** i * 0.3} for i in range(6)]
    y = [0.0, 1.0, 0.4, 1.3, 0.8, 1.9]
    errors = [0.0, 0.5, 0.0, 0.5, 0.0, 0.5]
    folds = [([0, 2, 3, 4, 5], [1])]
    scores = gp.cross_validate(configs, y, cv=folds, y_sd=errors, method="map", progress=False)
    posterior = gp.fit(
        [configs[i] for i in folds[0][0]],
        [y[i] for i in folds[0][0]],
        method="map",
        y_sd=[errors[i] for i in folds[0][0]],
        seed=int(scores.seed[0]),
    )
    prediction = posterior.predict([configs[1]])
    variance = prediction.sd[0] ** 2 + (1e-3**2 + gp.model.noise_floor**2) * posterior.y_sd**2 + 0.5**2
    expected = -0.5 * (y[1] - prediction.mean[0]) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
    assert scores.log_predictive_density[0] == pytest.approx(expected, rel=1e-9)
