"""Tables of the front of several objectives, from posteriors and drawn fronts that are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from optuna.trial import TrialState

from slayr_py.space import Encoder
from slayr_py.study import ask, create_study, tell
from slayr_py.study.model.incumbent import front_of
from slayr_py.study.results import front
from slayr_py.study.results.front import (
    beliefs_at_front,
    front_band,
    front_probabilities,
    front_table,
    reference_of,
    with_probabilities,
)
from slayr_py.study.storage.trials import observations_of_all

SPACE = {"x": (0.0, 1.0)}
GOALS = {"gain": "maximize", "loss": "minimize"}


def told(*values, directions=GOALS, **options):
    study = create_study(SPACE, directions=directions, n_initial=9, seed=1, **options)
    for each in values:
        tell(study, ask(study), each)
    return study


class Certain:
    """A posterior of which every function has these values at the trials."""

    encoder = Encoder(SPACE)
    train = None  # read by what the tests of the band replace

    def __init__(self, values):
        self.values = values
        self.seeds = []

    def sample(self, configs, n, seed):
        self.seeds.append(seed)
        return np.tile(self.values, (n, 1))


def test_the_front_begins_with_the_best_first_value_also_if_larger_is_better():
    study = told((1.0, 1.0), (3.0, 3.0), (2.0, 2.0), (1.5, 4.0))
    assert front_table(study)["number"].tolist() == [1, 2, 0]


def test_the_probability_of_the_front_follows_the_directions_and_draws_each_objective_by_itself():
    study = told((1.0, 1.0), (1.5, 4.0), (3.0, 3.0), noisy=True)
    posteriors = [Certain([1.0, 1.5, 3.0]), Certain([1.0, 4.0, 3.0])]
    table = front_probabilities(study, posteriors, {}, 8, 1)
    assert table["number"].tolist() == [0, 2, 1] and table["probability"].tolist() == [1.0, 1.0, 0.0]
    assert posteriors[0].seeds != posteriors[1].seeds


def test_without_noise_the_front_is_that_of_the_values():
    study = told((1.0, 1.0), (1.5, 4.0), (1.5, 4.0), (3.0, 3.0))
    table = front_probabilities(study, [], {}, 8, 1)
    assert table["number"].tolist() == [0, 3, 1, 2]
    assert table["probability"].tolist() == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("noisy", [False, True])
def test_the_probability_of_the_front_is_that_among_the_fixed_values(noisy):
    past = pd.DataFrame({"x": [0.5], "y": [2.0], "gain": [9.0], "loss": [0.5]})  # better than all with y = 1
    space = {"x": (0.0, 1.0), "y": (0.0, 3.0)}
    options = {"directions": GOALS, "n_initial": 9, "seed": 1, "fixed": {"y": 1.0}, "noisy": noisy}
    study = create_study(space, history=past, **options)
    for values in ((2.0, 2.0), (3.0, 3.0), (1.0, 3.0)):
        tell(study, ask(study), values)
    posteriors = [Certain([2.0, 3.0, 1.0]), Certain([2.0, 3.0, 3.0])]
    for posterior in posteriors:
        posterior.encoder = Encoder(space)
    table = front_probabilities(study, posteriors, {}, 8, 1)
    assert table["probability"].tolist() == [1.0, 1.0, 0.0]
    assert sorted(table["number"][:2]) == sorted(front_table(study)["number"])


def test_repetitions_have_the_same_probability_of_being_on_the_front():
    study = create_study(SPACE, directions=GOALS, n_initial=9, seed=1, noisy=True)
    for x, values in ((0.2, (1.0, 1.0)), (0.2, (1.1, 1.2)), (0.8, (0.5, 3.0)), (0.2, (0.9, 1.1))):
        study.enqueue_trial({"x": x})
        tell(study, ask(study), values)
    table = front_probabilities(study, [Certain([1.0, 0.5]), Certain([1.0, 3.0])], {}, 8, 1)
    assert table["number"].tolist() == [0, 1, 3, 2] and table["probability"].tolist() == [1.0, 1.0, 1.0, 0.0]


def test_only_other_trials_are_named_as_probably_on_the_front():
    probabilities = pd.DataFrame({"number": [0, 1, 2, 3], "probability": [0.9, 0.8, 0.3, 0.5]})
    table, others = with_probabilities(pd.DataFrame({"number": [2, 0]}), probabilities)
    assert table["probability"].tolist() == [0.3, 0.9] and others == "1 (0.80)"


def test_beliefs_are_those_at_the_trials_of_the_front_if_others_have_failed():
    study = create_study(SPACE, directions=GOALS, n_initial=9, seed=1)
    tell(study, ask(study), state=TrialState.FAIL)
    for values in ((3.0, 3.0), (1.0, 4.0), (1.0, 1.0), (1.0, 5.0)):
        tell(study, ask(study), values)

    def posterior(offset):
        def predict(rows):
            return SimpleNamespace(centre_and_spread=lambda: (offset + rows, 0.1 * offset + rows))

        return SimpleNamespace(encoder=Certain.encoder, train=np.arange(4.0), predict=predict)

    centres, spreads = beliefs_at_front(study, [posterior(10.0), posterior(20.0)])
    assert centres.tolist() == [[10.0, 20.0], [12.0, 22.0]] and spreads.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_reference_point_is_that_of_the_sampler_or_worse_than_the_front_in_each_direction():
    values = ((1.0, 1.0), (3.0, 3.0))
    assert reference_of(told(*values)).tolist() == [-1.0, 5.0]
    assert reference_of(told(*values, reference_point=[0.0, 9.0])).tolist() == [0.0, 9.0]


def test_the_reference_point_is_that_of_the_loop_also_if_values_are_far():
    study = create_study(SPACE, directions=GOALS, n_initial=9, seed=1)
    for value, excess in ((1.0, -1.0), (2.0, -1.0), (3.0, -1.0), (1e4, -1.0), (90.0, 1.0)):
        trial = ask(study)
        trial.set_constraint("heat", excess)
        tell(study, trial, (-value, value))
    observed = observations_of_all(study, Certain.encoder.space)
    used = front_of(study, observed, [SimpleNamespace(train=None)], None, False, None).reference
    assert observed[0].far.any() and reference_of(study).tolist() == used.tolist()


@pytest.mark.parametrize(
    ("directions", "reference", "places", "median"),
    [
        (GOALS, (0.0, 10.0), [2.0, 1.0, 0.0], [4.5, 3.5, 3.5]),
        ({"loss": "minimize", "gain": "maximize"}, (3.0, 0.0), [1.0, 2.0, 3.0], [3.5, 4.5, 4.5]),
    ],
)
def test_the_band_has_the_best_second_value_of_the_drawn_fronts(monkeypatch, directions, reference, places, median):
    drawn = [np.array([[2.0, second], [1.0, second - 1]]) for second in np.linspace(4, 5, 101)]
    task = SimpleNamespace(reference=np.array(reference))
    monkeypatch.setattr(front, "front_task", lambda *_: task)
    monkeypatch.setattr(front, "draw_fronts", lambda *_: SimpleNamespace(fronts=drawn))
    posteriors = [Certain([1.0]), Certain([1.0])]
    band = front_band(told((1.0, 1.0), directions=directions), posteriors, {}, 0.8, 3, 1)
    assert band[next(iter(directions))].tolist() == places
    np.testing.assert_allclose(band[["low", "median", "high"]], np.add.outer(median, [-0.4, 0.0, 0.4]))
    drawn[:] = [np.empty((0, 2))] * 3
    nowhere = front_band(told((1.0, 1.0), directions=directions), posteriors, {}, 0.8, 3, 1)
    np.testing.assert_array_equal(nowhere, [[reference[0], *[reference[1]] * 3]] * 3)
