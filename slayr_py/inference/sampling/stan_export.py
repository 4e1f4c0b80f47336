"""Export the accelerated log densities, so that any Stan program can use them."""

from __future__ import annotations

import os
from pathlib import Path

from slayr_py.errors import DataError, StorageError
from slayr_py.text_files import create_text
from slayr_py.toolchain import expand_header, program_folder


def export_stan(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the log densities of Gaussian processes with analytic gradients for Stan programs of your own.

    Parameters
    ----------
    folder
        It is created if it does not exist. Files that it has already stay as they are if their content is the same.

    Returns
    -------
    list of Path
        ``slayr.stan``, to include in the functions block of a program; ``slayr.hpp``, the C++ header with which the
        program is compiled; and a description.

    Raises
    ------
    DataError
        If a file of these names has another content; nothing is written then.
    StorageError
        If a file cannot be read or written.

    Examples
    --------
    >>> stan, header, _ = export_stan("slayr_stan")  # doctest: +SKIP
    >>> CmdStanModel(  # doctest: +SKIP
    ...     stan_file="own.stan", user_header=header, stanc_options={"include-paths": ["slayr_stan"]}
    ... )
    """
    # A header without quoted includes, such as the other files, is read as it is.
    texts = {Path(folder) / path.name: expand_header(path) for path in (program_folder() / "export").iterdir()}
    try:
        missing = [path for path, text in texts.items() if not _has(path, text)]
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path in missing:
            create_text(path, texts[path])
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror}; use another folder") from error
    return sorted(texts, reverse=True)


def _has(path: Path, text: str) -> bool:
    """Return whether the file exists with this text."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return False
    if found != text.encode():
        raise DataError(
            f"{path} exists with another content and is not overwritten; delete or rename it, or use another folder"
        )
    return True
