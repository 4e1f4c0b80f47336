"""The table of combinations: all pairs of options, each with its laws or the message that refuses it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from itertools import combinations
from pathlib import Path

import optuna
import pytest
from combinations import fit_laws, study_laws
from combinations.options import ELSEWHERE, OPTIONS, REFUSED, Option
from combinations.scenarios import Scenario, chosen_by_name, given_draws
from testing_studies import search_briefly

import slayr_py as sl
from slayr_py.acquisition.effort import Effort
from slayr_py.inference import FitOptions
from slayr_py.study import ask, create_study, tell
from slayr_py.study.model import scales
from slayr_py.study.model.options import SamplerOptions

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
PAIRS = list(combinations(OPTIONS, 2))
ALLOWED = [pair for pair in PAIRS if tuple(option.name for option in pair) not in REFUSED]
OF_FITS = [pair for pair in ALLOWED if None not in (pair[0].in_fits, pair[1].in_fits)]
OF_STUDIES = [pair for pair in ALLOWED if pair not in OF_FITS and None not in (pair[0].in_studies, pair[1].in_studies)]
WITHOUT_FUNCTION = [pair for pair in ALLOWED if pair not in OF_FITS and pair not in OF_STUDIES]


@pytest.fixture(scope="module", autouse=True)
def _given_draws() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    effort = Effort(candidates=128, screens=((4, 20),), climbs=(4, 2), finals=(4, 1))
    with pytest.MonkeyPatch.context() as patch, given_draws():
        search_briefly(patch, effort)
        patch.setattr(scales, "_DUE", (1,))
        patch.setattr(scales, "_compared", chosen_by_name)
        yield
    optuna.logging.set_verbosity(level)


def name_of(pair: tuple[Option, Option]) -> str:
    return " and ".join(option.name for option in pair)


def scenario_of(first: Option, second: Option) -> Scenario:
    return second.switch(first.switch(Scenario()))


@pytest.mark.stan
@pytest.mark.parametrize("pair", OF_FITS, ids=name_of)
def test_both_options_hold_in_a_fit(pair):
    scenario = scenario_of(*pair)
    for law in (*fit_laws.laws_of(scenario), *pair[0].in_fits, *pair[1].in_fits):
        law(scenario)


@pytest.mark.stan
@pytest.mark.filterwarnings("ignore:[0-9]+ trials have no value of constraint ('cold' or )?'heat':UserWarning")
@pytest.mark.filterwarnings("ignore:trial 1. the value:UserWarning")  # of a penalty
@pytest.mark.filterwarnings("ignore:the model has logarithmic scales of x:UserWarning")
@pytest.mark.filterwarnings("ignore:logarithmic scales of x would be better:UserWarning")
@pytest.mark.filterwarnings("ignore:fixed values .* replace those of the initial configurations:UserWarning")
@pytest.mark.parametrize("pair", OF_STUDIES, ids=name_of)
def test_both_options_hold_in_a_study(pair):
    scenario = scenario_of(*pair)
    for law in (*study_laws.ALWAYS, *pair[0].in_studies, *pair[1].in_studies):
        law(scenario)


@pytest.mark.parametrize("names", REFUSED, ids=" and ".join)
def test_a_refused_pair_is_named_with_a_remedy(names):
    first, second = (option for option in OPTIONS if option.name in names)
    is_of_fits = None not in (first.in_fits, second.in_fits)
    with pytest.raises(sl.DataError, match=REFUSED[names]):
        _ = scenario_of(first, second).posterior if is_of_fits else scenario_of(first, second).told


@pytest.mark.parametrize("pair", WITHOUT_FUNCTION, ids=name_of)
def test_an_argument_that_studies_lack_is_refused_with_a_remedy(pair):
    (lacking,) = (option for option in pair if option.in_studies is None)
    (argument,) = lacking.arguments
    with pytest.raises(TypeError, match=f"^{argument}= is not an option of a study; leave it out: .*"):
        create_study(sl.space.Encoder(Scenario().encoder.space), **{argument: 3})


def test_every_argument_has_a_row_or_a_reason():
    functions = [sl.GaussianProcess, sl.GaussianProcess.fit, sl.minimize, create_study, ask, tell]
    functions += [sl.study.StanGPSampler, sl.study.StanGPSampler.ask_batch]
    arguments = {name for function in functions for name in inspect.signature(function).parameters} - {"self"}
    arguments |= {field.name for declared in (SamplerOptions, FitOptions) for field in fields(declared)}
    rows = {name for option in OPTIONS for name in option.arguments}
    assert not rows & ELSEWHERE.keys()
    assert arguments == rows | ELSEWHERE.keys()


def test_the_guide_has_the_refused_pairs():
    table = re.search(r"^\| option \| not with \|\n\|---\|---\|\n((?:\|.*\n)+)", GUIDE.read_text(), re.MULTILINE)[1]
    rows = re.findall(r"^\| (.*?) \(.*\) \| (.*) \|$", table, re.MULTILINE)
    stated = {frozenset((name, other)) for name, others in rows for other in others.split(", ")}
    assert stated == {frozenset(names) for names in REFUSED}
