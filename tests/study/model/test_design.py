"""New points where those of a design cannot be used."""

from __future__ import annotations

from itertools import product

import numpy as np
import optuna
from ConfigSpace import ConfigurationSpace

from slayr_py.space import Encoder
from slayr_py.study.model.design import Design


class Level(int):
    """A value that counts how often it is compared; equal ones have one hash."""

    times = 0

    def __eq__(self, other):
        Level.times += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_the_last_configuration_of_a_space_is_found_without_comparing_all_pairs(monkeypatch):
    space = ConfigurationSpace({"a": (1, 20), "b": (1, 20)})
    everything = [{"a": Level(a), "b": Level(b)} for a, b in product(range(1, 21), repeat=2)]
    last = everything.pop()
    monkeypatch.setattr(Design, "unavailable", lambda self, study, trial, fixed: everything)
    study = optuna.create_study()
    trial = study._storage.get_trial(study.ask()._trial_id)
    found = Design(Encoder(space), 10, None, None, noisy=False).fill(study, trial, np.random.SeedSequence(1), None)
    assert found == last
    assert Level.times < 20 * len(everything)  # about 400 * 400 for all pairs
