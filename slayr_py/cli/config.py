"""Read and check the TOML configuration files of ``slayr optimize``.

An unknown key raises an error with the nearest known key; a wrong type or value raises an error with its place. Paths
in a configuration file are relative to the folder of the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import signature
from pathlib import Path
from typing import Any

import pandas as pd
import typer
from ConfigSpace import ConfigurationSpace

from slayr_py.acquisition import (
    BELIEF_FAMILIES,
    Acquisition,
    from_name as acquisition_from_name,
    names as acquisition_names,
)
from slayr_py.cli.checks import ConfigError, Types, check_keys, check_names
from slayr_py.cli.csv_files import read_parameters
from slayr_py.cli.inline_space import inline_space, read_space
from slayr_py.cli.keys import check_section, check_sections
from slayr_py.cli.objective import command_objective, function_objective
from slayr_py.display import printable
from slayr_py.errors import DataError, listed
from slayr_py.kernels import Kernel, Prior, from_name as kernel_from_name, prior_from_dict
from slayr_py.search import KernelSearch
from slayr_py.space import Encoder
from slayr_py.study import Objective, Prune, Regret, default_search
from slayr_py.text_files import read_text


@dataclass(frozen=True)
class Config:
    """The content of a configuration file, as arguments of `slayr_py.minimize`."""

    objective: Objective | None
    """None if the file has none."""
    space: Encoder
    """The search space, with the graphs of its parameters."""
    name: str
    """Name of the study; by default the stem of the file name."""
    storage: str | None
    """URL, or None for an SQLite file named after the study in the output folder."""
    output: Path
    """Folder of the figure and the default storage, relative to the working directory."""
    history: Path | None = None
    """Table of past experiments."""
    target: str | None = None
    """Column of their results."""
    options: dict[str, Any] = field(default_factory=dict)
    """Other arguments of `minimize`, only those in the file."""


_NOT_OPTIONS = ("name", "storage", "output", "history", "target")
_STOP: dict[str, Types] = {option.name: (int, float) for option in fields(Regret)}
_PRUNE: dict[str, Types] = {option.name: (int, float) for option in fields(Prune) if option.init}
_SEARCH = [name for name in signature(KernelSearch).parameters if name not in ("space", "given", "options")]


def load_config(path: Path, has_objective: bool = True) -> Config:
    """Read and check a configuration file; without ``has_objective`` it needs no objective, which is not loaded.

    Raises
    ------
    ConfigError
        If the file is missing or not TOML, has an unknown key or a wrong value, or its objective cannot be found.
    SpaceError
        If its space is illegal, or a graph does not fit its parameter.
    DataError
        For an unknown kernel or acquisition, or an illegal option of it.
    """
    text = read_text(path, "configuration file", ConfigError)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for huge numbers and deep nesting
        raise ConfigError(f"{path} is not valid TOML: {error}") from error

    check_sections(document, path.name)
    for required in ("objective", "space") if has_objective else ("space",):
        if required not in document:
            hint = "; slayr suggest needs none" * (required == "objective")
            raise ConfigError(f"{path.name} has no [{required}] section{hint}")
    study = check_section(document.get("study", {}), "study")
    gp = check_section(document.get("gp", {}), "gp")
    space = Encoder(_space(document["space"], path.parent), document.get("graphs"))
    options = {key: value for key, value in study.items() if key not in _NOT_OPTIONS}
    if "within" in study:
        options["within"] = [_constraint(each, path.parent, space) for each in study["within"]]
    if "prior" in study:
        options["prior"] = _beliefs(study["prior"])
    if "stop" in study:
        options["stop"] = _stop(study["stop"])
    if "prune" in study:
        options["pruner"] = _prune(options.pop("prune"))
    options |= {key: value for key, value in gp.items() if key not in ("kernel", "priors")}
    if "pretrain" in document:
        if "kernel" in gp:
            raise ConfigError("[pretrain] and kernel in [gp] both define the kernel; remove one of them")
        from slayr_py.cli.pretraining import learn_kernel  # imports scikit-learn, which is slow

        options["kernel"] = learn_kernel(document["pretrain"], path.parent, space)
    if "kernel" in gp:
        options["kernel"] = _kernel(gp["kernel"], space)
    if "priors" in gp:
        options["priors"] = _priors(gp["priors"])
    if "acquisition" in document:
        options["acquisition"] = _acquisition(document["acquisition"])
    objective = None
    if has_objective:
        n_values = len(study.get("directions", [""]))
        objective = _objective(document["objective"], path.parent.resolve(), space.space, n_values)
        if "function" in document["objective"] and "max_seconds" in document["objective"]:
            options["max_seconds"] = document["objective"]["max_seconds"]
    return Config(
        objective=objective,
        space=space,
        name=study.get("name", path.stem),
        storage=study.get("storage"),
        output=Path(study.get("output", ".")),
        history=path.parent / study["history"] if "history" in study else None,
        target=study.get("target"),
        options=options,
    )


def _objective(table: Mapping[str, Any], folder: Path, space: ConfigurationSpace, n_values: int) -> Objective:
    check_section(table, "objective")
    if ("function" in table) == ("command" in table):
        raise ConfigError('[objective] needs either function = "module:function" or command = ["program", "argument"]')
    if "function" in table:
        return function_objective(table["function"], folder)
    return command_objective(table["command"], list(space), folder, table.get("max_seconds"), n_values)


def _space(table: Mapping[str, Any], folder: Path) -> ConfigurationSpace:
    # A table called "file" is a parameter of that name.
    if isinstance(table.get("file"), str):
        if others := [key for key in table if key != "file"]:
            raise ConfigError(
                f"[space] has both a file and the parameter {others[0]!r}; define the whole space in one place"
            )
        return read_space(folder / table["file"])
    return inline_space(table)


def _constraint(text: str, folder: Path, encoder: Encoder) -> str | pd.DataFrame:
    """Return a constraint on inputs, or of the name of a CSV file the columns of its table that are parameters."""
    if not text.lower().endswith(".csv"):
        return text
    table = read_parameters(folder / text, encoder)
    if others := [name for name in table if name not in encoder.names]:
        typer.echo(printable(f"note: {text} has columns that are not parameters: {listed(others)}"), err=True)
    return table.drop(columns=others)


def _stop(table: Mapping[str, Any]) -> Regret:
    check_keys(table, _STOP, "stop in [study]")
    if "epsilon" not in table:
        raise ConfigError("stop in [study] needs an epsilon: stop = { epsilon = 0.01 }")
    try:
        return Regret(**table)
    except DataError as error:
        raise ConfigError(f"stop in [study]: {error}") from error


def _prune(table: Mapping[str, Any]) -> Prune:
    check_keys(table, _PRUNE, "prune in [study]")
    try:
        return Prune(**table)
    except DataError as error:
        raise ConfigError(f"prune in [study]: {error}") from error


def _kernel(value: str | Mapping[str, Any], encoder: Encoder) -> str | Kernel | KernelSearch:
    if isinstance(value, str):
        if value == "search":
            default_search(encoder)  # raises an error early, not after minutes
        # The sampler looks the kernel up by its name, and records whether "auto" chose it.
        return value
    options = dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError('kernel in [gp] must be a name or a table with one: { name = "matern", p = 2 }')
    try:
        if name == "search":
            check_names(options, _SEARCH, "kernel in [gp]")
            return default_search(encoder, **options)
        return kernel_from_name(name, encoder, **options)
    except DataError as error:
        raise ConfigError(f"kernel in [gp]: {error}") from error


def _priors(table: Mapping[str, Any]) -> dict[str, Prior | dict[str, Prior]]:
    """Return priors by hyperparameter, or by hyperparameter and entry."""
    priors: dict[str, Prior | dict[str, Prior]] = {}
    for name, value in table.items():
        if isinstance(value, dict) and value and all(isinstance(entry, dict) for entry in value.values()):
            priors[name] = {label: _prior(f"{label!r} in {name!r}", entry) for label, entry in value.items()}
        else:
            priors[name] = _prior(repr(name), value)
    return priors


def _beliefs(value: str | Mapping[str, Any]) -> str | dict[str, Any]:
    """Return beliefs about the optimum: tables with a family are distributions, others are weights."""
    if isinstance(value, str):
        return value
    return {
        name: _prior(repr(name), entry, "prior in [study]", BELIEF_FAMILIES)
        if isinstance(entry, dict) and isinstance(entry.get("family"), str)
        else entry
        for name, entry in value.items()
    }


def _prior(name: str, value: Any, where: str = "[gp]", families: Sequence[str] | None = None) -> Prior:
    if not isinstance(value, dict):
        raise ConfigError(
            f"the prior of {name} in {where} must be a table such as "
            f'{{ family = "LogNormal", mu = 0.0, sigma = 1.0 }}, not {value!r}'
        )
    try:
        return prior_from_dict(value, families)
    except DataError as error:
        raise ConfigError(f"the prior of {name} in {where}: {error}") from error


def _acquisition(table: Mapping[str, Any]) -> Acquisition:
    options = dict(table)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError(f'[acquisition] needs a name, such as name = "ei"; known: {", ".join(acquisition_names())}')
    check_names(options, acquisition_from_name(name).options(), f"[acquisition] of {name!r}")
    return acquisition_from_name(name, **options)
