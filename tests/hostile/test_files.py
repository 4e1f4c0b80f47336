"""Configuration files, study files and disks that are not as they should be: one message, and nothing lost."""

from __future__ import annotations

import re
import resource
import sqlite3
import sys
from pathlib import Path

import pytest
import sqlalchemy
from testing_hostility import changed, disk_with_room_for, ordinary_user, stored_values

import slayr_py as sl
from slayr_py.cli.checks import ConfigError
from slayr_py.cli.config import load_config
from slayr_py.errors import ObjectiveError, StorageError
from slayr_py.study.storage.integrity import FORMAT

MODULE = "def bowl(config):\n    return (config['x'] - 0.3) ** 2\n"
CONFIG = """
[study]
budget = 3
n_initial = 3
seed = 1
[objective]
function = "bowls:bowl"
[space]
x = { type = "float", lower = 0.0, upper = 1.0 }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working directory, with a configuration that takes no fit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    for module in ("bowls", "leaving"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    (tmp_path / "bowls.py").write_text(MODULE)
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit('not a module')\n")
    return tmp_path


def said(old: str, new: str) -> bytes:
    assert old in CONFIG
    return CONFIG.replace(old, new).encode()


def command(text: str) -> bytes:
    return said('function = "bowls:bowl"', f"command = {text}")


CONFIGS = [
    ("UTF-16", CONFIG.encode("utf-16"), ConfigError, "study.toml cannot be read: .*utf-8.*; save it as UTF-8"),
    ("five thousand lists", b"a = " + b"[" * 5000, ConfigError, "study.toml is not valid TOML: .*recursion"),
    ("a number of 5000 digits", said("budget = 3", "budget = " + "9" * 5000), ConfigError, "not valid TOML: .*4300"),
    ("a relative module", said("bowls:bowl", "..os:system"), ConfigError, r"\"module:function\", not '..os:system'"),
    ("a module that leaves", said("bowls:bowl", "leaving:f"), ConfigError, "'leaving' raised SystemExit: not a mod"),
    ("a command without a program", command('["", "a"]'), ConfigError, r"must start with a program.*\['', 'a'\]"),
    ("a null character in it", command(r'["a\u0000"]'), ConfigError, "no null character"),
    ("a limit of NaN", command('["true"]\nmax_seconds = nan'), ConfigError, "positive number of seconds, not nan"),
]


@pytest.mark.parametrize(("content", "error", "words"), [row[1:] for row in CONFIGS], ids=[row[0] for row in CONFIGS])
def test_configurations_that_mean_nothing_are_named(folder, slayr, content, error, words):
    (folder / "study.toml").write_bytes(content)
    with pytest.raises(error, match=words) as caught:
        load_config(folder / "study.toml")
    assert type(caught.value) is error
    code, out, err = slayr("optimize", "study.toml", "-q")
    assert (code, out) == (2, "") and err.startswith("slayr: ") and "Traceback" not in err
    assert not list(folder.glob("*.db"))


def test_a_mark_of_the_byte_order_is_read_over(folder):
    (folder / "study.toml").write_bytes(b"\xef\xbb\xbf" + CONFIG.encode())
    assert load_config(folder / "study.toml").options["budget"] == 3


def set_record(path: str, value: str) -> str:
    return f"UPDATE study_user_attributes SET value_json = json_set(value_json, '$.{path}', json('{value}'))"


def set_attribute(key: str, text: str) -> str:
    return f"UPDATE trial_user_attributes SET value_json = '{text}' WHERE trial_id = 1 AND key = 'slayr:{key}'"


def set_suggestion(text: str) -> str:
    return set_attribute("suggestion", text)


DAMAGED = [
    ("a schema to come", ["UPDATE alembic_version SET version_num = 'v99.a'"], "does not open: .*try updating optuna"),
    ("a table is gone", ["DROP TABLE study_directions"], "is damaged: it has no direction. Restore a copy"),
    ("values are gone", ["DELETE FROM trial_values"], "trial 0 is complete and has the value None. Restore a copy"),
    ("a value is a text", ["UPDATE trial_values SET value = 'abc'"], "trial 0 is complete and has the value 'abc'"),
    ("a state to come", ["UPDATE trials SET state = 'DREAMING'"], "is damaged: LookupError: 'DREAMING' is not"),
    ("our record is no JSON", ["UPDATE study_user_attributes SET value_json = '{'"], "damaged: JSONDecodeError"),
    ("our record is empty", ["UPDATE study_user_attributes SET value_json = '{}'"], "its record .*KeyError: 'space'"),
    ("our record is deep", [f"UPDATE study_user_attributes SET value_json = '{'[' * 99999}'"], "RecursionError"),
    ("our record is of a version to come", [set_record("format", str(FORMAT + 1))], "format 2, this .*pip install -U"),
    ("the space is a text", [set_record("space", '"x"')], "its record .*not a ConfigSpace space"),
    ("the seed is a text", [set_record("seed", '"x"')], "its record .*seed is 'x'"),
    (
        "the bounds are a number",
        ["UPDATE study_user_attributes SET value_json = '7' WHERE key = 'slayr:bounds'"],
        "its bounds 'slayr:bounds' are 7. Restore",
    ),
    ("a list suggests", [set_suggestion("[]")], r"trial 0 was suggested by \[\], which is not a record. Restore"),
    ("a part of it is a number", [set_suggestion('{"config": 7}')], "trial 0 was suggested with the config 7. Restore"),
    ("the objectives are a number", [set_suggestion('{"objectives": 7}')], "suggested with the objectives 7. Restore"),
    ("a count is a word", [set_attribute("evaluations", '"often"')], "trial 0 was evaluated 'often' times. Restore"),
    (
        "a count of runs is a word",
        [
            "UPDATE trial_user_attributes SET key = 'slayr:postponed' WHERE trial_id = 1 AND key = 'slayr:evaluations'",
            set_attribute("postponed", '"often"'),
        ],
        "trial 0 was postponed 'often' times",
    ),
    ("a value that is a word", [set_attribute("value", '"low"')], "trial 0 has the unfinished value 'low'. Restore"),
]


@pytest.mark.parametrize(("statements", "words"), [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_a_damaged_study_is_named_at_once_and_left_as_it_is(study_file, go_on, slayr, statements, words):
    changed(study_file, *statements)
    before = study_file.read_bytes()
    with pytest.raises(StorageError, match=words) as caught:
        go_on(study_file, 5, lambda config: pytest.fail("evaluated"))
    assert type(caught.value) is StorageError
    code, _, err = slayr("inspect", study_file)
    assert code == 4 and err.startswith("slayr: ") and "Traceback" not in err
    assert trials_in(study_file) == 3 or "DROP TABLE" in statements[0], "the trials are still there"
    assert len(study_file.read_bytes()) == len(before)


def trials_in(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        (count,) = database.execute("SELECT count(*) FROM trials").fetchone()
    finally:
        database.close()
    return int(count)


BYTES = [
    ("half of it", lambda old: old[: len(old) // 2], "malformed; restore a copy"),
    ("a page overwritten", lambda old: old[:4096] + bytes(4096 * 4) + old[4096 * 5 :], "malformed|damaged"),
]


@pytest.mark.parametrize(("change", "words"), [row[1:] for row in BYTES], ids=[row[0] for row in BYTES])
def test_a_file_that_is_no_database_is_named_and_left_as_it_is(study_file, go_on, slayr, change, words):
    before = change(study_file.read_bytes())
    study_file.write_bytes(before)
    with pytest.raises(StorageError, match=words) as caught:
        go_on(study_file, 5, lambda config: pytest.fail("evaluated"))
    assert type(caught.value) is StorageError
    code, _, err = slayr("inspect", study_file)
    assert code == 4 and re.search(words, err), err
    assert study_file.read_bytes() == before


def test_a_file_that_another_program_holds_is_named(study_file, go_on, monkeypatch):
    monkeypatch.setattr("slayr_py.study.storage.opening.LOCK_SECONDS", 0.1)
    other = sqlite3.connect(study_file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageError, match="database is locked; another program has locked it") as caught:
        go_on(study_file, 5, lambda config: pytest.fail("evaluated"))
    other.close()
    assert type(caught.value) is StorageError and len(stored_values(study_file)) == 3


def test_a_trial_with_one_value_in_a_study_of_two_objectives_is_named(study_file, go_on):
    changed(study_file, "INSERT INTO study_directions(direction, study_id, objective) VALUES ('MINIMIZE', 1, 1)")
    with pytest.raises(StorageError, match=r"trial 0 is complete and has the value -0\.7\d+ for 2 objectives"):
        go_on(study_file, 5)


def test_a_file_that_may_only_be_read_can_be_looked_at_but_not_gone_on_with(open_folder, go_on, slayr):
    path = open_folder / "study.db"
    go_on(path, 3)
    assert slayr("inspect", path)[0] == 0  # whatever is imported late is imported now, as root
    path.chmod(0o444)
    with ordinary_user():
        with pytest.raises(StorageError, match="readonly database; make the file and its folder .*writable") as caught:
            go_on(path, 5, lambda config: pytest.fail("evaluated"))
        code, out, _ = slayr("inspect", path)
    assert type(caught.value) is StorageError
    assert code == 0 and "3 trials" in out
    assert len(stored_values(path)) == 3


def test_a_file_that_may_not_be_read_is_named(open_folder, go_on):
    path = open_folder / "study.db"
    go_on(path, 3)
    path.chmod(0)
    with ordinary_user():
        with pytest.raises(StorageError, match="unable to open database file; make the file .* readable") as caught:
            go_on(path, 5)
        with pytest.raises(StorageError, match="new.db does not open: .*; make the file and its folder"):
            go_on(open_folder / "new.db", 5)
    assert type(caught.value) is StorageError
    path.chmod(0o600)
    assert len(stored_values(path)) == 3


def test_a_full_disk_before_the_study_is_named(tmp_path, go_on):
    with (
        disk_with_room_for(20_000),
        pytest.raises(StorageError, match="does not open: .*make room on its disk") as error,
    ):
        go_on(tmp_path / "study.db", 3, lambda config: pytest.fail("evaluated"))
    assert type(error.value) is StorageError


def test_a_full_disk_during_the_study_loses_no_value(study_file, go_on, monkeypatch):
    monkeypatch.setattr("slayr_py.study.storage.retrying.PATIENCE", 0.0)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    calls = []

    def objective(config):
        calls.append(config["x"])
        if len(calls) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        return config["x"]

    with disk_with_room_for(-1), pytest.raises(StorageError) as caught:
        go_on(study_file, 8, objective)
    assert type(caught.value) is StorageError
    # The one value that could not be stored is in the message, with the way to store it.
    tell = re.search(rf"except the value {calls[1]!r} of trial 4 at .*study\.tell\((4, .*?)\)", str(caught.value))
    assert tell and "make room on its disk" in str(caught.value)
    assert stored_values(study_file)[3] == calls[0] and stored_values(study_file)[4] is None
    sl.study.tell(go_on(study_file, 4).study, 4, calls[1])
    go_on(study_file, 8)
    assert stored_values(study_file)[3:5] == calls[:2] and len(stored_values(study_file)) == 8


@pytest.mark.stan
def test_a_full_run_folder_costs_a_fit_and_no_evaluation(study_file, go_on, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))  # nothing can be written there
    with pytest.warns(RuntimeWarning, match=r"the fit failed.*in the temporary folder .*/file; make room"):
        go_on(study_file, 5, n_initial=3)
    assert None not in stored_values(study_file) and len(stored_values(study_file)) == 5


def test_a_file_that_sqlite_calls_full_is_named(study_file, go_on, monkeypatch):
    """As on a disk without room for another page; a limit on the size of files is an error of input and output."""
    monkeypatch.setattr("slayr_py.study.storage.retrying.PATIENCE", 0.0)

    def limit(connection, _):
        connection.execute("PRAGMA max_page_count = 1")

    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", limit)
    try:
        with pytest.raises(StorageError, match="database or disk is full.*make room on its disk"):
            go_on(study_file, 100, n_initial=100)
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "connect", limit)
    assert len(go_on(study_file, 4).trials) >= 4


def test_a_figure_that_cannot_be_written_costs_no_study(folder, slayr):
    (folder / "study.toml").write_text(CONFIG)
    (folder / "study_convergence.png").mkdir()
    code, out, _ = slayr("optimize", "study.toml", "-q")
    assert code == 0 and "figure      none: study_convergence.png cannot be written: Is a directory" in out
    assert "best value" in out


def test_a_password_is_never_shown(folder, slayr, monkeypatch):
    def failing(*arguments, **options):
        raise ObjectiveError("no data")

    monkeypatch.setattr("slayr_py.cli.optimize.minimize", failing)
    (folder / "study.toml").write_text(CONFIG)
    code, out, err = slayr("optimize", "study.toml", "-q", "--storage", "postgresql://me:secret@host/x")
    assert code == 1 and "secret" not in out + err and err.count("postgresql://me:***@host/x") == 2


NAMES = ["../evil", "/tmp/evil", "..", "-q", "", "a\0b", "a?mode=ro", "n" * 300]


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name)[:20] for name in NAMES])
def test_a_study_keeps_to_its_folder(folder, slayr, name):
    inner = folder / "inner"
    inner.mkdir()
    text = CONFIG.replace("[study]", f"[study]\nname = {quoted(name)}\noutput = 'inner'")
    (folder / "study.toml").write_text(text)
    before = sorted(folder.rglob("*"))
    code, _, err = slayr("optimize", "study.toml", "-q")
    assert code == 2 and re.search("the study's name .* cannot be used in file names: .*choose a plain name", err)
    assert [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts] == before


def quoted(name: str) -> str:
    return '"' + "".join(c if c.isalnum() or c in " .-/?%=" else f"\\u{ord(c):04x}" for c in name) + '"'


def test_odd_names_that_stay_in_the_folder_are_names(folder, slayr):
    (folder / "study.toml").write_text(CONFIG)
    assert slayr("optimize", "study.toml", "-q", "--study-name", "é è [1] (b), c=2")[0] == 0
    assert (folder / "é è [1] (b), c=2.db").is_file()


def test_an_output_that_no_folder_can_be_is_named(folder, slayr):
    (folder / "study.toml").write_text(CONFIG.replace("[study]", '[study]\noutput = "bowls.py"'))
    code, _, err = slayr("optimize", "study.toml", "-q")
    assert code == 2 and re.search("the output folder 'bowls.py' cannot be created: .*; choose another", err)
