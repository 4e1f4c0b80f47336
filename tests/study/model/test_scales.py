"""Logarithmic scales that the values of a study choose."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import optuna
import pandas as pd
import pytest

import slayr_py as sl
from slayr_py.kernels import Stack
from slayr_py.space import Encoder
from slayr_py.study.model import space_model
from slayr_py.study.model.fit_cache import Cache
from slayr_py.study.model.scales import GAIN, Scales, better_scales
from slayr_py.study.storage.attributes import suggestion_record
from slayr_py.study.storage.trials import observations_of_all

SPACE = {"rate": (1e-3, 1.0), "units": (4, 1024), "share": (0.0, 1.0), "width": (1.0, 200.0)}
KINDS = ("decades", "range")


def value(config, kind="decades"):
    """Return a bowl in the logarithms of two parameters or in their values."""
    rate, units = (
        np.log(config[name] / SPACE[name][0]) / np.log(SPACE[name][1] / SPACE[name][0])
        if kind == "decades"
        else config[name] / SPACE[name][1]
        for name in ("rate", "units")
    )
    return (rate - 0.3) ** 2 + (units - 0.6 * config["share"]) ** 2 + 0.5 * (config["width"] / 200 - 0.4) ** 2


def table(n, kind="decades", seed=0):
    configs = pd.DataFrame(dict(config) for config in Encoder(SPACE).sobol(n, seed))
    return configs.assign(value=value(configs, kind))


def study_of(data, space=SPACE, **options):
    return sl.study.create_study(space, history=data, n_initial=1, seed=0, method="map", **options)


def scales_of(study, kernel="auto", space=SPACE):
    gp = sl.GaussianProcess(space, kernel)
    return better_scales(study, gp.parts[0], observations_of_all(study, gp.encoder.space), Cache[Scales]())


@functools.cache
def chosen_at(n):
    """Return the scales that n values choose, for tests of what does not change them."""
    return scales_of(study_of(table(n)))


@pytest.mark.stan
@pytest.mark.parametrize("kernel", ["auto", "SE", Stack(["MAT52", "SE"])])  # "auto" is "matern" here
def test_the_parameters_whose_effect_depends_on_ratios_are_found(kernel):
    assert scales_of(study_of(table(36, "range")), kernel).names == ()
    found = chosen_at(36) if kernel == "auto" else scales_of(study_of(table(36)), kernel)
    assert found.gain > GAIN and found.n == 36
    assert {"rate", "units"} <= set(found.names) <= {"rate", "units", "width"}


@pytest.mark.stan
def test_the_first_values_decide_until_the_next_choice_is_due():
    data = table(40)
    later = scales_of(study_of(data.iloc[:35]))
    assert later == chosen_at(24) and later.n == 24
    assert scales_of(study_of(data)).n == 36
    assert scales_of(study_of(data.iloc[:15])) is None


@pytest.mark.stan
def test_noise_and_maximisation_change_nothing():
    data = table(40)
    noisy = data.assign(value=-data["value"], y_sd=1e-3)
    found = scales_of(study_of(noisy, direction="maximize"))
    assert found.gain > GAIN and found.n == 36 and {"rate", "units"} <= set(found.names)


@pytest.mark.stan
def test_objectives_choose_together():
    data = table(36)
    second = data["share"] + (data["width"] / 200) ** 2  # to which both scales are equal
    both = data.drop(columns="value").assign(values_first=data["value"], values_second=second)
    options = {"directions": {"first": "minimize", "second": "minimize"}}
    found = scales_of(study_of(both, **options))
    assert {"rate", "units"} <= set(found.names)
    assert found.gain < chosen_at(36).gain


@pytest.mark.stan
@pytest.mark.parametrize("n", [16, 20, 24])
def test_parameters_are_found_that_are_no_improvement_alone_beside_one_that_hides_their_gain(n):
    space = {"count": (0, 1000), "share": (0.0, 1.0), "batch": (1, 1000), "part": (0.0, 1.0)}
    configs = pd.DataFrame(dict(config) for config in Encoder(space).sobol(n, 0))
    count, share = np.log1p(configs["count"]), np.log1p(1000 * configs["share"])
    first = (count / np.log(1001) - 0.3) ** 2 + (share / np.log(1001) - 0.6 * configs["part"]) ** 2
    data = configs.assign(value=first + (np.log(configs["batch"]) / np.log(1000) - 0.5) ** 2)
    assert scales_of(study_of(data, space), space=space).names == ("batch", "count", "share")


@pytest.mark.stan
def test_many_parameters_are_examined_together():
    space = {f"x{i}": (1.0, 1000.0) for i in range(13)}
    configs = pd.DataFrame(dict(config) for config in Encoder(space).sobol(40, 0))
    values = sum((1 + i % 3) * np.log(configs[f"x{i}"]) for i in range(13))
    found = scales_of(study_of(configs.assign(value=values), space), "SE", space)
    assert sorted(found.names) == sorted(space) and found.gain > GAIN


def test_ranges_that_cannot_be_logarithmic_are_not_examined(monkeypatch):
    monkeypatch.setattr(sl.GaussianProcess, "fit", None)
    space = {"width": (1.0, 99.0), "below": (-5.0, -0.01), "kind": ["a", "b"], "tiny": (1e-13, 1.0)}
    configs = pd.DataFrame(dict(config) for config in Encoder(space).sobol(20, 1))
    assert scales_of(study_of(configs.assign(value=np.arange(20.0)), space), space=space) is None
    within = Encoder({"a": (1.0, 1000.0), "b": (1.0, 1000.0)}, within=["a + b <= 900"])
    configs = pd.DataFrame(dict(config) for config in within.sobol(20, 1))
    assert scales_of(study_of(configs.assign(value=np.arange(20.0)), within), space=within) is None


@pytest.mark.stan
@pytest.mark.parametrize("fixed", [[0.25], [0.0, 0.5]], ids=str)
def test_a_parameter_of_which_few_values_were_evaluated_keeps_its_scale(fixed):
    data = table(24).assign(share=np.resize(fixed, 24))
    assert scales_of(study_of(data.assign(value=value(data)))).names == ("rate", "units")


def large(config):
    return config["a"] + config["b"] + config["c"] >= 2400


@pytest.mark.stan
def test_scales_of_which_a_function_allows_too_little_are_not_chosen():
    space = {**dict.fromkeys("abc", (1.0, 1000.0)), "rate": (1e-3, 1.0), "units": (1, 1000), "part": (0.5, 1.0)}
    encoder = Encoder(space, within=[large])
    configs = pd.DataFrame(dict(config) for config in encoder.sobol(36, 0))
    first = (np.log(configs["units"]) - 2 - 3 * configs["part"]) ** 2 + (np.log(configs["rate"]) + 4) ** 2
    data = configs.assign(value=first + 0.001 * configs["a"])
    found = scales_of(study_of(data, encoder), space=encoder)
    assert {"rate", "units"} <= set(found.names)
    assert not {"a", "b", "c"} <= set(found.names)
    assert encoder.rescaled(found.names).is_searchable


def test_a_kernel_learned_from_related_data_keeps_their_scales(monkeypatch):
    data = table(16)
    configs = data.drop(columns="value")
    kernel = sl.svm.pretrain(SPACE, configs, data["value"]).kernel(layers=0)
    monkeypatch.setattr(sl.GaussianProcess, "fit", None)
    assert scales_of(study_of(data, kernel=kernel), kernel) is None


def suggestions(study, n=6):
    """Return the texts of the warnings about scales of n suggestions, and the classes of these warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(n):
            trial = sl.study.ask(study)
            study.tell(trial, value(trial.params))
    about = [each for each in caught if "logarithmic" in str(each.message)]
    assert all(issubclass(each.category, UserWarning) for each in about)
    return [str(each.message) for each in about]


