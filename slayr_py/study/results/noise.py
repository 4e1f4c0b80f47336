"""Whether the values of a study are partly luck: it is declared noisy, or trials have known errors."""

from __future__ import annotations

from optuna import Study

from slayr_py.study.results.tables import feasible_trials
from slayr_py.study.sampler import stan_sampler_of
from slayr_py.study.storage.attributes import study_record
from slayr_py.study.storage.trials import has_known_error


def is_noisy(study: Study) -> bool:
    """Return whether the best value may be partly luck: the study is declared noisy, or it has errors.

    They are known errors of feasible values, as for the loop's `counts_as_noisy`.
    """
    return is_declared_noisy(study) or any(has_known_error(trial) for trial in feasible_trials(study))


def is_declared_noisy(study: Study) -> bool:
    """Return whether the objective was declared noisy."""
    sampler = stan_sampler_of(study)
    record = study_record(study) or {}
    return sampler.options.noisy if sampler is not None else record.get("noisy") is True


def is_exact(study: Study) -> bool:
    """Return whether the observed values are those of the objective: it is declared free of noise, and has no errors.

    Without a sampler or a record of this package nothing is known about the noise.
    """
    declared = stan_sampler_of(study) is not None or study_record(study) is not None
    return declared and not is_noisy(study)
