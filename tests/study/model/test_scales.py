"""Whether logarithmic scales would predict the values of a study better."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import optuna
import pandas as pd
import pytest

import slayr_py as sl
from slayr_py.kernels import Stack
from slayr_py.space import Encoder
from slayr_py.study.model.scales import EVIDENCE, better_scales

SPACE = {"rate": (1e-3, 1.0), "units": (4, 1024), "share": (0.0, 1.0), "width": (1.0, 200.0)}
KINDS = ("decades", "range")


def table(n, kind, seed=0):
    """Return evaluations of a bowl in the logarithms of two parameters or in their values."""
    configs = pd.DataFrame(dict(config) for config in Encoder(SPACE).sobol(n, seed))
    rate, units = (
        np.log(configs[name] / SPACE[name][0]) / np.log(SPACE[name][1] / SPACE[name][0])
        if kind == "decades"
        else configs[name] / SPACE[name][1]
        for name in ("rate", "units")
    )
    y = (rate - 0.3) ** 2 + (units - 0.6 * configs["share"]) ** 2 + 0.5 * (configs["width"] / 200 - 0.4) ** 2
    return configs.assign(value=y)


def observed(data, errors=None, maximize=False):
    configs = [Encoder(SPACE).configuration(row) for row in data.drop(columns="value").to_dict(orient="records")]
    y = data["value"].to_numpy()
    return SimpleNamespace(configs=configs, y=-y if maximize else y, errors=errors, maximize=maximize)


@pytest.mark.stan
@pytest.mark.parametrize("kernel", ["auto", "matern", "SE", Stack(["MAT52", "SE"])])
def test_the_parameters_whose_effect_depends_on_ratios_are_found(kernel):
    gp = sl.GaussianProcess(SPACE, kernel)
    assert better_scales(gp, observed(table(36, "range"))).gain < 0.5 * EVIDENCE
    found = better_scales(gp, observed(table(36, "decades")))
    assert found.gain > EVIDENCE
    assert {"rate", "units"} <= set(found.names) <= {"rate", "units", "width"}


@pytest.mark.stan
def test_many_values_noise_and_maximisation_change_nothing():
    gp = sl.GaussianProcess(SPACE)
    many = better_scales(gp, observed(table(600, "decades"), errors=np.full(600, 1e-3), maximize=True))
    assert many.gain > EVIDENCE and {"rate", "units"} <= set(many.names)


@pytest.mark.stan
def test_many_parameters_are_examined_together():
    space = {f"x{i}": (1.0, 1000.0) for i in range(13)}
    configs = Encoder(space).sobol(40, 0)
    y = np.array([sum((1 + i % 3) * np.log(config[f"x{i}"]) for i in range(13)) for config in configs])
    values = SimpleNamespace(configs=configs, y=y, errors=None, maximize=False)
    found = better_scales(sl.GaussianProcess(space, "SE"), values)
    assert found.names == sorted(space) and found.gain > EVIDENCE


def test_ranges_with_zero_short_ones_and_logarithmic_ones_are_not_examined(monkeypatch):
    space = {"share": (0.0, 1.0), "width": (1.0, 99.0), "below": (-5.0, -0.01), "kind": ["a", "b"]}
    encoder = Encoder(space)
    gp = sl.GaussianProcess(encoder)
    monkeypatch.setattr(gp, "fit", None)
    values = SimpleNamespace(configs=encoder.sobol(20, 1), y=np.arange(20.0), errors=None, maximize=False)
    assert better_scales(gp, values) == ([], 0.0)


@pytest.mark.stan
@pytest.mark.parametrize("kind", KINDS)
def test_a_study_warns_once_of_scales(kind):
    data = table(24, kind, seed=1)
    study = sl.study.create_study(SPACE, history=data.iloc[:22], n_initial=1, seed=0, method="map")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(6):
            trial = sl.study.ask(study)
            study.tell(trial, float(len(study.trials)))
        sl.study.ask(study)
    texts = [str(each.message) for each in caught if "logarithmic" in str(each.message)]
    assert len(texts) == (kind == "decades")
    if texts:
        assert "rate" in texts[0] and "log=True" in texts[0] and "history=" in texts[0]
        assert issubclass(next(each.category for each in caught if "logarithmic" in str(each.message)), UserWarning)
    assert study.trials[-1].state == optuna.trial.TrialState.RUNNING
