"""Values of constraints are compressed, unless they predict each other better as they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from slayr_py.errors import InferenceError
from slayr_py.inference.observed import standardisation
from slayr_py.space import Encoder
from slayr_py.study import ask, config_of, create_study, tell
from slayr_py.study.model.compression import compress, compressed_unless_better, off_the_border
from slayr_py.study.model.fit_cache import Cache
from slayr_py.study.results.refits import feasibility_of
from slayr_py.study.storage.attributes import FIT_KEY, suggestion_record
from slayr_py.study.storage.pieces import stored
from slayr_py.study.storage.suggestion import was_linear
from slayr_py.study.storage.trials import Results

SPACE = ConfigurationSpace({name: (0.0, 1.0) for name in "abcd"})
NAME = "constraint load"


def linear(config):
    """An excess between -0.7 and 0.9 of which half of the space has a negative one."""
    return 0.5 * config["a"] + 0.8 * config["b"] + 0.2 * config["c"] + 0.1 * config["d"] - 0.7


def steep(config):
    """Some violations are a thousand times as large as others."""
    return float(np.sinh(12.0 * linear(config)))


def asked(load, n, quick):
    """Return a study whose trial ``n`` is suggested after a design of ``n`` configurations, and their loads."""
    study = create_study(SPACE, n_initial=n, seed=1, **quick)
    loads = []
    for _ in range(n):
        trial = ask(study)
        config = config_of(trial)
        loads.append(load(config))
        trial.set_constraint("load", loads[-1])
        tell(study, trial, config["a"] - config["d"])
    ask(study)
    return study, np.array(loads)


@pytest.mark.stan
@pytest.mark.parametrize(("load", "n", "kept"), [(linear, 13, True), (linear, 10, False), (steep, 13, False)])
def test_the_form_that_predicts_the_values_better_is_learned_recorded_and_replayed(load, n, kept, quick):
    """Ten values are too few for a choice."""
    study, loads = asked(load, n, quick)
    assert suggestion_record(study.trials[n])["conditions"][NAME].get("linear", False) is kept
    learned = off_the_border(loads) if kept else compress(loads)
    assert feasibility_of(study, n)[NAME].y_sd == pytest.approx(learned.std(ddof=1))


@pytest.mark.stan
def test_a_fit_does_not_start_from_that_of_the_other_form(quick):
    study = create_study(SPACE, n_initial=9, seed=1, **quick)
    for _ in range(13):
        trial = ask(study)
        config = config_of(trial)
        trial.set_constraint("load", linear(config))
        tell(study, trial, config["a"] - config["d"])
    forms = [was_linear(suggestion_record(trial), NAME) for trial in study.trials[9:]]
    starts = [stored(trial.user_attrs, f"{FIT_KEY}:{NAME}")["start"] for trial in study.trials[9:]]
    assert forms == [False, False, True, True]
    assert [start is not None for start in starts] == [False, True, False, True]


@pytest.mark.stan
def test_the_border_of_a_linear_constraint_is_known_from_few_values(quick):
    """Values from -0.7 to 0.9 are predicted to 0.01."""
    study, _ = asked(linear, 16, quick)
    posterior = feasibility_of(study, 16)[NAME]
    configs = posterior.encoder.sobol(200, 5)
    excess = np.array([linear(config) for config in configs])
    predicted = posterior.predict(configs)
    assert np.sqrt(np.mean((predicted.mean - excess) ** 2)) < 0.01 and np.max(predicted.sd) < 0.05


@pytest.mark.stan
def test_a_constraint_whose_values_are_equal_has_no_choice(quick):
    study, _ = asked(lambda _: -2.0, 13, quick)
    assert "linear" not in suggestion_record(study.trials[13])["conditions"][NAME]


def test_values_are_compressed_if_a_fit_fails_and_a_choice_is_made_once():
    class Failing:
        encoder = Encoder(SPACE)
        fits = 0

        def fit(self, *_, **__):
            self.fits += 1
            raise InferenceError("no mode was found")

    gp, study, known = Failing(), create_study(SPACE), Cache(size=1)
    configs = gp.encoder.sobol(14, 1)
    for n in (12, 12, 13, 14):
        values = np.array([linear(config) for config in configs[:n]])
        chosen = compressed_unless_better(study, NAME, gp, Results([*range(n)], configs[:n], values), known)
        assert not chosen.linear and np.array_equal(chosen.values, compress(values))
    assert gp.fits == 2


class Normal:
    """A model that predicts a normal distribution with the mean and standard deviation of the values."""

    encoder = Encoder(SPACE)

    def __init__(self):
        self.fitted = []

    def fit(self, configs, values, **_):
        self.fitted.append(len(values))
        mean, sd = standardisation(values)
        elpd = -0.5 * (values / sd - mean / sd) ** 2 - np.log(sd)
        return SimpleNamespace(parts=[SimpleNamespace(leave_one_out=SimpleNamespace(elpd=elpd))])


def chosen_form(gp, values):
    configs = Normal.encoder.sobol(len(values), 1)
    results = Results([*range(len(values))], configs, values)
    return compressed_unless_better(create_study(SPACE), NAME, gp, results, Cache())


@pytest.mark.parametrize("unit", [1.0, 1e300, 1e-250])
def test_the_form_does_not_depend_on_the_unit(unit):
    tails = np.sinh(np.linspace(-5.0, 5.0, 13))
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        assert not chosen_form(Normal(), unit * tails).linear
        assert chosen_form(Normal(), unit * np.linspace(-5.0, 5.0, 13)).linear


def test_the_form_is_chosen_again_at_a_value_that_is_far_larger_than_all_before():
    """It would decide the scale of values that are learned as they are, until the next choice or for ever."""
    values = np.tile(np.linspace(-1.0, 1.0, 10), 10)
    gp = Normal()
    assert chosen_form(gp, values).linear and gp.fitted == [81, 81]
    values[90] = 9.0
    assert chosen_form(gp, values).linear and gp.fitted[2:] == [81, 81]
    values[93] = 1e6
    assert not chosen_form(gp, values).linear and gp.fitted[4:] == [94, 94]
    values[93], values[9] = 1.0, 1e6  # ten values are too few for a choice
    assert chosen_form(gp, values[:10]).linear is False and len(gp.fitted) == 6


def test_the_largest_numbers_are_compressed():
    largest = np.finfo(np.float64).max
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        compressed = compress(np.array([0.5, -0.5, 0.5, largest, -largest]))
        np.testing.assert_allclose(compress(np.full(10, largest)), np.arcsinh(1.0))
    np.testing.assert_allclose(compressed[3:], np.array([1, -1]) * (np.log(largest) + np.log(4.0)))
    assert not chosen_form(Normal(), np.append(np.linspace(-1, 1, 12), largest)).linear


def test_the_smallest_numbers_are_compressed():
    values = compress(np.array([5e-324, -5e-324, 5e-324, 1e-310]))
    assert np.all(np.isfinite(values)) and np.all(np.sign(values) == [1, -1, 1, 1])


def test_compressed_constraints_keep_their_signs_order_and_scale():
    values = np.array([-3.0, -0.1, 0.1, 0.2, 5.0, 900.0])
    compressed = compress(values)
    assert np.array_equal(np.sign(compressed), np.sign(values)) and np.all(np.diff(compressed) > 0)
    np.testing.assert_allclose(compress(1e6 * values), compressed, rtol=1e-12)
    # A loop that converges to the border of a constraint adds small values.
    design = np.linspace(-1.1, 2.0, 10)
    np.testing.assert_array_equal(compress(np.append(design, np.full(50, 1e-6)))[:10], compress(design))


def test_a_constraint_with_the_value_0_holds():
    compressed = compress(np.array([0.0, -2.0, 3.0, 5.0, 0.0]))
    assert np.all(compressed[[0, 4]] == np.arcsinh(-1 / 3)) and compressed[1] < compressed[0]


def test_a_constraint_that_is_always_0_counts_as_any_negative_constant():
    np.testing.assert_array_equal(compress(np.zeros(3)), compress(np.full(3, -7.0)))


def test_violations_do_not_depend_on_their_unit_if_most_values_are_0():
    violations = np.array([0.0, 0.0, 0.0, 2.0, 0.0, 3.0])
    compressed = compress(violations)
    assert np.all(compressed[violations == 0] == 0) and compressed[5] == np.arcsinh(3 / 2.5)
    np.testing.assert_allclose(compress(1e-6 * violations), compressed, rtol=1e-12)
