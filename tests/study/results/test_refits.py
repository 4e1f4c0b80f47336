"""Repeat the fits behind suggestions from the records of the study."""

from __future__ import annotations

import json
import shutil

import numpy as np
import optuna
import pytest
import sqlalchemy
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.errors import DataError, StorageError
from slayr_py.study import minimize, posterior_of, replay
from slayr_py.study.model import proposal
from slayr_py.study.results.refits import feasibility_of
from slayr_py.study.storage.attributes import FIT_KEY, START_KEY, STUDY_KEY

pytestmark = pytest.mark.stan
FITS = {"chains": 2, "warmup": 100, "draws": 50, "ess": 20}


def objective(config):
    if config["c"] == "b" and config["x"] > 0.9:
        raise ValueError("there is no answer here")
    return (config["x"] - 0.3) ** 2 + 0.2 * (config["c"] == "a")


@pytest.fixture(scope="module")
def space() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (0.0, 1.0), "c": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def url(tmp_path_factory, space) -> str:
    """A study of ten trials, of which the first four are the design."""
    url = f"sqlite:///{tmp_path_factory.mktemp('refit') / 'study.db'}"
    encoder = sl.space.Encoder(space, graphs={"c": "path"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proposal, "LARGEST_ERROR", np.inf)  # a second fit starts from the first, not from a trial
        minimize(objective, encoder, 10, n_initial=4, seed=5, storage=url, study_name="s", progress=False, **FITS)
    return url


@pytest.fixture
def study(url) -> optuna.Study:
    return optuna.load_study(study_name="s", storage=url)


def test_every_fit_of_a_study_is_replayed_bit_for_bit(study):
    starts = set()
    for number in range(4, 10):
        (again,) = replay(study, number)
        assert again.identical and again.differences == ()
        starts.add(again.record["arguments"]["start"])
    assert {"cold", "carried"} <= starts


def test_posterior_of_a_suggestion(study):
    posterior = posterior_of(study, 8)
    suggestion = study.trials[8].user_attrs["slayr:suggestion"]
    assert posterior.n_draws <= 256  # the search looks at all of them
    centre, spread = posterior.predict([study.trials[8].params]).centre_and_spread()
    assert float(centre[0]) == pytest.approx(suggestion["predicted"]["mean"], rel=1e-6)
    assert float(spread[0]) == pytest.approx(suggestion["predicted"]["sd"], rel=1e-6)
    with pytest.raises(DataError, match="with_pointwise"):
        posterior.loo()
    assert posterior.with_pointwise().loo().sizes == {"observation": 8}
    assert len(posterior.train) == suggestion["observations"]
    assert posterior.check().asdict() == suggestion["diagnostics"]


def test_the_posterior_of_a_maximised_study_predicts_its_values(space):
    result = minimize(
        lambda config: 7 - objective(config),
        space,
        6,
        n_initial=4,
        seed=5,
        progress=False,
        direction="maximize",
        initial_configs=[{"x": x, "c": "a"} for x in (0.1, 0.4, 0.5, 0.8)],
        method="map",
    )
    study = result.study
    last = result.study.trials[5]
    assert last.user_attrs[FIT_KEY]["maximize"] is True
    posterior = posterior_of(study, 5)
    suggestion = last.user_attrs["slayr:suggestion"]
    assert posterior.maximize and posterior.y_mean > 6
    assert replay(study, 5)[0].identical
    centre, spread = posterior.predict([last.params]).centre_and_spread()
    assert float(centre[0]) == pytest.approx(suggestion["predicted"]["mean"], rel=1e-6)
    assert float(spread[0]) == pytest.approx(suggestion["predicted"]["sd"], rel=1e-6)


def test_fit_records_do_not_repeat_data_of_the_study(study):
    first, *_, last = (trial for trial in study.trials if FIT_KEY in trial.user_attrs)
    assert "space" not in last.user_attrs[FIT_KEY]
    warm = [trial for trial in study.trials if (trial.user_attrs.get(FIT_KEY) or {}).get("start")]
    for trial in warm:
        start = trial.user_attrs[FIT_KEY]["start"]
        if "trial" in start:
            assert START_KEY in study.trials[start["trial"]].user_attrs
    assert any("trial" in trial.user_attrs[FIT_KEY]["start"] for trial in warm)
    assert first.user_attrs[FIT_KEY]["trials"] == [[0, 3]]


@pytest.fixture
def copied(url, tmp_path) -> str:
    shutil.copy(url.removeprefix("sqlite:///"), tmp_path / "study.db")
    return f"sqlite:///{tmp_path / 'study.db'}"


def test_changed_graphs_are_stored_with_the_fit(copied, space):
    minimize(objective, space, 11, n_initial=4, seed=5, storage=copied, study_name="s", progress=False, **FITS)
    study = optuna.load_study(study_name="s", storage=copied)
    assert study.trials[10].user_attrs[FIT_KEY]["space"]["graphs"] == {}
    assert study.user_attrs[STUDY_KEY]["graphs"] == {"c": "path"}
    assert all(replay(study, number)[0].identical for number in (9, 10))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (2, "has no fit .its phase: initial.; trials with a fit: 4 to 9"),
        (10, "has no trial 10; it has 10"),
        (-1, "no tr"),
    ],
)
def test_trials_without_a_fit_raise(study, number, words):
    with pytest.raises(DataError, match=words):
        posterior_of(study, number)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda record: record.pop("summary"), "summary"),
        (lambda record: record.update(trials="all"), "damaged"),
        (lambda record: record.update(trials=[[0, 99]]), "does not have: restore"),
        (lambda record: record.update(trials=[[0, 1]]), "have changed since trial 8 was suggested from them"),
        (lambda record: record.update(start={"trial": 1}), "damaged"),
        (lambda record: record.update(shared={"sha256": "0"}), "the study has no attribute slayr:shared:'0'"),
        (
            lambda record: record.update(program={"name": "../../x", "likelihood": "plain"}),
            "not the program of its ker",
        ),
        (lambda record: record.update(kernel={"name": "os.system", "options": {}}), "unknown kernel"),
        (lambda record: record.update(space={"space": 3}), "not a readable run record"),
    ],
)
def test_damaged_records_are_refused(copied, change, words):
    study = optuna.load_study(study_name="s", storage=copied)
    record = study.trials[8].user_attrs[FIT_KEY]
    change(record)
    engine = sqlalchemy.create_engine(copied)
    with engine.begin() as connection:
        statement = sqlalchemy.text("UPDATE trial_user_attributes SET value_json = :v WHERE trial_id = :t AND key = :k")
        connection.execute(statement, {"v": json.dumps(record), "t": study.trials[8]._trial_id, "k": FIT_KEY})
    engine.dispose()
    with pytest.raises(StorageError, match=words):
        replay(optuna.load_study(study_name="s", storage=copied), 8)


