"""Validation of fit options."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest
from testing_fits import quick_fit

import slayr_py as sl
from slayr_py.inference import METHODS, FitKeywords, FitOptions, Method


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "vi"}, "unknown method 'vi'"),
        ({"chains": 0}, "chains"),
        ({"draws": 2.5}, "draws"),
        ({"warmup": 0}, "warmup"),
        ({"target_acceptance": 1.0}, "target_acceptance"),
        ({"max_treedepth": 0}, "max_treedepth"),
        ({"ess": 0}, "ess must be an integer >= 1, got 0"),
        ({"method": "map", "ess": 100}, "ess is 100, but method='map' returns one point; leave ess out, or use"),
        ({"progress": True}, "progress must be a function of the name of a phase, such as print, or None; got True"),
        ({"retries": -1}, "retries must be an integer >= 0, got -1"),
        ({"retries": True}, "retries must be an integer >= 0, got True"),
    ],
)
def test_illegal_options(change, words):
    with pytest.raises(sl.DataError, match=words):
        quick_fit([1.0, 2.0], **change)


def test_single_options_and_a_set_of_options_exclude_each_other():
    options = FitOptions(chains=2)
    assert FitOptions.given(options, {}) is options and FitOptions.given(None, {"chains": 2}) == options
    with pytest.raises(sl.DataError, match="options= replaces the single fit options; remove draws, or options="):
        FitOptions.given(options, {"draws": 500})
    with pytest.raises(TypeError, match=r"unknown fit option 'chain'.*chains"):
        FitOptions.given(None, {"chain": 2})


def test_a_method_that_returns_one_point_has_no_effective_number_of_draws():
    with pytest.raises(sl.DataError, match="ess is 100, but method='map' returns one point"):
        FitOptions(method="map", ess=100)
    sampled = FitOptions(method="laplace", ess=100)  # of the chains that follow if the approximation is refused
    assert sampled.updated(method="map").ess is None
    with pytest.raises(sl.DataError, match="ess is 50"):
        sampled.updated(method="map", ess=50)


def test_every_option_is_a_keyword_with_a_description():
    assert [option.name for option in fields(FitOptions)] == list(FitKeywords.__annotations__)
    for option in fields(FitOptions):
        assert option.metadata["help"].endswith(".") and option.name in FitOptions.__doc__


def test_the_methods_are_in_one_table():
    assert set(METHODS) == set(get_args(Method))
    assert [name for name, method in METHODS.items() if method.has_chains] == ["nuts"]
    for method in METHODS.values():
        assert type(method).__doc__
        assert (method.checks == ()) == method.point_estimate
        assert (method.has_chains or method.carries) == (method.kind(None) == "cold")
