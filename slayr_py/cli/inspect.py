"""``slayr inspect``: read a stored study and show it."""

from __future__ import annotations

from pathlib import Path

import optuna
import typer

from slayr_py.cli.checks import ConfigError
from slayr_py.cli.tables import config_lines, printable, table_text
from slayr_py.errors import DataError, StorageError
from slayr_py.study import Result, convergence_figure, space_of, suggestion_table
from slayr_py.study.record import FAILURE_KEY, describe_kernel, study_record
from slayr_py.study.result import trials_table
from slayr_py.study.storage import open_storage, quiet_optuna, study_names
from slayr_py.study.stored import check_stored


def run(study: str, *, study_name: str | None, n_trials: int, figure: Path | None) -> None:
    """Print a study.

    Parameters
    ----------
    study : str
        An SQLite file or a storage URL.
    study_name : str or None
        Needed when the storage holds several.
    n_trials : int
        How many of the last trials, and of the last fits, to print.
    figure : Path or None
        Where to draw the convergence.

    Raises
    ------
    StorageError
        The storage does not open, holds no study, or a damaged one.
    DataError
        No study of that name, or several and no name.
    """
    with quiet_optuna():
        loaded = _load(study, study_name)
    record = study_record(loaded)
    trials = loaded.get_trials(deepcopy=False)
    _say(f"study {loaded.study_name}: {len(trials)} trials, {loaded.direction.name.lower()}")
    if record is not None:
        noise = ", noisy objective" if record.get("noisy") else ""
        _say(f"kernel: {describe_kernel(record['kernel'])}")
        _say(f"acquisition {record['acquisition']}, seed {record['seed']}{noise}")
        space = space_of(loaded)
    else:
        space = None
    try:
        result = Result(loaded, space) if space is not None else None
        value, config = (result.best_value, result.best_config) if result else (loaded.best_value, loaded.best_params)
        _say(f"\nbest value {value:.6g}, at\n{config_lines(config)}")
    except (DataError, ValueError) as error:
        _say(f"\nno best trial: {error}")

    table = trials_table(loaded, space)
    table.columns = table.columns.str.removeprefix("params_")
    _say(f"\ntrials{_last(len(table), n_trials)}\n{table_text(table.tail(n_trials) if n_trials else table[:0])}")
    for trial in trials[len(trials) - n_trials :] if n_trials < len(trials) else trials:
        if reason := trial.user_attrs.get(FAILURE_KEY):
            _say(f"  trial {trial.number} failed: {reason}")

    fits = suggestion_table(loaded)
    if not fits.empty:
        fits = fits[fits["phase"].isin(["model", "random"])]
    _say(f"\nfits{_last(len(fits), n_trials)}")
    if fits.empty:
        _say("  none yet: every trial is of the initial design")
    elif n_trials:
        shown = fits.tail(n_trials)[list(_FIT_COLUMNS)].rename(columns=_FIT_COLUMNS)
        _say(table_text(shown))
        for number, reason in fits.tail(n_trials)[["number", "error"]].itertuples(index=False):
            if isinstance(reason, str):
                _say(f"  trial {number} has no fit: {reason}")
    if figure is not None:
        try:
            convergence_figure(loaded).savefig(figure, dpi=150)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the figure {figure} cannot be written: {error}") from error
        _say(f"\nfigure {figure}")


def _say(text: str) -> None:
    typer.echo(printable(text))


_FIT_COLUMNS = {
    "number": "number",
    "phase": "phase",
    "kernel": "kernel",
    "method": "method",
    "observations": "n",
    "rhat_max": "rhat",
    "ess_bulk_min": "ess_bulk",
    "ess_tail_min": "ess_tail",
    "divergences": "div",
    "max_treedepth_hits": "treedepth",
    "ebfmi_min": "ebfmi",
    "ok": "ok",
    "seconds_fit": "fit [s]",
    "seconds_acquisition": "acq [s]",
}


def _load(study: str, study_name: str | None) -> optuna.Study:
    url = study if "://" in study else f"sqlite:///{Path(study).as_posix()}"
    storage = open_storage(url, must_exist=True)
    assert storage is not None
    try:
        names = study_names(storage)
    except Exception as error:  # whatever the driver makes of a file that is no study
        raise StorageError(
            f"{study} opens, but holds no studies of Optuna's that can be read: restore a copy, or name another"
        ) from error
    if not names:
        raise StorageError(f"{study} holds no study yet")
    if study_name is None and len(names) > 1:
        raise DataError(f"{study} holds several studies: choose one with --study-name: {', '.join(names)}")
    if study_name is not None and study_name not in names:
        raise DataError(f"{study} has no study {study_name!r}; it holds {', '.join(names)}")
    loaded = optuna.load_study(study_name=study_name or names[0], storage=storage)
    check_stored(loaded)
    return loaded


def _last(count: int, shown: int) -> str:
    return f" (the last {shown} of {count})" if shown < count else ""
