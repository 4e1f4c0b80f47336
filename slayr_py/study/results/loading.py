"""Open a stored study as a result."""

from __future__ import annotations

from pathlib import Path

import optuna
from optuna.storages import BaseStorage

from slayr_py.errors import DataError, did_you_mean
from slayr_py.study.results.result import Result
from slayr_py.study.sampler import space_of
from slayr_py.study.storage.attributes import study_record
from slayr_py.study.storage.integrity import check_integrity
from slayr_py.study.storage.opening import open_storage, study_names, translate_storage_errors


def load(storage: str | Path | BaseStorage, study_name: str | None = None) -> Result:
    """Open a finished or stopped study; its posterior, report and importance use the options that it stores.

    The study is without its sampler: to continue it, call `create_study` or `minimize` with its space and name.

    Parameters
    ----------
    storage : str, Path or optuna.storages.BaseStorage
        A URL such as ``sqlite:///study.db``, or the path of an SQLite file.
    study_name : str, optional
        Name of the study; may be omitted if the storage has only one.

    Returns
    -------
    Result

    Raises
    ------
    StorageError
        If the storage does not open, or the study is damaged.
    DataError
        If there is no such study, several of them and no name, or it stores no space: it was made by another sampler,
        or by a `StanGPSampler` without one.

    Examples
    --------
    >>> result = load("sqlite:///net.db", "net")            # doctest: +SKIP
    >>> result.best_config, result.optimum()                # doctest: +SKIP
    """
    with translate_storage_errors():
        opened = open_storage(storage, must_exist=True)
        if opened is None:
            raise DataError("the storage is None, which keeps nothing; give a URL such as sqlite:///study.db")
        names = study_names(opened)
        if not names:
            raise DataError("the storage has no study yet")
        if study_name is None and len(names) != 1:
            raise DataError(f"the storage has {len(names)} studies; give study_name=, one of {', '.join(names)}")
        name = names[0] if study_name is None else study_name
        if name not in names:
            raise DataError(f"the storage has no study {name!r}{did_you_mean(name, names)}")
        study = optuna.load_study(study_name=name, storage=opened)
        check_integrity(study)
    if study_record(study) is None:
        raise DataError(
            f"study {name!r} was made by another sampler, or without a space, so that it stores none; pass its trials "
            "to a new study: slayr_py.minimize(objective, space, history=study.trials_dataframe())"
        )
    return Result(study, space_of(study))
