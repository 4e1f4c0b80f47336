"""Exit codes of ``slayr``."""

from __future__ import annotations

from slayr_py.errors import DataError, SlayrError, SpaceError, StorageError, ToolchainError

FAILED = 1  # a study, an objective or a fit failed, or any other error
USAGE = 2  # data or spaces that cannot be used; Click has the same code for wrong arguments
TOOLCHAIN = 3  # CmdStan or the compiler
STORAGE = 4  # files and databases
INTERRUPTED = 130  # 128 + SIGINT, as in shells

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
