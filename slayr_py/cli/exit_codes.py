"""Exit codes of ``slayr``."""

from __future__ import annotations

from slayr_py.errors import DataError, SlayrError, SpaceError, StorageError, ToolchainError

FAILED = 1
USAGE = 2
TOOLCHAIN = 3
STORAGE = 4
INTERRUPTED = 130

_CODES: tuple[tuple[type[SlayrError], int], ...] = (
    (ToolchainError, TOOLCHAIN),
    (StorageError, STORAGE),
    (DataError, USAGE),
    (SpaceError, USAGE),
    (SlayrError, FAILED),
)


def exit_code(error: SlayrError) -> int:
    """Return the exit code for an error."""
    return next(code for kind, code in _CODES if isinstance(error, kind))
