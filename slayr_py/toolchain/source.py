"""Expand the includes of a program and remove its comments, so that programs can be compared by content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from slayr_py.errors import CompileError

_STAN_INCLUDE = re.compile(
    r"^[ \t]*#include[ \t]+(?:<(?P<angled>[^>\n]+)>|\"(?P<quoted>[^\"\n]+)\"|(?P<bare>[^\s<\"]+)).*$", re.M
)
_STAN_LAYOUT = re.compile(r"(?P<kept>\"[^\"\n]*\")|(?:\s|//[^\n]*|/\*.*?\*/)+", re.S)
_CPP_LITERAL = r"(?P<kept>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
_CPP_COMMENT = re.compile(_CPP_LITERAL + r"|//(?:\\\n|[^\n])*|/\*.*?\*/", re.S)
_CPP_LAYOUT = re.compile(_CPP_LITERAL + r"|(?P<line>[^\S\n]*\n\s*)|[^\S\n]+")
# Text in which a quotation mark may be something else than the limit of a literal.
_CPP_AMBIGUOUS = re.compile(r"R\"|[0-9a-fA-F]'[0-9a-fA-F]")
_CPP_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"(?P<quoted>[^\"\n]+)\".*$", re.M)


def stan_code(stan_file: Path, include_paths: Sequence[Path]) -> str:
    """Return the code of a program with its includes, without comments and layout; see :func:`expand_stan`."""
    text = expand_stan(stan_file, include_paths)
    return _STAN_LAYOUT.sub(lambda match: match["kept"] or " ", text).strip()


def cpp_code(header: Path) -> str:
    """Return the code of a header with its includes, without comments and layout; see :func:`expand_header`.

    A header with raw strings or digit separators is returned as it is.
    """
    text = expand_header(header)
    if _CPP_AMBIGUOUS.search(text):
        return text
    text = _CPP_COMMENT.sub(lambda match: match["kept"] or " ", text)
    return _CPP_LAYOUT.sub(lambda match: match["kept"] or ("\n" if match["line"] else " "), text).strip()


def expand_stan(stan_file: Path, include_paths: Sequence[Path]) -> str:
    """Return the text of a Stan program with every ``#include`` replaced by the included file.

    Parameters
    ----------
    stan_file
        The program.
    include_paths
        Folders searched for included files, in this order, as in stanc.

    Raises
    ------
    CompileError
        If the program or an included file cannot be read, or a file includes itself.
    """
    return _expand(stan_file, include_paths, ())


def expand_header(header: Path) -> str:
    """Return the text of a C++ header, with quoted includes replaced if the files exist relative to its folder."""

    def included(match: re.Match[str]) -> str:
        path = header.parent / match["quoted"]
        return expand_header(path) if path.is_file() else match[0]

    # A header that is included twice is expanded twice; its guard makes the second copy empty.
    return _CPP_INCLUDE.sub(included, _read(header))


def _expand(path: Path, include_paths: Sequence[Path], open_files: tuple[Path, ...]) -> str:
    if path in open_files:
        raise CompileError(f"{path} includes itself through {' and '.join(str(file) for file in open_files)}")

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
