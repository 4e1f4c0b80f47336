from __future__ import annotations

import shlex
from types import SimpleNamespace

import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import make_url
from testing_reports import filled

from slayr_py.study.results.report import replaying
from slayr_py.study.results.report.blocks import Code, Notice, Paragraph
from slayr_py.study.results.report.reading import Reading


def code(study) -> dict[str, str]:
    return {block.label: block.text for block in replaying.replaying(Reading(study)) if isinstance(block, Code)}


def notices(study) -> str:
    return " ".join(block.text for block in replaying.replaying(Reading(study)) if isinstance(block, Notice))


def paragraph(study) -> str:
    return next(block.text for block in replaying.replaying(Reading(study)) if isinstance(block, Paragraph))


def test_the_lines_work_in_the_folder_of_a_relative_url(plane, tmp_path, monkeypatch, slayr):
    (tmp_path / "results").mkdir()
    monkeypatch.chdir(tmp_path)
    found = code(filled(plane, 6, name="net", storage="sqlite:///results/my net.db"))
    monkeypatch.chdir(tmp_path / "results")
    words = shlex.split(found["The whole study in the terminal"])
    assert slayr(*words[1:])[0] == 0
    opened = {}
    exec(found["Python"].partition("posterior =")[0], opened)
    assert opened["study"].study_name == "net"


def test_a_study_in_a_file_has_quoted_commands_and_python_lines(plane, tmp_path):
    url = f"sqlite:///{tmp_path / 'a $HOME; rm.db'}"
    plane_study = filled(plane, 6, name="--x 'y'", storage=url)
    found = code(plane_study)
    command = shlex.split(found["Command"])
    assert [*command[:2], *command[3:]] == ["slayr", "replay", "--trial", "5", "--study-name=--x 'y'"]
    assert make_url(command[2]).database == "a $HOME; rm.db"  # some characters are escaped
    assert "Run them in the folder of a $HOME; rm.db." in paragraph(plane_study)
    compile(found["Python"], "page", "exec")
    assert repr(command[2]) in found["Python"] and "posterior_of(study, 5)" in found["Python"]


def test_a_study_in_memory_has_python_lines_only(plane):
    study = filled(plane, 6)
    assert list(code(study)) == ["Python"] and "in memory" in notices(study)


def test_a_study_in_a_journal_has_python_lines_only(plane, tmp_path):
    path = tmp_path / "study.log"
    study = filled(plane, 6, storage=JournalStorage(JournalFileBackend(str(path))))
    found = code(study)
    assert list(found) == ["Python"] and "databases only" in notices(study)
    assert "JournalFileBackend('study.log')" in found["Python"]
    assert paragraph(study).endswith("Run them in the folder of study.log.")
    compile(found["Python"], "page", "exec")


def test_passwords_are_not_shown(plane, monkeypatch):
    study = filled(plane, 6)
    monkeypatch.setattr(
        replaying, "storage_of", lambda study: SimpleNamespace(url="postgresql+psycopg://me:secret@host/db")
    )
    found = code(study)
    assert "secret" not in "".join(found.values()) and "Replace ***" in notices(study)
    assert paragraph(study).endswith("Run them on a machine that reaches the database.")


@pytest.mark.parametrize("name", ["a\nb", "a\x1bb"])
def test_names_with_control_characters_have_python_lines_only(plane, tmp_path, name):
    study = filled(plane, 6, name=name, storage=f"sqlite:///{tmp_path / 's.db'}")
    found = code(study)
    assert list(found) == ["Python"] and "control characters" in notices(study)
    assert ascii(name) in found["Python"]


def test_a_study_without_fits(plane):
    assert code(filled(plane, 3)) == {}
