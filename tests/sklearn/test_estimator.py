"""The regressor obeys scikit-learn's rules, predicts what the posterior says, and takes tables with categories."""

from __future__ import annotations

import pickle
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import slayr_py as sl
from slayr_py.inference import gaussian_process, stack_fit
from slayr_py.inference.sampling.run import run
from slayr_py.kernels import Matern
from slayr_py.sklearn import BayesianGPRegressor, estimator

pytestmark = pytest.mark.stan


def quick(**options):
    return BayesianGPRegressor(**{"method": "map", "random_state": 1} | options)


def smooth(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform([-5.0, 100.0], [10.0, 300.0], (n, 2))
    return X, np.sin(X[:, 0] / 3) + X[:, 1] / 100 + 0.05 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def numbers():
    return smooth()


@pytest.fixture(scope="module")
def fitted(numbers):
    """A fit with draws by the default method."""
    return BayesianGPRegressor(random_state=2).fit(*numbers)


@pytest.fixture(scope="module")
def table():
    """One column of each kind; the target depends on all."""
    rng = np.random.default_rng(1)
    act = rng.choice(["tanh", "relu", "gelu"], 24)
    size = pd.Categorical(rng.choice(["s", "l"], 24), categories=["s", "m", "l", "xl"], ordered=True)
    X = pd.DataFrame({"lr": rng.uniform(0, 1, 24), "act": act, "size": size, "bias": rng.integers(0, 2, 24) == 1})
    effect = X["act"].map({"tanh": 0.0, "relu": 3.0, "gelu": 3.5}).astype(float)
    return X, effect + X["lr"] + size.codes + 0.5 * X["bias"]


# The mode alone, because the checks make some seventy fits.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([BayesianGPRegressor(method="map")])
def test_rules_of_scikit_learn(estimator, check):
    check(estimator)


def test_predictions_are_those_of_the_posterior(fitted, numbers):
    X, y = numbers
    mean, std = fitted.predict(X[:7], return_std=True)
    prediction = fitted.posterior_.predict(fitted.encode(X[:7]))
    np.testing.assert_array_equal(mean, prediction.mean)
    np.testing.assert_array_equal(std, prediction.sd)
    np.testing.assert_array_equal(fitted.predict(X[:7]), mean)
    assert np.all(prediction.observation_sd > std)
    assert fitted.score(X, y) > 0.95
    assert fitted.posterior_.n_draws == 200 and fitted.diagnostics_ is fitted.posterior_.check()


def test_covariance_is_that_of_the_mixture(fitted, numbers, monkeypatch):
    X = numbers[0][:4] + [0.5, 20.0]
    mean, cov = fitted.predict(X, return_cov=True)
    _, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-9)
    means, covariances = fitted.posterior_.predictor().joint_moments(fitted.encode(X))
    scale = fitted.posterior_.y_sd**2
    np.testing.assert_allclose(cov, scale * (covariances.mean(axis=0) + np.cov(means.T, ddof=0)), rtol=1e-9)
    draws = fitted.sample_y(X, 20_000)
    assert draws.shape == (4, 20_000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.05 * std.max())
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.05 * cov.max())
    monkeypatch.setattr(estimator, "BLOCK", 1)  # one draw at a time
    np.testing.assert_allclose(fitted.predict(X, return_cov=True)[1], cov, rtol=1e-9)
    with pytest.raises(sl.DataError, match="return_std or return_cov"):
        fitted.predict(X, return_std=True, return_cov=True)


def test_a_warp_has_standard_deviations_and_no_covariance(numbers):
    X, y = numbers
    model = quick(warp="log").fit(X, np.exp(y))
    assert np.all(model.predict(X, return_std=True)[1] > 0)
    with pytest.raises(sl.DataError, match="under a warp has no closed form; .* sample_y"):
        model.predict(X, return_cov=True)


def test_rows_outside_the_training_range_are_extrapolated_exactly(numbers):
    """The textbook formulas in the units of the data, with length-scales multiplied by the ranges."""
    X, y = numbers
    model = quick(kernel="matern").fit(X, y)
    new = np.array([[-40.0, 90.0], [30.0, 500.0], [0.0, 200.0]])
    theta = {name: values[0] for name, values in model.posterior_.draws.items()}
    lengthscale = theta["lengthscale"] * np.ptp(X, axis=0)

    def kernel(a, b):
        d = np.sqrt(5 * np.square((a[:, None] - b) / lengthscale).sum(axis=2))
        return theta["sigma_f"] ** 2 * (1 + d + d**2 / 3) * np.exp(-d)

    floor = model.posterior_.model.noise_floor
    K = kernel(X, X) + (theta["sigma_n"] ** 2 + floor**2) * np.eye(len(X))
    scaled = (y - y.mean()) / y.std(ddof=1)
    mean = theta["mu"] + kernel(new, X) @ np.linalg.solve(K, scaled - theta["mu"])
    cov = kernel(new, new) - kernel(new, X) @ np.linalg.solve(K, kernel(X, new))
    found, found_cov = model.predict(new, return_cov=True)
    np.testing.assert_allclose(found, y.mean() + y.std(ddof=1) * mean, rtol=1e-6)
    np.testing.assert_allclose(found_cov, y.var(ddof=1) * cov, rtol=1e-5, atol=1e-8)


