"""Small spaces and studies, quick fits, and databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import sqlalchemy
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    Constant,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
    OrdinalHyperparameter,
)
from testing_databases import new_database
from testing_processes import exit_code
from testing_studies import KILLED

from slayr_py.inference import Check
from slayr_py.study import ask, create_study
from slayr_py.study.model import proposal


@pytest.fixture
def quick() -> dict[str, Any]:
    """Fit the mode of the hyperparameters, for tests that are not about the fit itself."""
    return {"method": "map", "chains": 1, "warmup": 50, "draws": 50}


@pytest.fixture
def plane() -> ConfigurationSpace:
    return ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})


@pytest.fixture
def mixed() -> ConfigurationSpace:
    """Every kind of parameter, a condition and a forbidden combination."""
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["rbf", "poly", "linear"])
    degree = Integer("degree", (1, 8), log=True)
    rate = Float("rate", (1e-4, 1.0), log=True)
    size = OrdinalHyperparameter("size", ["s", "m", "l"])
    flag = Categorical("flag", [True, False])
    space.add(kernel, degree, rate, size, flag, Constant("version", 3))
    space.add(EqualsCondition(degree, kernel, "poly"))
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(size, "l"), ForbiddenEqualsClause(flag, False)))
    return space


@pytest.fixture
def small_study(plane, quick) -> optuna.Study:
    """Four trials: two are complete, one failed, one is running."""
    study = create_study(plane, n_initial=3, seed=1, study_name="net", **quick)
    for value in (5.0, 2.0, None):
        trial = ask(study)
        study.tell(trial, value, optuna.trial.TrialState.FAIL if value is None else None)
    ask(study)
    return study


@pytest.fixture
def any_monte_carlo_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept every Monte Carlo error of the acquisition: no fit is repeated with more draws."""
    monkeypatch.setattr(proposal, "LARGEST_ERROR", np.inf)


@pytest.fixture
def any_diagnostics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept every fit: whether short chains pass their diagnostics depends on the compiler's last bits."""
    monkeypatch.setattr(Check, "passes", lambda self, value, limit: True)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    return new_database(request.getfixturevalue("postgresql"))


@pytest.fixture(scope="session")
def killed_once() -> Callable[[str, Callable[[], str]], str]:
    """Return the URL of a study whose process was killed, which is run once for each kind of database."""
    urls: dict[str, str] = {}

    def run(kind: str, empty: Callable[[], str]) -> str:
        if kind not in urls:
            urls[kind] = empty()
            assert exit_code(KILLED, urls[kind]) == 9
        return urls[kind]

    return run


@pytest.fixture(params=["sqlite", "postgresql"])
def killed(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a study "killed", whose process ended in the evaluation of its fifth trial."""
    killed_once = request.getfixturevalue("killed_once")
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        url = sqlalchemy.make_url(killed_once("postgresql", lambda: new_database(server)))
        return new_database(server, str(url.database))
    url = killed_once("sqlite", lambda: f"sqlite:///{tmp_path_factory.mktemp('killed') / 'study.db'}")
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as source:
        with closing(sqlite3.connect(tmp_path / "killed.db")) as copy:
            source.backup(copy)
    return f"sqlite:///{tmp_path / 'killed.db'}"
