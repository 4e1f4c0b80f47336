"""Ask and tell with an Optuna study of a ConfigSpace space."""

from __future__ import annotations

from typing import Any

import optuna
from ConfigSpace import ConfigurationSpace
from optuna import Study, Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial
from typing_extensions import Unpack

from slayr_py.errors import DataError, SpaceError
from slayr_py.space import Encoder, space_from_json
from slayr_py.study.distributions import is_active, space_to_distributions
from slayr_py.study.sampler import SamplerKeywords, StanGPSampler, sampler_of
from slayr_py.study.storage.attributes import study_record
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.opening import open_storage, translate_storage_errors


def create_study(
    space: ConfigurationSpace | Encoder,
    *,
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    direction: str = "minimize",
    **options: Unpack[SamplerKeywords],
) -> Study:
    """Create a study of a space, or resume the study of that name.

    Parameters
    ----------
    space : ConfigurationSpace or Encoder
        The search space; an `Encoder` also has graphs.
    storage : str or optuna.storages.BaseStorage, optional
        A URL such as ``sqlite:///study.db``; by default the study is kept in memory.
    study_name : str, optional
        Name of the study to create or resume; by default a new study gets a name from Optuna.
    direction : {"minimize", "maximize"}
        Direction of the optimisation.
    **options
        Arguments of `StanGPSampler`, fit options included.

    Returns
    -------
    optuna.Study
        An ordinary study with a `StanGPSampler`.

    Raises
    ------
    StorageError
        If the storage does not open or cannot be written, or its study is damaged.
    DataError
        For an illegal option, or if the study of that name has another direction or seed.
    SpaceError
        For an illegal space, or if the study of that name has another space.

    Examples
    --------
    >>> study = create_study(space, n_initial=5, seed=1)        # doctest: +SKIP
    >>> trial = ask(study)                                      # doctest: +SKIP
    >>> tell(study, trial, objective(config_of(trial)))         # doctest: +SKIP
    """
    if direction not in ("minimize", "maximize"):
        raise DataError(f'direction must be "minimize" or "maximize", not {direction!r}')
    sampler = StanGPSampler(space, **options)
    with translate_storage_errors():
        study = optuna.create_study(
            storage=open_storage(storage),
            study_name=study_name,
            direction=StudyDirection[direction.upper()],
            sampler=sampler,
            load_if_exists=True,
        )
        check_integrity(study)
        if study.direction.name.lower() != direction:
            raise DataError(
                f"study {study.study_name!r} was started with direction {study.direction.name.lower()!r}, "
                f"not {direction!r}; choose another study name"
            )
        sampler.bind(study)
    return study


def space_of(study: Study) -> ConfigurationSpace:
    """Return the declared space of a study.

    Raises
    ------
    SpaceError
        If the study was not created by this package.
    """
    if (sampler := sampler_of(study)) is not None:
        return sampler.space
    record = study_record(study)
    if record is None:
        raise SpaceError(
            f"study {study.study_name!r} has no declared space: create it with slayr_py.study.create_study, or ask for "
            "trials with Optuna's study.ask()"
        )
    return space_from_json(record["space"])


def ask(study: Study) -> Trial:
    """Start a trial and suggest every active parameter of the declared space.

    Returns
    -------
    optuna.Trial
        `config_of` returns its configuration, `tell` finishes it.

    Raises
    ------
    StorageError
        If the storage fails.
    """
    with translate_storage_errors():
        space = space_of(study)
        trial = study.ask()
        suggest_all(trial, space)
    return trial


def suggest_all(trial: Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Suggest every active parameter of a space in a trial, parents before children; return them by name."""
    params: dict[str, Any] = {}
    for name, distribution in space_to_distributions(space).items():
        if is_active(space, name, params):
            params[name] = _suggest(trial, name, distribution)
    return params


def _suggest(trial: Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
    assert isinstance(distribution, CategoricalDistribution)
    return trial.suggest_categorical(name, distribution.choices)


def config_of(trial: Trial | FrozenTrial) -> dict[str, Any]:
    """Return a trial's configuration: its active parameters by name, as plain Python values."""
    return dict(trial.params)


def tell(
    study: Study,
    trial: Trial | int,
    value: float | None = None,
    state: optuna.trial.TrialState | None = None,
) -> FrozenTrial:
    """Finish a trial with its value or state, like `optuna.Study.tell`.

    Raises
    ------
    StorageError
        If the storage fails. The value is not stored; call this function again.
    """
    with translate_storage_errors():
        return study.tell(trial, value, state)