def test_default_priors_are_those_of_regression(numbers):
    """Only hyperparameters of a Matérn kernel without a prior of the user have them."""
    wide = sl.LogNormal(np.sqrt(2) + np.log(2) / 2, np.sqrt(3))
    found = quick().fit(*numbers).posterior_.model.priors
    assert found["lengthscale"] == wide and found["sigma_f"] == sl.LogNormal(1.0, 1.0)
    assert found["sigma_n"] == sl.HalfNormal(1.0)
    chosen = {"sigma_f": sl.LogNormal(0.0, 0.3), "lengthscale": {"x1": sl.LogNormal(0.0, 0.5)}}
    found = quick(priors=chosen).fit(*numbers).posterior_.model.priors
    assert found["sigma_f"] == chosen["sigma_f"]
    assert found["lengthscale"] == sl.LogNormal([wide.mu, 0.0], [wide.sigma, 0.5])
    matern, expression = quick(kernel=sl.stack(["matern", "SE"])).fit(*numbers).posterior_.parts
    assert matern.model.priors["lengthscale"] == wide
    own = sl.GaussianProcess({"x0": (0.0, 1.0), "x1": (0.0, 1.0)}, "SE").priors
    assert expression.model.priors == own


@pytest.mark.parametrize("scale", [1e-20, 1e12])
def test_units_of_the_columns_do_not_matter(numbers, scale):
    X, y = numbers
    wanted = quick().fit(X, y).predict(X + 1)
    np.testing.assert_allclose(quick().fit(X * scale, y).predict((X + 1) * scale), wanted, rtol=1e-6)


@pytest.mark.stan
@pytest.mark.parametrize("kernel", ["matern", "additive", "LIN + SE"])
def test_rows_far_outside_the_training_data_have_finite_predictions(numbers, kernel):
    X, y = numbers
    fitted = BayesianGPRegressor(kernel, method="map").fit(X, y)
    mean, sd = fitted.predict(np.full((1, X.shape[1]), 1e200), return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(sd).all()


def test_a_column_too_wide_for_floating_point_is_refused(numbers):
    X, y = numbers
    wide = X.copy()
    wide[:2, 1] = -1.7e308, 1.7e308
    with pytest.raises(sl.DataError, match=r"column 'x1' ranges from -1\.7e\+308 to 1\.7e\+308.*; rescale it"):
        quick().fit(wide, y)


@pytest.mark.parametrize("method", ["map", "pathfinder"])
def test_a_stack_is_a_kernel(numbers, method):
    X, y = numbers
    model = quick(kernel=sl.stack(["matern", "SE + LIN"]), method=method).fit(X, y)
    assert len(model.posterior_.weights) == len(clone(model).kernel.kernels) == 2
    mean, cov = model.predict(X[:3], return_cov=True)
    np.testing.assert_array_equal(mean, model.posterior_.predict(model.encode(X[:3])).mean)
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), model.predict(X[:3], return_std=True)[1])


def test_categories_by_dtype(table):
    X, y = table
    model = quick().fit(X, y)
    assert list(model.feature_names_in_) == list(X) and model.score(X, y) > 0.95
    dimensions = {d.name: (d.kind, d.levels) for d in model.posterior_.encoder.dimensions}
    assert dimensions == {
        "lr": ("float", ()),
        "act": ("categorical", ("gelu", "relu", "tanh")),
        "size": ("ordinal", ("s", "m", "l", "xl")),
        "bias": ("categorical", ("False", "True")),
    }
    declared = X.assign(size=pd.Categorical(["m"] * len(X), categories=["m"]))
    assert np.all(np.isfinite(model.predict(declared)))
    by_position = quick().fit(X[["bias", "act", "size", "lr"]], y)
    np.testing.assert_allclose(by_position.predict(X[["bias", "act", "size", "lr"]]), model.predict(X), rtol=1e-4)