def test_a_different_posterior_warns(study, monkeypatch):
    from slayr_py.study.results import refits

    def other(record, observed, progress):
        return original({**record, "arguments": {**record["arguments"], "seed": 1}}, observed, progress)

    original = refits.posterior_again
    monkeypatch.setattr(refits, "posterior_again", other)
    with pytest.warns(RuntimeWarning, match="not bit-identical to the posterior of its suggestion") as caught:
        posterior_of(study, 6)
    assert caught[0].filename == __file__


def test_fits_are_repeated_with_any_of_numpys_settings(study):
    with np.errstate(all="raise"):
        for number in range(4, 10):
            assert replay(study, number)[0].identical
            posterior_of(study, number).predictor()


def test_the_models_of_feasibility_behind_a_suggestion_are_repeated_and_drawn(space, tmp_path):
    def fragile(config):
        if config["x"] > 0.7:
            raise ValueError("too much")
        return config["x"], {"memory": config["x"] ** 2}

    study = minimize(
        fragile, space, 8, n_initial=7, seed=2, progress=False, constraints=["memory <= 0.2"], method="map", chains=1
    ).study
    found = feasibility_of(study, 7)
    assert sorted(found) == ["constraint memory", "success"]
    for name, posterior in found.items():
        assert posterior.record["draws_sha256"] == study.trials[7].user_attrs[f"{FIT_KEY}:{name}"]["draws_sha256"]
    assert feasibility_of(study, 0) == {}
    page = sl.study.Result(study, space).report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'class="notice error"' not in page and "success of the evaluation" in page and "CmdStan" in page
    assert "<svg" in page[page.index('<section id="feasibility"') :].partition("</section>")[0]
    study.set_user_attr(STUDY_KEY, {})
    with pytest.raises(StorageError, match="not a readable run record"):
        feasibility_of(study, 7)
