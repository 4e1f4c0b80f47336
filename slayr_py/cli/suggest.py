"""``slayr suggest``: propose the next experiments from a table of the past ones, without an objective."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import optuna
import pandas as pd
import typer

from slayr_py.arguments import check_number
from slayr_py.cli.checks import ConfigError
from slayr_py.cli.config import Config, load_config
from slayr_py.cli.experiments import read_history, target_columns
from slayr_py.cli.keys import STUDY
from slayr_py.cli.options import Epsilon, announce
from slayr_py.display import printable, table_text
from slayr_py.errors import did_you_mean
from slayr_py.study import (
    CONSTRAINT,
    FileForm,
    SamplerKeywords,
    ask_batch,
    check_not_inputs,
    config_of,
    create_study,
    goals_of,
    has_different_replicates,
    has_only_proposals,
    new_status,
    parse_constraints,
    quiet_optuna,
    suggestion_record,
    write_proposals,
    write_report,
)


def suggest(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration file; it needs only [space].")],
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV table of the past experiments, described above.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Number of experiments to propose.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="CSV table for the proposals.")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help=STUDY["target"].help)] = None,
    maximize: Annotated[
        bool | None, typer.Option("--maximize/--minimize", help="Whether larger results are better.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(metavar="CHAR", help="Character between cells; default: recognised by the header.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed; default: of the file, else 1.")] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page about the experiments, as slayr report does.")
    ] = None,
    epsilon: Epsilon = None,
) -> None:
    """Propose the next experiments from a table of the past ones.

    No study is stored: run the command again when the table has more rows. The same table and seed give the same
    proposals. Without a history, or as long as it has fewer rows than the initial design, the proposals are
    space-filling; then they maximise the acquisition under the model, and take each other into account.

    The table has a column per parameter and a column of results, --target. Semicolons and decimal commas are
    recognised, with a note. Replicates are repeated rows; results that differ make the objective noisy. A column
    "status" has "done", "failed" or "planned"; a planned experiment without a result counts as running, so that other
    ones are proposed. Without this column, an empty result is a failed experiment. A result may also be the word
    "failed". A column y_sd has known standard errors. Constraints on further results, such as constraints =
    ["purity >= 0.9"] under [study], have columns of their names. Other columns are left out with a note. Rows count
    from 1, the first below the header.

    The proposals are printed, and written with --output in the form of the table, with the status "planned", an empty
    result and, if the study has a cost, an empty cost: append them to the table, and fill in the results. An existing
    file is replaced only if all its rows are planned and have no result. The page of --report shows the model: where
    the optimum is, which parameters matter, and what it predicts.

    Of the configuration file (see slayr optimize --help), [space], [graphs], [gp], [acquisition] and the keys of the
    model in [study] are used; an objective, the storage and the keys of the loop have no effect.

    For example:
      slayr suggest lab.toml -n 6 -o next.csv              (the first experiments)
      slayr suggest lab.toml --history results.csv --target yield --maximize -n 4 -o next.csv
      slayr suggest lab.toml --history results.csv --report lab.html --epsilon 2
    """
    if epsilon is not None and report is None:
        raise ConfigError("--epsilon is for the page of --report; give both")
    if epsilon is not None:
        check_number("--epsilon", epsilon)
    settings = load_config(config, has_objective=False)
    options = _options(settings, maximize, seed)
    targets = target_columns(settings, target)
    bounds = parse_constraints(settings.options.get("constraints", ()))
    check_not_inputs(bounds, settings.space.space)
    if output is not None:
        _check_output(output, settings, targets, separator)
    if (path := history or settings.history) is None:
        form = _new_form(settings, targets, list(dict.fromkeys(bound.name for bound in bounds)), separator)
    else:
        options["history"], form = read_history(path, settings, target, separator)
        if missing := [bound for bound in bounds if CONSTRAINT + bound.key not in options["history"]]:
            held = did_you_mean(missing[0].name, form.columns)
            raise ConfigError(f"{path} has no column {missing[0].name!r} of the constraint {str(missing[0])!r}{held}")
        if has_different_replicates(options["history"], settings.space, targets) and "noisy" not in options:
            typer.echo("note: repeated experiments have different results, so the objective counts as noisy", err=True)
            options["noisy"] = True
    cost = options.get("cost")
    with quiet_optuna():
        study = create_study(settings.space, study_name=settings.name, **options)
        trials = ask_batch(study, n)
        typer.echo(_text(study, [trial.number for trial in trials], targets))
        records = [suggestion_record(trial) for trial in study.get_trials(deepcopy=False)]
        modelled = [record for record in records if record.get("phase") == "model"]
        if cost is not None and modelled and not any("cost" in record for record in modelled):
            typer.echo(f"note: costs are not modelled: too few experiments have one in the column {cost!r}", err=True)
        if output is not None:
            write_proposals(output, [config_of(trial) for trial in trials], form, cost)
            typer.echo(printable(f"proposals  {output}"))
        if report is not None:
            typer.echo(printable(f"report     {write_report(study, report, announce, epsilon=epsilon)}"))


def _options(settings: Config, maximize: bool | None, seed: int | None) -> dict[str, Any]:
    """Return the arguments of `create_study`; those of the loop are left out."""
    known = {*SamplerKeywords.__annotations__, *signature(create_study).parameters}
    options = {key: value for key, value in settings.options.items() if key in known}
    if maximize is not None:
        if "directions" in options:
            raise ConfigError("--maximize and --minimize are for one objective; leave them out, see directions")
        options["direction"] = "maximize" if maximize else "minimize"
    options.setdefault("seed", 1)
    if seed is not None:
        options["seed"] = seed
    return options


def _new_form(settings: Config, targets: Sequence[str], constraints: Sequence[str], separator: str | None) -> FileForm:
    """Return the form of proposals without a table of past experiments."""
    if both := [name for name in targets if name in settings.space.space]:
        raise ConfigError(f"the column {both[0]!r} of results is a parameter; name the results in another way")
    columns = (*settings.space.space, *targets, *constraints)
    return FileForm(columns, separator or ",", status=new_status(columns))


def _check_output(path: Path, settings: Config, targets: Sequence[str], separator: str | None) -> None:
    """Raise `ConfigError` if the proposals cannot be written, or would replace results or another file."""
    if path.is_dir():
        raise ConfigError(f"{path} cannot be written: it is a folder")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.exists() and not has_only_proposals(path, settings.space, targets, separator):
        raise ConfigError(
            f"{path} exists and has more than proposals without results; append its rows to the table of past "
            "experiments, or name another file"
        )


def _text(study: optuna.Study, numbers: Sequence[int], targets: Sequence[str]) -> str:
    """Return a table of the proposals and of their predictions, and where they come from."""
    rows = []
    phases = set()
    stored = study.get_trials(deepcopy=False)
    goals = goals_of(study)
    for number in numbers:
        trial = stored[number]
        record = suggestion_record(trial)
        phases.add(record["phase"])
        row: dict[str, Any] = dict(trial.params)
        for goal, name in zip(goals, targets, strict=True):
            parts = record.get("objectives", [record])
            if "predicted" in record or "objectives" in record:
                predicted = parts[goal.number]["predicted"]
                row[f"{name} (predicted)"] = f"{predicted['mean']:.4g} ± {predicted['sd']:.2g}"
        if "feasible" in record:
            row["feasible"] = f"{record['feasible']:.2f}"
        rows.append(row)
    how = {
        "initial": "initial design: space-filling points, and configurations that are to come first",
        "random": "space-filling points: there is nothing to fit",
        "model": "maxima of the acquisition",
    }
    notes = "; ".join(how[phase] for phase in sorted(phases))
    proposals = f"{len(rows)} proposal{'s' * (len(rows) > 1)}"
    return printable(f"{table_text(pd.DataFrame(rows))}\n{proposals}, {notes}")