@pytest.mark.stan
def test_a_study_has_the_scales_that_its_values_choose_and_says_so():
    study = study_of(table(20))
    texts = suggestions(study)
    assert len(texts) == len(set(texts)) <= 2  # at 16 and 24 values
    assert all("rate" in text and "log=True" in text and "initial design" in text for text in texts)
    last = study.trials[-1]
    scales = sl.study.posterior_of(study, last.number).encoder.logarithmic
    assert {"rate", "units"} <= set(scales)
    assert any("logarithmic scale" in note for note in suggestion_record(last)["diagnostics"]["kernel_notes"])
    assert all(each.identical for each in sl.study.replay(study, last.number))


@pytest.mark.stan
@pytest.mark.parametrize(
    "options",
    [{"kernel": "matern"}, {"priors": {"lengthscale": sl.LogNormal(0, 1)}}, {"prior": {"rate": sl.Normal(0.5, 0.1)}}],
    ids=str,
)
def test_a_kernel_a_prior_or_a_belief_of_the_user_keeps_the_declared_scales(options):
    study = study_of(table(20), **options)
    texts = suggestions(study, 1)
    assert len(texts) == 1 and "would be better" in texts[0] and "history=" in texts[0]
    assert sl.study.posterior_of(study, study.trials[-1].number).encoder.logarithmic == ()


