"""Find a study by its file or URL, and its name if there are several."""

from __future__ import annotations

from pathlib import Path

import optuna
import sqlalchemy

from slayr_py.errors import DataError, StorageError
from slayr_py.study import check_integrity, open_storage, study_names

_SQLITE = b"SQLite format 3\x00"
_OF_EXPERIMENTS = (".toml", ".csv")


def is_study(text: str) -> bool:
    """Whether a text is a storage URL or the path of an SQLite file."""
    if "://" in text:
        return True
    try:
        with open(text, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def study_argument(url: str) -> str:
    """Return what :func:`load_study` accepts as a study: the path of an SQLite file, else the URL."""
    parsed = sqlalchemy.make_url(url)
    path = parsed.database or ""
    is_path = parsed.drivername == "sqlite" and not parsed.query and not {"?", "%"}.intersection(path)
    return path if is_path and not path.startswith(("file:", "-")) else url


def load_study(study: str, study_name: str | None) -> optuna.Study:
    """Open a stored study and check its integrity.

    Parameters
    ----------
    study : str
        An SQLite file or a storage URL.
    study_name : str or None
        Needed if the storage has several studies.

    Raises
    ------
    StorageError
        If the storage does not open, has no study, or the study is damaged.
    DataError
        If the file is a configuration or a table, there is no study of that name, or several and no name is given.
    """
    if Path(study).suffix.lower() in _OF_EXPERIMENTS:
        raise DataError(
            f"{study} is not a study but a configuration file or a table; slayr optimize stores a study, and slayr "
            "suggest CONFIG --history TABLE --report FILE writes a page about a table"
        )
    url = study if "://" in study else f"sqlite:///{Path(study).as_posix()}"
    storage = open_storage(url, must_exist=True)
    assert storage is not None
    try:
        names = study_names(storage)
    except Exception as error:  # the driver raises many types for other databases
        raise StorageError(
            f"{study} opens, but has no readable Optuna studies: restore a copy, or choose another"
        ) from error
    if not names:
        raise StorageError(f"{study} has no study yet")
    if study_name is None and len(names) > 1:
        raise DataError(f"{study} has several studies: choose one with --study-name: {', '.join(names)}")
    if study_name is not None and study_name not in names:
        raise DataError(f"{study} has no study {study_name!r}; it has {', '.join(names)}")
    loaded = optuna.load_study(study_name=study_name or names[0], storage=storage)
    check_integrity(loaded)
    return loaded
