"""A study and posteriors written before records had format 2 load, resume and replay (tests/data/README.md)."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import optuna
import pytest
from ConfigSpace import ConfigurationSpace

import slayr_py as sl
from slayr_py.inference import replay_folder
from slayr_py.study import posterior_of, replay

pytestmark = pytest.mark.stan

FOLDER = Path(__file__).resolve().parents[1] / "data" / "before_rooms"
OPTIONS = {"n_initial": 5, "seed": 3, "chains": 2, "warmup": 150, "draws": 25, "progress": False}


def objective(config):
    return math.sin(5 * config["x"]) + 0.1 * (config["n"] - 4) ** 2


@pytest.fixture
def url(tmp_path):
    shutil.copy(FOLDER / "study.db", tmp_path / "study.db")
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.mark.parametrize("name", ["posterior_nuts", "posterior_map"])
def test_a_saved_posterior_loads_and_replays(name):
    posterior = sl.Posterior.load(FOLDER / name)
    assert posterior.predict([{"lr": 0.01, "act": "a", "layers": 2}]).mean.shape == (1,)
    # Its groups had no coordinates of chains and draws, and there was no density of the prior.
    assert np.all(np.isfinite(posterior.idata["log_prior"]["lengthscale"]))
    assert posterior.idata["posterior"]["mu"].coords["draw"].size == posterior.idata["posterior"].sizes["draw"]
    record, again = replay_folder(FOLDER / name)
    assert record["format"] == 1 and "of_scores" in posterior.data
    assert again.identical or "program.source_sha256" in "".join(again.differences)
    assert again.agrees


def test_a_study_replays(url):
    study = optuna.load_study(study_name="before", storage=url)
    (again,) = replay(study, 7)
    record = again.record
    assert record["format"] == 1
    assert again.identical or "program.source_sha256" in "".join(again.differences)
    assert again.agrees
    if again.identical:
        assert posterior_of(study, 7).record["draws_sha256"] == record["draws_sha256"]


def test_a_study_resumes(url):
    space = ConfigurationSpace({"x": (0.0, 1.0), "n": (1, 9)})
    # The defaults of that version.
    before = {"warp": "none", "method": "nuts", "pointwise": True}
    before["priors"] = {
        "lengthscale": sl.LogNormal(np.sqrt(2) + np.log(2) / 2, np.sqrt(3)),
        "sigma_n": sl.LogNormal(-4.0, 1.5),
    }
    result = sl.minimize(objective, space, budget=11, storage=url, study_name="before", **OPTIONS | before)
    fits = [trial.user_attrs["slayr:fit"] for trial in result.study.trials[7:]]
    assert [fit["format"] for fit in fits] == [1, 4, 4, 4]
    assert result.trials["state"].tolist() == ["COMPLETE"] * 11