@pytest.mark.stan
def test_a_study_on_the_right_scales_keeps_them():
    study = study_of(table(23, "range"))
    assert suggestions(study, 1) == []


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:the model has logarithmic scales")
def test_a_resumed_study_makes_the_same_suggestions(tmp_path):
    def asked(storage, restart):
        study = study_of(table(22), storage=storage, study_name="same")
        for i in range(3):
            if restart and i == 2:
                study = sl.study.create_study(
                    SPACE, n_initial=1, seed=0, method="map", storage=storage, study_name="same"
                )
            trial = sl.study.ask(study)
            study.tell(trial, value(trial.params))
        return [trial.params for trial in study.trials]

    storages = [f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "two")]
    assert asked(storages[0], restart=False) == asked(storages[1], restart=True)


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:the model has logarithmic scales")
def test_results_of_loaded_studies_have_the_chosen_scales(tmp_path):
    study = study_of(table(22), storage=f"sqlite:///{tmp_path}/study.db", study_name="stored")
    trial = sl.study.ask(study)
    study.tell(trial, value(trial.params))
    for result in (sl.Result(study, Encoder(SPACE).space), sl.study.load(f"sqlite:///{tmp_path}/study.db", "stored")):
        assert {"rate", "units"} <= set(result.posterior().encoder.logarithmic)
        optimum = result.optimum().table.set_index("parameter")
        assert optimum.loc["rate", "median"] < 0.1


@pytest.mark.stan
def test_fits_record_their_scales_in_a_study_that_was_started_with_others(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.db"
    scales = []
    for space in (Encoder(SPACE).rescaled(["rate"]), SPACE, Encoder(SPACE).rescaled(["units"])):
        study = study_of(table(8) if not scales else None, space, storage=storage, study_name="s")
        trial = sl.study.ask(study)
        study.tell(trial, value(trial.params))
        scales.append(sl.study.posterior_of(study, trial.number).encoder.logarithmic)
        assert sl.study.replay(study, trial.number)[0].identical
    assert scales == [("rate",), (), ("units",)]
    assert sl.study.load(storage, "s").posterior().encoder.logarithmic == ("units",)


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:the model has logarithmic scales")
@pytest.mark.parametrize("penalty", [False, True])
def test_the_last_fit_of_a_study_resumed_with_a_learned_kernel_has_results(penalty):
    data = table(24)
    storage = optuna.storages.InMemoryStorage()
    study = study_of(data, storage=storage, study_name="s")
    trials = [sl.study.ask(study) for _ in range(3)]
    for trial in trials if penalty else ():
        study.tell(trial, 1e15)
    kernel = sl.svm.pretrain(SPACE, data.drop(columns="value"), data["value"]).kernel(layers=0)
    fixed = {"share": data["share"][3]}
    resumed = study_of(None, storage=storage, study_name="s", kernel=kernel, fixed=fixed)
    result = sl.Result(resumed, Encoder(SPACE).space)
    optimum = result.optimum()
    assert [d.name for d in optimum.dimensions if not d.is_linear] == ["rate", "units"]
    assert (optimum.draws["share"] == fixed["share"]).all()
    assert len(result.good(2.0)) == len(SPACE)


@pytest.mark.stan
def test_scales_stay_as_long_as_they_predict_better():
    data = table(36)
    noise = np.where(np.arange(36) < 24, 0.0, 0.25) * np.random.default_rng(0).standard_normal(36)
    study = study_of(data.assign(value=data["value"] + noise), noisy=True)
    kept = scales_of(study)
    before = chosen_at(24)
    assert kept.n == 36 and kept.names == before.names and 0 < kept.gain < GAIN < before.gain


@pytest.mark.stan
def test_a_study_warns_when_its_model_returns_to_the_declared_scales():
    data, other = table(36), table(36, "range")
    values = data["value"].where(np.arange(36) < 24, 5 * other["value"])
    study = study_of(data.assign(value=values).iloc[:35])
    chosen, given_up = suggestions(study, 3)
    assert chosen.startswith("the model has logarithmic scales of ")
    assert given_up == (
        "the model has the declared scales of rate, units again: no logarithmic ones are known to predict the "
        "first 36 observations better"
    )


@pytest.mark.stan
def test_results_of_a_loaded_study_examine_no_scales(tmp_path, monkeypatch):
    storage = f"sqlite:///{tmp_path}/study.db"
    study = study_of(table(20), storage=storage, study_name="s", kernel="matern")
    assert len(suggestions(study, 1)) == 1
    monkeypatch.setattr(space_model, "better_scales", None)
    assert sl.study.load(storage, "s").posterior().encoder.logarithmic == ()
