"""A study as commands name it: a file or a URL, and a name where there are several."""

from __future__ import annotations

from pathlib import Path

import optuna

from slayr_py.errors import DataError, StorageError
from slayr_py.study.storage.integrity import check_stored
from slayr_py.study.storage.opening import open_storage, study_names

_SQLITE = b"SQLite format 3\x00"


def is_study(text: str) -> bool:
    """Whether this names a storage of studies: a URL, or an SQLite file."""
    if "://" in text:
        return True
    try:
        with open(text, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def load_study(study: str, study_name: str | None) -> optuna.Study:
    """Open a stored study and check that it is whole.

    Parameters
    ----------
    study : str
        An SQLite file or a storage URL.
    study_name : str or None
        Needed when the storage holds several.

    Raises
    ------
    StorageError
        The storage does not open, holds no study, or a damaged one.
    DataError
        No study of that name, or several and no name.
    """
    url = study if "://" in study else f"sqlite:///{Path(study).as_posix()}"
    storage = open_storage(url, must_exist=True)
    assert storage is not None
    try:
        names = study_names(storage)
    except Exception as error:  # whatever the driver makes of a file that is no study
        raise StorageError(
            f"{study} opens, but holds no studies of Optuna's that can be read: restore a copy, or name another"
        ) from error
    if not names:
        raise StorageError(f"{study} holds no study yet")
    if study_name is None and len(names) > 1:
        raise DataError(f"{study} holds several studies: choose one with --study-name: {', '.join(names)}")
    if study_name is not None and study_name not in names:
        raise DataError(f"{study} has no study {study_name!r}; it holds {', '.join(names)}")
    loaded = optuna.load_study(study_name=study_name or names[0], storage=storage)
    check_stored(loaded)
    return loaded