@pytest.mark.parametrize(
    "chosen", [[1, 3], [-1, "act"], ["bias", "act"], [False, True, False, True], np.array([3, 1])], ids=str
)
def test_categories_by_position_name_or_mask(table, chosen):
    X, y = table
    X = X.assign(size=X["size"].cat.codes)
    wanted = quick().fit(X, y).predict(X)
    np.testing.assert_allclose(quick(categorical_features=chosen).fit(X, y).predict(X), wanted)


def test_categories_of_an_array(table):
    X, y = table
    X = X.assign(size=X["size"].cat.codes)
    model = quick(categorical_features=[1, 3]).fit(X.to_numpy(), y)
    np.testing.assert_allclose(model.predict(X.to_numpy().tolist()), quick().fit(X, y).predict(X))
    codes = X.assign(act=X["act"].map({"tanh": 7.0, "relu": 1.0, "gelu": -1.0}), bias=X["bias"] * 1.0).astype(float)
    coded = quick(categorical_features=[1, 3]).fit(codes.to_numpy(), y)
    np.testing.assert_allclose(coded.predict(codes.to_numpy()), model.predict(X.to_numpy()), rtol=1e-4)


def test_a_column_with_one_category_is_ignored(table):
    X, y = table
    model = quick().fit(X.assign(only="x"), y)
    assert "only" not in model.posterior_.encoder.names and model.n_features_in_ == 5
    np.testing.assert_allclose(model.predict(X.assign(only="x")), quick().fit(X, y).predict(X))
    with pytest.raises(sl.DataError, match="'only' has categories that the training data lack: 'y'; known: 'x'"):
        model.predict(X.assign(only="y"))


def test_new_categories_are_named(table):
    X, y = table
    model = quick().fit(X, y)
    new = X.assign(act=["swish", "elu", *X["act"][2:]])
    with pytest.raises(sl.DataError, match="'act' has categories that the training data lack: 'swish', 'elu'; known"):
        model.predict(new)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"act": None}, {}, "column 'act' is empty in row 0"),
        ({"lr": np.nan}, {}, "NaN"),
        ({"lr": "quick"}, {"categorical_features": ["act", "size", "bias"]}, "column 'lr' has text but is not among"),
        ({}, {"categorical_features": None}, "column 'act' has text but is not among categorical_features"),
        ({}, {"categorical_features": ["atc"]}, "no column of X: 'atc'; did you mean 'act'"),
        ({}, {"categorical_features": [4]}, "position 4; X has 4 columns"),
        ({}, {"categorical_features": [True, False]}, r"mask of 2 values for 4 columns"),
        ({}, {"categorical_features": "auto"}, "got 'auto'"),
        ({}, {"kernel": "mattern"}, "did you mean 'matern'"),
        ({}, {"method": "mcmc"}, "unknown method 'mcmc'"),
    ],
)
def test_errors_say_what_is_wrong(table, change, options, message):
    X, y = table
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(X.assign(**change), y)


@pytest.mark.parametrize("form", [pd.Series, np.asarray, list])
def test_dates_and_durations_are_no_targets(numbers, form):
    y = pd.to_timedelta(np.arange(20), "h")
    for given in (y, y + pd.Timestamp("2024-03-01")):
        with pytest.raises(sl.DataError, match="(?i)y has .*time.*; give numbers"):
            quick().fit(numbers[0], form(given))


def test_objects_of_dates_and_periods_are_answered(numbers):
    X = pd.DataFrame({"t": pd.period_range("2024-01", periods=20, freq="M")})
    with pytest.raises(sl.DataError, match="column 't' has periods; make them dates"):
        quick().fit(X, numbers[1])
    X = X["t"].dt.to_timestamp().astype(object).to_numpy()[:, None]
    with pytest.raises(sl.DataError, match="column 0 of the array has objects such as Timestamp"):
        quick().fit(X, numbers[1])


@pytest.mark.parametrize(("options", "columns"), [({}, "1"), ({"categorical_features": [2]}, "1, 2")])
def test_text_in_an_array_is_answered_with_the_two_ways_out(options, columns):
    X = np.array([[0.1, "a", "u"], [0.2, "b", "v"], ["0.3", "a", "v"]], dtype=object)
    words = rf"column 1 of the array has text, such as 'a', .* categorical_features=\[{columns}\], or .* by set_output"
    with pytest.raises(sl.DataError, match=words):
        quick(**options).fit(X, [1.0, 2.0, 3.0])


