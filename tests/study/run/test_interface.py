"""Spaces as dictionaries, `maximize`, names of other libraries, and opening of stored studies."""

from __future__ import annotations

import inspect
import math

import optuna
import pytest
from ConfigSpace import Categorical, Float

import slayr_py as sl
from slayr_py.space import as_encoder
from slayr_py.study import StanGPSampler, create_study

SPACE = {"x": (0.0, 1.0), "n": (1, 5), "kind": ["a", "b"], "lr": Float("lr", (1e-4, 0.1), log=True), "batch": 32}


def test_a_dictionary_is_a_space():
    encoder = as_encoder(SPACE)
    kinds = {d.name: (d.kind, d.log) for d in encoder.dimensions}
    assert kinds["x"] == ("float", False) and kinds["n"] == ("integer", False)
    assert kinds["kind"] == ("categorical", False) and kinds["lr"] == ("float", True)
    assert encoder.space["batch"].value == 32
    assert sl.GaussianProcess({"x": (0.0, 1.0)}).encoder.names == ("x",)
    with pytest.raises(sl.SpaceError, match="the parameter 'x' is .*; give two floats or two integers, a list"):
        as_encoder({"x": (1.0, 0.0)})
    with pytest.raises(sl.SpaceError, match="the bounds of 'x' are 0 and 1.0; write two floats, or two integers"):
        as_encoder({"x": (0, 1.0)})  # ConfigSpace would make it an integer
    with pytest.raises(sl.SpaceError, match="it is called 'lr'"):
        as_encoder({"rate": SPACE["lr"]})


def test_a_list_of_two_floats_has_levels_with_a_warning(recwarn):
    words = r"the list \[-5.0, 10.0\] has two levels of the parameter 'x'; a range is a tuple, \(-5.0, 10.0\)"
    with pytest.warns(UserWarning, match=words) as caught:
        space = as_encoder({"x": [-5.0, 10.0]}).space
    assert caught[0].filename == __file__ and space["x"].choices == (-5.0, 10.0)
    others = {"a": [16, 32], "b": [0.1, 0.2, 0.3], "c": [0.5], "d": (0.1, 0.5), "e": ["p", "q"], "f": [True, False]}
    as_encoder(others | {"g": Categorical("g", [0.1, 0.5])})
    assert not recwarn.list


@pytest.mark.parametrize("bounds", [(0.0, math.inf), (-math.inf, 1.0), (math.nan, 1.0), (0, math.inf)])
def test_bounds_that_are_not_finite_are_an_error_without_warnings(bounds, recwarn):
    with pytest.raises(sl.SpaceError, match=r"the bounds of 'x' are \(.*\); give finite numbers"):
        as_encoder({"x": bounds})
    assert not recwarn.list


def test_maximize_has_the_other_direction():
    result = sl.maximize(lambda c: c["x"], SPACE, 3, n_initial=3, seed=1, progress=False)
    assert result.study.direction == optuna.study.StudyDirection.MAXIMIZE
    assert result.best_value == max(trial.value for trial in result.study.trials)
    with pytest.raises(TypeError, match="direction= is an argument of slayr_py.minimize"):
        sl.maximize(lambda c: c["x"], SPACE, direction="minimize")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("n_trials", "budget="),
        ("n_calls", "budget="),
        ("n_jobs", "n_parallel="),
        ("random_state", "seed="),
        ("n_startup_trials", "n_initial="),
        ("constraints_func", "within= for parameters"),
        ("graphs", "Encoder\\(space, graphs=...\\)"),
        ("pbounds", "space="),
        ("inequality_constraints", "within="),
        ("parameter_constraints", "within="),
        ("objective_thresholds", "reference_point="),
        ("cost_withGradients", "cost="),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(name, ours):
    functions = [
        lambda **given: sl.minimize(lambda c: 0.0, SPACE, **given),
        lambda **given: create_study(SPACE, **given),
    ]
    for function in (*functions, lambda **given: StanGPSampler(SPACE, **given)):
        with pytest.raises(TypeError, match=f"^{name}= is an argument of another library; use .*{ours}"):
            function(**{name: 3})


def test_names_without_a_counterpart_are_answered_with_the_reason():
    with pytest.raises(TypeError, match="^xi= is an argument of another library without a counterpart: tolerance= is"):
        StanGPSampler(SPACE, xi=0.1)


def test_no_name_of_another_library_is_one_of_ours():
    from slayr_py.study.model.options import OTHER_LIBRARIES, WITHOUT_COUNTERPART, SamplerKeywords

    ours = {*inspect.signature(sl.minimize).parameters, *SamplerKeywords.__annotations__}
    assert not ours & (OTHER_LIBRARIES.keys() | WITHOUT_COUNTERPART.keys())
    for replacement in OTHER_LIBRARIES.values():
        name, equals, _ = replacement.partition("=")
        assert not equals or name in ours or "Encoder" in name


@pytest.mark.stan
def test_a_stored_study_is_opened_with_its_own_options(tmp_path):
    storage = optuna.storages.InMemoryStorage()
    options = {
        "n_initial": 5,
        "seed": 1,
        "method": "map",
        "kernel": "MAT32",
        "within": ["x + y <= 1"],
        "prior": {"x": sl.Normal(0.5, 0.2)},
        "progress": False,
    }
    first = sl.maximize(
        lambda c: -((c["x"] - 0.5) ** 2) - c["y"],
        {"x": (0.0, 1.0), "y": (0.0, 1.0)},
        6,
        storage=storage,
        study_name="a",
        **options,
    )
    result = sl.study.load(storage)
    assert result.best_config == first.best_config and result.study.sampler is not first.study.sampler
    assert result.posterior().train.unit_values.shape == (6, 2)
    assert result.importance().index.tolist() == first.importance().index.tolist()
    optuna.create_study(storage=storage, study_name="other")
    with pytest.raises(sl.DataError, match="made by another sampler.* history=study.trials_dataframe"):
        sl.study.load(storage, "other")
    with pytest.raises(sl.DataError, match="the storage has 2 studies; give study_name=, one of a, other"):
        sl.study.load(storage)
    with pytest.raises(sl.StorageError, match="there is no study file"):
        sl.study.load(str(tmp_path / "none.db"))
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(sl.DataError, match="no study 'othe'; did you mean 'other'"):
        sl.study.load(storage, "othe")


@pytest.mark.stan
def test_a_study_loaded_during_its_initial_design_has_no_model_until_its_sampler_is_given():
    storage = optuna.storages.InMemoryStorage()
    options = {"n_initial": 5, "seed": 1, "method": "map", "storage": storage, "study_name": "a"}
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    sl.minimize(lambda c: c["x"] + c["y"], space, 5, progress=False, **options)
    loaded = sl.study.load(storage)
    assert loaded.best_value == loaded.trials["value"].min()
    for model in (loaded.posterior, loaded.optimum, loaded.importance):
        with pytest.raises(sl.DataError, match=r"'a' has no fit yet, .* by slayr_py.study.create_study\(space"):
            model()
    with_sampler = sl.study.Result(create_study(space, **options), loaded.space)
    assert with_sampler.posterior().train.unit_values.shape == (5, 2)
