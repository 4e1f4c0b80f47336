"""Recognise that no configuration of a small discrete space is left: another evaluation would be a repetition."""

from __future__ import annotations

from collections.abc import Iterable

from ConfigSpace import Configuration
from optuna import Study
from optuna.trial import TrialState

from slayr_py.acquisition import enumeration, keys
from slayr_py.space import Encoder, Fixed
from slayr_py.study.storage.reading import trials_of
from slayr_py.study.storage.trials import excluded, is_tried, trial_configuration


class Everything:
    """All configurations of a space that have the fixed values, if they are few enough to be enumerated.

    Parameters
    ----------
    encoder : Encoder
    fixed : Fixed, optional

    Attributes
    ----------
    keys : frozenset of bytes or None
        One for each configuration; None if they are too many, or have a float.
    """

    def __init__(self, encoder: Encoder, fixed: Fixed | None) -> None:
        self.encoder = encoder
        self.fixed = fixed
        self.keys: frozenset[bytes] | None = None
        if (genotypes := enumeration(encoder, fixed)) is not None:
            encoded, allowed = encoder.resolve(genotypes, fixed)
            self.keys = frozenset(keys(encoded[allowed]))

    def are_tried(self, study: Study, failures: str) -> bool:
        """Return whether each configuration is evaluated or running: see `is_tried`."""
        if not self.keys:
            return False
        tried = [trial for trial in trials_of(study) if is_tried(trial, failures)]
        if len(tried) < len(self.keys):
            return False  # without reading them
        configs = [trial_configuration(trial, self.encoder.space) for trial in tried]
        return self.keys <= set(keys(self.encoder.encode([config for config in configs if config is not None])))

    def __str__(self) -> str:
        """Return the configurations as a subject with its verb, before "evaluated" or "running"."""
        given = "" if self.fixed is None else f" with the fixed values {dict(self.fixed.values)}"
        count = len(self.keys or ())
        return f"the only configuration{given} is" if count == 1 else f"all {count} configurations{given} are"


def avoided(
    study: Study,
    encoder: Encoder,
    fixed: Fixed | None,
    failures: str,
    running: Iterable[Configuration],
    repeatable: Iterable[Configuration] = (),
) -> list[Configuration]:
    """Return the configurations of finished trials that a suggestion avoids, except the repeatable ones.

    Failed ones that are not tried, see `is_tried`, are not avoided if a small discrete space has no other one left.
    """
    known = excluded(study, encoder.space, repeatable)
    if all(is_tried(trial, failures) for trial in trials_of(study, (TrialState.FAIL,))):
        return known
    everything = Everything(encoder, fixed).keys
    if everything is None or not everything <= set(keys(encoder.encode([*known, *running]))):
        return known
    return excluded(study, encoder.space, repeatable, lambda trial: is_tried(trial, failures))