def test_the_output_of_a_column_transformer_is_answered_and_its_table_is_fitted(table):
    X, y = table
    scaled = ColumnTransformer([("scale", StandardScaler(), ["lr"])], remainder="passthrough")
    with pytest.raises(sl.DataError, match="categorical_features="):
        make_pipeline(scaled, quick()).fit(X[["lr", "act"]], y)
    model = make_pipeline(scaled.set_output(transform="pandas"), quick()).fit(X[["lr", "act"]], y)
    assert model[-1].posterior_.encoder.names == ("remainder__act", "scale__lr")


def test_text_in_an_array_at_a_prediction_is_named(numbers):
    model = quick().fit(*numbers)
    new = numbers[0][:2].astype(object)
    new[1, 0] = "much"
    with pytest.raises(sl.DataError, match="column 0 of the array has text, such as 'much'"):
        model.predict(new)


def test_names_of_columns_need_a_table(numbers):
    with pytest.raises(sl.DataError, match="'act', but X is not a DataFrame"):
        quick(categorical_features=["act"]).fit(*numbers)


def test_nothing_varies():
    with pytest.raises(sl.DataError, match="every column has a single category"):
        quick().fit(pd.DataFrame({"act": ["a", "a"]}), [1.0, 2.0])


def test_names_of_columns_serve_kernels_and_priors(table):
    X, y = table
    priors = {"lengthscale": {"lr": sl.LogNormal(-1.0, 0.1)}}
    model = quick(kernel="LIN[lr] + SE", priors=priors).fit(X[["lr"]].assign(**{"sepal length (cm)": np.arange(24)}), y)
    assert model.posterior_.kernel.expression == "LIN[lr] + SE"
    with pytest.raises(NotFittedError):
        clone(model).predict(X)


def test_dates_are_the_time_since_the_first(numbers):
    """The fit is that of the numbers of hours, and other rows are read with the same origin."""
    x, y = numbers
    hours = np.arange(len(y)) * 3.0
    texts = pd.Series(pd.Timestamp("2024-03-01 06:00") + pd.to_timedelta(hours, unit="h")).dt.strftime("%Y-%m-%d %H:%M")
    for dates in (texts, pd.to_datetime(texts)):
        table = pd.DataFrame({"x": x[:, 0], "time": dates})
        with pytest.warns(UserWarning, match="'time' are read as days since 2024-03-01 06:00:00$"):
            fitted = quick().fit(table, y)
        plain = quick().fit(table.assign(time=hours / 24), y)
        later = table.iloc[3:5]
        np.testing.assert_allclose(fitted.predict(later), plain.predict(table.assign(time=hours / 24).iloc[3:5]))
        with pytest.raises(sl.DataError, match="column 'time' has no dates, unlike the data of the fit"):
            fitted.predict(later.assign(time=1.0))


def test_units_of_durations_and_dates_do_not_matter(numbers):
    hours = np.arange(20.0)
    y = numbers[1]
    wanted = quick().fit(hours[:, None], y).predict(hours[3:5, None] + 0.25)
    durations = pd.to_timedelta(hours, unit="h")
    later = durations[3:5] + pd.Timedelta(15, "min")
    array = durations.to_numpy().astype("timedelta64[h]")[:, None]
    dates = array + np.datetime64("2024-03-01", "h")
    for train, new in (
        (pd.DataFrame({"t": durations.astype("timedelta64[s]")}), pd.DataFrame({"t": later.astype("timedelta64[ns]")})),
        (array, later.to_numpy().astype("timedelta64[us]")[:, None]),
        (dates, later.to_numpy().astype("timedelta64[ms]")[:, None] + np.datetime64("2024-03-01", "ns")),
        (list(dates), pd.DataFrame({"t": pd.Timestamp("2024-03-01") + later})),
    ):
        model = quick().fit(train, y)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X has feature names", UserWarning)
            np.testing.assert_allclose(model.predict(new), wanted, rtol=1e-4)
    table = pd.DataFrame({"t": durations, "x": numbers[0][:, 0]})  # NumPy has no common type of the two
    assert quick().fit(table, y).predict(table.iloc[:2]).shape == (2,)


@pytest.mark.parametrize(
    ("fitted", "new", "message"),
    [
        ("timedelta64[h]", float, "'x0' has numbers, unlike the data of the fit, which has durations"),
        (float, "timedelta64[h]", "'x0' has durations, unlike the data of the fit, which has numbers"),
        ("timedelta64[h]", "datetime64[h]", "'x0' has dates, unlike the data of the fit, which has durations"),
        ("timedelta64[h]", "timedelta64[M]", r"of type timedelta64\[M\], which is no number of seconds"),
    ],
)
def test_dates_and_durations_are_not_taken_for_numbers(numbers, fitted, new, message):
    x = np.arange(20)[:, None]
    model = quick().fit(x.astype(fitted), numbers[1])
    with pytest.raises(sl.DataError, match=message):
        model.predict(x[:2].astype(new))


