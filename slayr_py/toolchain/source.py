"""The text of a program with its includes, which tells one program from another by content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from slayr_py.errors import CompileError

_STAN_INCLUDE = re.compile(
    r"^[ \t]*#include[ \t]+(?:<(?P<angled>[^>\n]+)>|\"(?P<quoted>[^\"\n]+)\"|(?P<bare>[^\s<\"]+)).*$", re.M
)
_CPP_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"(?P<quoted>[^\"\n]+)\".*$", re.M)


def expand_stan(stan_file: Path, include_paths: Sequence[Path]) -> str:
    """Text of a Stan program, every ``#include`` replaced by what it includes.

    Parameters
    ----------
    stan_file
        The program.
    include_paths
        Folders searched for included files, in this order, as stanc does.

    Raises
    ------
    CompileError
        When the program or an included file cannot be read, or a file includes itself.
    """
    return _expand(stan_file, include_paths, ())


def expand_header(header: Path) -> str:
    """Text of a C++ header with the files that it includes in quotes, where they lie beside it."""

    def included(match: re.Match[str]) -> str:
        path = header.parent / match["quoted"]
        return expand_header(path) if path.is_file() else match[0]

    # A guarded header may be included twice, and twice it is read: the text is for hashing only.
    return _CPP_INCLUDE.sub(included, _read(header))


def _expand(path: Path, include_paths: Sequence[Path], open_files: tuple[Path, ...]) -> str:
    if path in open_files:
        raise CompileError(f"{path} includes itself, by way of {' and '.join(str(file) for file in open_files)}")

    def included(match: re.Match[str]) -> str:
        name = match["angled"] or match["quoted"] or match["bare"]
        for folder in include_paths:
            if (folder / name).is_file():
                return _expand((folder / name).resolve(), include_paths, (*open_files, path))
        searched = ", ".join(str(folder) for folder in include_paths)
        raise CompileError(f"{path} includes {name}, which is in none of the include paths: {searched}")

    return _STAN_INCLUDE.sub(included, _read(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"cannot read {path}: {error}") from error
