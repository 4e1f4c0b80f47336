"""Keys of configuration files: their types, and their examples and descriptions in the manual."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Container, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from slayr_py.cli.checks import ConfigError, Types, check_keys
from slayr_py.study import LOOP_OPTIONS


class Key(NamedTuple):
    """A key of a configuration file."""

    example: str
    """A value as TOML, of the first type that the key takes; the default if it has one."""
    help: str
    also: tuple[type[Any], ...] = ()
    """Further types."""

    @property
    def types(self) -> Types:
        """Types of the values; an integer is a number, too."""
        first = type(tomllib.loads(f"key = {self.example}")["key"])
        return (*((int, float) if first is float else (first,)), *self.also)


STUDY = {
    "name": Key('"net"', "Name of the study; default: the name of the file."),
    "storage": Key('"sqlite:///net.db"', "Storage of the study; default: <name>.db in the output folder."),
    "budget": Key("50", "Number of trials at the end, including the initial design and the trials of a resumed study."),
    "n_initial": Key("5", "Size of the initial design; default: 4 to 10, by the dimension."),
    "seed": Key("1", "Random seed; the same seed gives the same trials."),
    "direction": Key('"minimize"', 'Or "maximize".'),
    "directions": Key(
        '["minimize", "maximize"]',
        "Instead, of 2 to 4 objectives: a function returns a tuple, the last line of a command has their numbers; or "
        '{ error = "minimize", speed = "maximize" }, with names: a dict, or a line of JSON.',
        (dict,),
    ),
    "reference_point": Key("[1.0, 0.5]", "The worst values of interest of several objectives.", (dict,)),
    "interior": Key(
        "true", "Believe that the optimum is inside the ranges of the floats; false if it may be at a bound."
    ),
    "tolerance": Key("1e-3", "Smallest useful improvement; where less is expected, search elsewhere.", (float,)),
    "cost": Key(
        '"seconds"',
        "Search by improvement per unit of this cost, measured, or returned by a function in the dict after its value.",
    ),
    "max_cost": Key("3600.0", "Sum of the costs after which no further trial starts."),
    "noisy": Key("false", "Whether the objective varies between evaluations of a configuration."),
    "timeout": Key("3600", "Seconds after which no further trial starts.", (float,)),
    "output": Key('"results"', "Folder for the figure and the default storage; default: the working directory."),
    "history": Key(
        '"runs.csv"',
        "Past experiments, which do not count in the budget: a CSV table with a column per parameter and 'value' "
        "(empty: the experiment failed), or the column of target.",
    ),
    "target": Key('"yield"', "Column of the results in the table of past experiments; default: value."),
    "constraints": Key(
        '["memory <= 8"]',
        "Bounds or ranges of further numbers, which a function returns by name in a dict after its value. Tables of "
        "past experiments have columns of these names.",
    ),
    "within": Key(
        '["x1 + x2 + x3 == 1"]',
        "Constraints on parameters, which all suggestions satisfy: comparisons of arithmetic. The name of a CSV table, "
        '"stock.csv", allows its rows only, in the parameters that are its columns.',
    ),
    "prior": Key(
        '{ lr = { family = "LogNormal", mu = -7.0, sigma = 1.0 }, act = { relu = 0.7, leaky = 0.2, tanh = 0.1 } }',
        'Belief about the location of the optimum: distributions of numbers, weights of levels; or "space": those of '
        "the space file.",
        (str,),
    ),
    "prior_beta": Key("5.0", "Weight of this belief, which decays; default: a tenth of the budget."),
    "default": Key("false", "Evaluate the default configuration of the space first."),
    "failures": Key('"learn"', 'Or "ignore": do not model failures, and not penalties as such.'),
    "max_consecutive_failures": Key("10", "Then stop; default: 10, or 3 before the first success."),
    "n_parallel": Key("1", "Number of evaluations at a time, in threads."),
    "fixed": Key("{ layers = 2 }", "Values that are not varied in this run."),
    "prune": Key(
        "{ probability = 0.05 }",
        "Stop trials whose reported values say that they are better than the best one with at most this probability; "
        "needs a function loss(config, trial).",
    ),
    "stop": Key(
        "{ epsilon = 0.01, probability = 0.95 }",
        "Stop before the budget is used up, when P(regret < epsilon) is at least this probability.",
    ),
}

OBJECTIVE = {
    "function": Key('"net:loss"', "loss(config) in net.py beside this file."),
    "command": Key(
        '["{python}", "train.py", "--lr={lr}"]',
        "Instead of a function: run without a shell; the last line of its output is the value; {config} stands for the "
        "configuration as JSON; ends with slayr.",
    ),
    "max_seconds": Key(
        "600", "Seconds for one evaluation, which is then killed; a function runs in a process of its own.", (float,)
    ),
}

GP = {
    "kernel": Key('"auto"', 'Or another kernel, see below, or an expression: "LIN * PER + SE[lr]".', (dict,)),
    **{
        option.name: Key(json.dumps(getattr(LOOP_OPTIONS, option.name)), option.metadata["help"])
        for option in fields(LOOP_OPTIONS)
    },
    "warm_starts": Key("true", "Start each fit from the last one."),
    "warp": Key('"auto"', '"log", "best" or "none": compress bad values, unless their errors are known.'),
    "priors": Key(
        '{ sigma_n = { family = "LogNormal", mu = -2.0, sigma = 1.0 } }',
        'Or of one parameter: { lengthscale = { lr = { family = "LogNormal", .. } } }.',
    ),
}

PRETRAIN = {
    "data": Key('"related.csv"', "A column per parameter, and one of values."),
    "column": Key('"value"', "Name of the column of values."),
    "machine": Key('"svr"', 'Or "ridge", for more than a few hundred rows.'),
    "origin": Key('"centre"', 'Or "corner", { lr = 0.25 }: the centre of symmetries.', (dict,)),
    "layers": Key("[1, 2]", "Uses of the related data; 0 is the machine's prediction.", (int,)),
    "base": Key("true", "Add a Matern kernel for the part that the features do not explain."),
    "p": Key("2", "Order of this kernel."),
    "clip": Key("false", "Move values outside the space to its bounds."),
    "C": Key("10.0", "Default: tuned."),
    "lengthscale": Key("0.5", "Default: tuned.", (list,)),
    "epsilon": Key("0.05", "In standard deviations of the values."),
    "family": Key('"se"', 'Or "exponential", "linear", "polynomial".'),
    "degree": Key("2", 'Of the family "polynomial".'),
    "coef0": Key("1.0", 'Of the family "polynomial".'),
}


def types(keys: Mapping[str, Key]) -> dict[str, Types]:
    """Return the types of each key."""
    return {name: key.types for name, key in keys.items()}


SECTIONS = {"study": STUDY, "objective": OBJECTIVE, "gp": GP, "pretrain": PRETRAIN}
"""Sections with a list of keys."""

FREE = ("acquisition", "space", "graphs")
"""Sections whose keys are names of the user or options of an acquisition."""


def check_sections(document: Mapping[str, Any], where: str) -> None:
    """Check that a configuration file has known sections.

    Raises
    ------
    ConfigError
        For an unknown section (a key outside of its section has the name of that), one that is not a table, or an
        option of another section in [space].
    """
    _refuse_misplaced(document, [*SECTIONS, *FREE], where)
    check_keys(document, dict.fromkeys((*SECTIONS, *FREE), dict), where)
    for key, value in document.get("space", {}).items():
        if _is_option(key, value):
            kind = f'"categorical", choices = {json.dumps(value)}'
            if not isinstance(value, list):
                kind = f'"constant", value = {json.dumps(value)}'
            _refuse_misplaced([key], (), "[space]", f"; write a parameter as {key} = {{ type = {kind} }}")


def check_section(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Check the keys of a section and the types of their values; return it.

    Raises
    ------
    ConfigError
        For an unknown key (the message has its own section, or the nearest known key) or a value of a wrong type.
    """
    keys = SECTIONS[name]
    _refuse_misplaced(table, keys, f"[{name}]")
    return check_keys(table, types(keys), f"[{name}]")


def _is_option(key: str, value: object) -> bool:
    """Return whether the value of a key that may be an option is hardly a parameter."""
    if not isinstance(value, list):
        return isinstance(value, bool | int | float | str)
    texts = {"directions": "minimize|maximize", "constraints": ".+[<>=].+", "within": r".+[<>=].+|.+\.csv"}
    return key in texts and all(isinstance(each, str) and re.fullmatch(texts[key], each) for each in value)


def _refuse_misplaced(table: Iterable[str], known: Container[str], where: str, hint: str = "") -> None:
    """Raise `ConfigError` for a key that belongs elsewhere; the message ends with the hint."""
    for key in table:
        if key in known:
            continue
        if places := [f"[{name}]" for name, keys in SECTIONS.items() if key in keys]:
            raise ConfigError(f"unknown key {key!r} in {where}; it belongs in {' or '.join(places)}{hint}")
        if key in SECTIONS or key in FREE:
            raise ConfigError(f"unknown key {key!r} in {where}; [{key}] is a section of its own{hint}")
