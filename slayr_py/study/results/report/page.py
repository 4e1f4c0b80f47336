"""Assemble the page: sections, style and script in one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from optuna import Study

from slayr_py.arguments import check_number
from slayr_py.display import printable
from slayr_py.errors import StorageError
from slayr_py.inference import Posterior
from slayr_py.study.results.report.blocks import Block, Notice, Section
from slayr_py.study.results.report.curves import curves
from slayr_py.study.results.report.feasibility import feasibility
from slayr_py.study.results.report.fits import fits
from slayr_py.study.results.report.front import front
from slayr_py.study.results.report.hyperparameters import hyperparameters
from slayr_py.study.results.report.importances import importances
from slayr_py.study.results.report.maps import maps
from slayr_py.study.results.report.optimum import optimum
from slayr_py.study.results.report.overview import configurations, summary
from slayr_py.study.results.report.palette import PALETTE
from slayr_py.study.results.report.reading import Absent, Reading
from slayr_py.study.results.report.replaying import replaying
from slayr_py.study.results.report.slices import slices
from slayr_py.study.results.report.stopping import stopping
from slayr_py.study.results.report.trials import convergence, trials
from slayr_py.study.storage.objectives import check_one_objective
from slayr_py.text_files import write_text
from slayr_py.version import __version__

SECTIONS: tuple[tuple[str, str, Callable[[Reading], Iterator[Block]]], ...] = (
    ("summary", "Summary", summary),
    ("convergence", "Convergence", convergence),
    ("configurations", "Best configuration", configurations),
    ("trials", "Trials", trials),
    ("optimum", "Optimum", optimum),
    ("curves", "Learning curves", curves),
    ("importance", "Importance", importances),
    ("slices", "Slices", slices),
    ("maps", "Pairs", maps),
    ("hyperparameters", "Hyperparameters", hyperparameters),
    ("feasibility", "Feasibility", feasibility),
    ("stopping", "Stopping", stopping),
    ("fits", "Fits", fits),
    ("replay", "Replay", replaying),
)
"""Identifier, title and content of the sections, in the order of the page."""

SECTIONS_OF_SEVERAL = (
    ("summary", "Summary", summary),
    ("front", "Front", front),
    ("trials", "Trials", trials),
    ("feasibility", "Feasibility", feasibility),
    ("stopping", "Stopping", stopping),
    ("fits", "Fits", fits),
    ("replay", "Replay", replaying),
)
"""The same of a study with several objectives; the other sections are about one of them."""


def write_report(
    study: Study,
    path: str | Path,
    progress: Callable[[str], None] | None = None,
    fit: Callable[[int], Posterior] | None = None,
    epsilon: float | None = None,
) -> Path:
    """Write a page about a study: one HTML file, which needs no network.

    Parameters
    ----------
    study : optuna.Study
        Of any sampler. Without a model, the page says so where a section needs one.
    path : path
        The file; an existing one is replaced.
    progress : callable, optional
        Receives the names of slow steps: the model is fitted to all finished trials, unless the study has no fit yet.
    fit : callable, optional
        Returns the posterior of an objective, by its number, given all finished trials, if the caller may have it.
    epsilon : float, optional
        The page then has the ranges of the configurations that are within epsilon of the optimum: see `Result.good`.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    DataError
        If epsilon is not a positive number, or the study has several objectives.
    StorageError
        If the file cannot be written.
    """
    if epsilon is not None:
        check_number("epsilon", epsilon)
        check_one_objective(study, "leave epsilon out; the page has the front")
    target = Path(path)
    if not target.parent.is_dir():  # before fits that take minutes
        raise StorageError(f"the report {target} cannot be written: there is no folder {target.parent}")
    page = render(Reading(study, progress, fit, epsilon))
    write_text(target, page)
    return target


def render(reading: Reading) -> str:
    """Return the page as HTML."""
    shown_sections = SECTIONS_OF_SEVERAL if reading.has_several else SECTIONS
    sections = [section(reading, key, title, content) for key, title, content in shown_sections]
    templates = files("slayr_py.study.results.report") / "templates"
    script = (templates / "script.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("slayr_py.study.results.report", "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("page.html").render(
        title=reading.study.study_name,
        sections=sections,
        palette=PALETTE,
        style=Markup((templates / "style.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        version=__version__,
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
    return page.lstrip()


def shown(value: object) -> object:
    """Return what the template shows of a value: text of a study without control characters; markup as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def section(reading: Reading, key: str, title: str, content: Callable[[Reading], Iterator[Block]]) -> Section:
    """Return a section; a failure ends it with the reason and does not affect the others."""
    blocks: list[Block] = []
    try:
        for block in content(reading):
            blocks.append(block)
    except Absent as absent:
        blocks.append(Notice(str(absent)))
    except Exception as error:  # a damaged study, Stan or a figure: the page shows the error and the other sections
        reason = " ".join(str(error).split())
        blocks.append(Notice(f"This section is incomplete. {type(error).__name__}: {reason}", "error"))
    return Section(key, title, blocks)
