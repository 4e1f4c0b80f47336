"""Objectives on a plane, and helpers to advance and read studies."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

from slayr_py.acquisition import suggest, suggest_tradeoff
from slayr_py.acquisition.effort import Effort
from slayr_py.study import ask, config_of, tell
from slayr_py.study.model import proposal
from slayr_py.study.storage.attributes import SUGGESTION_KEY

NUTS: dict[str, Any] = {"method": "nuts", "n_initial": 4, "seed": 3, "chains": 2, "warmup": 100, "draws": 40, "ess": 20}
"""Options of a study with short NUTS fits after a design of four trials."""


KILLED = """
import os, sys
from ConfigSpace import ConfigurationSpace
import slayr_py as sl
space = ConfigurationSpace({"x": (-5.0, 10.0), "y": (0.0, 15.0)})
calls = []
def objective(config):
    calls.append(config)
    if len(calls) == 5:
        os._exit(9)
    return config["x"] ** 2 + config["y"]
sl.minimize(objective, space, budget=6, n_initial=3, seed=3, progress=False, storage=sys.argv[1], study_name="killed",
            method="map", chains=1, warmup=50, draws=50)
"""
"""Script of a study whose process ends in the fifth evaluation; the argument is the URL of a database."""


def search_briefly(patch: pytest.MonkeyPatch, effort: Effort) -> None:
    """Search for suggestions with other settings, for tests that hold wherever a search ends."""
    patch.setattr(proposal, "suggest", functools.partial(suggest, effort=effort))
    patch.setattr(proposal, "suggest_tradeoff", functools.partial(suggest_tradeoff, effort=effort))


def branin(config):
    x = config["x"]
    y = config["y"]
    return (
        (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10
    )


def bowl(config):
    return (config["x"] - 2) ** 2 + (config["y"] - 7) ** 2


def suggestion(trial):
    return trial.user_attrs.get(SUGGESTION_KEY)


def creased_bowl(config):
    return (config["x"] - 0.3) ** 2 + abs(config["y"])


def advance(study, n):
    """Ask for and evaluate n more trials of `creased_bowl`; return the study."""
    for _ in range(n):
        trial = ask(study)
        tell(study, trial, creased_bowl(config_of(trial)))
    return study


def starts_of_fits(study):
    """Return for every trial whether its fit started warm or cold; None without a fit."""
    return [suggestion(trial).get("fit", {}).get("start") for trial in study.trials]
