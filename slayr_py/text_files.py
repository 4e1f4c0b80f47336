"""Read and write text files, with errors that name the file, and recognise the form of tables."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from slayr_py.errors import SlayrError, StorageError

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")


def read_text(path: Path, kind: str, error: type[SlayrError]) -> str:
    """Return the text of a UTF-8 file, without the byte order mark that spreadsheets and editors may write.

    Parameters
    ----------
    path : Path
    kind : str
        The file in error messages, as in "there is no <kind> <path>".
    error : type of SlayrError
        Raised if the file does not exist or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise error(f"there is no {kind} {path}") from None
    except UnicodeDecodeError as reason:
        raise error(f"{path} cannot be read: {reason}; save it as UTF-8 (in Excel: CSV UTF-8)") from reason
    except (OSError, ValueError) as reason:  # ValueError for a null character in the path
        raise error(f"{path} cannot be read: {reason}") from reason


def replace_text(path: Path, text: str) -> None:
    """Write a UTF-8 file through a temporary one, so that readers see the old text or the new one.

    Raises
    ------
    OSError
    """
    target = path.resolve()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        temporary = Path(folder) / target.name
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file; if that fails, a file that was there keeps its content.

    Raises
    ------
    StorageError
        If the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # such as /dev/stdout
            path.write_text(text, encoding="utf-8")
            return
        replace_text(path, text)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}; make room there, or name another file"
        ) from error


def create_text(path: Path, text: str) -> None:
    """Write a UTF-8 file that does not exist yet; if that fails, it does not exist afterwards either.

    Raises
    ------
    OSError
    """
    created = False
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            created = True
            file.write(text)
    except OSError:
        if created:
            path.unlink(missing_ok=True)
        raise


def check_writable(folder: Path) -> None:
    """Make a folder if it does not exist, and check that files can be written there.

    Raises
    ------
    StorageError
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x" * 4096)
    except OSError as error:
        raise StorageError(
            f"nothing can be written to {folder}: {error.strerror or error}; make room there, or name another folder"
        ) from error


def table_separator(text: str) -> tuple[str, str]:
    """Return the character between the cells of a CSV table, by its header, and the table without a line ``sep=;``.

    Excel reads and writes such a line.
    """
    if line := _SEPARATOR_LINE.match(text):
        return line[1], text[line.end() :]
    return max(_SEPARATORS, key=text.split("\n", 1)[0].count), text


def decimal_mark(separator: str, cells: Iterable[object]) -> str:
    """Return "," if the cells of a table have numbers with decimal commas, else "."."""
    if separator == ",":
        return "."
    return "," if any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells if isinstance(cell, str)) else "."


def table_note(path: Path, separator: str, decimal: str) -> str:
    """Describe the form of a table that is not separated by commas; empty for the usual form."""
    if separator == ",":
        return ""
    between = _SEPARATORS.get(separator, repr(separator))
    return f"{path.name} has {between} between cells" + " and decimal commas" * (decimal == ",")
