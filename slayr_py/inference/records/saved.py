"""A posterior's folder: ``record.json``, ``data.json``, and its data tree as ``posterior.nc`` or ``posterior.zarr``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr

from slayr_py.errors import DataError, StorageError, did_you_mean
from slayr_py.inference.model import Model
from slayr_py.inference.sampling.run_folder import private_folder

Format = Literal["netcdf", "zarr"]

_TREES: dict[Format, str] = {"netcdf": "posterior.nc", "zarr": "posterior.zarr"}
# Version 3 of Zarr has no settled form for texts of a fixed length, which labels are.
_ZARR_FORMAT = 2
_PLAIN = re.compile(r"\|b1|[<>|][iufU][0-9]+")  # numbers, truth values and texts
_COMPRESSORS = ("blosc", "zlib", "zstd", "lz4")


def save(folder: Path, record: str, data: Mapping[str, Any], tree: xr.DataTree, form: Format) -> None:
    """Write a posterior's files; the folder is made if need be.

    Raises
    ------
    DataError
        For an unknown format.
    StorageError
        If it cannot be written.
    """
    if form not in get_args(Format):
        raise DataError(f"unknown format {form!r}{did_you_mean(form, get_args(Format))}")
    if form == "zarr":
        _require_zarr()
    plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Written beside and moved when all of it is on the disk: a full one leaves an older posterior as it was.
        with private_folder(".slayr-save-", folder) as beside:
            (beside / "data.json").write_text(json.dumps(plain) + "\n", encoding="utf-8")
            (beside / "record.json").write_text(record, encoding="utf-8")
            if form == "netcdf":
                tree.to_netcdf(beside / _TREES[form])
            else:
                tree.to_zarr(beside / _TREES[form], zarr_format=_ZARR_FORMAT)
            # A folder is replaced by another only if it is empty; what is moved here goes with the temporary folder.
            if (folder / _TREES[form]).is_dir():
                os.replace(folder / _TREES[form], beside / "older")
            for name in ("data.json", _TREES[form], "record.json"):
                os.replace(beside / name, folder / name)
            for other in _trees(folder):
                if other.name != _TREES[form]:
                    os.replace(other, beside / other.name)
    except (OSError, RuntimeError) as error:  # the NetCDF library tells of a full disk by a RuntimeError
        raise StorageError(
            f"cannot save the posterior to {folder}: {error}; make room there, or choose another folder"
        ) from error


def load(folder: Path) -> tuple[dict[str, Any], dict[str, Any], xr.DataTree]:
    """Record, data of the program, and tree of a posterior, whichever format it is in.

    Raises
    ------
    StorageError
        If it is in Zarr, which is not installed.
    ValueError
        If it has no tree, or two, or one that is not made of numbers and texts.
    OSError, RuntimeError
        If it cannot be read.
    """
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    trees = _trees(folder)
    if len(trees) != 1:
        found = " and ".join(path.name for path in trees) or f"neither {' nor '.join(_TREES.values())}"
        raise ValueError(f"it has {found}, and one of them is needed")
    return record, data, _read(trees[0])


def check(model: Model, tree: xr.DataTree) -> None:
    """Raise `ValueError` unless draws, targets and configurations fit the model and each other."""
    stored, constant = tree["posterior"].to_dataset(), tree["constant_data"].to_dataset()
    labels = model.kernel.labels(model.encoder)
    for name in model.priors:
        label = labels.get(name)
        wanted = () if label is None else (len(label),)
        if wanted != (0,) and (name not in stored or stored[name].shape[2:] != wanted):
            raise ValueError(f"its draws of {name!r} are missing, or not of shape (chain, draw, *{wanted})")
    n, dimensions = len(tree["observed_data"]["y"]), len(model.encoder.dimensions)
    if constant["values"].shape != (n, dimensions) or constant["active"].shape != (n, dimensions):
        raise ValueError(f"it has {n} targets and configurations of shape {constant['values'].shape}")
    mean, sd = float(constant["y_mean"]), float(constant["y_sd"])
    if not (np.isfinite(mean) and sd > 0):
        raise ValueError(f"its targets have the mean {mean} and the standard deviation {sd}")


def _trees(folder: Path) -> list[Path]:
    return [folder / name for name in _TREES.values() if (folder / name).exists()]


def _read(path: Path) -> xr.DataTree:
    options: dict[str, Any] = {}
    if path.name == _TREES["zarr"]:
        _require_zarr()
        _check_zarr(path)
        options = {"engine": "zarr", "zarr_format": _ZARR_FORMAT, "consolidated": False}
    with xr.open_datatree(path, **options) as stored:
        return stored.load()


def _check_zarr(path: Path) -> None:
    """Raise ``ValueError`` unless nothing but numbers and texts in plain files is in there.

    A Zarr array says itself how it is to be decoded, and one of the ways is to unpickle objects.
    """
    for entry in path.rglob("*"):
        if entry.is_symlink() or not (entry.is_dir() or entry.is_file()):
            raise ValueError(f"{entry.name!r} in it is neither a file nor a folder")
        if entry.name == "zarr.json":
            raise ValueError("it is in version 3 of Zarr's format, and version 2 is written")
        if entry.name == ".zarray":
            about = json.loads(entry.read_text(encoding="utf-8"))
            kind, compressor = about["dtype"], about["compressor"]
            if not isinstance(kind, str) or not _PLAIN.fullmatch(kind):
                raise ValueError(f"its array {entry.parent.name!r} is of the type {kind!r}, neither numbers nor texts")
            if about["filters"] is not None or (compressor is not None and compressor["id"] not in _COMPRESSORS):
                raise ValueError(f"its array {entry.parent.name!r} is encoded in a way that is not ours")


def _require_zarr() -> None:
    if find_spec("zarr") is None:
        raise StorageError("the format 'zarr' needs the package zarr: pip install 'slayr-py[zarr]'")
