"""``slayr example``: list the examples of the package, or write one into the working directory."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import typer

from slayr_py.errors import DataError, StorageError, did_you_mean
from slayr_py.text_files import create_text

NEEDS = {
    "architecture_search": "pip install torch",
    "tune_xgboost": "pip install xgboost-cpu (on macOS: pip install xgboost)",
}
"""Command that installs the additional package of an example."""

_PACKAGE = Path(__file__).resolve().parents[1]  # the folder of `slayr_py`


def example(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the example; without it, a list.")] = None,
) -> None:
    """Write an example into the working directory, or list the examples.

    An existing file is never overwritten.

    For example:
      slayr example
      slayr example nusvr_diabetes
    """
    for line in listing() if name is None else write(name, Path.cwd()):
        typer.echo(line)


def example_folder() -> Path:
    """Return the folder of the examples, in a checkout or an installed package.

    Raises
    ------
    StorageError
        If they are missing.
    """
    for folder in (_PACKAGE / "examples", _PACKAGE.parent / "examples"):
        if (folder / "branin.py").is_file():
            return folder
    raise StorageError(f"the examples are missing beside {_PACKAGE}; install slayr-py again")


def example_files() -> dict[str, list[Path]]:
    """Return the files of every example by its name, which is their stem; the file to run comes first."""
    files: dict[str, list[Path]] = {}
    for suffix in (".toml", ".py", ".stan"):
        for path in sorted(example_folder().glob(f"*{suffix}")):
            files.setdefault(path.stem, []).append(path)
    return {name: files[name] for name in sorted(files)}


def describe(path: Path) -> str:
    """Return the first sentence of an example: of its docstring, or of a configuration file up to the colon."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return text.partition(":")[0].removeprefix("# ")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].rstrip(".")


def listing() -> list[str]:
    """Return one line for every example: its name, its subject, and the package that it needs."""
    files = example_files()
    width = max(map(len, files))
    lines = []
    for name, paths in files.items():
        needs = f" (needs {NEEDS[name].split()[2]})" if name in NEEDS else ""
        lines.append(f"{name:<{width}}  {describe(paths[0])}{needs}")
    return lines


def write(name: str, folder: Path) -> list[str]:
    """Write the files of an example into a folder; return instructions for running it.

    Raises
    ------
    DataError
        If there is no such example, or one of its files exists already.
    StorageError
        If a file cannot be written.
    """
    files = example_files()
    if name not in files:
        raise DataError(f"there is no example {name!r}{did_you_mean(name, files)}")
    for path in files[name]:
        if (folder / path.name).exists():
            raise DataError(
                f"{path.name} exists already and is not overwritten; rename it, or run the command in another folder"
            )
    for path in files[name]:
        try:
            create_text(folder / path.name, path.read_text(encoding="utf-8"))
        except OSError as error:
            raise StorageError(
                f"{folder / path.name} cannot be written: {error.strerror}; use another folder"
            ) from None
    first = files[name][0]
    lines = [f"wrote {' and '.join(path.name for path in files[name])}"]
    if name in NEEDS:
        lines.append(f"it needs another package: {NEEDS[name]}")
    return [*lines, f"run it:  {'slayr optimize' if first.suffix == '.toml' else 'python'} {first.name}"]
