"""Summary of the study, and its best and recommended configurations."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import optuna
from optuna.trial import FrozenTrial

from slayr_py.acquisition import prior_text
from slayr_py.display import cell
from slayr_py.errors import SlayrError
from slayr_py.space import within_text
from slayr_py.study.results.noise import is_declared_noisy
from slayr_py.study.results.recommendation import Recommendation
from slayr_py.study.results.refits import fitted_numbers
from slayr_py.study.results.report.blocks import Block, Cards, Cell, Facts, Notice, Table
from slayr_py.study.results.report.reading import Absent, Reading
from slayr_py.study.results.tables import (
    feasible_trials,
    fixed_values_text,
    found_kernels,
    front_trials,
    suggestion_table,
)
from slayr_py.study.storage.attributes import FIT_KEY, describe_kernel
from slayr_py.study.storage.costs import cost_name, spent
from slayr_py.study.storage.objectives import goals_of
from slayr_py.study.storage.pieces import stored
from slayr_py.version import __version__


def summary(reading: Reading) -> Iterator[Block]:
    """Return the numbers at the top of the page, and the settings and versions of the study."""
    states = Counter(trial.state.name.lower() for trial in reading.trials)
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    fits = suggestion_table(reading.study)
    trusted = [] if fits.empty else [value for value in fits["trusted"].tolist() if isinstance(value, bool)]
    remark = "passed all diagnostics" if trusted else "no fit yet"
    yield Cards(
        [
            *_values(reading),
            ("trials", str(len(reading.trials)), counts or "none yet"),
            ("trusted fits", f"{sum(trusted)} of {len(trusted)}", remark),
        ]
    )
    running = [trial for trial in reading.trials if trial.state.name == "RUNNING"]
    if running:
        names = list(dict.fromkeys(chain.from_iterable(trial.params for trial in running)))
        rows = [[Cell(name), *(_value(trial.params, name) for trial in running)] for name in names]
        titles = ["parameter", *(f"trial {trial.number}" for trial in running)]
        yield Table("running-table", "Still running when this page was written", titles, rows)
    yield Facts(list(_settings(reading)))


def _values(reading: Reading) -> Iterator[tuple[str, str, str]]:
    """Return the cards of the recommended value of a noisy objective, and of the best value, or of the front."""
    fixed = fixed_values_text(reading.study)
    if reading.has_several:
        size = len(front_trials(reading.study))
        remark = "trials that no other one dominates" if size else "no feasible trial"
        yield "front", str(size), f"{remark}{fixed}"
        return
    best = reading.best
    if reading.noisy and best is not None:
        try:
            recommended = reading.recommendation
        except (Absent, SlayrError, ValueError):  # the section of the best configuration has the reason
            yield "recommended value", "–", "none: see Best configuration"
        else:
            value = f"{recommended.mean:.4g} ± {recommended.sd:.2g}"
            yield "recommended value", value, f"trial {recommended.number}{fixed}, posterior mean and sd"
    name = "best observed value, partly luck" if reading.noisy else "best value"
    remark = f"trial {best.number}{fixed}" if best else f"no feasible trial{fixed}"
    yield name, cell(best.values[0]) if best else "–", remark


def _settings(reading: Reading) -> Iterator[tuple[str, str]]:
    record = reading.record
    yield "study", reading.study.study_name
    if reading.has_several:
        each = [f"{'maximize' if goal.maximize else 'minimize'} {goal.name}" for goal in goals_of(reading.study)]
        yield "objectives", ", ".join(each)
    else:
        yield "direction", f"{reading.study.directions[0].name.lower()} the objective"
    if record:
        known = "values with known errors" if reading.noisy else "declared free of noise"
        yield "objective", "noisy" if is_declared_noisy(reading.study) else known
        yield "kernel", describe_kernel(record["kernel"])
        if kernels := found_kernels(reading.study):
            yield "found by search", kernels
        yield "acquisition", str(record.get("acquisition"))
        if record.get("prior"):
            yield "prior of the optimum", prior_text(record["prior"])
        yield "initial design", f"{str(record.get('n_initial'))} configurations"
        yield "seed", str(record.get("seed"))
    else:
        fits = fitted_numbers(reading.study)
        none = "none: the study was not made by slayr_py"
        yield "model", "of the parameters that the trials have in common; no space is declared" if fits else none
    space = reading.space
    if space is not None:
        conditional = sum(bool(space.parent_conditions_of[name]) for name in space)
        yield "parameters", f"{len(space)}, {conditional} of them conditional" if conditional else str(len(space))
    if fixed := fixed_values_text(reading.study):
        yield "compared", f"trials{fixed}"
    if within := record.get("within"):
        yield "constraints on inputs", within_text(within)
    if (cost := cost_name(reading.study)) is not None:
        yield "cost", spent(reading.study, cost).describe(cost)
    starts = [trial.datetime_start for trial in reading.trials if trial.datetime_start is not None]
    ends = [trial.datetime_complete for trial in reading.trials if trial.datetime_complete is not None]
    if starts and ends:
        yield "time", f"{min(starts):%Y-%m-%d %H:%M} to {max(ends):%Y-%m-%d %H:%M}"
    yield "versions of the last fit", _versions_of_fit(reading) or "no fit"
    yield (
        "versions of this page",
        f"slayr_py {__version__}, optuna {optuna.__version__}, Python {platform.python_version()}",
    )


def _versions_of_fit(reading: Reading) -> str | None:
    for trial in reversed(reading.trials):
        for key in filter(lambda name: name.startswith(FIT_KEY), trial.user_attrs):
            fit = stored(trial.user_attrs, key)
            if isinstance(fit, Mapping) and isinstance(fit.get("cmdstan"), Mapping):
                packages: Any = fit.get("packages")
                numpy = packages.get("numpy") if isinstance(packages, Mapping) else None
                parts = [f"slayr_py {fit.get('slayr_py')}", f"CmdStan {fit['cmdstan'].get('version')}"]
                parts += [f"{fit['cmdstan'].get('compiler')}"] if fit["cmdstan"].get("compiler") else []
                return ", ".join([*parts, *([f"NumPy {numpy}"] if numpy else []), f"at trial {trial.number}"])
    return None


def configurations(reading: Reading) -> Iterator[Block]:
    """Return the best observed configuration and, of a noisy objective, the recommended one."""
    best = reading.best
    if best is None:
        yield Notice("No trial is complete, finite and feasible, so there is no best configuration.")
        return
    recommended: Recommendation | None = None
    reason: Notice | None = None
    try:
        recommended = reading.recommendation if reading.noisy else None
    except Absent as absent:
        reason = Notice(f"No configuration is recommended. {absent}")
    except (SlayrError, ValueError) as error:
        reason = Notice(f"No configuration is recommended: {type(error).__name__}: {error}", "error")
    columns = [(f"best observed (trial {best.number})", best.params, f"{best.values[0]:.6g}")]
    if recommended is not None:
        value = f"{recommended.mean:.6g} ± {recommended.sd:.2g} (posterior)"
        columns.insert(0, (f"recommended (trial {recommended.number})", recommended.config, value))
    names = dict.fromkeys(name for _, config, _ in columns for name in config)
    rows = [[Cell(name), *(_value(config, name) for _, config, _ in columns)] for name in names]
    rows.append([Cell(text, mark="strong") for text in ("objective", *(value for _, _, value in columns))])
    titles = ["parameter", *(title for title, _, _ in columns)]
    yield Table("configurations-table", "Active parameters and the value of the objective", titles, rows)
    if fixed := fixed_values_text(reading.study):
        yield Notice(f"Only trials{fixed} are compared.{_better_elsewhere(reading, best)}")
    if reason is not None:
        yield reason
    elif recommended is not None:
        yield Notice(
            "The recommended configuration is the evaluated one with the best posterior mean, and the one to use: the "
            "best observed value of a noisy objective is partly luck. After ± is the posterior standard deviation of "
            "the latent function."
        )


def _better_elsewhere(reading: Reading, best: FrozenTrial) -> str:
    """Tell the best of all feasible trials if it has other values than the fixed ones; empty if it has them."""
    choose = max if reading.maximize else min
    first = choose(feasible_trials(reading.study), key=lambda trial: float(trial.values[0]))
    if first.number == best.number or first.values[0] == best.values[0]:
        return ""
    return f" The best of all, with other values, is {first.values[0]:.6g} at trial {first.number}."


def _value(values: Mapping[str, Any], name: str) -> Cell:
    return Cell.of(values[name]) if name in values else Cell("inactive", mark="muted")