@pytest.mark.parametrize("options", [{"inducing": 5}, {"method": "map"}])
def test_the_default_effective_number_is_left_out_where_the_number_of_draws_is_fixed(numbers, options):
    assert BayesianGPRegressor(random_state=1, **options).fit(*numbers).diagnostics_.ok
    with pytest.raises(sl.DataError, match="ess is 60"):
        BayesianGPRegressor(random_state=1, ess=60, **options).fit(*numbers)


def test_failed_diagnostics_warn(numbers):
    model = quick(method="nuts", chains=2, warmup=5, draws=4, ess=None, retries=0)
    with pytest.warns(ConvergenceWarning, match="the diagnostics of the fit fail: .* more draws"):
        model.fit(*numbers)


def test_an_approximation_that_nuts_replaces_warns(numbers, monkeypatch):
    """One effective draw of the approximation is too few; the chains do not matter here."""

    def inaccurate(*arguments, **options):
        result = run(*arguments, **options)
        return result if result.sampler else replace(result, importance_ess=1.0)

    monkeypatch.setattr(gaussian_process, "run", inaccurate)
    match = r"the pathfinder approximation is inaccurate \(only 1 < 1 effective draws .*\), so NUTS has replaced it"
    with pytest.warns(ConvergenceWarning) as warned:
        quick(method="pathfinder", chains=2, warmup=5, draws=5, ess=None, retries=0).fit(*numbers)
    assert any(re.search(match, str(each.message)) for each in warned)


@pytest.mark.parametrize("all_fail", [False, True])
def test_kernels_that_a_stack_leaves_out_warn(numbers, monkeypatch, all_fail):
    outcomes = iter(["Pareto k", "Pareto k", *(["Pareto k"] * 2 if all_fail else [None])])
    monkeypatch.setattr(stack_fit, "unreliability", lambda _: next(outcomes))
    what = "2 of 2 kernels have uncertain weights" if all_fail else "1 of 2 kernels of the stack are left out"
    with pytest.warns(ConvergenceWarning, match=f"{what} .Matérn.*Pareto k.*: method='nuts', more rows"):
        model = quick(kernel=sl.stack(["matern", "SE"])).fit(*numbers)
    assert len(model.posterior_.weights) == 1 + all_fail


def test_the_same_seed_gives_the_same_fit(fitted, numbers):
    again = BayesianGPRegressor(random_state=2).fit(*numbers)
    np.testing.assert_array_equal(again.predict(numbers[0]), fitted.predict(numbers[0]))
    other = BayesianGPRegressor(random_state=np.random.RandomState(3)).fit(*numbers)
    assert not np.array_equal(other.predict(numbers[0]), fitted.predict(numbers[0]))


def test_a_fit_that_fails_leaves_no_posterior_of_other_columns(numbers):
    X, y = numbers
    estimator = BayesianGPRegressor(method="map", random_state=1).fit(X, y)
    with pytest.raises(sl.DataError, match="unknown kernel"):
        estimator.set_params(kernel="nonsense").fit(10 * X, y)
    with pytest.raises(NotFittedError):
        estimator.predict(X)


def test_pickles(fitted, table):
    X = smooth(seed=3)[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    model = quick().fit(*table)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(table[0]), model.predict(table[0]))


def test_composes_with_scikit_learn(numbers):
    X, y = numbers
    pipeline = make_pipeline(StandardScaler(), quick())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    grid = {"kernel": [Matern(p=0), "SE", "PER"]}
    found = GridSearchCV(quick(), grid, cv=2, scoring="neg_root_mean_squared_error").fit(X, y)
    assert found.best_params_["kernel"] == "SE" and found.best_estimator_.posterior_.kernel.name == "composite"
    logarithms = TransformedTargetRegressor(quick(), func=np.log, inverse_func=np.exp).fit(X, np.exp(y))
    assert np.corrcoef(logarithms.predict(X), np.exp(y))[0, 1] > 0.95


def test_the_page_runs():
    page = Path(__file__).resolve().parents[2] / "docs" / "sklearn.md"
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        exec(block, names)
    assert names["functions"].shape == (2, 100) and names["scores"].mean() > 0.5 and len(names["folds"]) == 4
    np.testing.assert_allclose(np.diag(names["cov"]), names["std"] ** 2)
