"""How to repeat the fit behind a suggestion: commands and Python lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage

from slayr_py.study.results.refits import fitted_numbers
from slayr_py.study.results.report.blocks import Block, Code, Notice, Paragraph
from slayr_py.study.results.report.reading import Reading
from slayr_py.study.storage.opening import url_without_password
from slayr_py.study.storage.optuna_private import journal_of, storage_of
from slayr_py.study.storage.trials import to_ranges


def replaying(reading: Reading) -> Iterator[Block]:
    """Return commands and Python lines for the last fit."""
    numbers = fitted_numbers(reading.study)
    if not numbers:
        yield Notice("No trial has a fit, so there is nothing to replay.")
        return
    url, opened = _open(reading)
    ranges = [str(first) if first == last else f"{first} to {last}" for first, last in to_ranges(numbers)]
    yield Paragraph(
        f"The study stores what is needed to repeat every fit. Trials with a fit: {', '.join(ranges)}. On the same "
        "machine with the same compiler and packages the draws are identical, bit for bit. The lines below are for the "
        f"last one; use the number of another trial for its fit.{_where(url, storage_of(reading.study))}"
    )
    name = reading.study.study_name
    if url is not None and url.isprintable() and name.isprintable():
        words = ["slayr", "replay", url, "--trial", str(numbers[-1]), f"--study-name={name}"]
        yield Code("Command", shlex.join(words))
        yield Code("The whole study in the terminal", shlex.join(["slayr", "inspect", url, f"--study-name={name}"]))
        if "***" in url:
            yield Notice("Replace *** by the password of the database.")
    elif url is not None:
        yield Notice("The name has control characters, which a command line cannot show: use the Python lines.")
    else:
        yield Notice("The command line reads databases only: use the Python lines.")
    if opened is None:
        yield Notice("The study is in memory and ends with its process; pass storage= to keep the next one.")
        opened = ["study = ...  # the study of this session"]
    yield Code("Python", "\n".join([*opened, *_lines(numbers[-1], reading.has_several)]))


def _lines(number: int, several: bool) -> list[str]:
    which = ", objective=0" if several else ""
    return [
        f"posterior = sl.study.posterior_of(study, {number}{which})  # the fit behind its suggestion",
        f"for again in sl.study.replay(study, {number}):",
        "    print(again.identical, again.agrees, again.differences)",
    ]


def _where(url: str | None, storage: BaseStorage) -> str:
    """Return where the lines work: they name a file without its folder."""
    file = _file_of(url) or journal_of(storage)
    if file is not None:
        return f" Run them in the folder of {file.name}."
    return "" if url is None else " Run them on a machine that reaches the database."


def _file_of(url: str | None) -> Path | None:
    """Return the file of an SQLite URL; None for other databases."""
    parsed = None if url is None else sqlalchemy.make_url(url)
    if parsed is None or parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    return None if parsed.database.startswith("file:") else Path(parsed.database)


def _open(reading: Reading) -> tuple[str | None, list[str] | None]:
    """Return the URL of the study's storage, and Python lines that open the study; None where there is none."""
    storage = storage_of(reading.study)
    name = reading.study.study_name
    imports = ["import optuna", "import slayr_py as sl", ""]
    if isinstance(storage, JournalStorage) and (path := journal_of(storage)) is not None:
        lines = [
            *(
                "from optuna.storages import JournalStorage",
                "from optuna.storages.journal import JournalFileBackend",
                "",
            ),
            f"storage = JournalStorage(JournalFileBackend({ascii(path.name)}))",
            f"study = optuna.load_study(study_name={ascii(name)}, storage=storage)",
        ]
        return None, [*imports[:2], *lines]
    url = getattr(storage, "url", None)
    if isinstance(storage, InMemoryStorage) or not isinstance(url, str) or url in ("sqlite://", "sqlite:///:memory:"):
        return None, None
    url = url_without_password(url)
    if (file := _file_of(url)) is not None:
        url = sqlalchemy.make_url(url).set(database=file.name).render_as_string()
    return url, [*imports, f"study = optuna.load_study(study_name={ascii(name)}, storage={ascii(url)})"]
