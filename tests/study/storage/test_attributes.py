from __future__ import annotations

import networkx as nx
import optuna
import pytest
import sqlalchemy
from testing_studies import bowl

import slayr_py as sl
from slayr_py.kernels import Hierarchical
from slayr_py.space import Encoder
from slayr_py.study import StanGPSampler, create_study
from slayr_py.study.storage.attributes import STUDY_KEY, model_difference, suggestion_record
from slayr_py.study.storage.suggestion import CONTAINERS, SuggestionRecord, odd_entry


def test_changes_of_kernel_and_graphs_are_described(mixed):
    star = nx.star_graph(["m", "s", "l"])
    study = create_study(Encoder(mixed, graphs={"size": star}), n_initial=3)
    record = study.user_attrs[STUDY_KEY]
    assert model_difference(record, study.sampler.strategy.kernel_record, study.sampler.strategy.encoder) is None
    for space, kernel, words in (
        (mixed, "auto", "other graphs"),
        (Encoder(mixed, graphs={"size": star}), Hierarchical(base="rq"), "chosen because the space has conditions"),
    ):
        sampler = StanGPSampler(space, kernel=kernel)
        assert sampler.strategy.bind(study) == record["seed"]
        assert words in model_difference(record, sampler.strategy.kernel_record, sampler.strategy.encoder)
    assert study.user_attrs[STUDY_KEY] == record


@pytest.mark.stan
def test_numbers_of_a_suggestion_are_attributes_of_their_own(plane, quick, tmp_path):
    options = {"budget": 4, "n_initial": 3, "seed": 1, "progress": False, **quick}
    options["storage"] = f"sqlite:///{tmp_path / 'study.db'}"
    study = sl.minimize(bowl, plane, **options | {"method": "nuts", "chains": 2}).study
    design = study.trials[0]
    trial = study.trials[-1]
    assert not [key for key in design.user_attrs if key.startswith("slayr:predicted")]
    record = suggestion_record(trial)
    assert record.keys() <= SuggestionRecord.__annotations__.keys()
    wanted = {
        "slayr:predicted_mean": record["predicted"]["mean"],
        "slayr:predicted_sd": record["predicted"]["sd"],
        "slayr:acquisition": record["acquisition"]["value"],
        "slayr:rhat_max": record["diagnostics"]["rhat_max"],
        "slayr:ok": int(record["diagnostics"]["ok"]),
        "slayr:seconds_fit": record["seconds"]["fit"],
    }
    found = {key: value for key, value in trial.user_attrs.items() if type(value) in (int, float)}
    assert found == wanted | {"slayr:value": trial.value, "slayr:evaluations": 1}


@pytest.mark.stan
def test_nothing_reads_the_numbers(plane, quick, tmp_path):
    """A study whose numbers are lost or wrong continues as if nothing had happened."""
    options = {"n_initial": 3, "seed": 1, "progress": False, **quick}
    whole = sl.minimize(bowl, plane, budget=6, **options).trials
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    sl.minimize(bowl, plane, budget=5, storage=storage, study_name="a", **options)
    with sqlalchemy.create_engine(storage).begin() as connection:
        numbers = "('slayr:predicted_mean', 'slayr:acquisition', 'slayr:ok')"
        connection.execute(sqlalchemy.text(f"DELETE FROM trial_user_attributes WHERE key IN {numbers}"))
        wrong = "UPDATE trial_user_attributes SET value_json = '7.0' WHERE key = 'slayr:predicted_sd'"
        connection.execute(sqlalchemy.text(wrong))
    assert "slayr:ok" not in optuna.load_study(study_name="a", storage=storage).trials[4].user_attrs
    again = sl.minimize(bowl, plane, budget=6, storage=storage, study_name="a", **options).trials
    assert again["value"].tolist() == whole["value"].tolist()


def test_entries_of_a_suggestion_that_are_tables_or_lists_follow_from_their_types():
    assert CONTAINERS["objectives"] is list and CONTAINERS["seconds"] is CONTAINERS["conditions"] is dict
    assert not {"phase", "kernel", "feasible", "note"} & CONTAINERS.keys()
    assert odd_entry({"config": {}, "objectives": [], "feasible": "?"}) is None
    assert odd_entry({"config": {}, "objectives": {}}) == "objectives"
