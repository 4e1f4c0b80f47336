"""Objectives of a configuration file: a Python function, or a command whose last output line is the value."""

from __future__ import annotations

import importlib
import json
import os
import selectors
import signal
import string
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slayr_py.cli.checks import ConfigError
from slayr_py.errors import ObjectiveError, did_you_mean
from slayr_py.study import Objective, Values, as_value
from slayr_py.watcher import process_watcher

BUILT_IN = ("config", "python")
"""Placeholders besides the parameters: the configuration as JSON, and the path of the Python interpreter."""

_KEPT = 2**16  # bytes kept of the end of each output
_POLL = 0.2  # seconds between two looks at a command that writes nothing
_LEFT_BEHIND = 5.0  # seconds for which the children of a command that has ended may still write
_LAST_LINES = 3  # quoted of an output
_LONGEST_LINE = 500  # characters quoted of a line


def function_objective(reference: str, folder: Path) -> Objective:
    """Import the function ``module:function``; the module may be in `folder`.

    Raises
    ------
    ConfigError
        If there is no such module or function, or the import fails.
    """
    module_name, colon, attribute = reference.partition(":")
    # Relative names are rejected: they would refer to a package that the file does not name.
    if not (module_name and colon and attribute) or not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigError(f'function in [objective] must read "module:function", not {reference!r}')
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name:
            raise ConfigError(f"there is no module {module_name!r} in {folder}, and none is installed") from None
        raise ConfigError(f"the module {module_name!r} imports a module that is not installed: {error.name}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"importing the module {module_name!r} raised {type(error).__name__}: {error}") from error
    objective: Objective | None = getattr(module, attribute, None)
    if not callable(objective):
        functions = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise ConfigError(
            f"the module {module_name!r} has no function {attribute!r}{did_you_mean(attribute, functions)}"
        )
    return objective


def command_objective(
    command: Sequence[Any],
    names: Sequence[str],
    folder: Path,
    max_seconds: float | None = None,
    n_values: int = 1,
) -> Objective:
    """Return an objective that runs a command without a shell.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments. ``{name}`` stands for a parameter's value, optionally with a format
        (``{lr:.3g}``), ``{config}`` for the configuration as JSON, ``{python}`` for this Python interpreter, and
        ``{{`` for a brace. An argument with an inactive parameter is omitted: write ``--lr={lr}`` as one argument.
    names : sequence of str
        Names of the parameters.
    folder : Path
        Working directory of the command.
    max_seconds : float, optional
        Seconds after which the command is killed and the trial fails.
    n_values : int
        Number of objectives. The last line has as many numbers, separated by spaces, or is a JSON list or object.

    Returns
    -------
    callable
        Runs the command and returns the number in its last non-empty line of output. Processes that the command leaves
        behind have five seconds to write it, and are then killed. Raises `ObjectiveError` if the command does not
        start, fails (the message has the end of its output), takes too long, or its last line is not a number.

    Raises
    ------
    ConfigError
        If the command is not a list of strings, or an argument has an unknown or malformed placeholder.
    """
    if not command or not all(isinstance(part, str) for part in command):
        raise ConfigError(f"command in [objective] must be a list of strings, program first, not {command!r}")
    if not command[0] or any("\0" in part for part in command):
        raise ConfigError(f"command in [objective] must start with a program and have no null character: {command!r}")
    if max_seconds is not None and not 0 < max_seconds < threading.TIMEOUT_MAX:
        raise ConfigError(f"max_seconds in [objective] must be a positive number of seconds, not {max_seconds!r}")
    for argument in command:
        _check_placeholders(argument, names)
    # A parameter of the same name hides a built-in placeholder.
    built_in = {"python": sys.executable}

    def objective(config: Mapping[str, Any]) -> float | Values:
        values: dict[str, Any] = {**built_in, "config": json.dumps(dict(config)), **config}
        filled = [_fill(argument, values) for argument in command if _is_complete(argument, values)]
        line = _last_line(_run(filled, folder, max_seconds))
        return _value(line) if n_values == 1 else _values(line, n_values)

    return objective


def _check_placeholders(argument: str, names: Sequence[str]) -> None:
    for name in _placeholders(argument):
        if name not in names and name not in BUILT_IN:
            raise ConfigError(
                f"the argument {argument!r} of the command has the placeholder {{{name}}}, which is not a parameter"
                f"{did_you_mean(name, [*names, *BUILT_IN])} (double a literal brace)"
            )


def _placeholders(argument: str) -> list[str]:
    try:
        return [name for _, name, _, _ in string.Formatter().parse(argument) if name is not None]
    except ValueError as error:
        raise ConfigError(f"the argument {argument!r} of the command has a malformed placeholder: {error}") from error


def _is_complete(argument: str, values: Mapping[str, Any]) -> bool:
    return all(name in values for name in _placeholders(argument))


def _fill(argument: str, values: Mapping[str, Any]) -> str:
    # Unlike str.format, this does not evaluate attributes or items of a name.
    parts = []
    for text, name, form, _ in string.Formatter().parse(argument):
        parts.append(text)
        if name is not None:
            try:
                parts.append(format(values[name], form or ""))
            except (ValueError, TypeError) as error:
                raise ObjectiveError(
                    f"the format of {{{name}:{form}}} does not fit the value {values[name]!r}"
                ) from error
    return "".join(parts)


def _run(command: list[str], folder: Path, max_seconds: float | None) -> str:
    with process_watcher() as watch, _start(command, folder) as process:
        watch(process.pid)
        try:
            output, complaints = _read(process, max_seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise ObjectiveError(f"the command took longer than max_seconds = {max_seconds:g} and was killed") from None
        except BaseException:
            _kill(process)
            raise
    status = process.returncode
    if status != 0:
        last = _last_lines(complaints) or _last_lines(output) or "it wrote nothing"
        ended = f"ended with status {status}" if status > 0 else f"was killed by {_signal_name(-status)}"
        raise ObjectiveError(f"the command {ended}: {last}")
    return output


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    # A new process group, so that the time limit, Ctrl-C or the watcher also ends the command's children.
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a null character in a parameter's value
        reason = getattr(error, "strerror", None) or error
        raise ObjectiveError(f"the command {command[0]!r:.200} does not start: {reason}") from error


def _read(process: subprocess.Popen[bytes], max_seconds: float | None) -> tuple[str, str]:
    """Return the ends of a command's two outputs; the limit protects the memory from an endless output."""
    deadline = None if max_seconds is None else time.monotonic() + max_seconds

    def left() -> float | None:
        return None if deadline is None else max(deadline - time.monotonic(), 0.0)

    assert process.stdout is not None and process.stderr is not None
    ends = {process.stdout.fileno(): b"", process.stderr.fileno(): b""}
    with selectors.DefaultSelector() as selector:
        for pipe in ends:
            selector.register(pipe, selectors.EVENT_READ)
        last = None
        while selector.get_map():
            if last is None and process.poll() is not None:
                last = time.monotonic() + _LEFT_BEHIND
            waited = left()
            ready = selector.select(_POLL if waited is None else min(waited, _POLL))
            if last is None and left() == 0.0:
                raise subprocess.TimeoutExpired(process.args, max_seconds or 0.0)
            for key, _ in ready:
                chunk = os.read(key.fd, _KEPT)
                ends[key.fd] = (ends[key.fd] + chunk)[-_KEPT:]
                if not chunk:
                    selector.unregister(key.fd)
            if last is not None and (time.monotonic() >= last or left() == 0.0):
                _kill(process)  # what the command has left behind
                break
    process.wait(left())
    output, complaints = (end.decode(errors="replace") for end in ends.values())
    return output, complaints


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _last_lines(text: str) -> str:
    return " / ".join(line.strip()[-_LONGEST_LINE:] for line in text.strip().splitlines()[-_LAST_LINES:])


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if not lines:
        raise ObjectiveError("the command wrote nothing; its last line of output must be the value")
    return lines[-1]


def _value(line: str) -> float:
    try:
        value = float(line)
    except ValueError:
        raise ObjectiveError(f"the command's last line of output must be the value, but is {line!r:.200}") from None
    return as_value(value)


def _values(line: str, count: int) -> Values:
    """Return the numbers of a line, which the study checks."""
    try:
        values: Values = json.loads(line) if line[0] in "[{" else [float(word) for word in line.split()]
    except ValueError:
        values = []
    if not isinstance(values, list | dict) or len(values) != count:
        raise ObjectiveError(
            f"the command's last line of output must have the {count} values, separated by spaces or as JSON, but is "
            f"{line!r:.200}"
        )
    return values
