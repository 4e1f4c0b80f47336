"""Replay recorded runs and compare the results with the records.

A record may come from an untrusted source. Its entries select among the methods and kernels that this process knows,
and supply numbers to them. All other content is rejected before a program runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from slayr_py.errors import CompileError, DataError, StorageError
from slayr_py.inference.model import Model
from slayr_py.inference.observed import Observed
from slayr_py.inference.part import Part
from slayr_py.inference.posterior import Posterior
from slayr_py.inference.records.environment import differences, environment
from slayr_py.inference.records.record import array_digest, check_format
from slayr_py.inference.records.saved import STACK_FILE
from slayr_py.inference.records.summary import compare, entries, summarise
from slayr_py.inference.sampling.methods import METHODS
from slayr_py.inference.sampling.options import FitOptions
from slayr_py.inference.sampling.output import Run
from slayr_py.inference.sampling.programs import Implementation, compiled
from slayr_py.inference.sampling.run import run
from slayr_py.inference.sampling.seeds import stan_seed
from slayr_py.inference.sampling.warm_start import WarmStart
from slayr_py.space import Within
from slayr_py.threads import ignoring_underflow
from slayr_py.toolchain import CompiledProgram

_Read = TypeVar("_Read")

_NEEDED = (
    *("slayr_py", "program", "cmdstan", "machine", "packages", "kernel", "priors", "space"),
    *("arguments", "start", "summary", "data_sha256", "draws_sha256"),
)


@dataclass(frozen=True)
class Replay:
    """Comparison of a repeated run with its record.

    Attributes
    ----------
    identical : bool
        Whether all draws equal the recorded ones bit for bit.
    agrees : bool
        Whether means and standard deviations of all hyperparameters agree within their Monte Carlo errors.
    differences : tuple of str
        Differences in toolchain, machine, packages and arguments: "cmdstan.version: was 2.35.0, is 2.36.0".
    worst : float
        Largest difference of a mean or standard deviation in joint Monte Carlo errors; for a mode, the largest
        relative difference.
    worst_of : str
        The quantity with the largest difference: "mean of lengthscale[x]".
    limit : float
        Limit on ``worst``, which one correct replay in a thousand exceeds by chance.
    draws_sha256 : str
        SHA-256 of the new draws.
    seconds : float
        Wall-clock time of the new run.
    record : dict
        The record that was replayed.
    """

    identical: bool
    agrees: bool
    differences: tuple[str, ...]
    worst: float
    worst_of: str
    limit: float
    draws_sha256: str
    seconds: float
    record: dict[str, Any] = field(repr=False)


@ignoring_underflow
def replay(
    source: str | Path | Posterior | Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Replay:
    """Repeat a recorded run, without the attempts that were abandoned before it, and compare the results.

    Parameters
    ----------
    source : path, Posterior, or mapping
        A folder that `Posterior.save` wrote or the ``record.json`` in it, with ``data.json`` beside it; a posterior
        of a single fit; or a record, as `Posterior.record`. Each part of a stack is replayed alone.
    data : mapping, optional
        The program's data, needed with a record: `Posterior.data`, or the content of ``data.json``.
    progress : callable, optional
        Called with the name of each phase.

    Returns
    -------
    Replay

    Raises
    ------
    DataError
        For a record without data, a stack, or a sparse fit, which has no program.
    StorageError
        If the record is invalid or of another format, or if the data do not belong to it.
    ToolchainError, CompileError
        If the program cannot be compiled.
    InferenceError
        If Stan fails.
    """
    if isinstance(source, str | Path):
        return _replay_saved(Path(source), progress)
    if isinstance(source, Posterior):
        part = source.only("record")
        part.require_program("record to replay")
        return _replay(part.record, part.data, progress)
    if data is None:
        raise DataError("a record cannot be replayed without data; pass the data too, as in replay(record, data)")
    return _replay(source, data, progress)


def _replay_saved(path: Path, progress: Callable[[str], None] | None) -> Replay:
    if (path / STACK_FILE).exists():
        raise DataError(f"{path} is a saved stack; replay each of its parts, such as {path / 'part_0'}")
    record_file = path / "record.json" if path.is_dir() else path
    record = _json(record_file)
    data = _json(record_file.with_name("data.json"))
    try:
        return _replay(record, data, progress)
    except StorageError as error:
        raise StorageError(f"{record_file} cannot be replayed: {error}") from error


def _replay(record: Mapping[str, Any], data: Mapping[str, Any], progress: Callable[[str], None] | None) -> Replay:
    recorded = _read(record, data)
    program, result = recorded.run(data, progress)
    draws = array_digest(result.variables)
    summary = summarise(recorded.model, result)
    agreement = _checked(lambda was: compare(was, summary), record["summary"])
    now = environment(program) | {"arguments": result.arguments}
    return Replay(
        identical=draws == record["draws_sha256"],
        agrees=agreement.holds,
        differences=differences({name: record[name] for name in now}, now),
        worst=agreement.worst,
        worst_of=agreement.of,
        limit=agreement.limit,
        draws_sha256=draws,
        seconds=result.seconds,
        record=dict(record),
    )


@ignoring_underflow
def posterior_again(
    record: Mapping[str, Any], observed: Observed, progress: Callable[[str], None] | None = None
) -> Posterior:
    """Repeat a recorded run and return its posterior, which may differ from the recorded posterior.

    Parameters and errors are described in :func:`replay`.
    """
    recorded = _read(record, observed.data)
    program, result = recorded.run(observed.data, progress)
    return Posterior.of(Part.from_run(program, observed, result, recorded.start).after(record["abandoned"]))


def recorded_model(record: Mapping[str, Any], within: Within | None) -> Model:
    """Check a record, except for its data, and return its model, with the constraints ``within`` on inputs.

    Raises
    ------
    StorageError
        If the record is invalid or of another format version.
    """
    return _checked(partial(_parse, within=within), record).model


@dataclass(frozen=True)
class _RecordedRun:
    """Content of a record, after all checks."""

    model: Model
    program: str
    likelihood: Implementation
    options: FitOptions
    seed: int
    start: WarmStart | None

    def run(
        self, data: Mapping[str, Any], progress: Callable[[str], None] | None = None
    ) -> tuple[CompiledProgram, Run]:
        """Repeat the run; fall back to the readable likelihood if the recorded one does not compile."""
        try:
            program = compiled(self.program, progress, self.likelihood)
        except CompileError:
            if self.likelihood == "readable":
                raise
            program = compiled(self.program, progress, "readable")
        return program, run(program, data, self.options, seed=self.seed, start=self.start, progress=progress)


def _read(record: Mapping[str, Any], data: Mapping[str, Any]) -> _RecordedRun:
    recorded = _checked(_parse, record)
    digest = _checked(array_digest, data)
    if digest != record["data_sha256"]:
        raise StorageError(
            f"the data do not belong to the record: their SHA-256 is {digest}, the recorded one is "
            f"{record['data_sha256']!r:.80}; put the data.json of the same fit beside it"
        )
    return recorded


def _checked(read: Callable[[Mapping[str, Any]], _Read], values: Mapping[str, Any]) -> _Read:
    try:
        return read(values)
    except StorageError:
        raise
    except Exception as error:  # a damaged record can cause any of them: AttributeError, RecursionError, ...
        raise StorageError(
            f"this is not a readable run record: {type(error).__name__}: {error}; restore a copy of it, or repeat "
            "the fit"
        ) from error


def _parse(record: Mapping[str, Any], within: Within | None = None) -> _RecordedRun:
    check_format(record)
    if missing := [name for name in _NEEDED if name not in record]:
        raise KeyError(", ".join(missing))
    model = Model.fromdict(record, within)
    program = record["program"]["name"]
    likelihood = record["program"]["likelihood"]
    arguments = record["arguments"]
    if program != model.kernel.program:
        raise ValueError(f"{program!r:.80} is not the program of its kernel, {model.kernel.program}")
    if likelihood not in get_args(Implementation):
        raise ValueError(f"its likelihood is {likelihood!r:.80}; known: {', '.join(get_args(Implementation))}")
    options = FitOptions.recorded(arguments)
    stan_seed(arguments["seed"])
    start = None if record["start"] is None else WarmStart.fromdict(record["start"])
    if start is not None:
        model.check_start(start, METHODS[options.method].chains_of_start(options))
    if record["summary"].keys() != entries(model).keys():
        raise ValueError(f"its summary has {', '.join(record['summary'])}, its model has {', '.join(entries(model))}")
    compare(record["summary"], record["summary"])
    return _RecordedRun(model, program, likelihood, options, arguments["seed"], start)


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StorageError(
            f"{path} cannot be read: {error}; give the folder of a saved posterior, or the record.json in it"
        ) from error
    if not isinstance(values, dict):
        raise StorageError(f"{path} is not a JSON object; restore a copy of it, or repeat the fit")
    return values
