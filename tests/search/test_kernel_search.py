"""Kernel searches from outside."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from testing_kernels import pretrained
from testing_spaces import mixed_space

import slayr_py as sl
from slayr_py.errors import DataError, InferenceError, StorageError
from slayr_py.search import KernelSearch, SearchResult, kernel_search, load, workers
from slayr_py.search.task import Candidate
from slayr_py.space import Encoder

LINE = ConfigurationSpace({"x": (0.0, 4.0)})
SQUARE = ConfigurationSpace({"x": (0.0, 1.0), "z": (0.0, 1.0)})


def series(n=60):
    """A line and a wave of period 0.5."""
    x = np.linspace(0, 4, n)
    noise = np.random.default_rng(1).normal(size=n)
    return pd.DataFrame({"x": x}), 3 * x + np.sin(4 * np.pi * x) + 0.05 * noise


def quick(space=LINE, **options):
    return KernelSearch(space, **{"base": ["SE", "PER", "LIN"], "budget": 12, "max_leaves": 4, "restarts": 2} | options)


@pytest.fixture(scope="module")
def found() -> SearchResult:
    return quick().run(*series(), progress=False)


def test_the_wave_is_found(found):
    assert "PER" in found.best.expression
    without = found.table[~found.table["expression"].str.contains("PER")]
    assert found.table["best"].iloc[-1] > without["laplace"].max() + 5
    theta = found.fits[found.best.expression].theta
    assert 4 * theta["period"][0] == pytest.approx(0.5, rel=0.02)


def test_the_table_has_a_row_for_every_fit(found):
    table = found.table
    assert list(table["fit"]) == list(range(1, 13))
    assert not table["cached"].any()
    assert table["expression"].is_unique
    assert table["best"].is_monotonic_increasing
    assert table["best"].iloc[-1] == table["laplace"].max()
    assert table[["laplace", "bic", "loo"]].notna().all(axis=None)
    assert table[["rmse", "elbo"]].isna().all(axis=None)
    assert set(table["parent"].dropna()) <= set(table["expression"])
    assert found.unique["expression"].iloc[0] == found.best.expression
    assert found.top(2) == list(found.unique["expression"].iloc[:2])


def test_results_do_not_depend_on_the_number_of_processes(found):
    other = quick(jobs=2).run(*series(), progress=False)
    pd.testing.assert_frame_equal(other.table.drop(columns="seconds"), found.table.drop(columns="seconds"))


def test_a_resumed_search_is_that_of_the_larger_budget(found):
    first = quick(budget=7).run(*series(), progress=False)
    resumed = first.resume(budget=12, progress=False)
    pd.testing.assert_frame_equal(resumed.table.drop(columns="seconds"), found.table.drop(columns="seconds"))
    seconds = resumed.table["seconds"].iloc[:7]
    pd.testing.assert_series_equal(seconds, first.table["seconds"])  # the fits were not repeated


def test_an_interrupted_search_is_a_result(found, monkeypatch, tmp_path):
    real = workers.fit
    count = iter(range(100))

    def interrupted(*arguments):
        if next(count) == 5:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(workers, "fit", interrupted)
    part = quick().run(*series(), progress=False)
    assert len(part.table) == 5
    part.save(tmp_path / "part.json")
    assert load(tmp_path / "part.json").interrupted
    assert "interrupted after 5 of 12 fits" in part.messages[0] and part.interrupted and not found.interrupted
    whole = part.resume(progress=False)
    pd.testing.assert_frame_equal(whole.table.drop(columns="seconds"), found.table.drop(columns="seconds"))
    monkeypatch.setattr(workers, "fit", lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        quick().run(*series(), progress=False)


def test_what_is_proposed_again_costs_nothing(monkeypatch):
    def stubborn(task):
        for leaf in (*task.base, *task.base):
            yield [Candidate(leaf), Candidate(leaf)]

    monkeypatch.setitem(kernel_search.STRATEGIES, "greedy", stubborn)
    result = quick().run(*series(20), progress=False)
    assert list(result.table["cached"]) == [False] * 3 + [True] * 6
    assert result.table["fit"].iloc[-1] == 3
    assert "nothing new was left to fit after 3 of 12 fits" in result.messages


@pytest.mark.parametrize("score", ["bic", "loo", "rmse"])
def test_the_best_expression_is_that_of_the_score(score):
    result = quick(score=score, budget=5).run(*series(), progress=False)
    assert result.table.loc[result.table[score].idxmax(), "expression"] == result.best.expression
    assert result.table[score].notna().all()


def test_a_sparse_search_has_the_bound_as_a_score():
    configs, y = series(100)
    result = quick(budget=4, score="elbo", inducing=20).run(configs, y, progress=False)
    table = result.table
    assert table["elbo"].notna().all()
    assert table["loo"].isna().all()
    exact = quick(budget=4).run(configs, y, progress=False)
    assert (table.set_index("expression")["laplace"] < exact.table.set_index("expression")["laplace"] + 1e-6).any()
    by_default = quick(budget=3, score="elbo").run(configs, y, progress=False)
    assert "sparse, with 100 inducing points" in by_default.messages[0]
    with pytest.raises(DataError, match="no leave-one-out"):
        quick(budget=3, score="loo", inducing=5).run(configs, y, progress=False)


@pytest.mark.parametrize("strategy", ["greedy", "random", "model", "generative"])
def test_a_search_starts_from_an_earlier_one(found, strategy):
    configs, y = series(30)
    later = quick(budget=6, strategy=strategy, restarts=1).run(configs, y, progress=False, start=found)
    assert list(later.table["expression"].iloc[:3]) == found.top(3)


@pytest.mark.parametrize("strategy", ["random", "model", "generative"])
def test_every_strategy_resumes_where_it_stopped(strategy):
    configs, y = series(20)
    whole = quick(budget=7, strategy=strategy, restarts=1).run(configs, y, progress=False)
    part = quick(budget=5, strategy=strategy, restarts=1).run(configs, y, progress=False)
    resumed = part.resume(budget=7, progress=False)
    pd.testing.assert_frame_equal(resumed.table.drop(columns="seconds"), whole.table.drop(columns="seconds"))


def test_options_of_the_strategy():
    search = quick(strategy="generative", restarts=1, draws=50)
    assert len(search.run(*series(30), progress=False).table) == 12
    assert search.updated(budget=5).strategy_options == {"draws": 50}
    with pytest.raises(DataError, match="drawss"):
        quick(strategy="generative", drawss=50)


def test_given_expressions_are_fitted_first():
    configs, y = series(30)
    given = quick(budget=5).run(configs, y, progress=False, first=["PER + (SE + LIN)", "SE"])
    assert list(given.table["expression"][:3]) == ["LIN + PER + SE", "SE", "PER"]
    for first, text in ((["SEE"], "unknown"), (["LIN[q]"], "'q'"), ("LIN", r"which is not a list .*; use \['LIN'\]")):
        with pytest.raises(DataError, match=text):
            quick().run(configs, y, progress=False, first=first)


def test_options_of_the_fits_of_a_stack_are_checked(found):
    for name, text in (
        ("seed", "fit has 'seed', .*; the seed is that of the search"),
        ("drawss", "did you mean 'draws'"),
    ):
        with pytest.raises(DataError, match=text):
            found.stack(fit={name: 4})


def test_priors_of_the_scalars_can_be_chosen(tmp_path):
    configs, y = series(20)
    narrow = {"sigma_n": sl.LogNormal(-0.5, 0.01)}
    result = quick(budget=3, priors=narrow).run(configs, y, progress=False)
    theta = result.fits[result.best.expression].theta
    assert theta["sigma_n"][0] == pytest.approx(np.exp(-0.5), rel=0.05)
    result.save(tmp_path / "search.json")
    assert load(tmp_path / "search.json").search.priors == narrow
    assert result.search.on(LINE).priors == narrow
    fixed = quick(budget=3, priors={"sigma_n": 0.1}).run(configs, y, progress=False)
    assert fixed.fits[fixed.best.expression].theta["sigma_n"][0] == pytest.approx(0.1)
    fixed.save(tmp_path / "fixed.json")
    assert repr(load(tmp_path / "fixed.json").search) == repr(fixed.search) == repr(fixed.search.on(LINE))
    with pytest.raises(DataError, match="progress must be True or False"):
        fixed.resume(progress=print)
    with pytest.raises(DataError, match="not of 'lengthscale'"):
        quick(priors={"lengthscale": sl.LogNormal(0, 1)})
    with pytest.raises(DataError, match="use LogNormal"):
        quick(priors={"sigma_n": sl.Normal(0, 1)})


def test_a_saved_search_is_the_same_and_goes_on(found, tmp_path):
    found.save(tmp_path / "search.json")
    loaded = load(tmp_path / "search.json")
    pd.testing.assert_frame_equal(loaded.table, found.table)
    assert repr(loaded) == repr(found)
    assert len(loaded.resume(budget=14, progress=False).table) == 14
    moved = quick(jobs=2, seed=4).on(SQUARE)
    assert moved.encoder.names == ("x", "z") and moved.jobs == 2 and moved.asdict() == quick(seed=4).asdict()
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(StorageError, match=r"bad\.json is not a saved kernel search"):
        load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda values: values["fits"].pop(), "the fit of .* is missing"),
        (lambda values: values["y"].pop(), "59.* for 60 configurations"),
        (lambda values: values["values"].pop(), "60.* for 59 configurations"),
        (lambda values: values["active"].pop(), r"shapes \(60, 1\) and \(59, 1\), not \(60, 1\)"),
        (lambda values: values["fits"][0].update(expression="SE +"), r"bad\.json is not a saved"),
        (lambda values: values["fits"][0]["scores"].pop("loo"), "has no score 'loo'"),
    ],
)
def test_inconsistent_files_are_refused(found, tmp_path, damage, text):
    file = tmp_path / "bad.json"
    found.save(file)
    values = json.loads(file.read_text())
    damage(values)
    file.write_text(json.dumps(values))
    with pytest.raises(StorageError, match=text):
        load(file)


def test_deeply_nested_files_are_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(StorageError, match=r"deep\.json is not a saved kernel search"):
        load(tmp_path / "deep.json")


def test_probabilities_are_those_of_the_grammar_of_all_base_kernels():
    configs = Encoder(SQUARE).sobol(15, 1)
    y = [config["x"] + 0.1 * config["z"] ** 2 for config in configs]
    search = quick(SQUARE, base=["SE", "LIN"], budget=10, restarts=1, given={"PRE": pretrained(SQUARE, 1, None)})
    unique = search.run(configs, y, progress=False).unique
    assert unique["leaves"].max() > 1
    n = unique["leaves"]  # each leaf is one of 7: SE and LIN on x and z, on x and on z, and PRE
    weights = np.exp(unique["laplace"] - unique["laplace"].max()) * (18 / 28 / 7) ** n * (5 / 28) ** (n - 1)
    np.testing.assert_allclose(unique["probability"], weights / weights.sum(), rtol=1e-9)


def test_without_exact_fits_there_are_no_components():
    configs = pd.DataFrame({"x": np.linspace(0, 4, 1001)})
    many = quick(base=["LIN"], budget=1, inducing=5).run(configs, 3 * configs["x"], progress=False)
    with pytest.raises(DataError, match="1001 observations are more than 1000"):
        many.components()
    with pytest.raises(DataError, match="nothing was fitted"):
        quick().run(configs[:20], np.zeros(20), progress=False).components()


def test_components_and_figures_show_the_best_expression(found):
    parts = found.components(pd.DataFrame({"x": [0.1, 0.2]}))
    assert parts.mean.shape == (len(parts.names), 2)
    at_data = found.components()
    prediction = at_data.mean.sum(axis=0) + at_data.offset
    assert np.sqrt(np.mean(np.square(prediction - series()[1]))) < 0.2
    axes = found.plot().axes[0]
    assert axes.get_title(loc="left") == found.best.expression
    assert at_data.plot() is not None


def test_mixed_spaces_have_leaves_of_single_parameters():
    space = mixed_space()
    encoder = Encoder(space)
    configs = encoder.sobol(25, 1)
    y = [np.log(c["lr"]) + (c["act"] == "relu") for c in configs]
    result = KernelSearch(space, base=["SE", "LIN"], budget=14, restarts=1).run(configs, y, progress=False)
    assert "SE[act]" in set(result.table["expression"])
    assert not result.table["expression"].str.contains(r"LIN\[act\]").any()
    wide = KernelSearch(space, base=["SE"], budget=1, single=False)
    assert list(wide.run(configs, y, progress=False).table["expression"]) == ["SE"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"base": ["MAT53"]}, "unknown base kernel 'MAT53'; did you mean 'MAT5?2'"),
        ({"base": []}, "base must be a list"),
        ({"base": "SE"}, "base must be a list"),
        ({"strategy": "gready"}, "did you mean 'greedy'"),
        ({"score": "bci"}, "did you mean 'bic'"),
        ({"budget": 2}, "budget=2 is smaller than the number of base kernels, 3"),
        ({"max_leaves": 100}, "max_leaves"),
        ({"restarts": 0}, "restarts"),
        ({"draws": 50}, "takes no option 'draws'"),
    ],
)
def test_illegal_settings_are_named(options, text):
    with pytest.raises(DataError, match=text):
        quick(**options)


def test_a_start_that_is_no_search_is_refused():
    with pytest.raises(DataError, match="start is 3; give the result of an earlier search"):
        quick().run(*series(20), start=3)


def test_too_few_or_illegal_observations_are_refused():
    configs, y = series(9)
    with pytest.raises(DataError, match="9 observations are fewer than the 10"):
        quick().run(configs, y, progress=False)
    configs, y = series(12)
    y[3] = np.nan
    with pytest.raises(DataError, match=r"y\[3\] is nan"):
        quick().run(configs, y, progress=False)


def test_constant_values_give_the_simplest_expression_and_a_message():
    result = quick().run(series(12)[0], np.full(12, 3.5), progress=False)
    assert result.best.expression == "SE"
    assert result.table.empty
    assert "all 12 values are 3.5" in result.messages[0]
    assert "SE" in repr(result)


def test_of_constant_values_the_best_kernel_is_a_leaf_that_the_space_can_have():
    space = ConfigurationSpace({"a": (0.0, 1.0), "c": ["u", "v"]})
    search = KernelSearch(space, ["LIN", "RQ", "SE"], budget=8)
    result = search.run([{"a": i / 12, "c": "uv"[i % 2]} for i in range(12)], np.full(12, 3.5), progress=False)
    assert result.best.expression == "SE[a]"
    assert str(sl.GaussianProcess(space, result.best).kernel) == str(result.best)
    with pytest.raises(DataError, match="'SE' was not fitted"):
        result.mode("SE")


def test_a_base_kernel_that_no_parameter_can_have_is_a_message():
    space = ConfigurationSpace({"b": ["u", "v"], "c": ["u", "v", "w"]})
    configs = [{"b": "uv"[i % 2], "c": "uvw"[i % 3]} for i in range(12)]
    result = KernelSearch(space, ["LIN", "SE"], budget=3).run(configs, np.arange(12.0), progress=False)
    assert result.messages[0].startswith("LIN is left out: it needs real or ordinal parameters")


def test_if_all_candidates_fail_the_first_reasons_are_told(monkeypatch):
    def broken(*arguments):
        raise np.linalg.LinAlgError("singular on purpose")

    monkeypatch.setattr("slayr_py.search.fit.find_mode", broken)
    with pytest.raises(InferenceError, match="all 3 candidates failed: SE: singular on purpose; PER:"):
        quick().run(*series(20), progress=False)


def test_one_failure_is_a_message(monkeypatch):
    real = kernel_search.fits_of
    count = iter(range(100))

    def fits(settings, processes, jobs):
        for fit in real(settings, processes, jobs):
            broken = next(count) == 1
            yield type(fit)(fit.expression, dict.fromkeys(fit.scores, -np.inf), failure="on purpose") if broken else fit

    monkeypatch.setattr(kernel_search, "fits_of", fits)
    result = quick(budget=5).run(*series(20), progress=False)
    assert "1 of 5 fits failed" in result.messages[0]
    assert result.table["failure"].iloc[1] == "on purpose"
    assert result.best.expression != result.table["expression"].iloc[1]


def test_given_kernels_are_base_kernels(tmp_path):
    given = {"PRE": pretrained(SQUARE, 1, None)}
    configs = Encoder(SQUARE).sobol(20, 1)
    y = [np.sin(6 * c["x"]) for c in configs]
    result = KernelSearch(SQUARE, base=["SE"], budget=8, given=given, restarts=1).run(configs, y, progress=False)
    assert "PRE" in set(result.table["expression"])
    for strategy in ("random", "model", "generative"):
        other = KernelSearch(SQUARE, base=["SE"], budget=4, given=given, restarts=1, strategy=strategy)
        assert len(other.run(configs, y, progress=False).table) >= 4
    result.save(tmp_path / "x.json")
    loaded = load(tmp_path / "x.json")
    again = loaded.resume(budget=9, progress=False).table
    pd.testing.assert_frame_equal(
        again.drop(columns="seconds"), result.resume(9, progress=False).table.drop(columns="seconds")
    )
    with pytest.raises(DataError):
        KernelSearch(LINE, base=["SE"], given=given)


def test_kernels_of_the_user_cannot_be_saved(tmp_path):
    from testing_kernels import Learned

    search = KernelSearch(SQUARE, base=["SE"], budget=4, given={"OWN": Learned()}, restarts=1, single=False)
    result = search.run(Encoder(SQUARE).sobol(10, 1), np.arange(10.0), progress=False)
    with pytest.raises(DataError, match=r"\['OWN'\] are not kernels of slayr_py"):
        result.save(tmp_path / "x.json")


def test_the_space_may_be_a_dictionary():
    search = quick({"x": (0.0, 4.0)}, base=["SE"], budget=1)
    assert search.encoder.matches(Encoder(LINE)) and search.on({"z": (1, 4)}).encoder.names == ("z",)
