"""A posterior's folder: ``record.json``, ``data.json``, and its data tree as ``posterior.nc`` or ``posterior.zarr``.

A stack's folder has ``stack.json`` and a folder of this kind for each part.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr

from slayr_py.errors import DataError, StorageError, did_you_mean
from slayr_py.inference.diagnostics.arviz_tree import arviz_tree, groups_of
from slayr_py.inference.model import Model
from slayr_py.inference.records.record import array_digest
from slayr_py.inference.sampling.run_folder import private_folder

Format = Literal["netcdf", "zarr"]

STACK_FILE = "stack.json"
PART = "part_"
"""Name of a part of a stack, followed by its number."""

_RECORD = "record.json"
_DATA = "data.json"
_TREES: dict[Format, str] = {"netcdf": "posterior.nc", "zarr": "posterior.zarr"}
# Version 3 of Zarr has no stable encoding of fixed-length strings, which labels are.
_ZARR_FORMAT = 2
_PLAIN = re.compile(r"\|b1|[<>|][iufU][0-9]+")  # numbers, booleans and strings
_COMPRESSORS = ("blosc", "zlib", "zstd", "lz4")
_TEMPORARY = ".slayr-save-"
_OLDER = "older"  # folder in the temporary one for what is replaced


def save(folder: Path, record: str, data: Mapping[str, Any], tree: xr.DataTree, form: Format) -> None:
    """Write a posterior's files; create the folder if it does not exist.

    Raises
    ------
    DataError
        For an unknown format.
    StorageError
        If the files cannot be written, or zarr is missing.
    """
    check_form(form)
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}
    try:
        with replacement(folder, (_RECORD, _DATA, _TREES[form])) as temporary:
            (temporary / _DATA).write_text(json.dumps(plain) + "\n", encoding="utf-8")
            (temporary / _RECORD).write_text(record, encoding="utf-8")
            if form == "netcdf":
                tree.to_netcdf(temporary / _TREES[form])
            else:
                tree.to_zarr(temporary / _TREES[form], zarr_format=_ZARR_FORMAT)
    except (OSError, RuntimeError) as error:  # the NetCDF library reports a full disk as a RuntimeError
        raise StorageError(
            f"cannot save the posterior to {folder}: {error}; make room there, or choose another folder"
        ) from error


def check_form(form: Format) -> None:
    """Raise `DataError` for an unknown format, and `StorageError` for Zarr without its package."""
    if form not in get_args(Format):
        raise DataError(f"unknown format {form!r}{did_you_mean(form, get_args(Format))}")
    if form == "zarr":
        _require_zarr()


@contextmanager
def replacement(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield a temporary folder for a posterior's or a stack's files, and let them replace a saved one at the end.

    If that fails, what was in the folder stays. ``record.json`` and ``stack.json`` of an older one go first, and the
    first name comes last, so that a process that is killed meanwhile leaves a folder that cannot be loaded, or an older
    stack, and no mixture of old and new.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    names : sequence of str
        What the caller writes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = _parts(folder)  # private_folder removes what killed saves left
    with private_folder(_TEMPORARY, folder) as temporary, ExitStack() as undo:
        yield temporary
        older = temporary / _OLDER
        older.mkdir()
        # The record is first: with the file of a stack first, a record that was left beside it would be loaded.
        owned = dict.fromkeys((_RECORD, STACK_FILE, _DATA, *_TREES.values(), *parts, *names))
        moves = [(folder / name, older / name) for name in owned if (folder / name).exists()]
        moves += [(temporary / name, folder / name) for name in reversed(names)]
        for source, target in moves:
            undo.callback(_move_back, target, source)
            os.replace(source, target)
        undo.pop_all()


def _parts(folder: Path) -> list[str]:
    """Return the parts of the stack in a folder, and of those that a killed save was replacing or writing there."""
    killed = [where for older in folder.glob(f"{_TEMPORARY}*/{_OLDER}") for where in (older, older.parent)]
    count = 0
    for where in (folder, *killed):
        with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):  # damaged, or of no stack
            count = max(count, len(json.loads((where / STACK_FILE).read_text(encoding="utf-8"))["parts"]))
    return [f"{PART}{k}" for k in range(count)]


def _move_back(target: Path, source: Path) -> None:
    if target.exists():  # else it was not moved
        os.replace(target, source)


def load(folder: Path) -> tuple[dict[str, Any], dict[str, Any], xr.DataTree]:
    """Read the record, the program's data and the tree of a posterior in either format.

    Raises
    ------
    StorageError
        If the tree is in Zarr format and zarr is not installed.
    ValueError
        If there is no tree or more than one, if the tree has content other than numbers and strings, if the data are
        not those of the record, or if another process replaces the files meanwhile.
    OSError, RuntimeError
        If a file cannot be read.
    """
    text = (folder / _RECORD).read_text(encoding="utf-8")
    record = json.loads(text)
    data = json.loads((folder / _DATA).read_text(encoding="utf-8"))
    trees = _trees(folder)
    if len(trees) != 1:
        present = " and ".join(path.name for path in trees) or f"neither {' nor '.join(_TREES.values())}"
        raise ValueError(f"it has {present}; a saved posterior has exactly one of them")
    tree = _read(trees[0])
    if array_digest(data) != record["data_sha256"]:
        raise ValueError(f"its {_DATA} does not belong to its {_RECORD}")
    if (folder / _RECORD).read_text(encoding="utf-8") != text:
        raise ValueError("another process replaced it meanwhile; load it again")
    return record, data, tree


def check(model: Model, tree: xr.DataTree) -> None:
    """Raise `ValueError` unless draws, targets and configurations match the model and each other."""
    stored = tree["posterior"].to_dataset()
    constant = tree["constant_data"].to_dataset()
    for h in model.hyperparameters:
        if h.shape != (0,) and (h.name not in stored or stored[h.name].shape[2:] != h.shape):
            raise ValueError(f"its draws of {h.name!r} are missing or do not have the shape (chain, draw, *{h.shape})")
    n = len(tree["observed_data"]["y"])
    dimensions = len(model.encoder.dimensions)
    if constant["values"].shape != (n, dimensions) or constant["active"].shape != (n, dimensions):
        raise ValueError(f"it has {n} targets and configurations of shape {constant['values'].shape}")
    mean = float(constant["y_mean"])
    sd = float(constant["y_sd"])
    if not (np.isfinite(mean) and abs(sd) > 0):  # negative if larger values are better
        raise ValueError(f"its targets have mean {mean} and standard deviation {sd}")


def _trees(folder: Path) -> list[Path]:
    return [folder / name for name in _TREES.values() if (folder / name).exists()]


def _read(path: Path) -> xr.DataTree:
    options: dict[str, Any] = {}
    if path.name == _TREES["zarr"]:
        _require_zarr()
        _check_zarr(path)
        options = {"engine": "zarr", "zarr_format": _ZARR_FORMAT, "consolidated": False}
    with xr.open_datatree(path, **options) as stored:
        return arviz_tree(groups_of(stored.load()))


def _check_zarr(path: Path) -> None:
    """Raise ``ValueError`` unless the folder has only plain files with numbers and strings.

    The metadata of a Zarr array name its decoder, and one of the decoders unpickles objects.
    """
    for entry in path.rglob("*"):
        if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
            raise ValueError(f"{entry.name!r} in it is neither a file nor a folder")
        if entry.name == "zarr.json":
            raise ValueError("it is in version 3 of the Zarr format; only version 2 is supported")
        if entry.name == ".zarray":
            array = json.loads(entry.read_text(encoding="utf-8"))
            kind = array["dtype"]
            compressor = array["compressor"]
            if not isinstance(kind, str) or not _PLAIN.fullmatch(kind):
                raise ValueError(f"its array {entry.parent.name!r} has type {kind!r}, neither numbers nor strings")
            if array["filters"] is not None or (compressor is not None and compressor["id"] not in _COMPRESSORS):
                raise ValueError(f"its array {entry.parent.name!r} has an unsupported filter or compressor")


def _require_zarr() -> None:
    if find_spec("zarr") is None:
        raise StorageError("the format 'zarr' needs the package zarr; install it with pip install 'slayr-py[zarr]'")
