"""Options of the sampler: one list of names and defaults, which the documentation repeats."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import numpy as np
import pytest

from slayr_py.errors import DataError
from slayr_py.inference import FitKeywords
from slayr_py.study import StanGPSampler, create_study, minimize
from slayr_py.study.model.options import LOOP_OPTIONS, SamplerKeywords, SamplerOptions

NAMES = list(SamplerKeywords.__annotations__)


def test_keywords_are_the_fields_and_the_options_of_fits():
    names = [field.name for field in fields(SamplerOptions) if field.name != "fit"]
    assert set(NAMES) == {*names, *FitKeywords.__annotations__}
    assert SamplerOptions.of() == SamplerOptions() and SamplerOptions().fit == LOOP_OPTIONS


def test_flags_are_stored_as_plain_truth_values():
    """JSON has no truth values of NumPy."""
    flags = ("default", "warm_starts", "noisy")
    options = SamplerOptions.of(**dict.fromkeys(flags, np.True_), pointwise=np.False_)
    assert all(getattr(options, name) is True for name in flags) and options.fit.pointwise is False
    with pytest.raises(DataError, match="noisy must be True or False, got 1"):
        SamplerOptions.of(noisy=1)


@pytest.mark.parametrize("name", NAMES)
def test_help_describes_every_option(name):
    entries = re.findall(r"^([a-z_, ]+)(?: : .*)?$", inspect.getdoc(StanGPSampler), re.M)
    assert name in ", ".join(entries).split(", ")
    options = inspect.getdoc(minimize).partition("**options")[2].partition("Returns")[0]
    assert f"``{name}``" in options


def test_the_documented_defaults_are_those_of_the_options():
    text = inspect.getdoc(StanGPSampler)
    documented = dict(re.findall(r"^([a-z_]+) : .*, default (.*)$", text, re.M))
    defaults = {field.name: field.default for field in fields(SamplerOptions)}
    assert documented == {name: repr(defaults[name]).replace("'", '"') for name in documented}
    assert {name for name, value in defaults.items() if value is not None} - {"fit"} == documented.keys()
    names, values = re.search(r"^(method.*pointwise)\n.*Defaults: (.*)\.$", text, re.M).groups()
    fit = [getattr(LOOP_OPTIONS, name) for name in names.split(", ")]
    assert values == ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in fit)


@pytest.mark.parametrize(
    ("function", "option", "near"),
    [
        (StanGPSampler, "kernal", "kernel"),
        (StanGPSampler, "warm_up", "warmup"),
        (create_study, "study_nam", "study_name"),
        (minimize, "stroage", "storage"),
        (minimize, "initial_config", "initial_configs"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(plane, function, option, near):
    arguments = (lambda config: 0.0, plane) if function is minimize else (plane,)
    with pytest.raises(TypeError, match=f"unknown option '{option}'; did you mean '{near}'"):
        function(*arguments, **{option: 1})


def test_constraints_of_ask_and_tell_are_refused_with_the_way_to_report_them(plane):
    with pytest.raises(TypeError, match=r"tell\(study, trial, value, constraints=.*\): .* within="):
        create_study(plane, constraints=["memory <= 8"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"failures": "learned"}, "unknown failures 'learned'; did you mean 'learn'"),
        ({"warp": "logs"}, "unknown warp 'logs'; did you mean 'log'"),
        ({"n_initial": 0}, "n_initial must be an integer from 1 to 10000"),
        ({"acquisition": "eii"}, "'eii'; did you mean 'ei'"),
        ({"warm_starts": 1}, "warm_starts must be True or False"),
    ],
)
def test_options_are_checked_without_a_space(options, words):
    with pytest.raises(DataError, match=words):
        SamplerOptions.of(**options)
