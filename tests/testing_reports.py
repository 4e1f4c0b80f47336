"""Studies for reports, with a model that needs no Stan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optuna
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from optuna.storages import BaseStorage

import slayr_py as sl
from slayr_py.space import Encoder
from slayr_py.study import create_study, space_to_distributions
from slayr_py.study.storage.attributes import FAILURE_KEY, FIT_KEY, SUGGESTION_KEY
from slayr_py.study.storage.distributions import to_params
from slayr_py.study.storage.trials import observations

SCRIPT = "<script>document.title='broken'</script>"
IMAGE = '"><img src=x onerror="document.title=\'broken\'">'

DIAGNOSTICS = {"rhat_max": 1.01, "ess_bulk_min": 181.2, "divergences": 0, "ok": True, "messages": []}
ABANDONED = {"method": "nuts", "start": "warm", "why": ["bulk ESS 31 < 50"], "then": "a cold start", "seconds": 0.4}


def hostile_space() -> ConfigurationSpace:
    """A conditional space whose names and levels are markup and formulas."""
    space = ConfigurationSpace()
    choice = Categorical(SCRIPT, ["a&b", IMAGE, "$x^2$"])
    child = Float("$depth$", (0.0, 1.0))
    space.add(choice, child, Float("rate", (1e-4, 1.0), log=True), Integer("layers", (1, 6)))
    space.add(EqualsCondition(child, choice, "a&b"))
    return space


def filled(
    space: ConfigurationSpace, n: int, name: str = "net", storage: str | BaseStorage | None = None, **options: Any
) -> optuna.Study:
    """Return a study with n trials at Sobol points: a design of four, then suggestions by a model."""
    study = create_study(space, n_initial=4, seed=1, study_name=name, storage=storage, **options)
    distributions = space_to_distributions(space)
    study.add_trials(
        [_trial(i, to_params(config), distributions) for i, config in enumerate(Encoder(space).sobol(n, 1))]
    )
    return study


def _trial(number: int, params: dict[str, Any], distributions: Mapping[str, Any]) -> optuna.trial.FrozenTrial:
    record: dict[str, Any] = {"phase": "initial", "config": params}
    attributes: dict[str, Any] = {}
    if number >= 4:
        abandoned = [ABANDONED] if number % 3 == 0 else []
        fit = {"start": "cold" if abandoned else "carried", "draws": 50, "abandoned": abandoned}
        record |= {"phase": "model", "method": "nuts", "kernel": "matern", "observations": number, "fit": fit}
        record |= {"diagnostics": DIAGNOSTICS | ({"ok": False, "messages": [SCRIPT]} if number == 5 else {})}
        attributes[FIT_KEY] = {"no": "record"}
    failed = number % 7 == 6
    if failed:
        attributes[FAILURE_KEY] = f"ValueError: {SCRIPT}"
    trial = optuna.trial.create_trial(
        state=optuna.trial.TrialState.FAIL if failed else optuna.trial.TrialState.COMPLETE,
        params=params,
        distributions={name: distributions[name] for name in params},
        value=None if failed else _value(params, number),
        user_attrs={SUGGESTION_KEY: record, **attributes},
    )
    if not failed:
        trial.set_constraint(f"memory {SCRIPT}", params.get("layers", 0) - 5.0)
    return trial


def _value(params: Mapping[str, Any], number: int) -> float:
    rate = np.log10(params["rate"]) if "rate" in params else sum(v for v in params.values() if isinstance(v, float))
    return float((rate + 2) ** 2 + 0.1 * params.get("layers", 0) + 0.01 * np.sin(7.0 * number))


def without_stan(study: optuna.Study, space: ConfigurationSpace, draws: int = 60) -> Callable[[int], sl.Posterior]:
    """Return a function that fits a sparse model, which needs no Stan program, to a study."""

    def fit(objective: int) -> sl.Posterior:
        observed = observations(study, space, objective=objective)
        gp = sl.GaussianProcess(space, "SE", inducing=12)
        return gp.fit(observed.configs, observed.y, chains=1, draws=draws, maximize=observed.maximize)

    return fit
