"""Ask and tell: a study of Optuna's own, made to fit a ConfigSpace space."""

from __future__ import annotations

from typing import Any

import optuna
from ConfigSpace import ConfigurationSpace
from optuna import Study, Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from slayr_py.errors import DataError, SpaceError
from slayr_py.space import Encoder, space_from_json
from slayr_py.study.distributions import is_active, space_to_distributions
from slayr_py.study.sampler import StanGPSampler, sampler_of
from slayr_py.study.storage.attributes import study_record
from slayr_py.study.storage.integrity import check_stored
from slayr_py.study.storage.opening import open_storage, storage_failures


def create_study(
    space: ConfigurationSpace | Encoder,
    *,
    storage: str | BaseStorage | None = None,
    study_name: str | None = None,
    direction: str = "minimize",
    **options: Any,
) -> Study:
    """Create a study of a space, or go on with the one of that name.

    Parameters
    ----------
    space : ConfigurationSpace or Encoder
        The search space; an `Encoder` of it carries graphs of one's own.
    storage : str or optuna.storages.BaseStorage, optional
        A URL such as ``sqlite:///study.db``; without one the study lives in memory.
    study_name : str, optional
        The name to resume it by; without one Optuna makes a new name, and so a new study.
    direction : {"minimize", "maximize"}
        What is better.
    **options
        Of `StanGPSampler`.

    Returns
    -------
    optuna.Study
        With a `StanGPSampler`; everything Optuna does with a study works.

    Raises
    ------
    StorageError
        The storage does not open or cannot be written, or its study is damaged.
    DataError
        An illegal option, or a study of that name with another direction or seed.
    SpaceError
        An illegal space, or a study of that name with another space.

    Examples
    --------
    >>> study = create_study(space, n_initial=5, seed=1)        # doctest: +SKIP
    >>> trial = ask(study)                                      # doctest: +SKIP
    >>> tell(study, trial, objective(config_of(trial)))         # doctest: +SKIP
    """
    if direction not in ("minimize", "maximize"):
        raise DataError(f'direction must be "minimize" or "maximize", not {direction!r}')
    sampler = StanGPSampler(space, **options)
    with storage_failures():
        study = optuna.create_study(
            storage=open_storage(storage),
            study_name=study_name,
            direction=StudyDirection[direction.upper()],
            sampler=sampler,
            load_if_exists=True,
        )
        check_stored(study)
        if study.direction.name.lower() != direction:
            raise DataError(
                f"study {study.study_name!r} was started with direction {study.direction.name.lower()!r}, "
                f"not {direction!r}; choose another study name"
            )
        sampler.bind(study)
    return study


def space_of(study: Study) -> ConfigurationSpace:
    """Give the space a study was declared with.

    Raises
    ------
    SpaceError
        The study was not made here, so it has none.
    """
    if (sampler := sampler_of(study)) is not None:
        return sampler.space
    record = study_record(study)
    if record is None:
        raise SpaceError(
            f"study {study.study_name!r} has no declared space: create it with slayr_py.study.create_study"
        )
    return space_from_json(record["space"])


def ask(study: Study) -> Trial:
    """Ask for a trial with every active parameter of the declared space suggested.

    Returns
    -------
    optuna.Trial
        `config_of` reads its configuration; `tell` (Optuna's) finishes it.

    Raises
    ------
    StorageError
        The storage failed.
    """
    with storage_failures():
        trial = study.ask()
        suggest_all(trial, space_of(study))
    return trial


def suggest_all(trial: Trial, space: ConfigurationSpace) -> dict[str, Any]:
    """Suggest every active parameter of a space in a trial, parents before children, and give them by name."""
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
    """Give a trial's configuration: its active parameters by name, as plain Python values."""
    return dict(trial.params)


def tell(
    study: Study,
    trial: Trial | int,
    value: float | None = None,
    state: optuna.trial.TrialState | None = None,
) -> FrozenTrial:
    """Finish a trial: Optuna's own `Study.tell`, under the name one looks for beside `ask`.

    Raises
    ------
    StorageError
        The storage failed: `value` is not stored, and may be told again.
    """
    with storage_failures():
        return study.tell(trial, value, state)
