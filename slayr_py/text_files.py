"""Read text files, with errors that name the file."""

from __future__ import annotations

from pathlib import Path

from slayr_py.errors import SlayrError


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
        raise error(f"{path} cannot be read: {reason}; save it as UTF-8") from reason
    except (OSError, ValueError) as reason:  # ValueError for a null character in the path
        raise error(f"{path} cannot be read: {reason}") from reason
